// Quickstart shows what the SDK does, on a bare machine: it indexes the
// documentation of the Go standard library that came with your Go, and answers
// questions about it, turn by turn, within a budget.
//
// With -h it says how to configure expert models.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

// questions show the three kinds of work: looked up, computed, both.
var questions = []string{
	"Which function compares two MACs without leaking timing information?",
	"What is 17.5 percent of 2,340?",
	"What is 8 times sha512.BlockSize?",
}

const usage = `quickstart answers questions about Go's standard library, from its documentation.

    go run ./examples/quickstart                  three built-in questions
    go run ./examples/quickstart "your question"  each argument is a question

Expert models are used where the environment configures them:

    OPENAI_API_KEY    key of an OpenAI-compatible server
    OPENAI_BASE_URL   its address, if it is not api.openai.com
    ORCHESTRA_MODELS  "gpt-5-mini,qwen=0.25/2@http://127.0.0.1:8000/v1": names, USD per
                      million tokens in/out where they are not known, other addresses
    ORCHESTRA_BUDGET  USD per question; 0.02 if it is not set
`

func main() {
	log.SetFlags(0)
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if flag.NArg() > 0 {
		questions = flag.Args()
	}
	for _, q := range questions {
		if strings.TrimSpace(q) == "" {
			log.Fatal("quickstart: the question is empty")
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Getenv, questions); err != nil {
		log.Fatal("quickstart: ", err)
	}
}

// run answers the questions; the error says which could not be answered.
func run(ctx context.Context, out io.Writer, env func(string) string, questions []string) error {
	experts, err := expertsFromEnvironment(env)
	if err != nil {
		return err
	}
	budget, err := budgetFromEnvironment(env)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Reading the documentation of your Go installation …")
	start := time.Now()
	docs, err := goDocuments(ctx)
	if err != nil {
		return err
	}
	index, err := search.Open(":memory:")
	if err != nil {
		return err
	}
	defer index.Close()
	if err := index.Add(ctx, docs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d entries indexed in %.1f s. Experts: %s.\n", len(docs), time.Since(start).Seconds(), describe(experts))

	o, err := orchestra.New(
		orchestra.WithExperts(experts...),
		orchestra.WithSearch(index),
		orchestra.WithTools(search.Reader(), tools.Calculator()),
		orchestra.WithBudget(cost.Budget{USD: budget, Time: time.Minute}),
	)
	if err != nil {
		return err
	}
	defer o.Close()
	unanswered := 0
	for _, q := range questions {
		s := o.Stream(ctx, orchestra.Task{Prompt: q})
		show(out, q, s)
		if _, err := s.Result(); err != nil {
			unanswered++
		}
	}
	fmt.Fprint(out, hint)
	if unanswered > 0 {
		return fmt.Errorf("%d of %d questions have no answer", unanswered, len(questions))
	}
	return nil
}
