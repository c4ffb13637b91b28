package orchestra

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// run is one task on its way. Only the goroutine that consumes the stream
// touches it; tools report to it over a channel.
type run struct {
	o       *Orchestrator
	task    Task
	ctx     context.Context // ends with the caller's, the run's time, or the consumer leaving
	cancel  context.CancelFunc
	meter   *cost.Meter
	metered context.Context // ctx with the meter
	reserve *cost.Hold      // for an answer; nil once there is an attempt
	ready   bool            // there is a way to an answer, and money for it
	traj    *Trajectory
	yield   func(Event) bool // nil: nobody listens
	blown   bool             // the consumer panicked
	running []*job
	start   time.Time

	state    policy.State
	units    []unit
	offered  int      // version of the workspace that units were made for
	ids      []string // of calls, as policies named them
	seen     []seenCall
	calls    int
	failures int    // turns in a row without a call that worked
	jobs     []*job // of the turn
	free     []*job // that can be used again
	deltas   chan Delta
	work     chan *job // to the workers
	idle     int       // workers without a job
	done     chan *job // from the workers

	// What short runs need, without allocations of its own.
	space struct {
		jobs, free [2]*job
		ids        [8]string
	}
}

// timeUp is why a run's context ends when its time is over. Runs nest, so each
// knows its own.
type timeUp struct{ r *run }

func (timeUp) Error() string { return "orchestra: Budget.Time is over" }

// maxFailures bounds policies that fail again and again, whatever the budget.
const maxFailures = 100

// run plays a task to its end.
func (o *Orchestrator) run(ctx context.Context, t Task, yield func(Event) bool, s *Stream) (*Result, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	task, err := o.validate(t)
	r := &run{o: o, task: task, yield: yield, start: time.Now(), traj: &Trajectory{events: make([]Event, 0, 32)}, offered: -1}
	r.jobs, r.free, r.ids = r.space.jobs[:0], r.space.free[:0], r.space.ids[:0]
	id := task.ID
	if id == "" {
		id = string(strconv.AppendUint([]byte("run-"), rand.Uint64(), 36))
	}
	if task.Budget.Time > 0 && err == nil {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, task.Budget.Time, timeUp{r})
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	defer r.cancel()
	defer func() {
		if r.work != nil {
			close(r.work) // the workers end; one that is still busy ends after its job
		}
	}()
	r.state = policy.State{Turns: make([]policy.Turn, 0, 8), Run: id, Seed: seed(id), Prompt: task.Prompt, Messages: task.Messages, Prefer: task.Prefer, Tools: o.specs}
	if err != nil {
		r.task.Prompt = brief(task.Prompt) // it may be the very thing that is wrong
		r.task.Budget, r.task.Prefer, r.task.Messages = cost.Budget{}, o.prefer, nil
		r.meter, _ = cost.NewMeter(id, cost.Budget{USD: cost.Max(0)})
		r.emit(Started{Schema: Schema, Run: id, Policy: o.info.Name, Task: r.task, Tools: o.specs, At: r.start})
		return r.end(Failed, err)
	}
	if r.meter, err = r.newMeter(ctx, id); err != nil {
		r.meter, _ = cost.NewMeter(id, cost.Budget{USD: cost.Max(0)})
		return r.end(Failed, &InvalidError{Field: "Task.Budget", Err: err})
	}
	r.metered = cost.NewContext(r.ctx, r.meter)
	r.state.Limit = r.meter.Left()
	r.emit(Started{Schema: Schema, Run: id, Policy: o.info.Name, Task: task, Tools: o.specs, At: r.start})
	if yield != nil {
		r.state.OnDelta = func(d models.Delta) { r.emit(Delta{Turn: r.state.Turn, Delta: d}) }
	}
	defer func() {
		if r.blown {
			s.res = r.blow()
		}
	}()
	stop, err := r.loop()
	if stop == Stuck && errors.Is(err, cost.ErrExceeded) {
		stop = OutOfBudget
	}
	return r.end(stop, err)
}

func (r *run) newMeter(ctx context.Context, id string) (*cost.Meter, error) {
	b := r.task.Budget
	if m := cost.FromContext(ctx); m != nil {
		return m.Child(id, b)
	}
	return cost.NewMeter(id, b)
}

