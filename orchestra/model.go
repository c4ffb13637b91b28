package orchestra

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Model makes the orchestrator a model: for another one's experts, for code that
// knows only models, or behind a server. Each request is a run, whose task is
// the last message, which must be a user's; the messages before it are its
// conversation. i names and describes it; its Price is not used, since what runs
// ask is charged at the models that they ask.
//
// A run spends from the meter in the context, or on its own without one; at most
// the limit of this orchestrator's WithBudget ($0.10 by default). Text of the
// answer is streamed when it stands. Raw prompts, tools and schemas are
// refused. A run without an answer is a *models.Error that wraps the *RunError.
func (o *Orchestrator) Model(i models.Info) models.Model {
	i.Raw, i.Tools, i.Schema = false, false, false
	i.Price = cost.Free()
	return &asModel{o, i}
}

type asModel struct {
	o    *Orchestrator
	info models.Info
}

// Info describes the model.
func (m *asModel) Info() models.Info { return m.info }

// Map does nothing: the models within are metered by the run that asks them.
func (m *asModel) Map(func(models.Model) models.Model) models.Model { return m }

// Estimate is what one run may spend.
func (m *asModel) Estimate(*models.Request) cost.Estimate {
	most, bounded := m.o.budget.WithDefaults().USD.Amount()
	if !bounded {
		most = cost.MaxAmount
	}
	return cost.Estimate{Name: m.info.Name, Mean: cost.Spend{USD: most / 2, Time: m.info.Latency}, Priced: true,
		Worst: cost.Spend{USD: most, Tokens: cost.AnyTokens, Calls: 1}}
}

// Generate runs a task.
func (m *asModel) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	fail := func(err error) (*models.Response, error) {
		return nil, &models.Error{Model: m.info.Name, Provider: m.info.Provider, Err: err}
	}
	if err := r.Validate(); err != nil {
		return fail(err)
	}
	last := len(r.Messages) - 1
	switch {
	case r.Prompt != "" || len(r.Tools) > 0 || len(r.Schema) > 0:
		return fail(fmt.Errorf("%w: an orchestrator takes messages only, no raw prompt, tools or schema", models.ErrInvalidRequest))
	case r.Messages[last].Role != models.User:
		return fail(fmt.Errorf("%w: the last message must be the user's", models.ErrInvalidRequest))
	}
	res, err := m.o.Run(ctx, Task{Prompt: r.Messages[last].Text, Messages: r.Messages[:last]})
	u := cost.Usage{Requests: 1, Wall: res.Spent.Time, USD: &res.Spent.USD}
	var invalid *InvalidError
	if err != nil {
		if errors.As(err, &invalid) && len(res.Ledger) == 0 && ctx.Err() == nil && !errors.Is(err, cost.ErrExceeded) {
			err = fmt.Errorf("%w: %w", models.ErrInvalidRequest, err)
		}
		e := &models.Error{Model: m.info.Name, Provider: m.info.Provider, Sent: len(res.Ledger) > 0, Err: err}
		if e.Sent {
			e.Partial = &models.Response{Usage: u}
		}
		return nil, e
	}
	total := res.Ledger.Total()
	for _, row := range res.Ledger {
		u.Input, u.Output = u.Input+row.Usage.Input, u.Output+row.Usage.Output
	}
	u.Known = total.Unpriced == 0
	if r.OnDelta != nil {
		r.OnDelta(models.Delta{Text: res.Answer})
	}
	finish := models.FinishStop
	if res.Truncated {
		finish = models.FinishLength
	}
	return &models.Response{Text: res.Answer, Finish: finish, Usage: u, Model: m.info.Name}, nil
}
