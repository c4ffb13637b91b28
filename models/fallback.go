package models

import (
	"context"
	"errors"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Fallback asks first, and if that fails the others in order. Every failure
// passes on but the caller's: an ended context, a request that cannot be meant,
// and a budget's refusal. A stream that had begun is restarted (Delta.Restart).
// The error of a Fallback whose models all failed joins all of theirs. Its Info
// is the first's, its name too: ledger rows carry the name of the model that was
// really asked. Nil models are left out.
func Fallback(first Model, then ...Model) Model {
	x := &fallback{}
	for _, m := range append([]Model{first}, then...) {
		if m != nil {
			x.models = append(x.models, m)
		}
	}
	switch len(x.models) {
	case 0:
		return nil
	case 1:
		return x.models[0]
	}
	return x
}

type fallback struct{ models []Model }

// Info is that of the first model.
func (x *fallback) Info() Info { return x.models[0].Info() }

// Map applies f to the models within.
func (x *fallback) Map(f func(Model) Model) Model {
	y := &fallback{}
	for _, m := range x.models {
		y.models = append(y.models, f(m))
	}
	return y
}

// estimate: each model may be asked and billed, one after the other.
func (x *fallback) estimate(r *Request) cost.Estimate {
	e := Estimate(x.models[0], r)
	for _, m := range x.models[1:] {
		o := Estimate(m, r)
		e.Worst = e.Worst.Add(cost.Spend{USD: o.Worst.USD, Tokens: o.Worst.Tokens, GPU: o.Worst.GPU})
		e.Priced = e.Priced && o.Priced
	}
	return e
}

// Generate asks the models in order.
func (x *fallback) Generate(ctx context.Context, r *Request) (*Response, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	q, restart := restarting(r)
	var failed []error
	for _, m := range x.models {
		restart()
		resp, err := m.Generate(ctx, q)
		if err == nil {
			return resp, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil || errors.Is(err, ErrInvalidRequest) || errors.Is(err, cost.ErrExceeded) {
			break
		}
	}
	return nil, errors.Join(failed...)
}

// restarting returns a copy of r, and a function to call before each attempt: it
// tells the consumer of a stream to forget what an attempt before had sent.
func restarting(r *Request) (*Request, func()) {
	q := *r
	if r.OnDelta == nil {
		return &q, func() {}
	}
	streamed := false
	q.OnDelta = func(d Delta) {
		streamed = true
		r.OnDelta(d)
	}
	return &q, func() {
		if streamed {
			r.OnDelta(Delta{Restart: true})
			streamed = false
		}
	}
}
