package orchestra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

const (
	maxParallel = 8           // calls at once
	grace       = time.Second // for a tool to notice that its context is done
	maxText     = 256 << 10   // bytes of one text that a tool returns
	maxTotal    = 4 << 20     // bytes of all texts of one result
	maxItems    = 1000        // documents, code runs and attempts of one result, each
)

// job is one call on its way. Its goroutine writes res, err, panicked and stack,
// then sends it; the loop writes the rest.
type job struct {
	tool     *tool
	unit     *unit
	writer   *writer
	call     tools.Call
	estimate cost.Estimate
	hold     *cost.Hold
	ctx      context.Context
	cancel   context.CancelFunc
	start    time.Time
	giveUp   time.Time // zero: not before the run's context is done
	out      *policy.Outcome
	done     chan<- *job
	given    bool // up

	res      tools.Result
	err      error
	late     bool // its context was done when the tool returned
	lost     bool // its worker ended with it
	panicked any
	stack    string
}

// newJob returns a job to fill in, one that is over if there is any.
func (r *run) newJob() *job {
	n := len(r.free)
	if n == 0 {
		return new(job)
	}
	j := r.free[n-1]
	r.free = r.free[:n-1]
	return j
}

// execute runs the jobs: at once if all tools allow it, else one after the
// other, until one must stop the run.
func (r *run) execute(jobs []*job) (fatal error) {
	parallel := 1
	if len(jobs) > 1 {
		parallel = maxParallel
		for _, j := range jobs {
			if j.tool.spec.Effects&tools.Parallel == 0 {
				parallel = 1
			}
		}
	}
	done := r.channel(len(jobs))
	r.running = r.running[:0]
	for next := 0; ; {
		for ; next < len(jobs) && len(r.running) < parallel; next++ {
			j := jobs[next]
			if fatal != nil || r.ctx.Err() != nil {
				j.hold.Release()
				j.out.Err = &tools.Error{Tool: j.tool.spec.Name, CallID: j.out.ID, Kind: tools.Refused, Err: errors.New("the run was ending before it began")}
				continue
			}
			if r.begin(j, done) {
				r.running = append(r.running, j)
			}
		}
		if len(r.running) == 0 {
			return fatal
		}
		j := r.await(r.running, done)
		r.running = slices.DeleteFunc(r.running, func(o *job) bool { return o == j })
		if err := r.finished(j); err != nil && fatal == nil {
			fatal = err
		}
	}
}

// channel is where n jobs report; all of them can, even if nobody listens.
func (r *run) channel(n int) chan *job {
	if n > maxParallel {
		return make(chan *job, n)
	}
	if r.done == nil {
		r.done = make(chan *job, maxParallel)
	}
	return r.done
}

// begin hands a job to a worker goroutine, so that a tool that ignores its context
// can be given up. It reports false if the call could not be recorded before it
// was made.
func (r *run) begin(j *job, done chan<- *job) bool {
	j.start = time.Now()
	j.ctx = j.hold.Context(r.ctx)
	if d := j.tool.spec.Timeout; d > 0 {
		j.ctx, j.cancel = context.WithTimeout(j.ctx, d)
		j.giveUp = j.start.Add(d + grace)
	} else if r.yield != nil {
		j.ctx, j.cancel = context.WithCancel(j.ctx)
	}
	if r.yield != nil {
		if r.deltas == nil {
			r.deltas = make(chan Delta)
		}
		turn, deltas, ctx := r.state.Turn, r.deltas, j.ctx
		id := j.out.ID
		j.call.OnDelta = func(d models.Delta) {
			if ctx.Err() != nil {
				return // the call is over
			}
			select {
			case deltas <- Delta{Turn: turn, Call: id, Delta: d}:
			case <-ctx.Done():
			}
		}
	}
	j.call.ID = j.out.ID
	r.emit(Called{ID: j.out.ID, Call: j.out.Call, Held: heldFor(j.hold, &j.estimate)})
	if r.broken != nil {
		if j.cancel != nil {
			j.cancel()
		}
		j.hold.Release()
		j.out.Err = &tools.Error{Tool: j.tool.spec.Name, CallID: j.out.ID, Kind: tools.Refused, Err: r.broken}
		return false
	}
	j.done = done
	if r.work == nil {
		r.work = make(chan *job, maxParallel)
	}
	if r.idle > 0 {
		r.idle--
	} else {
		go worker(r.work)
	}
	r.work <- j // there is room: as many as work at once
	return true
}

// worker does jobs until the run ends. One goroutine for all calls of a run
// that come one after the other: its stack has grown already.
func worker(work <-chan *job) {
	for j := range work {
		j.do()
	}
}

