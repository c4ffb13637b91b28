package orchestra

import (
	"context"
	"errors"
	"iter"
)

// Stream is one run. It is for one goroutine and for one use.
type Stream struct {
	o    *Orchestrator
	ctx  context.Context
	task Task
	res  *Result
	err  error
	used bool

	past    *Trajectory // of Resume
	replies []Reply
	resumed bool
}

// Events runs the task and yields what happens, as it happens, in the calling
// goroutine. Leaving the loop cancels the run, waits for its tools, and keeps
// the bill: Result still returns it. A second use yields nothing.
func (s *Stream) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if !s.used {
			s.used = true
			s.res, s.err = s.play(yield)
		}
	}
}

func (s *Stream) play(yield func(Event) bool) (*Result, error) {
	if s.resumed {
		return s.o.resume(s, yield)
	}
	return s.o.run(s.ctx, &s.task, yield, s)
}

// Result runs the task to its end if Events has not, and returns what it came
// to. The Result is never nil. The error is nil exactly when there is an answer;
// otherwise it is a *RunError that wraps ErrNoAnswer and the cause.
func (s *Stream) Result() (*Result, error) {
	if !s.used {
		s.used = true
		s.res, s.err = s.play(nil)
	}
	if s.res == nil { // asked from within the loop over Events
		s.res = &Result{Trajectory: &Trajectory{}}
	}
	if s.res.Answer == "" && s.err == nil {
		return s.res, &RunError{Stop: Canceled, Err: errors.New("the run is not over, or its consumer panicked")}
	}
	return s.res, s.err
}
