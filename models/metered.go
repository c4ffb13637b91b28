package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Metered charges every attempt of m to the meter in the context of the call:
// it reserves the worst case, lowers the output cap to what was granted, and
// settles what was used. Without a meter it refuses (cost.ErrNoMeter), as it
// does when the budget does not allow the least that makes sense
// (cost.ErrExceeded) or the price is unknown (cost.ErrUnpriced). It goes to the
// leaves of a Composite, and metering twice is metering once.
//
// A failed attempt costs nothing if nothing was sent or the server answered
// with an error status and no usage; a cut stream costs its input and what was
// delivered; of any other failure nobody knows what was billed, so the whole
// hold is charged and marked. Models say which it is with *Error.
func Metered(m Model) Model {
	switch x := m.(type) {
	case nil:
		return nil
	case *metered:
		return x
	case Composite:
		return x.Map(Metered)
	}
	return &metered{m}
}

type metered struct{ m Model }

// Info describes the model.
func (x *metered) Info() Info { return x.m.Info() }

// Unwrap gives the cause.
func (x *metered) Unwrap() Model { return x.m }

// Generate asks the model.
func (x *metered) Generate(ctx context.Context, r *Request) (resp *Response, err error) {
	info := x.m.Info()
	meter := cost.FromContext(ctx)
	if meter == nil {
		return nil, fmt.Errorf("models: %s: %w", info.Name, cost.ErrNoMeter)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, &Error{Model: info.Name, Provider: info.Provider, Err: err}
	}
	input, exact := inputTokens(x.m, r)
	e := Estimate(x.m, r)
	if exact && info.Context > 0 && input >= int64(info.Context) {
		return nil, &Error{Model: info.Name, Provider: info.Provider, Err: fmt.Errorf("%w: %d tokens of %d leave no room for an answer", ErrContextOverflow, input, info.Context)}
	}
	hold, err := meter.Reserve(e)
	if err != nil {
		return nil, err
	}
	q := *r
	gpus := gpusOf(x.m, info)
	wall := fit(&q, info, input, gpus, e, hold.Granted())
	caller, over := ctx, error(nil)
	if timed := gpus > 0 || !info.Price.Second.IsZero(); timed {
		why := "which its budget granted: raise that of money or GPU time"
		if wall >= max(info.Latency, MaxWall) {
			why = "the most that such a call may take: see MaxWall"
		}
		over = fmt.Errorf("models: %s was stopped after %v, %s: %w", info.Name, wall, why, context.DeadlineExceeded)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wall, over)
		defer cancel()
	}

	start := time.Now()
	settled := false
	defer func() {
		if !settled { // the model panicked: nobody knows what was billed
			hold.Settle(cost.Usage{}, info.Price, errors.New("the model panicked"))
		}
	}()
	resp, err = x.m.Generate(ctx, &q)
	if err == nil && resp == nil {
		err = &Error{Model: info.Name, Provider: info.Provider, Sent: true, Err: fmt.Errorf("%w: no response and no error", ErrMalformed)}
	}
	if err != nil {
		resp = nil
	}
	u := billed(resp, err, &q, ctx.Err() != nil || errors.Is(err, ErrTruncated))
	if u.Requests > 0 && (u.Known || u.USD != nil) {
		clock(&u, time.Since(start), wall, gpus)
	}
	settled = true
	hold.Settle(u, info.Price, err)
	if err != nil && over != nil && !errors.Is(err, over) && ctx.Err() != nil && caller.Err() == nil { // it said only that its context was done
		err = fmt.Errorf("%w (%w)", over, err)
	}
	return resp, err
}

// fit lowers the request's output cap to what was granted, and says how long the
// call may take if it is priced by time or uses GPUs that are counted.
func fit(q *Request, info Info, input int64, gpus int, e cost.Estimate, granted cost.Spend) (wall time.Duration) {
	p := info.Price
	most, least := e.Worst.Tokens-input, e.Floor.Tokens-input
	wall = max(info.Latency, MaxWall)
	if granted.USD < e.Worst.USD {
		// Where both are priced, output has half of what the Floor leaves, and time
		// the rest.
		output := granted.USD
		if !p.Second.IsZero() || gpus > 0 {
			output = e.Floor.USD + (granted.USD-e.Floor.USD)/2
		}
		most = max(least, min(most, p.OutputFor(output, input, most, max(info.Latency, time.Second), max(gpus, 1))))
		wall = p.WallFor(granted.USD, input, most, wall, max(gpus, 1))
	}
	if granted.GPU < e.Worst.GPU && gpus > 0 {
		wall = min(wall, granted.GPU/time.Duration(gpus))
	}
	if granted.Tokens < e.Worst.Tokens {
		most = min(most, granted.Tokens-input)
	}
	q.MaxOutput = int(max(most, 1))
	return wall
}

// billed is what the attempt was charged by its provider, as far as anybody can
// tell. A cut stream may have more to it than its usage says.
func billed(resp *Response, err error, q *Request, cut bool) cost.Usage {
	if err == nil {
		u := resp.Usage
		u.Requests = max(u.Requests, 1)
		return u
	}
	var e *Error
	if !errors.As(err, &e) {
		return cost.Usage{}
	}
	nothing := cost.Usage{Known: true}
	switch {
	case !e.Sent && e.Partial == nil:
		return nothing
	case e.Partial != nil && (e.Partial.Usage.Known || e.Partial.Usage.USD != nil):
		u := e.Partial.Usage
		u.Requests = max(u.Requests, 1)
		// A stream that was cut, or that failed before it said why it ends, may have
		// reported its usage before it went on.
		if (cut || e.Partial.Finish == "") && u.USD == nil {
			if seen := delivered(e.Partial, q); seen > u.Output {
				u.Output, u.Estimated = seen, true
			}
		}
		return u
	case e.Partial != nil:
		return cost.Usage{Input: likelyInput(q), Output: delivered(e.Partial, q), Requests: 1, Known: true, Estimated: true}
	case e.Status != 0:
		return nothing
	}
	return cost.Usage{}
}

// delivered estimates the output tokens of a partial response.
func delivered(r *Response, q *Request) int64 {
	bytes := len(r.Text) + len(r.Reasoning)
	for _, c := range r.Calls {
		bytes += len(c.Name) + len(c.Args)
	}
	return min(int64(bytes+3)/4, int64(q.MaxOutput))
}
