package models

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// ErrNoReplica means that no replica of a Pool answered. It is the cause of an
// *Error, together with what each replica said last.
var ErrNoReplica = errors.New("models: no replica of the pool answers")

// PoolPolicy says how a Pool spreads requests and when it leaves a replica
// alone. The zero PoolPolicy is good for servers of one's own.
type PoolPolicy struct {
	// FirstToken is how long a replica may take for its first token before it
	// counts as dead. It covers the wait in the server's queue and the reading of
	// the prompt. 0 = no limit. With a limit every request is streamed, as only a
	// stream shows its first token. Requests with Tools are exempt: a call is not
	// seen before its end.
	FirstToken time.Duration
	// Down is how long a dead replica is left alone at first; the time doubles
	// with each probe that fails. 0 = 1 s.
	Down time.Duration
	// MaxDown bounds that time. 0 = 1 min.
	MaxDown time.Duration
	// Spread is how many more requests the busiest replica may have in flight
	// than the idlest before affinity gives way to balance. 0 = 8.
	Spread int
	// Attempts is how many replicas one request may be sent to; 0 = all of them.
	Attempts int
	// Log is told when a replica is left alone (Warn) and when it is back (Info).
	// Nil: nobody is.
	Log *slog.Logger
}

// Pool spreads requests over replicas: servers of the same model.
//
// Requests with one Affinity go to one replica, whose cache then holds what they
// have in common. The replica follows from the Affinity and from the Provider
// and Name of each replica's Info alone, so that other processes choose the same
// one, and taking a replica away moves none but its own. Affinity gives way
// where the replica would have more than 1.25 times the mean number of requests
// in flight (rounded up), or where the pool is out of balance by more than
// Spread. Requests without Affinity go to the replica with the fewest in flight.
//
// A replica is dead when it cannot be reached, breaks off before it replied, has
// no first token in time, or answers with a status that is its own fault: a 5xx
// that may pass, a wrong address or key (3xx, 401, 403, 404, 405), an account
// without quota. It is then left alone for a while, and after that given one
// request at a time until one succeeds or brings a first token. A replica that
// asks for time, with status 429 or 503 and Retry-After, is left alone for as
// long as it asks, though never for more than an hour, and is not dead.
//
// The request that found out goes on to another replica at once, as does one
// whose stream was cut; a stream that had begun is restarted (Delta.Restart). An
// ended context, a request that the server refuses as such, a prompt that is too
// long and a budget's refusal are returned as they are. When no replica is left
// the error is an *Error with ErrNoReplica and the time until the first may be
// asked again as RetryAfter, which Retry obeys.
//
// Its Info is the first replica's, as far as all replicas have it: the smallest
// context and output cap, and what all can take. Ledger rows carry the name of
// the replica that was asked. Metered and other maps of one Pool share its
// knowledge of the replicas. It starts no goroutine: probes are ordinary
// requests. An error means that replicas is empty or has a nil model.
func Pool(replicas []Model, p PoolPolicy) (Model, error) {
	if len(replicas) == 0 {
		return nil, errors.New("models: a pool needs at least one replica: pass the models that serve it")
	}
	for i, m := range replicas {
		if m == nil {
			return nil, fmt.Errorf("models: replica %d of the pool is nil: pass the value that its constructor returned, and check its error", i)
		}
	}
	if p.Down <= 0 {
		p.Down = time.Second
	}
	if p.MaxDown <= 0 {
		p.MaxDown = time.Minute
	}
	p.MaxDown = max(p.MaxDown, p.Down)
	if p.Spread <= 0 {
		p.Spread = 8
	}
	if p.Attempts <= 0 || p.Attempts > len(replicas) {
		p.Attempts = len(replicas)
	}
	return newPool(append([]Model(nil), replicas...), p, newFleet(replicas, p)), nil
}

type pool struct {
	models []Model
	p      PoolPolicy
	fleet  *fleet // shared by all maps of this pool; indexes are those of models
	info   Info
}

func newPool(models []Model, p PoolPolicy, f *fleet) *pool {
	info := models[0].Info()
	for _, m := range models[1:] {
		o := m.Info()
		info.Context, info.MaxOutput = smaller(info.Context, o.Context), smaller(info.MaxOutput, o.MaxOutput)
		info.MinOutput = max(info.MinOutput, o.MinOutput)
		info.Raw, info.Tools, info.Schema = info.Raw && o.Raw, info.Tools && o.Tools, info.Schema && o.Schema
	}
	return &pool{models, p, f, info}
}

// smaller of two numbers of tokens, of which 0 is unknown.
func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Info describes the model.
func (x *pool) Info() Info { return x.info }

// Map applies f to the models within.
func (x *pool) Map(f func(Model) Model) Model {
	all := make([]Model, len(x.models))
	for i, m := range x.models {
		all[i] = f(m)
	}
	return newPool(all, x.p, x.fleet)
}

// estimate: any replica may be asked first, and each attempt may be billed.
func (x *pool) estimate(r *Request) cost.Estimate {
	e := Estimate(x.models[0], r)
	for _, m := range x.models[1:] {
		o := Estimate(m, r)
		e.Floor, e.Mean, e.Worst = dearer(e.Floor, o.Floor), dearer(e.Mean, o.Mean), dearer(e.Worst, o.Worst)
		e.Priced = e.Priced && o.Priced
	}
	one := e.Worst
	for range min(x.p.Attempts, mostBilled) - 1 {
		e.Worst = e.Worst.Add(cost.Spend{USD: one.USD, Tokens: one.Tokens, GPU: one.GPU})
	}
	return e
}

