package train

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// Metrics is what the rollout came to, for Rewards with the weights of these
// names: see prefs.Vector.Weights.
func (r *Rollout) Metrics(names []string) Metrics {
	m := Metrics{Right: r.Right, USD: r.USD.Dollars(), Seconds: r.Seconds, Failed: r.Failed}
	for _, n := range names {
		m.Calls = append(m.Calls, float64(r.Calls[n]))
	}
	if !r.Valid && m.Failed == "" {
		m.Failed = "there is no answer"
	}
	for i := range r.Turns {
		m.Broken = m.Broken || !r.Turns[i].FormatOK
	}
	return m
}

// names are the tools, models and sources that Prefer weighs, sorted.
func (r *Rollout) names() []string { return slices.Sorted(maps.Keys(r.Vector().Use)) }

// The names of Prefer that stand for no tool.
const (
	preferAccuracy = "accuracy"
	preferCost     = "cost"
	preferLatency  = "latency"
)

// Vector is what the user wanted.
func (r *Rollout) Vector() prefs.Vector {
	v := prefs.Vector{Accuracy: r.Prefer[preferAccuracy], Cost: r.Prefer[preferCost], Latency: r.Prefer[preferLatency], Never: r.Never}
	for n, w := range r.Prefer {
		if n == preferAccuracy || n == preferCost || n == preferLatency {
			continue
		}
		if v.Use == nil {
			v.Use = map[string]float64{}
		}
		v.Use[n] = w
	}
	return v
}

// preferences is the inverse of Vector.
func preferences(v prefs.Vector) (map[string]float64, error) {
	v = v.OrDefault()
	m := map[string]float64{preferAccuracy: v.Accuracy, preferCost: v.Cost, preferLatency: v.Latency}
	for n, w := range v.Use {
		if _, taken := m[n]; taken && (n == preferAccuracy || n == preferCost || n == preferLatency) {
			return nil, fmt.Errorf("%w: the preferences use a tool named %q, which is a weight in pref_vec: rename the tool", ErrRollout, n)
		}
		m[n] = w
	}
	return m, nil
}

// GroupOption says how groups are scored.
type GroupOption func(*scoring)

type scoring struct {
	formula   Formula
	advantage Advantage
	minStd    float64
}

func newScoring(opts []GroupOption) scoring {
	s := scoring{minStd: MinStd}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// GroupFormula picks how metrics become rewards. The default is Paper.
func GroupFormula(f Formula) GroupOption { return func(s *scoring) { s.formula = f } }

// GroupAdvantage says how rewards become advantages.
func GroupAdvantage(a Advantage) GroupOption { return func(s *scoring) { s.advantage = a } }

// GroupMinStd is the deviation of rewards below which a group is dropped. The
// default is MinStd; 0 keeps flat groups.
func GroupMinStd(std float64) GroupOption { return func(s *scoring) { s.minStd = std } }

// Score fills in Reward (eq. 2), Advantage (eq. 3) and Dropped of the rollouts of
// one group. A rollout that failed has reward 0, and counts with what it cost;
// one that failed before anything is known of it, with no turns, cost and time,
// is given the metrics of another, so that it does not move what is cheap or
// quick. The latter needs no preferences. Errors wrap ErrGroup, and nothing is
// filled in then: there is no rollout, their preferences differ, or they hold
// numbers that Rewards refuses.
func Score(rollouts []*Rollout, opts ...GroupOption) error {
	s := newScoring(opts)
	return s.score(rollouts)
}

// Group is a whole group, scored.
type Group struct {
	Step     int
	ID       string
	Rollouts []*Rollout // in the order of their ids, those that are missing last
	Missing  int        // members that never came
}

// Groups is a barrier: rewards exist only when all rollouts of a task are in,
// since they are relative to each other. It is safe for concurrent use, starts
// no goroutines and keeps no time: whoever knows the deadline of a group calls
// Close.
type Groups struct {
	n int
	scoring

	mu   sync.Mutex
	open map[groupKey][]*Rollout
	over map[groupKey]bool
	old  []groupKey // those of over, oldest first
}

type groupKey struct {
	step int
	id   string
}

// maxOver is how many groups that are over are known, to refuse stragglers.
const maxOver = 1 << 16

// NewGroups makes a barrier for groups of n rollouts. An n below 1 is 1.
func NewGroups(n int, opts ...GroupOption) *Groups {
	return &Groups{n: max(n, 1), scoring: newScoring(opts), open: map[groupKey][]*Rollout{}, over: map[groupKey]bool{}}
}

// Add takes a rollout, which then belongs to the barrier. It returns nil until
// the last of a (step, group) comes, and then the whole group to that caller,
// scored as Score does. A rollout that failed stays in its group: its reward is
// 0, and Failed says why.
//
// Errors wrap ErrGroup, and leave the barrier as it was: a rollout that ReadRollouts
// would refuse, the second of one id, one with other preferences than its group,
// one whose group is over, and one that completes a group of which a member was
// changed to what ReadRollouts would refuse.
func (g *Groups) Add(r *Rollout) (*Group, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: the rollout is nil", ErrGroup)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrGroup, r.ID, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := groupKey{r.Step, r.Group}
	if g.over[key] {
		return nil, fmt.Errorf("%w: %q came when group %q of step %d was over: close a group only when its rollouts have ended", ErrGroup, r.ID, r.Group, r.Step)
	}
	members := g.open[key]
	for _, m := range members {
		if m.ID == r.ID {
			return nil, fmt.Errorf("%w: group %q of step %d has a rollout %q already: ids must differ", ErrGroup, r.Group, r.Step, r.ID)
		}
		if err := m.samePreferences(r); err != nil {
			return nil, err
		}
	}
	members = append(members, r)
	if len(members) < g.n {
		g.open[key] = members
		return nil, nil
	}
	return g.close(key, members)
}

// Close ends a group whose other rollouts will not come, and returns it whole:
// in place of each that is missing stands one that failed, of which nothing is
// known. A group of which nothing came is made of those. Errors wrap ErrGroup:
// it is over.
func (g *Groups) Close(step int, group string) (*Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := groupKey{step, group}
	if g.over[key] {
		return nil, fmt.Errorf("%w: group %q of step %d is over", ErrGroup, group, step)
	}
	return g.close(key, g.open[key])
}

// Flush closes all groups of which something came, in order of step and id.
// Errors wrap ErrGroup, and come beside the groups that could be closed.
func (g *Groups) Flush() ([]*Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(g.open), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.id, b.id))
	})
	var groups []*Group
	var errs []error
	for _, k := range keys {
		whole, err := g.close(k, g.open[k])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		groups = append(groups, whole)
	}
	return groups, errors.Join(errs...)
}

