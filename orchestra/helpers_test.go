package orchestra_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// decideFunc is a policy that can write, made of a function.
type decideFunc func(ctx context.Context, s *policy.State) (policy.Decision, error)

func (f decideFunc) Info() policy.Info { return policy.Info{Name: "scripted", Writes: true} }
func (f decideFunc) Decide(ctx context.Context, s *policy.State) (policy.Decision, error) {
	return f(ctx, s)
}

// script decides step by step; after the last step it finishes with "done".
func script(steps ...policy.Decision) decideFunc {
	return func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if s.Turn <= len(steps) {
			return steps[s.Turn-1], nil
		}
		return say("done"), nil
	}
}

func say(text string) policy.Decision { return policy.Decision{Finish: &policy.Finish{Text: text}} }

func call(tool, args string) policy.Decision {
	return policy.Decision{Calls: []policy.Call{{Tool: tool, Args: json.RawMessage(args)}}}
}

func calls(cs ...policy.Call) policy.Decision { return policy.Decision{Calls: cs} }

// fnTool is a raw tool made of a function.
type fnTool struct {
	spec tools.Spec
	fn   func(context.Context, tools.Call) (tools.Result, error)
}

func (t fnTool) Spec() tools.Spec { return t.spec }
func (t fnTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return t.fn(ctx, c)
}

func noop(name string, ran *atomic.Int64) tools.Tool {
	return fnTool{tools.Spec{Name: name, Description: "does nothing"}, func(context.Context, tools.Call) (tools.Result, error) {
		if ran != nil {
			ran.Add(1)
		}
		return tools.Result{Text: "ok"}, nil
	}}
}

// echo is a model that answers with a fixed text at a price.
type echo struct {
	info models.Info
	text string
	use  cost.Usage
}

func (m echo) Info() models.Info { return m.info }
func (m echo) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u := m.use
	if !u.Known {
		u = cost.Usage{Input: 100, Output: 20, Known: true}
	}
	if r.OnDelta != nil {
		r.OnDelta(models.Delta{Text: m.text})
	}
	return &models.Response{Text: m.text, Finish: models.FinishStop, Usage: u}, nil
}

func expert(name, text string, p cost.Price) echo {
	return echo{info: models.Info{Name: name, Price: p, MaxOutput: 500, MinOutput: 50}, text: text}
}

func newOrchestra(t testing.TB, opts ...orchestra.Option) *orchestra.Orchestrator {
	t.Helper()
	o, err := orchestra.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
