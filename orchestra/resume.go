package orchestra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Resume goes on with a run: one that was cut off with its process or its
// context, one that waits for replies (Paused), or one that ran out of budget
// and is given more (AddBudget). t is what WithCheckpoint kept, or
// Result.Trajectory; it is not changed. Events yields only what is new, and the
// Result covers all.
//
// What was spent counts, and so does the time that the run was active. A call
// that was under way when the process ended is charged all that was held for
// it, and marked; it is made again only if its tool is Idempotent, and otherwise
// the policy is told (tools.Interrupted). Budgets above the run, in ctx, count
// only what is new.
//
// A trajectory is trusted: it carries approvals and what was spent. If it is of
// other tools or experts, Result returns ErrMismatch; if its run has ended,
// ErrOver; a reply that fits no pending call is an *InvalidError. Then nothing
// has happened, and t can still be resumed.
func (o *Orchestrator) Resume(ctx context.Context, t *Trajectory, replies ...Reply) *Stream {
	return &Stream{o: o, ctx: ctx, past: t, replies: replies, resumed: true}
}

// resume plays a run on to its end.
func (o *Orchestrator) resume(s *Stream, yield func(Event) bool) (*Result, error) {
	r := &run{o: o, yield: yield, start: time.Now(), offered: -1, traj: &Trajectory{}}
	r.jobs, r.free, r.ids = r.space.jobs[:0], r.space.free[:0], r.space.ids[:0]
	h, err := r.setUp(s)
	if err != nil {
		res := &Result{Trajectory: &Trajectory{}}
		if s.past != nil {
			res = s.past.Result()
		}
		res.Stop, res.Answer, res.Sources = Failed, "", nil
		return res, &RunError{Stop: Failed, Err: err}
	}
	defer r.close()
	defer func() {
		if r.blown {
			s.res = r.blow()
		}
	}()
	r.emit(Resumed{At: r.start, After: len(s.past.events), Replies: s.replies})
	for _, c := range h.charges {
		r.emit(c)
	}
	stop, err := r.goOn(h)
	if stop == Stuck && errors.Is(err, cost.ErrExceeded) {
		stop = OutOfBudget
	}
	return r.end(stop, err)
}

// setUp makes r the run that the trajectory tells of. Nothing is recorded or
// spent.
func (r *run) setUp(s *Stream) (*history, error) {
	if s.past == nil || len(s.past.events) == 0 {
		return nil, &InvalidError{Field: "the trajectory", Fix: "it is empty: pass one that a run wrote"}
	}
	h, err := r.readHistory(s.past)
	if err != nil {
		return nil, err
	}
	if err := h.fits(r.o); err != nil {
		return nil, err
	}
	if err := h.resumable(s.replies); err != nil {
		return nil, err
	}
	h.apply(s.replies)
	if r.task, err = r.o.validate(h.task); err != nil {
		return nil, err
	}
	ctx := s.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	id, b := h.started.Run, r.task.Budget
	meter, err := newMeter(ctx, id, b)
	if err != nil {
		return nil, &InvalidError{Field: "Task.Budget", Err: err}
	}
	r.before = h.active
	if b.Time > 0 {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, max(b.Time-h.active, 0), timeUp{r})
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	st := &r.state
	st.Limit = meter.Left()
	h.charges = h.lost(id)
	for _, c := range h.charges {
		h.rows = append(h.rows, c.Row)
	}
	meter.Restore(h.rows, h.names())
	r.meter, r.metered = meter, cost.NewContext(r.ctx, meter)
	st.Run, st.Seed, st.Prompt, st.Messages, st.Prefer, st.Tools = id, seed(id), r.task.Prompt, r.task.Messages, r.task.Prefer, r.o.specs
	if r.yield != nil {
		st.OnDelta = r.onDelta
	}
	r.approved, r.resumed = h.approved, true
	r.traj.events, r.traj.lines = slices.Clone(s.past.events), slices.Clone(s.past.lines)
	r.traj.answer = ""
	return h, nil
}

// goOn rebuilds what the loop knew, ends the turn that was under way, and takes
// further ones.
func (r *run) goOn(h *history) (Stop, error) {
	unfinished := h.unfinished()
	for i, p := range h.turns {
		if i < len(h.turns)-1 || !unfinished {
			r.past(p)
		}
	}
	if n := len(h.turns); n > 0 {
		r.state.Turn = h.turns[n-1].Turn
	}
	if err := r.prepare(); err != nil {
		if errors.Is(err, cost.ErrExceeded) {
			return OutOfBudget, err
		}
		return Failed, err
	}
	for _, p := range h.turns {
		r.recall(h, p)
	}
	if h.stop == OutOfBudget || h.stop == OutOfTurns || h.stop == OutOfTime {
		r.failures = 0 // somebody has had a look
	}
	for _, id := range h.strays() {
		r.stray(h, id)
	}
	if stop, err := r.over(); stop != "" {
		return stop, err // calls that wait, and replies to them, are for the next part
	}
	if n := len(h.turns); unfinished {
		turn, fatal := r.complete(h, h.turns[n-1])
		if stop, err := r.concluded(turn, fatal); stop != "" {
			return stop, err
		}
	}
	return r.turns()
}

