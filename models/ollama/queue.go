package ollama

import (
	"context"
	"fmt"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// queue bounds the calls that a server is sent, and those that wait for that. A
// loaded model would queue them without limit, and without telling anybody.
type queue struct {
	places chan struct{} // in flight or waiting
	slots  chan struct{} // in flight
	wait   time.Duration // for a slot; below 0 = no bound
}

func newQueue(inFlight, waiting int, wait time.Duration) *queue {
	return &queue{
		places: make(chan struct{}, inFlight+max(waiting, 0)),
		slots:  make(chan struct{}, inFlight),
		wait:   wait,
	}
}

// enter takes a place or refuses. leave gives it back.
func (q *queue) enter() (leave func(), err error) {
	select {
	case q.places <- struct{}{}:
		return func() { <-q.places }, nil
	default:
		return nil, fmt.Errorf("%w: %d calls run or wait already: try later, or raise Config.MaxQueue", ErrBusy, cap(q.places))
	}
}

// turn waits for a slot, in order of arrival. done gives it back. Errors are
// ErrBusy, or why ctx ended.
func (q *queue) turn(ctx context.Context) (done func(), err error) {
	done = func() { <-q.slots }
	select {
	case q.slots <- struct{}{}:
		return done, nil
	default:
	}
	var late <-chan time.Time
	if q.wait >= 0 {
		t := time.NewTimer(q.wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case q.slots <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w while it waited for its turn among %d calls", wire.Ended(ctx), len(q.places))
	case <-late:
		return nil, fmt.Errorf("%w: no turn within %s: try later, or raise Config.QueueTime, or Config.MaxInFlight with the server's OLLAMA_NUM_PARALLEL", ErrBusy, q.wait)
	}
}
