package agl

import (
	"context"
	"slices"
)

// takeOver handles rollouts that are running as Run begins: of a controller that
// is no more. Groups that are whole are played again; of others, what has a
// reward is done, and what has none cannot get one, as rewards are relative.
func (r *run) takeOver(ctx context.Context, list []Rollout) error {
	for _, b := range r.batches(list) {
		running := slices.DeleteFunc(slices.Clone(b.members), func(m Rollout) bool { return m.State != Running })
		if len(running) == 0 {
			continue
		}
		rewarded := map[string]bool{}
		for _, m := range running {
			var reward *Reward
			err := r.try(ctx, func(ctx context.Context) (err error) {
				reward, err = r.client.reward(ctx, m.ID)
				return err
			})
			if err := r.lost(m.ID, err); err != nil {
				return err
			}
			rewarded[m.ID] = reward != nil
		}
		done := len(running) == b.n && all(rewarded)
		if b.whole() && !done && !later(b, rewarded) {
			r.log.Info("agl: a group of a controller that is no more is played again", "key", b.key)
			for _, m := range running {
				r.adopted[m.ID] = true
			}
			continue
		}
		for _, m := range running {
			p := Patch{State: Succeeded}
			if !rewarded[m.ID] {
				p = Patch{State: Failed, Failure: "the controller that played it is no more, and neither is the rest of its group"}
			}
			if err := r.move(ctx, m.ID, p); err != nil {
				return err
			}
			r.mu.Lock()
			r.over[m.ID] = true
			r.mu.Unlock()
		}
	}
	return nil
}

// later reports whether rollouts of a later step were taken for the rest of a
// group: rewards come when all of a group are running.
func later(b *batch, rewarded map[string]bool) bool {
	some := slices.ContainsFunc(b.members, func(m Rollout) bool { return rewarded[m.ID] })
	return some && slices.ContainsFunc(b.members, func(m Rollout) bool { return m.State == Queuing })
}

func all(m map[string]bool) bool {
	for _, ok := range m {
		if !ok {
			return false
		}
	}
	return true
}
