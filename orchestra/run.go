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
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
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
	aside   cost.Spend      // what reserve holds
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

	before   time.Duration   // that the run was active, before it was resumed
	approved map[string]bool // calls that somebody agreed to, by id
	resumed  bool
	pending  []Pending // calls that wait for a reply
	broken   error     // why events are not kept any more

	// What short runs need, without allocations of its own.
	space struct {
		jobs, free [2]*job
		ids        [8]string
	}
}

// timeUp is why a run's context ends when its time is over. Runs nest, so each
// knows its own.
type timeUp struct{ r *run }

// Error says what happened, and what to do about it where that is known.
func (timeUp) Error() string { return "orchestra: Budget.Time is over" }

// maxFailures bounds policies that fail again and again, whatever the budget.
const maxFailures = 100

// run plays a task to its end.
func (o *Orchestrator) run(ctx context.Context, t *Task, yield func(Event) bool, s *Stream) (*Result, error) {
	r, err := o.newRun(ctx, t, yield)
	defer r.close()
	defer func() {
		if r.blown {
			s.res = r.blow()
		}
	}()
	r.emit(Started{Schema: Schema, Run: r.state.Run, Policy: o.info.Name, Task: r.task, Tools: o.specs, At: r.start})
	if err != nil {
		return r.end(Failed, err)
	}
	stop, err := r.loop()
	if stop == Stuck && errors.Is(err, cost.ErrExceeded) {
		stop = OutOfBudget
	}
	return r.end(stop, err)
}

// newRun sets a run up. Its frame is off the stack when the run waits: ten
// thousand of them matter.
func (o *Orchestrator) newRun(ctx context.Context, t *Task, yield func(Event) bool) (*run, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	r := &run{o: o, yield: yield, start: time.Now(), traj: &Trajectory{events: make([]Event, 0, 32)}, offered: -1}
	r.jobs, r.free, r.ids = r.space.jobs[:0], r.space.free[:0], r.space.ids[:0]
	task, err := o.validate(*t)
	id := task.ID
	if id == "" {
		id = string(strconv.AppendUint([]byte("run-"), rand.Uint64(), 36))
	}
	if task.Budget.Time > 0 && err == nil {
		r.ctx, r.cancel = context.WithTimeoutCause(ctx, task.Budget.Time, timeUp{r})
	} else {
		r.ctx, r.cancel = context.WithCancel(ctx)
	}
	b := task.Budget
	if err != nil {
		task.Prompt = brief(task.Prompt) // it may be the very thing that is wrong
		task.Budget, task.Prefer, task.Messages = cost.Budget{}, o.prefer, nil
		b = cost.Budget{USD: cost.Max(0)}
	}
	meter, merr := newMeter(ctx, id, b)
	if merr != nil { // the meter in the context is unusable
		meter, _ = cost.NewMeter(id, cost.Budget{USD: cost.Max(0)}) // never fails
		err = errors.Join(err, &InvalidError{Field: "Task.Budget", Err: merr})
	}
	r.task, r.meter, r.metered = task, meter, cost.NewContext(r.ctx, meter)
	st := &r.state
	st.Run, st.Seed, st.Turns = id, seed(id), make([]policy.Turn, 0, 8)
	st.Prompt, st.Messages, st.Prefer, st.Tools, st.Limit = task.Prompt, task.Messages, task.Prefer, o.specs, meter.Left()
	if yield != nil {
		st.OnDelta = r.onDelta
	}
	return r, err
}

// onDelta passes on what the policy's model writes.
func (r *run) onDelta(d models.Delta) { r.emit(Delta{Turn: r.state.Turn, Delta: d}) }

// close ends what belongs to the run.
func (r *run) close() {
	r.cancel()
	if r.work != nil {
		close(r.work) // the workers end; one that is still busy ends after its job
	}
}

func newMeter(ctx context.Context, id string, b cost.Budget) (*cost.Meter, error) {
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
		r.keep(e)
	}
	r.tell(e)
}

// tell yields an event.
func (r *run) tell(e Event) {
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

// loop takes turns until something ends the run.
func (r *run) loop() (Stop, error) {
	if err := r.prepare(); err != nil {
		if errors.Is(err, cost.ErrExceeded) {
			return OutOfBudget, err
		}
		return Failed, err
	}
	return r.turns()
}

func (r *run) turns() (Stop, error) {
	b := r.task.Budget
	for {
		if stop, err := r.over(); stop != "" {
			return stop, err
		}
		if b.Turns > 0 && r.state.Turn >= b.Turns {
			return OutOfTurns, nil
		}
		r.state.Turn++
		d, usd, start, err := r.decide()
		turn := policy.Turn{N: r.state.Turn, Decision: d, Start: start, Took: time.Since(start)}
		r.decided(turn, usd, err)
		if err != nil {
			stop := r.refused(err)
			switch stop {
			case "":
				if errors.Is(err, policy.ErrMalformed) { // the policy may want to know
					r.state.Turns = append(r.state.Turns, turn)
				}
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
		if stop, err := r.concluded(turn, fatal); stop != "" {
			return stop, err
		}
	}
}

// over says whether the run's time or the caller's patience is over.
func (r *run) over() (Stop, error) {
	if r.broken != nil {
		return Failed, r.broken
	}
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
func (r *run) decide() (d policy.Decision, usd cost.Amount, start time.Time, err error) {
	start = time.Now()
	r.offer()
	ctx := r.metered
	if r.o.info.Estimate != nil {
		e, err := r.policyEstimate()
		if err != nil {
			return d, 0, start, err
		}
		e.Name = policyName
		e.Floor.Calls, e.Worst.Calls = 0, 0 // calls are tool calls
		r.setAside(false)                   // what was kept for this very call is free for it
		hold, err := r.meter.Reserve(e)
		if err != nil {
			return d, 0, start, err
		}
		defer func() {
			usd = hold.Finish().USD
			r.setAside(true)
		}()
		if held := heldFor(hold, &e); held.USD > 0 || held.Tokens > 0 || held.GPU > 0 {
			r.emit(Deciding{Turn: r.state.Turn, Held: held})
			if r.broken != nil {
				return d, 0, start, r.broken
			}
		}
		ctx = hold.Context(r.ctx)
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
	return d, 0, start, err
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

func (r *run) decided(t policy.Turn, usd cost.Amount, err error) {
	e := Decided{Turn: t.N, Decision: t.Decision, Offers: r.state.Offers, Masked: r.state.Masked, Left: r.state.Left, USD: usd, Start: t.Start, Took: t.Took}
	if err != nil {
		e.Err, e.Malformed = err.Error(), errors.Is(err, policy.ErrMalformed)
	}
	r.emit(e)
	r.charged()
}

// charged emits the ledger's new rows.
func (r *run) charged() {
	rows := r.meter.Drain()
	n := len(r.traj.events)
	for i := range rows { // recorded before the consumer can interfere
		c := Charged{Row: rows[i]}
		r.traj.events = append(r.traj.events, c)
		r.keep(c)
	}
	for _, e := range r.traj.events[n:] {
		r.tell(e)
	}
}
