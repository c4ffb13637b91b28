package agl

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// score says what each rollout of a group came to, and what it is rewarded with.
func (r *run) score(b *batch, members []Rollout, plays []one) *Group {
	g := &Group{Key: b.key, Train: b.train, Members: make([]Member, len(plays))}
	for i := range plays {
		p, m := &plays[i], &g.Members[i]
		*m = Member{ID: members[i].ID, Attempt: r.attempt, State: Succeeded, Failed: p.crashed()}
		row, err := p.row(members[0].ID)
		switch {
		case m.Failed != "":
			m.State = Failed
		case err != nil:
			m.State, m.Failed = Failed, err.Error()
		case row.Failed != "":
			m.Failed = row.Failed
		case p.res.Stop != orchestra.Answered:
			m.Failed = "the policy did not finish (" + string(p.res.Stop) + "): the answer is the loop's"
		}
		if err == nil {
			m.Row, row.Failed = row, m.Failed
		}
	}
	if !g.Train {
		for i := range g.Members {
			if m := &g.Members[i]; m.Failed == "" && m.Row.Right {
				m.Reward, m.Row.Reward = 1, 1
			}
		}
		return g
	}
	if err := g.reward(r.formula, r.minStd); err != nil {
		r.log.Error("agl: the group cannot be scored", "key", b.key, "err", err)
		for i := range g.Members {
			g.Members[i].State, g.Members[i].Failed = Failed, err.Error()
		}
	}
	return g
}

// reward makes rewards of what a group's rollouts came to.
func (g *Group) reward(f train.Formula, minStd float64) error {
	var first *train.Rollout
	for i := range g.Members {
		m := &g.Members[i]
		switch {
		case m.Row == nil || m.State == Failed: // it may have crashed before it knew them
		case first == nil:
			first = m.Row
		case !maps.Equal(m.Row.Prefer, first.Prefer):
			return fmt.Errorf("agl: %s and %s were played with different preferences: rollouts of one group play one task", first.ID, m.ID)
		}
	}
	if first == nil { // all crashed: the rewards stay 0
		g.Flat = true
		return nil
	}
	want := first.Vector()
	names := slices.Sorted(maps.Keys(want.Use))
	metrics := make([]train.Metrics, len(g.Members))
	for i := range g.Members {
		if m := &g.Members[i]; m.State == Failed { // what it came to must not move what is cheap or quick
			metrics[i] = first.Metrics(names)
			metrics[i].Failed = m.Failed
		} else {
			metrics[i] = m.Row.Metrics(names)
		}
	}
	rewards, err := train.Rewards(metrics, want.Weights(names), f)
	if err != nil {
		return err
	}
	advantages, drops := train.Advantages(rewards, train.Advantage{}), train.Filter(metrics, rewards, minStd)
	sum := 0.0
	for i := range g.Members {
		m := &g.Members[i]
		m.Reward = rewards[i]
		sum += rewards[i]
		g.Flat = g.Flat || drops[i] == train.Flat
		if m.Row != nil {
			m.Row.Reward, m.Row.Advantage, m.Row.Dropped = rewards[i], advantages[i], drops[i]
		}
	}
	for i := range g.Members {
		if g.Flat {
			g.Members[i].Reward = sum / float64(len(g.Members))
		}
	}
	return nil
}
