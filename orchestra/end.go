package orchestra

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// finish resolves what the policy wants to end with.
func (r *run) finish(f policy.Finish) error {
	text, sources, truncated := strings.TrimSpace(f.Text), []string(nil), f.Truncated
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
	if r.traj.answer == "" && stop != Paused {
		if stop == OutOfBudget || stop == OutOfTurns || stop == Stuck || stop == Failed && !tools.IsFatal(err) {
			r.lastAttempt(stop)
		}
		r.finishWithBest()
	}
	r.reserve.Release()
	r.charged()
	if r.broken != nil && r.traj.answer == "" { // whatever else went wrong in that turn
		stop, err = Failed, r.broken
	}
	spent := r.meter.Close()
	spent.Turns, spent.Time = r.state.Turn, r.active()
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
	var pending []Pending
	if stop == Paused {
		pending = r.pending
	}
	return &Result{Run: r.state.Run, Pending: pending, Answer: e.Answer, Truncated: r.traj.truncated, Sources: e.Sources, Stop: stop, Spent: spent, Ledger: r.traj.Ledger(), Trajectory: r.traj}, err
}

// active is how long the run has been active, in all its parts.
func (r *run) active() time.Duration { return r.before + time.Since(r.start) }

// finishWithBest takes the most confident attempt, the newest among equals.
func (r *run) finishWithBest() {
	best, confidence := "", -1.0
	for _, a := range r.state.Work.Attempts() {
		c := a.Confidence
		if c == 0 && !a.Truncated {
			c = policy.Unstated
		}
		if c >= confidence && strings.TrimSpace(a.Text) != "" {
			best, confidence = a.ID, c
		}
	}
	if best != "" {
		_ = r.finish(policy.Finish{Attempt: best}) // it exists and is not empty
	}
}

// blow ends a run whose consumer panicked: nobody waits for its tools, so their
// holds are charged in full. The panic goes on to the consumer.
func (r *run) blow() *Result {
	if _, over := r.traj.events[len(r.traj.events)-1].(Stopped); over {
		return r.traj.Result() // it had ended already
	}
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
	spent.Turns, spent.Time = r.state.Turn, r.active()
	r.emit(Stopped{Stop: Canceled, Spent: spent, Err: "the consumer of the events panicked"})
	return r.traj.Result()
}

// brief cuts a text for messages and records.
func brief(s string) string {
	if len(s) > 1000 {
		s = s[:1000]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
