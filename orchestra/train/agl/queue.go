package agl

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// batch is rollouts of one task, in the order of the queue.
type batch struct {
	key     string
	train   bool
	n       int // how many make a group
	members []Rollout
}

func (b *batch) whole() bool { return len(b.members) == b.n }

// batches puts rollouts into groups. The last of a task may lack some.
func (c *Controller) batches(list []Rollout) []*batch {
	type id struct {
		key   string
		train bool
	}
	open := map[id]*batch{}
	var out []*batch
	for i := range list {
		r := &list[i]
		k := id{c.key(r), r.Train}
		b := open[k]
		if b == nil || b.whole() {
			b = &batch{key: k.key, train: k.train, n: 1}
			if k.train {
				b.n = c.n
			}
			open[k] = b
			out = append(out, b)
		}
		b.members = append(b.members, *r)
	}
	return out
}

// start plays groups that are whole, as far as there is room, and gives up those
// that never will be.
func (r *run) start(ctx context.Context, list []Rollout) error {
	var free []Rollout
	r.mu.Lock()
	for i := range list {
		m := &list[i]
		if !r.mine[m.ID] && !r.over[m.ID] && (m.State == Queuing || r.adopted[m.ID]) {
			free = append(free, *m)
		}
	}
	r.mu.Unlock()
	for _, b := range r.batches(free) {
		switch {
		case b.whole():
			r.begin(ctx, b)
		case r.late(b):
			if err := r.giveUp(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// late reports whether the newest rollout of a batch has waited for the others
// for longer than it may take.
func (r *run) late(b *batch) bool {
	var newest time.Time
	for i := range b.members {
		if at := r.seen[b.members[i].ID]; at.After(newest) {
			newest = at
		}
	}
	return time.Since(newest) > timeout(b.members)
}

// timeout is the shortest time that a rollout of a group may take.
func timeout(members []Rollout) time.Duration {
	d := members[0].Timeout
	for i := range members {
		d = min(d, members[i].Timeout)
	}
	return d
}

// giveUp marks the rollouts of a batch that stays incomplete as failed.
func (r *run) giveUp(ctx context.Context, b *batch) error {
	why := fmt.Sprintf("only %d of the group's %d rollouts came: is Config.GroupSize the trainer's actor_rollout_ref.rollout.n?", len(b.members), b.n)
	r.log.Warn("agl: "+why, "key", b.key)
	for i := range b.members {
		if err := r.move(ctx, b.members[i].ID, Patch{State: Failed, Failure: why}); err != nil {
			return err
		}
	}
	return nil
}

// move patches a rollout. That somebody else moved it, or deleted it, is no
// error.
func (r *run) move(ctx context.Context, id string, p Patch) error {
	err := r.try(ctx, func(ctx context.Context) error {
		_, err := r.client.Patch(ctx, id, p)
		return err
	})
	return r.lost(id, err)
}

// lost logs that a rollout is somebody else's now, and keeps other errors.
func (r *run) lost(id string, err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrGone) {
		r.log.Warn("agl: the rollout was moved or deleted by somebody else", "rollout", id, "err", err)
		return nil
	}
	return err
}

// begin plays a whole group, if there is room for it.
func (r *run) begin(ctx context.Context, b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.played >= r.groups {
		return
	}
	r.played++
	for i := range b.members {
		r.mine[b.members[i].ID] = true
	}
	r.wg.Go(func() {
		err := r.group(ctx, b)
		r.mu.Lock()
		r.played--
		for i := range b.members {
			delete(r.mine, b.members[i].ID)
			r.over[b.members[i].ID] = true
		}
		r.mu.Unlock()
		if err != nil {
			r.stop(err)
		}
		select {
		case r.freed <- struct{}{}:
		default:
		}
	})
}
