// Local starts or finds Orchestrator-8B on this machine's GPU, says in one
// screen what it found, and lets it decide about a task.
//
//	go run ./examples/local
//	go run ./examples/local "your question"
//
// It needs Ollama (https://ollama.com/download) and a GPU with 8 GB or more; the
// first run downloads 5 to 16 GB of weights, which NVIDIA licenses for research
// and development only. It never runs on the processor unless you say -cpu. The
// only expert is the same model, asked in plain chat, so that nothing is paid.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

func main() {
	cpu := flag.Bool("cpu", false, "run on the processor if there is no GPU")
	weights := flag.String("weights", policy.Weights, "another model, as Ollama knows it")
	flag.Parse()
	if err := run(*cpu, *weights, strings.Join(flag.Args(), " ")); err != nil {
		fmt.Fprintln(os.Stderr, "\n"+err.Error())
		os.Exit(1)
	}
}

func run(cpu bool, weights, question string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opts := []policy.LocalOption{policy.WithProgress(progress), policy.WithWeights(weights)}
	if cpu {
		opts = append(opts, policy.WithCPU())
	}
	p, err := policy.Local(ctx, opts...)
	if err != nil {
		var e *policy.LocalError
		if errors.As(err, &e) {
			fmt.Printf("\n%s", e.Report)
		}
		return err
	}
	defer p.Close()
	fmt.Printf("\n%s\n", p.Report())

	r := p.Report()
	expert, err := ollama.New(r.Weights, ollama.Config{BaseURL: r.Server, Context: r.Context, KeepAlive: -1, Info: models.Info{MaxOutput: 2000}})
	if err != nil {
		return err
	}
	defer expert.Close()
	o, err := orchestra.New(orchestra.WithPolicy(p), orchestra.WithExperts(expert))
	if err != nil {
		return err
	}
	if question == "" {
		question = "What is the capital of France?"
	}
	res, err := o.Run(ctx, orchestra.Task{Prompt: question})
	for _, t := range res.Trajectory.Turns() {
		for _, c := range t.Decision.Calls {
			fmt.Printf("turn %d, %s: %s %s\n", t.N, t.Took.Round(time.Millisecond), c.Tool, c.Args)
		}
	}
	fmt.Println("answer:", res.Answer)
	return err
}

// progress draws a bar for the download, and a line for every other step.
func progress(p policy.Progress) {
	if p.Total == 0 {
		fmt.Printf("%-9s %s\n", p.Stage, p.Text)
		return
	}
	const width = 40
	done := int(width * p.Done / p.Total)
	fmt.Printf("\r[%s%s] %5.1f %%  %.1f of %.1f GB ", strings.Repeat("#", done), strings.Repeat(".", width-done),
		100*float64(p.Done)/float64(p.Total), float64(p.Done)/1e9, float64(p.Total)/1e9)
	if p.Done == p.Total {
		fmt.Println()
	}
}
