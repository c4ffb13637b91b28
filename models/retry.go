package models

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// RetryPolicy says how often and how patiently Retry tries.
type RetryPolicy struct {
	Attempts int           // in all; 0 = 3
	Wait     time.Duration // before the second attempt, doubling from there, with jitter; 0 = 500 ms
	MaxWait  time.Duration // longest single wait; a server that asks for more is not asked again. 0 = 30 s
}

// Retry tries m again after errors that say they are Retryable. It waits as
// long as the server's Retry-After asks, and not at all if the wait would
// outlast the context's deadline: the error then comes at once. A stream that
// had begun is restarted (Delta.Restart). Refusals of a budget are not retried.
func Retry(m Model, p RetryPolicy) Model {
	if m == nil {
		return nil
	}
	if p.Attempts <= 0 {
		p.Attempts = 3
	}
	if p.Wait <= 0 {
		p.Wait = 500 * time.Millisecond
	}
	if p.MaxWait <= 0 {
		p.MaxWait = 30 * time.Second
	}
	return &retry{m, p}
}

type retry struct {
	m Model
	p RetryPolicy
}

// Info describes the model.
func (x *retry) Info() Info { return x.m.Info() }

// Unwrap gives the cause.
func (x *retry) Unwrap() Model { return x.m }

// Map applies f to the models within.
func (x *retry) Map(f func(Model) Model) Model { return &retry{f(x.m), x.p} }

// Generate asks the model.
func (x *retry) Generate(ctx context.Context, r *Request) (*Response, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	q, restart := restarting(r)
	var last, before error // of the newest attempt, and of the one before it
	resp, err := backoff.RetryWithData(func() (*Response, error) {
		restart()
		resp, err := x.m.Generate(ctx, q)
		last, before = err, last
		var e *Error
		if err != nil && (!errors.As(err, &e) || !e.Retryable || ctx.Err() != nil) {
			err = backoff.Permanent(err)
		}
		return resp, err
	}, backoff.WithContext(&waits{ctx: ctx, p: x.p, last: &last, ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(x.p.Wait), backoff.WithMaxInterval(x.p.MaxWait), backoff.WithMaxElapsedTime(0))}, ctx))
	if err != nil && last != nil && ctx.Err() != nil && !errors.Is(last, err) {
		return nil, errors.Join(err, last) // cut off while waiting: both are true
	}
	if err != nil && before != nil && errors.Is(err, cost.ErrExceeded) {
		return nil, errors.Join(before, err) // what failed, and why it was not tried again
	}
	return resp, err
}

// mostBilled attempts are reserved for; further ones find what is left.
const mostBilled = 8

// estimate: each attempt may be billed.
func (x *retry) estimate(r *Request) cost.Estimate {
	e := Estimate(x.m, r)
	one := e.Worst
	for range min(x.p.Attempts, mostBilled) - 1 {
		e.Worst = e.Worst.Add(cost.Spend{USD: one.USD, Tokens: one.Tokens, GPU: one.GPU})
	}
	return e
}

// waits is exponential backoff that knows what the server asked for and when
// waiting is pointless.
type waits struct {
	*backoff.ExponentialBackOff
	ctx  context.Context
	p    RetryPolicy
	n    int
	last *error
}

// NextBackOff is the wait before the next attempt, or backoff.Stop.
func (w *waits) NextBackOff() time.Duration {
	w.n++
	wait := min(w.ExponentialBackOff.NextBackOff(), w.p.MaxWait)
	var e *Error
	if errors.As(*w.last, &e) && e.RetryAfter > wait {
		wait = e.RetryAfter
	}
	deadline, bounded := w.ctx.Deadline()
	if w.n >= w.p.Attempts || wait > w.p.MaxWait || bounded && time.Until(deadline) <= wait {
		return backoff.Stop
	}
	return wait
}

// Reset begins anew.
func (w *waits) Reset() {
	w.n = 0
	w.ExponentialBackOff.Reset()
}