// close scores a group and forgets its rollouts.
func (g *Groups) close(key groupKey, members []*Rollout) (*Group, error) {
	whole := &Group{Step: key.step, ID: key.id, Rollouts: slices.Clone(members), Missing: g.n - len(members)}
	slices.SortFunc(whole.Rollouts, func(a, b *Rollout) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; len(whole.Rollouts) < g.n; i++ {
		r := missing(key, i, members)
		if !slices.ContainsFunc(members, func(m *Rollout) bool { return m.ID == r.ID }) { // ids are unique
			whole.Rollouts = append(whole.Rollouts, r)
		}
	}
	if err := g.score(whole.Rollouts); err != nil { // somebody changed them
		return nil, fmt.Errorf("group %q of step %d: %w", key.id, key.step, err)
	}
	delete(g.open, key)
	if len(g.old) == maxOver {
		delete(g.over, g.old[0])
		g.old = g.old[1:]
	}
	g.over[key], g.old = true, append(g.old, key)
	return whole, nil
}

// missing stands for a rollout that never came.
func missing(key groupKey, i int, members []*Rollout) *Rollout {
	r := &Rollout{Schema: RolloutSchema, Step: key.step, Group: key.id, ID: fmt.Sprintf("missing-%d", i), Failed: "it never came"}
	if len(members) > 0 {
		m := members[0]
		r.Task, r.Category, r.Prefer, r.Never, r.Models, r.Prices = m.Task, m.Category, m.Prefer, m.Never, m.Models, m.Prices
	}
	return r
}

// unknown: nothing is known of what the rollout cost.
func (r *Rollout) unknown() bool {
	return r.Failed != "" && len(r.Turns) == 0 && r.USD == 0 && r.Seconds == 0
}

// samePreferences refuses rollouts of two tasks. Failed ones may have none.
func (r *Rollout) samePreferences(as *Rollout) error {
	if len(r.Prefer) > 0 && len(as.Prefer) > 0 && !maps.Equal(r.Prefer, as.Prefer) {
		return fmt.Errorf("%w: %q and %q have different preferences: rollouts of one group play one task", ErrGroup, r.ID, as.ID)
	}
	return nil
}

func (s *scoring) score(rollouts []*Rollout) error {
	if len(rollouts) == 0 || slices.Contains(rollouts, nil) {
		return fmt.Errorf("%w: it is empty, or a rollout is nil", ErrGroup)
	}
	of := rollouts[0] // whose preferences are the group's
	for _, r := range rollouts {
		if err := of.samePreferences(r); err != nil {
			return err
		}
		if len(of.Prefer) == 0 {
			of = r
		}
	}
	names := of.names()
	metrics := make([]Metrics, len(rollouts))
	for i, r := range rollouts {
		metrics[i] = r.Metrics(names)
	}
	if known := slices.IndexFunc(rollouts, func(r *Rollout) bool { return !r.unknown() }); known >= 0 {
		for i, r := range rollouts {
			if m := &metrics[i]; r.unknown() {
				m.Calls, m.USD, m.Seconds = metrics[known].Calls, metrics[known].USD, metrics[known].Seconds
			}
		}
	}
	rewards, err := Rewards(metrics, of.Vector().Weights(names), s.formula)
	if err != nil {
		return err
	}
	advantages, drops := Advantages(rewards, s.advantage), Filter(metrics, rewards, s.minStd)
	for i, r := range rollouts {
		r.Reward, r.Advantage, r.Dropped = rewards[i], advantages[i], drops[i]
	}
	return nil
}