// stray ends a last attempt that was under way when the process ended.
func (r *run) stray(h *history, id string) {
	c := h.calls[id]
	e := &tools.Error{Tool: c.Call.Tool, CallID: id, Kind: tools.Interrupted, Err: errInterrupted}
	r.emit(Returned{policy.Outcome{ID: id, Call: c.Call, USD: c.Held.USD, Err: e}})
	if t := r.o.tool(c.Call.Tool); t != nil && t.spec.Effects&tools.Idempotent == 0 {
		if u, err := r.unitFor(t, c.Call); err == nil && u != nil {
			u.fails = brokenAfter // not again
		}
	}
}

var errInterrupted = errors.New("the process ended during the call: whether it happened is not known")

// past adds a turn that is over.
func (r *run) past(p pastTurn) {
	for _, o := range p.done {
		if o.Err == nil {
			r.state.Work = r.state.Work.With(o.Result)
		}
	}
	t := policy.Turn{N: p.Turn, Decision: p.Decision, Start: p.Start, Took: p.Took}
	defer func() {
		if p.fresh {
			r.failures = 0
		}
	}()
	if p.cut && p.Err != "" {
		return
	}
	if p.Err != "" {
		r.failures++
		if p.Malformed { // as the loop does
			r.state.Turns = append(r.state.Turns, t)
		}
		return
	}
	for _, id := range p.ids { // in the order in which they were asked for
		for _, o := range p.done {
			if o.ID == id {
				t.Done = append(t.Done, o)
			}
		}
	}
	r.state.Turns = append(r.state.Turns, t)
	if worked(t.Done) {
		r.failures = 0
	} else {
		r.failures++
	}
}

// recall brings the units up to date with what became of a turn's calls: which
// failed, and which were made on which version of the workspace.
func (r *run) recall(h *history, p pastTurn) {
	var w tools.Workspace
	for _, q := range h.turns {
		if q.Turn >= p.Turn {
			break
		}
		for _, o := range q.done {
			if o.Err == nil {
				w = w.With(o.Result)
			}
		}
	}
	for _, o := range p.done {
		t := r.o.tool(o.Call.Tool)
		if _, begun := h.calls[o.ID]; !begun || t == nil {
			continue
		}
		switch {
		case o.Err != nil:
			if u, err := r.unitFor(t, o.Call); err == nil && u != nil {
				u.fails++
			}
		case t.spec.Effects&(tools.ReadOnly|tools.Idempotent) != 0:
			r.seen = append(r.seen, seenCall{t, o.Call.Args, w.Version()})
		}
	}
}

// complete makes what is left of a turn's calls.
func (r *run) complete(h *history, p pastTurn) (policy.Turn, error) {
	turn := policy.Turn{N: p.Turn, Decision: p.Decision, Start: p.Start, Took: p.Took}
	calls := p.Decision.Calls
	done := make([]policy.Outcome, len(calls))
	known := make([]bool, len(calls))
	for i, id := range p.ids {
		o := &done[i]
		o.ID, o.Call = id, calls[i]
		refused := func(kind tools.Kind, err error) {
			o.Err = &tools.Error{Tool: o.Call.Tool, CallID: id, Kind: kind, Err: err}
		}
		was, over := h.returned[id]
		began, open := h.open(id)
		switch {
		case over:
			*o, known[i] = was, true
			continue
		case open:
			if t := r.o.tool(o.Call.Tool); t != nil && t.spec.Effects&tools.Idempotent != 0 {
				continue // made again
			}
			o.USD = began.Held.USD
			refused(tools.Interrupted, errInterrupted)
		default:
			if !r.replied(o, h.said, refused) {
				continue
			}
		}
		known[i] = true
		r.emit(Returned{*o})
		p.done = append(slices.Clip(p.done), *o)
	}
	for _, o := range p.done { // in the order of the events, as past has them
		if o.Err == nil {
			r.state.Work = r.state.Work.With(o.Result)
		}
	}
	fatal := r.carryOut(calls, done, known)
	turn.Done = done
	return turn, fatal
}

// replied takes a reply that decides a call without making it.
func (r *run) replied(o *policy.Outcome, replies []Reply, refused func(tools.Kind, error)) bool {
	for _, p := range replies {
		if p.id != o.ID {
			continue
		}
		switch p.kind {
		case refuse:
			reason := p.reason
			if reason == "" {
				reason = "no reason was given"
			}
			refused(tools.Refused, fmt.Errorf("the user refused it: %s", brief(reason)))
			return true
		case provide:
			o.Result = bounded(p.result)
			return true
		}
	}
	return false
}
