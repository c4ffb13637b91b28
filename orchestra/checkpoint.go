package orchestra

import (
	"context"
	"encoding/json"
	"fmt"
)

// Checkpoint keeps the events of runs as they happen, so that Resume can go on
// after a crash. Implementations are safe for concurrent use by many runs.
type Checkpoint interface {
	// Append keeps one durable event of a run, a JSON object, behind those it has.
	// When it returns nil, the event must outlive the process. The event that
	// begins a call is kept before the call is made. The event "resumed" says, as
	// "after", how many events its trajectory had: a store that has another number
	// refuses it (ErrStale), or a call might be made twice. An error stops the run:
	// nothing more is spent that nobody could account for.
	Append(ctx context.Context, run string, event json.RawMessage) error
}

// WithCheckpoint keeps the events of every run in c. Of a run that is resumed
// only the new ones are appended, so c should be where its trajectory came from.
func WithCheckpoint(c Checkpoint) Option { return optionFunc(func(x *config) { x.checkpoint = c }) }

// CheckpointError is a run that ended because its events could not be kept.
type CheckpointError struct {
	Run string
	Err error
}

// Error says what happened, and what to do about it.
func (e *CheckpointError) Error() string {
	return fmt.Sprintf("orchestra: run %q: its events cannot be kept, so it was stopped: %v", e.Run, e.Err)
}

// Unwrap gives the cause.
func (e *CheckpointError) Unwrap() error { return e.Err }

// keep appends an event to the checkpoint, if there is one. After a failure
// nothing more is: what is kept must have no gaps, so that it can be resumed.
func (r *run) keep(e Event) {
	c := r.o.checkpoint
	if c == nil || r.broken != nil {
		return
	}
	line, err := marshalEvent(e)
	if err == nil {
		err = c.Append(context.WithoutCancel(r.ctx), r.state.Run, line)
	}
	if err != nil {
		r.broken = &CheckpointError{Run: r.state.Run, Err: err}
		r.cancel() // what runs beside is not worth waiting for
	}
}
