package agl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// grace is how long what is done may take to be handed back when ctx has ended.
const grace = 10 * time.Second

// group plays one group from claim to end. Its error ends the Run.
func (r *run) group(ctx context.Context, b *batch) error {
	members, err := r.claim(ctx, b)
	if err != nil {
		return r.broken(ctx, members, err)
	}
	if len(members) == 0 {
		return nil
	}
	var plays []one
	cut := ctx.Err() != nil
	if !cut {
		plays = r.playAll(ctx, members)
		cut = ctx.Err() != nil && slices.ContainsFunc(plays, func(p one) bool { return p.err != nil || p.res.Stop == orchestra.Canceled })
	}
	if cut {
		return r.abandon(ctx, members)
	}
	g := r.score(b, members, plays)
	out, cancel := outlive(ctx)
	defer cancel()
	if err := r.settle(out, g); err != nil {
		return r.broken(ctx, members, err)
	}
	return r.tell(g)
}

// abandon leaves a group that was cut off to the next Run, or marks it as failed
// where nobody would take it over.
func (r *run) abandon(ctx context.Context, members []Rollout) error {
	if !r.shared {
		return nil
	}
	out, cancel := outlive(ctx)
	defer cancel()
	for _, m := range members {
		if err := r.move(out, m.ID, Patch{State: Failed, Failure: "the controller that played it was stopped"}); err != nil {
			return err
		}
	}
	return nil
}

// broken abandons a group by whose error Run ends, without waiting long for a
// server that may be the cause.
func (r *run) broken(ctx context.Context, members []Rollout, err error) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return errors.Join(err, r.abandon(ended, members))
}

// tell is OnGroup without its panics.
func (r *run) tell(g *Group) (err error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("agl: OnGroup panicked", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("agl: OnGroup panicked: %v", v)
		}
	}()
	r.onGroup(g)
	return nil
}

// outlive is a context that ends a while after ctx.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var late *time.Timer
	var mu sync.Mutex
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		late = time.AfterFunc(grace, cancel)
	})
	return out, func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		if late != nil {
			late.Stop()
		}
		cancel()
	}
}

// claim marks a group's rollouts as running, under this Run's attempt. Of two
// controllers, the one that gets the first rollout that can be had has the group:
// nothing is returned to the other. Rollouts that somebody ended are left out.
// What was claimed comes beside an error too.
func (r *run) claim(ctx context.Context, b *batch) ([]Rollout, error) {
	var ours []Rollout
	for _, m := range b.members {
		p := Patch{State: Running, Attempt: r.attempt}
		if m.State == Running { // of a controller that is no more
			p.State = ""
		}
		var now Rollout
		err := r.try(ctx, func(ctx context.Context) (err error) {
			now, err = r.client.Patch(ctx, m.ID, p)
			if errors.Is(err, ErrConflict) { // perhaps by a try whose reply was lost
				now, err = r.client.Rollout(ctx, m.ID)
			}
			return err
		})
		switch {
		case errors.Is(err, ErrGone):
			r.log.Warn("agl: a rollout was deleted before it began", "rollout", m.ID)
			continue
		case err != nil:
			if r.shared && r.claimed(ctx, m.ID) { // the reply was lost, not the claim
				ours = append(ours, m)
			}
			if ctx.Err() != nil {
				err = nil
			}
			return ours, err
		case now.State == Running && now.Attempt == r.attempt:
			ours = append(ours, m)
		case now.State == Running && len(ours) == 0:
			r.log.Info("agl: another controller plays the group", "key", b.key)
			return nil, nil
		default:
			r.log.Warn("agl: a rollout of the group is out of reach", "rollout", m.ID, "state", now.State)
		}
	}
	return ours, nil
}

// claimed reports whether a rollout is this Run's.
func (r *run) claimed(ctx context.Context, id string) bool {
	ended, end := context.WithCancel(ctx)
	end()
	out, cancel := outlive(ended)
	defer cancel()
	now, err := r.client.Rollout(out, id)
	return err == nil && now.State == Running && now.Attempt == r.attempt
}

// source is who says so, in rewards.
const source = "tool-orchestra-go"

// settle hands a group back: all its rewards, and then its states, since a
// trainer reads a rollout when it has ended.
func (r *run) settle(ctx context.Context, g *Group) error {
	for i := range g.Members {
		m := &g.Members[i]
		err := r.try(ctx, func(ctx context.Context) error {
			return r.client.Reward(ctx, m.ID, m.Attempt, Reward{Value: m.Reward, Source: source, Reason: short(m.Failed)})
		})
		if err := r.lost(m.ID, err); err != nil {
			return err
		}
	}
	for i := range g.Members {
		m := &g.Members[i]
		p := Patch{State: m.State}
		if m.State == Failed {
			p.Failure = short(m.Failed)
		}
		if err := r.move(ctx, m.ID, p); err != nil {
			return err
		}
	}
	return nil
}

// short cuts a reason to what a server need keep.
func short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 1000)], "")
}
