package orchestra

import (
	"context"
	"encoding/json"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// nested is what an orchestrator takes as a tool.
type nested struct {
	Task string `json:"task" validate:"required" desc:"what to find out"`
}

// Tool makes the orchestrator a tool of another one: its runs answer the task
// that they are given. They spend from the outer run, at most the limit of this
// orchestrator's WithBudget ($0.10 by default) a call, and their charges are
// rows of the outer ledger too. An error is a *tools.SpecError.
func (o *Orchestrator) Tool(name, description string) (tools.Tool, error) {
	most, _ := o.budget.WithDefaults().USD.Amount()
	effects := tools.Answers | tools.ReadOnly
	for i := range o.specs { // it promises no more than its tools do
		effects &= o.specs[i].Effects | tools.Answers
	}
	return tools.New(name, description, func(ctx context.Context, in nested) (tools.Result, error) {
		res, err := o.Run(ctx, Task{Prompt: in.Task})
		if err != nil {
			return tools.Result{}, err
		}
		a := tools.Attempt{By: name, Text: res.Answer, Sources: res.Sources, Truncated: res.Truncated}
		return tools.Result{Text: res.Answer, Attempts: []tools.Attempt{a}, Truncated: res.Truncated}, nil
	}, tools.WithEffects(effects), tools.WithMaxSpend(most), tools.WithPropose(func(c tools.Call) []json.RawMessage {
		args, err := json.Marshal(nested{Task: c.Prompt})
		if err != nil {
			return nil
		}
		return []json.RawMessage{args}
	}))
}
