package agl

import (
	"fmt"

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

// reward makes rewards of what a group's rollouts came to. Of those that failed
// nothing is taken as known: a crash must not move what is cheap or quick.
func (g *Group) reward(f train.Formula, minStd float64) error {
	rows := make([]*train.Rollout, len(g.Members))
	played := 0
	for i := range g.Members {
		m := &g.Members[i]
		if rows[i] = m.Row; m.State == Failed {
			rows[i] = &train.Rollout{ID: m.ID, Failed: m.Failed}
		} else {
			played++
		}
	}
	if played == 0 { // the rewards stay 0
		g.Flat = true
		return nil
	}
	if err := train.Score(rows, train.GroupFormula(f), train.GroupMinStd(minStd)); err != nil {
		return fmt.Errorf("agl: %w", err)
	}
	sum := 0.0
	for i, r := range rows {
		m := &g.Members[i]
		m.Reward = r.Reward
		sum += r.Reward
		g.Flat = g.Flat || r.Dropped == train.Flat
		if m.Row != nil {
			m.Row.Reward, m.Row.Advantage, m.Row.Dropped = r.Reward, r.Advantage, r.Dropped
		}
	}
	for i := range g.Members {
		if g.Flat {
			g.Members[i].Reward = sum / float64(len(g.Members))
		}
	}
	return nil
}