// seed makes the draws of a run repeatable by its id.
func seed(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// emit records an event and tells the consumer. A consumer that leaves cancels
// the run; the events until its end are still recorded.
func (r *run) emit(e Event) {
	if _, transient := e.(Delta); !transient {
		r.traj.events = append(r.traj.events, e)
	}
	if r.yield == nil {
		return
	}
	leave := func() {
		r.yield, r.state.OnDelta = nil, nil
		r.cancel()
	}
	r.blown = true // unless it returns
	defer func() {
		if r.blown {
			leave()
		}
	}()
	stays := r.yield(e)
	if r.blown = false; !stays {
		leave()
	}
}

// blow ends a run whose consumer panicked: nobody waits for its tools, so their
// holds are charged in full. The panic goes on to the consumer.
func (r *run) blow() *Result {
	for _, j := range r.running {
		j.given = true
		_, _ = j.hold.Settle(cost.Usage{}, cost.Price{}, errors.New("the consumer of the events panicked"))
	}
	for _, j := range r.jobs {
		if j != nil {
			j.hold.Release() // of calls that had not begun
		}
	}
	r.reserve.Release()
	r.charged()
	spent := r.meter.Close()
	spent.Turns, spent.Time = r.state.Turn, time.Since(r.start)
	r.emit(Stopped{Stop: Canceled, Spent: spent, Err: "the consumer of the events panicked"})
	return r.traj.Result()
}

// loop takes turns until something ends the run.
func (r *run) loop() (Stop, error) {
	b := r.task.Budget
	if err := r.prepare(); err != nil {
		if errors.Is(err, cost.ErrExceeded) {
			return OutOfBudget, err
		}
		return Failed, err
	}
	for {
		if stop, err := r.over(); stop != "" {
			return stop, err
		}
		if b.Turns > 0 && r.state.Turn >= b.Turns {
			return OutOfTurns, nil
		}
		r.state.Turn++
		d, start, err := r.decide()
		turn := policy.Turn{N: r.state.Turn, Decision: d, Start: start, Took: time.Since(start)}
		r.decided(turn, err)
		if err != nil {
			stop := r.refused(err)
			switch stop {
			case "":
				continue
			case Canceled, OutOfTime:
				_, err = r.over() // whatever the policy made of it
			}
			if cause := r.lastFailure(); cause != nil && errors.Is(err, policy.ErrNothingLeft) {
				err = fmt.Errorf("%w; the last call failed: %w", err, cause)
			}
			return stop, err
		}
		var fatal error
		turn.Done, fatal = r.act(d.Calls)
		r.state.Turns = append(r.state.Turns, turn)
		if fatal != nil {
			return Failed, fatal
		}
		if d.Finish != nil {
			if err = r.finish(*d.Finish); err == nil {
				return Answered, nil
			}
			r.emit(Noted{Text: "the policy wanted to finish", Err: err.Error()})
		}
		if worked(turn.Done) {
			r.failures = 0
			continue
		}
		if r.failures++; b.Failures > 0 && r.failures >= b.Failures {
			switch {
			case err != nil:
			case len(turn.Done) == 0:
				err = fmt.Errorf("%w: a decision without calls and without an end", policy.ErrMalformed)
			default:
				err = r.lastFailure()
			}
			return Stuck, err
		}
	}
}

// lastFailure is why the newest call failed, or nil.
func (r *run) lastFailure() error {
	for i := len(r.state.Turns) - 1; i >= 0; i-- {
		done := r.state.Turns[i].Done
		for j := len(done) - 1; j >= 0; j-- {
			if done[j].Err != nil {
				return done[j].Err
			}
		}
	}
	return nil
}

func worked(done []policy.Outcome) bool {
	for i := range done {
		if done[i].Err == nil {
			return true
		}
	}
	return false
}

// over says whether the run's time or the caller's patience is over.
func (r *run) over() (Stop, error) {
	if r.ctx.Err() == nil {
		return "", nil
	}
	err := context.Cause(r.ctx)
	if errors.Is(err, timeUp{r}) {
		return OutOfTime, nil
	}
	return Canceled, err
}

// refused counts a policy that could not decide. It returns why the run must
// stop, or "" to ask again.
func (r *run) refused(err error) Stop {
	if stop, _ := r.over(); stop != "" {
		return stop
	}
	switch {
	case errors.Is(err, cost.ErrExceeded):
		return OutOfBudget
	case errors.Is(err, policy.ErrNothingLeft):
		if r.priceless() {
			return OutOfBudget
		}
		return Stuck
	}
	r.failures++
	if n := r.task.Budget.Failures; r.failures < maxFailures && (n <= 0 || r.failures < n) {
		return ""
	}
	if errors.Is(err, policy.ErrMalformed) {
		return Stuck
	}
	return Failed
}

// decide asks the policy, with its cost held.
func (r *run) decide() (d policy.Decision, start time.Time, err error) {
	start = time.Now()
	r.offer()
	ctx := r.metered
	if r.o.info.Estimate != nil {
		e, err := r.policyEstimate()
		if err != nil {
			return d, start, err
		}
		e.Name = policyName
		e.Floor.Calls, e.Worst.Calls = 0, 0 // calls are tool calls
		r.setAside(false)                   // what was kept for this very call is free for it
		hold, err := r.meter.Reserve(e)
		if err != nil {
			return d, start, err
		}
		defer func() {
			hold.Finish()
			r.setAside(true)
		}()
		ctx = cost.NewContext(r.ctx, hold.Meter())
	}
	defer r.caught("the policy", func() {
		d, err = policy.Decision{}, errors.New("orchestra: the policy panicked: the log has its stack")
	})
	d, err = r.o.policy.Decide(ctx, &r.state)
	if d.Sample != nil {
		d.Sample = storable(d.Sample)
	}
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return d, start, err
}

// storable replaces log probabilities that JSON cannot hold.
func storable(s *models.Sample) *models.Sample {
	wild := func(f float32) bool { return finite(float64(f)) != float64(f) }
	if !slices.ContainsFunc(s.Logprobs, wild) {
		return s
	}
	c := *s
	c.Logprobs = slices.Clone(s.Logprobs)
	for i, f := range c.Logprobs {
		if wild(f) {
			c.Logprobs[i] = -math.MaxFloat32
		}
	}
	return &c
}

func (r *run) decided(t policy.Turn, err error) {
	e := Decided{Turn: t.N, Decision: t.Decision, Offers: r.state.Offers, Masked: r.state.Masked, Left: r.state.Left, Start: t.Start, Took: t.Took}
	if err != nil {
		e.Err = err.Error()
	}
	r.emit(e)
	r.charged()
}

// charged emits the ledger's new rows.
func (r *run) charged() {
	for _, row := range r.meter.Drain() {
		r.emit(Charged{row})
	}
}

// finish resolves what the policy wants to end with.
func (r *run) finish(f policy.Finish) error {
	text, sources, truncated := strings.TrimSpace(f.Text), []string(nil), false
	if text == "" {
		a, ok := r.state.Work.Attempt(f.Attempt)
		if f.Attempt == "" {
			for _, a = range r.state.Work.Attempts() {
				ok = true // the newest is last
			}
		}
		if !ok {
			return fmt.Errorf("orchestra: there is no attempt %q to finish with", f.Attempt)
		}
		text, sources, truncated = strings.TrimSpace(a.Text), a.Sources, a.Truncated
	}
	if text == "" {
		return errors.New("orchestra: the answer is empty")
	}
	if len(text) > maxText {
		text, truncated = text[:maxText], true
	}
	r.traj.answer, r.traj.sources, r.traj.truncated = strings.ToValidUTF8(text, "\uFFFD"), sources, truncated
	return nil
}

// end settles the run. Without an answer it makes one last attempt where that
// is possible, and takes the best attempt that there is.
func (r *run) end(stop Stop, err error) (*Result, error) {
	if r.traj.answer == "" {
		if stop == OutOfBudget || stop == OutOfTurns || stop == Stuck || stop == Failed && !tools.IsFatal(err) {
			r.lastAttempt(stop)
		}
		r.finishWithBest()
	}
	r.reserve.Release()
	r.charged()
	spent := r.meter.Close()
	spent.Turns, spent.Time = r.state.Turn, time.Since(r.start)
	e := Stopped{Stop: stop, Answer: r.traj.answer, Truncated: r.traj.truncated, Sources: r.traj.sources, Spent: spent}
	if r.traj.answer == "" {
		err = &RunError{Stop: stop, Err: err}
	}
	if err != nil {
		e.Err = err.Error()
	}
	r.emit(e)
	if r.traj.answer != "" {
		err = nil
	}
	return &Result{Run: r.state.Run, Answer: e.Answer, Truncated: r.traj.truncated, Sources: e.Sources, Stop: stop, Spent: spent, Ledger: r.traj.Ledger(), Trajectory: r.traj}, err
}

// finishWithBest takes the most confident attempt, the newest among equals.
func (r *run) finishWithBest() {
	best, confidence := "", -1.0
	for _, a := range r.state.Work.Attempts() {
		if a.Confidence >= confidence && strings.TrimSpace(a.Text) != "" {
			best, confidence = a.ID, a.Confidence
		}
	}
	if best != "" {
		_ = r.finish(policy.Finish{Attempt: best}) // it exists and is not empty
	}
}

// brief cuts a text for messages and records.
func brief(s string) string {
	if len(s) > 1000 {
		s = s[:1000]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
