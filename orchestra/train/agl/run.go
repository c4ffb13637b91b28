package agl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// callTimeout bounds one call of the server.
const callTimeout = 2 * time.Minute

var errSlow = errors.New("agl: the server did not answer within two minutes")

// Run plays groups until ctx ends, and then returns nil. Any other end is an
// error: the server was out of reach for longer than Config.Patience, or refused
// what it must not (the key, a reply that makes no sense). All that Run started
// has ended when it returns, but for idle connections: see Client.Close.
//
// A group begins when all its rollouts are in the queue. If they are not within
// the time that a rollout may take, those that came are marked as failed, since
// the trainer would wait for ever. Then all are played at once, each for no longer
// than its timeout; the rewards are posted; and all are marked as succeeded, or
// as failed where a rollout crashed or took too long. A right answer in
// validation is rewarded with 1.
//
// When ctx ends, groups whose plays are over are still handed back. Others are
// left as they are, running: the next Run, of this controller or another, takes
// them over. It plays a whole group anew, as new attempts, so that nothing counts
// of what was recorded before; of a group of which the trainer has read a part
// already, it marks rollouts with a reward as succeeded and others as failed. A
// controller that is killed leaves the same behind. With Config.Shared nothing is
// taken over, so groups that are cut off are marked as failed instead, and those
// of a controller that is killed have to be dealt with by hand.
func (c *Controller) Run(ctx context.Context) error {
	inner, stop := context.WithCancelCause(ctx)
	r := &run{Controller: c, attempt: "go-" + rand.Text()[:12], stop: stop, freed: make(chan struct{}, 1),
		mine: map[string]bool{}, over: map[string]bool{}, adopted: map[string]bool{}, seen: map[string]time.Time{}, limit: 512}
	err := r.loop(inner)
	stop(nil)
	r.wg.Wait()
	switch cause := context.Cause(inner); {
	case ctx.Err() != nil:
		return nil
	case err == nil || errors.Is(err, context.Canceled):
		return cause // why a group gave up
	}
	return err
}

// run is what one Run knows.
type run struct {
	*Controller
	attempt string // id of all attempts of this Run
	stop    context.CancelCauseFunc
	freed   chan struct{} // a group ended
	wg      sync.WaitGroup
	telling sync.Mutex // of onGroup

	mu     sync.Mutex
	mine   map[string]bool // rollouts that are being played
	over   map[string]bool // that were played: a list that is on its way may still show them
	played int             // groups that are being played

	// Of loop alone.
	limit   int                  // of a list
	seen    map[string]time.Time // when a rollout in the queue was first seen
	adopted map[string]bool      // rollouts that were running already, to be played again
}

func (r *run) loop(ctx context.Context) error {
	for first := true; ; first = false {
		before := r.ended()
		list, err := r.list(ctx)
		if err != nil {
			return err
		}
		r.forget(list, before)
		if first && !r.shared {
			if err := r.takeOver(ctx, list); err != nil {
				return err
			}
		}
		if err := r.start(ctx, list); err != nil {
			return err
		}
		t := time.NewTimer(r.poll)
		select {
		case <-t.C:
		case <-r.freed:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// list reads the queue, all of it: half a group would be taken for a group that
// lacks some. A rollout that is listed twice is one.
func (r *run) list(ctx context.Context) (list []Rollout, err error) {
	for {
		err = r.try(ctx, func(ctx context.Context) (err error) {
			list, err = r.client.Rollouts(ctx, r.limit, Queuing, Running)
			return err
		})
		if err != nil || len(list) < r.limit || r.limit > 1<<20 {
			seen := make(map[string]bool, len(list))
			return slices.DeleteFunc(list, func(m Rollout) bool {
				twice := seen[m.ID]
				seen[m.ID] = true
				return twice
			}), err
		}
		r.limit *= 2
	}
}

// ended are the rollouts that are over when a list is asked for.
func (r *run) ended() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, 0, len(r.over))
	for id := range r.over {
		ids = append(ids, id)
	}
	return ids
}

// forget drops what is known of rollouts that are no longer listed.
func (r *run) forget(list []Rollout, before []string) {
	listed := make(map[string]bool, len(list))
	now := time.Now()
	for i := range list {
		listed[list[i].ID] = true
		if _, known := r.seen[list[i].ID]; !known {
			r.seen[list[i].ID] = now
		}
	}
	for id := range r.seen {
		if !listed[id] {
			delete(r.seen, id)
			delete(r.adopted, id)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range before {
		if !listed[id] {
			delete(r.over, id)
		}
	}
}

// try makes a call again until it succeeds, fails for good, or the patience is
// at its end.
func (r *run) try(ctx context.Context, call func(context.Context) error) error {
	start, wait := time.Now(), 250*time.Millisecond
	for {
		one, cancel := context.WithTimeoutCause(ctx, callTimeout, errSlow)
		err := call(one)
		cancel()
		e, ours := errors.AsType[*Error](err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, !ours, !e.Retryable && !errors.Is(err, errSlow):
			return err
		}
		pause := max(wait, e.RetryAfter)
		if spent := time.Since(start); spent+pause > r.patience {
			return fmt.Errorf("agl: gave up after %s: %w", spent.Round(time.Second), err)
		}
		r.log.Warn("agl: call failed; it is made again", "err", err, "in", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
		wait = min(2*wait, 10*time.Second)
	}
}
