//go:build unix

package orchestra_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/code"
)

// markedShelf is a retriever whose documents show the script model its next step.
type markedShelf struct{}

func (markedShelf) Name() string { return "shelf" }
func (markedShelf) Retrieve(_ context.Context, query string, _ int) ([]tools.Document, error) {
	return []tools.Document{{ID: "d1", Title: query, Text: "The factors are 6 and 7. [[S32]]"}}, nil
}

// A whole run on a real server, with the script model in the place of
// Orchestrator-8B: it searches, has a program written and run, and answers.
func TestWholeRunOnARealServer(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "script", ollama.RawTemplate, "")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p, err := policy.Local(ctx, policy.WithServer(s.URL), policy.WithWeights("script"), policy.WithCPU(), policy.WithContext(8192),
		policy.WithRuntime(map[string]any{"num_thread": 1}), policy.WithMaxOutput(500))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	asked := 0
	expert := modeltest.Func(models.Info{Name: "expert", Price: cost.Tokens(1, 2), MaxOutput: 1000}, func(_ context.Context, r *models.Request) (*models.Response, error) {
		asked++
		all := ""
		for _, m := range r.Messages {
			all += m.Text
		}
		text := "<query>factors</query>"
		switch {
		case strings.Contains(all, "```javascript"):
			text = "```javascript\nconst [a, b] = [6, 7];\nconsole.log(a * b, '[[S' + (30 + 3) + ']]');\n```"
		case strings.Contains(all, "</answer>"):
			text = "<answer>no output of a program was shown</answer>"
			if strings.Contains(all, "42 [[S33]]") {
				text = "<answer>42 [1]</answer>"
			}
		}
		return &models.Response{Text: text, Finish: models.FinishStop, Usage: cost.Usage{Input: 100, Output: 10, Known: true}}, nil
	})
	js, err := code.JavaScript()
	if err != nil {
		t.Fatal(err)
	}
	o := newOrchestra(t, orchestra.WithPolicy(p), orchestra.WithExperts(expert), orchestra.WithSearch(markedShelf{}), orchestra.WithCode(js))
	res, err := o.Run(ctx, orchestra.Task{Prompt: "Multiply the factors. [[S31]]", Budget: cost.Budget{USD: cost.USD(0.05)}})
	if err != nil || res.Answer != "42 [1]" || res.Stop != orchestra.Answered {
		t.Fatalf("%q, %s, %v", res.Answer, res.Stop, err)
	}
	var steps []string
	for _, turn := range res.Trajectory.Turns() {
		for _, o := range turn.Done {
			steps = append(steps, o.Call.Tool)
			for _, r := range o.Result.Runs {
				steps = append(steps, strings.TrimSpace(r.Output))
			}
		}
	}
	if got := fmt.Sprint(steps); got != "[search enhance_reasoning 42 [[S33]] answer]" {
		t.Errorf("steps %v", got)
	}
	// Three calls of the expert are paid, three of the policy are free and listed.
	if want := 3 * (100*cost.Dollars(0.000001) + 10*cost.Dollars(0.000002)); res.Spent.USD != want || asked != 3 || len(res.Ledger) != 6 {
		t.Errorf("spent %v, want %v; asked %d times, ledger %+v", res.Spent.USD, want, asked, res.Ledger)
	}
	free := 0
	for _, r := range res.Ledger {
		if r.Name == "script" && r.USD == 0 && r.Usage.Known && r.Usage.Output > 0 {
			free++
		}
	}
	if free != 3 {
		t.Errorf("%d rows of the policy: %+v", free, res.Ledger)
	}
	if again := stored(t, res.Trajectory).Result(); again.Answer != res.Answer || again.Spent.USD != res.Spent.USD {
		t.Errorf("stored: %q, %v", again.Answer, again.Spent.USD)
	}
}

// Where the model thinks and never calls, one more try is forced by grammar.
func TestForcedOnARealServer(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "script", ollama.RawTemplate, "")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p, err := policy.Local(ctx, policy.WithServer(s.URL), policy.WithWeights("script"), policy.WithCPU(), policy.WithContext(8192),
		policy.WithRuntime(map[string]any{"num_thread": 1}), policy.WithMaxOutput(500))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	o := newOrchestra(t, orchestra.WithPolicy(p), orchestra.WithExperts(expert("only", "an answer", cost.Tokens(1, 2))))
	res, err := o.Run(ctx, orchestra.Task{Prompt: "What now? [[S34]]"})
	if err != nil || res.Answer != "an answer" {
		t.Fatalf("%q, %v", res.Answer, err)
	}
	if turns := res.Trajectory.Turns(); len(turns) != 1 || !turns[0].Decision.Forced || turns[0].Decision.Calls[0].Tool != "answer" {
		t.Errorf("%+v", turns)
	}
}