// do calls the tool and reports. It must not touch the run.
func (j *job) do() {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			j.panicked, j.stack = p, stack()
		} else if !returned {
			j.panicked, j.lost = "it called runtime.Goexit", true
		}
		j.late = j.ctx.Err() != nil
		j.done <- j
	}()
	if j.writer != nil {
		j.res, j.err = j.written()
	} else {
		j.res, j.err = j.tool.Call(j.ctx, j.call)
	}
	returned = true
}

// await returns the first of the jobs that is over, or that must be given up.
// Meanwhile it passes on what models stream.
func (r *run) await(running []*job, done <-chan *job) *job {
	var late <-chan time.Time
	arm := func() (stop func() bool) {
		var first time.Time
		for _, j := range running {
			if !j.giveUp.IsZero() && (first.IsZero() || j.giveUp.Before(first)) {
				first = j.giveUp
			}
		}
		if first.IsZero() {
			return func() bool { return true }
		}
		t := time.NewTimer(time.Until(first))
		late = t.C
		return t.Stop
	}
	stop := arm()
	defer func() { stop() }()
	ended := r.ctx.Done()
	for {
		select {
		case j := <-done:
			if j.given {
				continue // it came back after all, too late
			}
			return j
		case d := <-r.deltas:
			r.emit(d)
		case <-ended:
			ended = nil
			for _, j := range running {
				if g := time.Now().Add(grace); j.giveUp.IsZero() || g.Before(j.giveUp) {
					j.giveUp = g
				}
			}
			stop()
			stop = arm()
		case now := <-late:
			select { // it may have come back while the consumer was slow
			case j := <-done:
				if !j.given {
					return j
				}
			default:
			}
			for _, j := range running {
				if !j.giveUp.IsZero() && !now.Before(j.giveUp) {
					j.given = true
					r.done = nil // it may still report there
					return j
				}
			}
			stop = arm()
		}
	}
}

// finished books a job that is over. The error stops the run.
func (r *run) finished(j *job) (fatal error) {
	if j.cancel != nil {
		j.cancel()
	}
	o := j.out
	o.Took = time.Since(j.start)
	switch {
	case j.given:
		o.Err = &tools.Error{Tool: j.tool.spec.Name, CallID: o.ID, Kind: tools.Abandoned,
			Err: fmt.Errorf("it was still running %v after its context was done (%w)", grace, context.Cause(j.ctx))}
		r.o.log.Warn("orchestra: a tool ignores its cancelled context and still runs", "run", r.state.Run, "tool", o.Err.Tool)
	default:
		if !j.lost {
			r.idle++
		}
		o.Err = r.classify(j)
		if tools.IsFatal(j.err) && !errors.Is(j.err, ErrNoAnswer) { // a run within stops itself
			fatal = j.err
		}
		if j.writer != nil && len(j.call.Args) > 0 {
			o.Call.Args = j.call.Args
		}
		o.Result = bounded(j.res)
	}
	if o.Err != nil {
		j.unit.fails++
	} else if j.tool.spec.Effects&(tools.ReadOnly|tools.Idempotent) != 0 {
		r.seen = append(r.seen, seenCall{j.tool, j.call.Args, r.state.Work.Version()})
	}
	r.settle(j)
	return fatal
}

// bounded keeps what a tool returned in bounds and fit for JSON, whatever it
// did. The tool's own slices are not changed.
func bounded(res tools.Result) tools.Result {
	left := maxTotal
	text := func(s *string) {
		if n := min(maxText, left); len(*s) > n {
			*s, res.Truncated = (*s)[:n], true
		}
		left -= len(*s)
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	texts := func(ss *[]string) {
		*ss = each(*ss, &res.Truncated, text)
	}
	text(&res.Text)
	if len(res.Data) > maxText || len(res.Data) > 0 && !json.Valid(res.Data) {
		res.Data, res.Truncated = nil, true
	}
	res.Documents = each(res.Documents, &res.Truncated, func(d *tools.Document) {
		text(&d.ID)
		text(&d.Title)
		text(&d.Text)
		text(&d.URL)
		text(&d.Source)
		d.Score = finite(d.Score)
	})
	res.Runs = each(res.Runs, &res.Truncated, func(c *tools.CodeRun) {
		text(&c.Code)
		text(&c.Output)
		text(&c.Err)
	})
	res.Attempts = each(res.Attempts, &res.Truncated, func(a *tools.Attempt) {
		text(&a.Text)
		texts(&a.Sources)
		a.Confidence = min(max(finite(a.Confidence), 0), 1)
	})
	return res
}

func each[T any](items []T, truncated *bool, f func(*T)) []T {
	if len(items) == 0 {
		return nil
	}
	if len(items) > maxItems {
		items, *truncated = items[:maxItems], true
	}
	items = slices.Clone(items)
	for i := range items {
		f(&items[i])
	}
	return items
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

func stack() string { return string(debug.Stack()) }