// dearer is what covers either of two.
func dearer(a, b cost.Spend) cost.Spend {
	a.USD, a.Tokens, a.Time, a.GPU = max(a.USD, b.USD), max(a.Tokens, b.Tokens), max(a.Time, b.Time), max(a.GPU, b.GPU)
	return a
}

// Generate asks one replica, and others if that fails.
func (x *pool) Generate(ctx context.Context, r *Request) (*Response, error) {
	if err := r.Validate(); err != nil {
		return nil, x.fail(&Error{Err: err})
	}
	if err := ctx.Err(); err != nil {
		return nil, x.fail(&Error{Err: err})
	}
	q, restart := restarting(r)
	tried := make([]bool, len(x.models))
	var failed []error
	for range x.p.Attempts {
		a, ok := x.fleet.take(time.Now(), r.Affinity, tried)
		if !ok {
			break
		}
		tried[a.replica] = true
		restart()
		resp, err, final := x.ask(ctx, a, q)
		if err == nil {
			return resp, nil
		}
		failed = append(failed, err)
		if final {
			return nil, joined(failed)
		}
	}
	return nil, x.nobody(failed)
}

// errSilent ends the context of a request that waits for its first token.
var errSilent = errors.New("no first token in the time that PoolPolicy.FirstToken allows")

// ask makes one attempt and tells the fleet what came of it. Final is true if
// no other replica may do better.
func (x *pool) ask(ctx context.Context, a attempt, r *Request) (resp *Response, err error, final bool) {
	verdict := unknown
	var after time.Duration
	defer func() { x.tell(ctx, a, verdict, after, err) }()

	inner, q := ctx, r
	if limit := x.p.FirstToken; limit > 0 && len(r.Tools) == 0 || r.OnDelta != nil {
		began := func() {}
		if limit > 0 && len(r.Tools) == 0 {
			c, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			timer := time.AfterFunc(limit, func() { cancel(errSilent) })
			defer timer.Stop()
			inner, began = c, func() { timer.Stop() }
		}
		copied := *r
		first := true
		copied.OnDelta = func(d Delta) {
			if first && (d.Text != "" || d.Reasoning != "") {
				first = false
				began()
				x.tell(ctx, a, started, 0, nil)
			}
			if r.OnDelta != nil {
				r.OnDelta(d)
			}
		}
		q = &copied
	}
	resp, err = x.models[a.replica].Generate(inner, q)
	switch {
	case err == nil:
		verdict = alive
	case ctx.Err() != nil:
		final = true
	case context.Cause(inner) == errSilent:
		verdict, err = dead, x.silent(a, err)
	default:
		verdict, after, final = judge(err)
	}
	return resp, err, final
}

// silent is the error of a replica that was cut off for want of a first token.
// It does not wrap what the replica made of that: its context ended, but not the
// caller's.
func (x *pool) silent(a attempt, err error) error {
	info := x.models[a.replica].Info()
	e, ok := errors.AsType[*Error](err)
	return &Error{Model: info.Name, Provider: info.Provider, Sent: !ok || e.Sent, Retryable: true, Err: fmt.Errorf("%w (%v)", errSilent, x.p.FirstToken)}
}

// tell brings the fleet up to date, and the log.
func (x *pool) tell(ctx context.Context, a attempt, v verdict, after time.Duration, err error) {
	c := x.fleet.done(time.Now(), a, v, after, err)
	if x.p.Log == nil || c == (change{}) {
		return
	}
	info := x.models[a.replica].Info()
	replica := []slog.Attr{slog.String("model", info.Name), slog.String("provider", info.Provider), slog.Int("replica", a.replica)}
	if c.back {
		x.p.Log.LogAttrs(ctx, slog.LevelInfo, "replica is back", replica...)
		return
	}
	x.p.Log.LogAttrs(ctx, slog.LevelWarn, "replica is left alone", append(replica, slog.Duration("for", c.out), slog.Any("err", err))...)
}

// nobody is the error when no replica is left for a request whose attempts
// failed with these errors, or that found none.
func (x *pool) nobody(failed []error) error {
	after, last := x.fleet.next(time.Now())
	e := &Error{RetryAfter: after, Retryable: len(last) == 0}
	for _, err := range failed {
		f, ok := errors.AsType[*Error](err)
		e.Sent = e.Sent || !ok || f.Sent
	}
	if len(failed) > 0 {
		last, e.Retryable = failed, false
	}
	for _, err := range last {
		f, ok := errors.AsType[*Error](err)
		e.Retryable = e.Retryable || ok && f.Retryable
	}
	e.Err = errors.Join(append([]error{fmt.Errorf("%w: %d of %d were asked", ErrNoReplica, len(failed), len(x.models))}, last...)...)
	return x.fail(e)
}

func (x *pool) fail(e *Error) error {
	e.Model, e.Provider = x.info.Name, x.info.Provider
	return e
}

// joined joins errors unless there is one only.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
