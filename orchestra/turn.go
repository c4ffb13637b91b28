package orchestra

import (
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

// concluded books a turn whose calls are over, and says whether it was the last.
func (r *run) concluded(turn policy.Turn, fatal error) (Stop, error) {
	if len(r.pending) > 0 && fatal == nil && r.broken == nil {
		return Paused, ErrPaused
	}
	r.state.Turns = append(r.state.Turns, turn)
	if fatal != nil {
		return Failed, fatal
	}
	var err error
	if f := turn.Decision.Finish; f != nil {
		if err = r.finish(*f); err == nil {
			return Answered, nil
		}
		r.emit(Noted{Text: "the policy wanted to finish", Err: err.Error()})
	}
	if worked(turn.Done) {
		r.failures = 0
		return "", nil
	}
	if r.failures++; r.task.Budget.Failures > 0 && r.failures >= r.task.Budget.Failures {
		switch {
		case err != nil:
		case len(turn.Done) == 0:
			err = fmt.Errorf("%w: a decision without calls and without an end", policy.ErrMalformed)
		default:
			err = r.lastFailure()
		}
		return Stuck, err
	}
	return "", nil
}

// lastFailure is why the newest call failed, or nil.
func (r *run) lastFailure() error {
	for i := len(r.state.Turns) - 1; i >= 0; i-- {
		if done := r.state.Turns[i].Done; len(done) > 0 { // the newest turn with calls
			if err := done[len(done)-1].Err; err != nil {
				return err
			}
			return nil
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
