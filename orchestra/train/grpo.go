package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/fit"
)

// Tasks are what GRPO plays. Implementations are safe for concurrent use.
type Tasks interface {
	// Len is the number of tasks.
	Len() int
	// Weights are P of eq. 2 for a task: see prefs.Vector.Weights.
	Weights(task int) []float64
	// Play runs a task with the policy and the preferences of the task, in an
	// orchestrator as the application has it, and says what it came to:
	//
	//	res, _ := o.Run(ctx, orchestra.Task{Prompt: …, Prefer: v})
	//	row, err := train.FoldRollout(res.Trajectory, train.Judged(right))
	//	return row.Metrics(names), err
	//
	// where Weights are v.Weights(names). An error ends training; a run without an
	// answer is no error but Metrics.Failed.
	Play(ctx context.Context, task int, p policy.Policy) (Metrics, error)
}

// General are the weights of the embedded policy that choose among tools,
// experts and the end. They are immutable.
type General struct{ w *general.Weights }

// shippedGeneral are the weights in the module.
func shippedGeneral() (*General, error) { return ReadGeneral(bytes.NewReader(policy.ShippedWeights())) }

// ReadGeneral reads weights that Write wrote. Errors wrap policy.ErrWeights.
func ReadGeneral(r io.Reader) (*General, error) {
	w, err := general.Read(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", policy.ErrWeights, err)
	}
	return &General{w}, nil
}

// Write writes the weights as a file for policy.WithGeneral. Errors wrap
// policy.ErrWeights, or are those of to.
func (g *General) Write(to io.Writer) error {
	if g.w == nil {
		return fmt.Errorf("%w: the zero General has none: take one from ReadGeneral, GRPO or Imitate", policy.ErrWeights)
	}
	err := g.w.Write(to)
	if errors.Is(err, general.ErrFile) {
		return fmt.Errorf("%w: %w", policy.ErrWeights, err)
	}
	return err
}

// Policy is the embedded policy with these weights. Errors are those of Write.
func (g *General) Policy(opts ...policy.NetworkOption) (*policy.Network, error) {
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		return nil, err
	}
	return policy.Learned(append([]policy.NetworkOption{policy.WithGeneral(&b)}, opts...)...)
}

// Facts says where the weights come from.
func (g *General) Facts() map[string]string {
	f := map[string]string{}
	if g.w != nil {
		f["about"], f["version"] = g.w.About, g.w.Version
		maps.Copy(f, g.w.Facts)
	}
	return f
}

// WithSteps sets how many steps of GRPO are made; the default is 300.
func WithSteps(n int) GRPOOption { return grpoOption(func(s *settings) { s.grpo.steps = n }) }

// WithNetwork sets the policy whose general weights are learned: with the network,
// the cards and the worth that it shall have in the application. The default is
// policy.Learned.
func WithNetwork(n *policy.Network) GRPOOption {
	return grpoOption(func(s *settings) { s.grpo.base = n })
}

// WithGroups sets how many tasks a step of GRPO plays, and how often each; the
// default is 16 tasks, 8 rollouts each, as in the paper.
func WithGroups(tasks, rollouts int) GRPOOption {
	return grpoOption(func(s *settings) { s.grpo.groups, s.grpo.rollouts = tasks, rollouts })
}

// WithRate sets the step size of GRPO's optimiser, Adam; the default is 0.03.
func WithRate(rate float64) GRPOOption { return grpoOption(func(s *settings) { s.grpo.rate = rate }) }

// WithAdvantage says how rewards become advantages in GRPO; the default is the
// paper's, divided by the group's deviation.
func WithAdvantage(a Advantage) GRPOOption {
	return grpoOption(func(s *settings) { s.grpo.advantage = a })
}

// WithMinStd sets the deviation of rewards below which GRPO leaves a group out;
// the default is the paper's, MinStd. 0 leaves out only groups of equal rewards.
func WithMinStd(std float64) GRPOOption { return grpoOption(func(s *settings) { s.grpo.minStd = std }) }

type grpoSettings struct {
	base                            *policy.Network
	steps, groups, rollouts, passes int
	rate, clipLow, clipHigh         float64
	advantage                       Advantage
	minStd                          float64
	every                           int
	keep                            func([]byte) error
	from                            []byte
}

// rolled is one rollout of a group.
type rolled struct {
	m       Metrics
	choices []policy.Choice
}

// GRPO improves the general weights of the embedded policy on tasks of the
// application, by the paper's method: groups of rollouts of one task, the rewards
// of eq. 2, the advantages of eq. 3, groups of nearly equal rewards left out, and
// the clipped surrogate of eq. 4. start is where it begins; nil is the policy that
// ships with the module. It plays on all cores, each rollout through Tasks.Play.
//
// The defaults are the paper's. Where tasks are mostly solved and the question is
// at what cost, prefer WithMinStd(0) and WithAdvantage(Advantage{Undivided: true}),
// as the shipped weights were made: else groups that differ in cost alone teach
// nothing, or as much as those that differ in the outcome. Progress.Flat counts the
// groups of a step that teach nothing.
//
// With the same seed, tasks and options it gives the same weights, to the bit, if
// Play does the same again (its Metrics too, so without measured time). Rollouts
// with a malformed call are not learned from, those without an answer are. Errors
// wrap ErrTrain or the context's cause, or are those of Play and of WithSnapshots'
// function; a Play that panics is an error too. The first error ends the rollouts
// that are under way, by their context; what was learned by then is lost but for
// snapshots.
func GRPO(ctx context.Context, start *General, tasks Tasks, opts ...GRPOOption) (*General, error) {
	s := settings{}
	s.fit.Seed = 1
	s.grpo = grpoSettings{steps: 300, groups: 16, rollouts: 8, passes: 2, rate: 0.03, clipLow: 0.2, clipHigh: 0.28, minStd: MinStd}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: option %d is nil: leave it out", ErrTrain, i+1)
		}
		o.grpo(&s)
	}
	g := &s.grpo
	switch {
	case tasks == nil:
		return nil, fmt.Errorf("%w: there are no tasks", ErrTrain)
	case g.steps < 1 || g.groups < 1 || g.rollouts < 2:
		return nil, fmt.Errorf("%w: GRPO takes at least 1 step, 1 task and 2 rollouts of it", ErrTrain)
	case g.groups > maxRollouts/g.rollouts:
		return nil, fmt.Errorf("%w: GRPO takes at most %d rollouts a step", ErrTrain, maxRollouts)
	case !g.advantage.finite() || math.IsNaN(g.minStd):
		return nil, fmt.Errorf("%w: WithAdvantage and WithMinStd take numbers, and Eps and Boost finite ones", ErrTrain)
	case !(g.rate > 0 && g.rate <= 1):
		return nil, fmt.Errorf("%w: WithRate takes a rate above 0, at most 1", ErrTrain)
	}
	t, err := newTuner(&s, start, tasks, 0x6772706f)
	if err != nil {
		return nil, err
	}
	t.adam = fit.NewAdam(t.w.Params())
	if err := t.restart(); err != nil {
		return nil, err
	}
	begin, first := time.Now(), t.step
	for ; t.step < g.steps; t.step++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if err := t.snapshot(); err != nil {
			return nil, err
		}
		reward, flat, err := t.one(ctx)
		if err != nil {
			return nil, err
		}
		if s.progress != nil {
			p := Progress{Stage: "grpo", Done: t.step + 1, Of: g.steps, Figure: reward, Flat: flat, Elapsed: time.Since(begin)}
			p.Left = p.Elapsed / time.Duration(t.step+1-first) * time.Duration(g.steps-t.step-1)
			s.progress(p)
		}
	}
	return t.finish("GRPO", "steps", g.steps)
}

// policy is the policy as it is now.
func (t *tuner) policy() (*policy.Network, error) {
	var b bytes.Buffer
	if err := (&General{t.w}).Write(&b); err != nil {
		return nil, err
	}
	return t.base.With(policy.WithGeneral(&b))
}

// maxRollouts bounds those of one step.
const maxRollouts = 1 << 20

// tuner is training under way.
type tuner struct {
	s      *settings
	tasks  Tasks
	n      int             // of the tasks
	base   *policy.Network // with other general weights
	start  *general.Weights
	w      *general.Weights
	adam   *fit.Adam
	source *rand.PCG
	rng    *rand.Rand
	step   int
}

// newTuner begins at start, or at the weights in the module.
func newTuner(s *settings, start *General, tasks Tasks, stream uint64) (*tuner, error) {
	if start == nil {
		var err error
		if start, err = shippedGeneral(); err != nil {
			return nil, err
		}
	}
	base := s.grpo.base
	if base == nil {
		var err error
		if base, err = policy.Learned(); err != nil {
			return nil, err
		}
	}
	t := &tuner{s: s, tasks: tasks, n: tasks.Len(), base: base, start: start.w, source: rand.NewPCG(s.fit.Seed, stream)}
	switch {
	case t.start == nil:
		return nil, fmt.Errorf("%w: the zero General has no weights: take one from ReadGeneral, or pass nil", ErrTrain)
	case t.n < 1:
		return nil, fmt.Errorf("%w: there are no tasks", ErrTrain)
	}
	t.w, t.rng = t.start.Clone(), rand.New(t.source)
	return t, nil
}

// finish says in the weights where they come from.
func (t *tuner) finish(method, fact string, n int) (*General, error) {
	w := t.w
	if w.Facts == nil { // a file need not state any
		w.Facts = map[string]string{}
	}
	w.Version, w.About = t.s.version, t.s.about
	if w.Version == "" {
		w.Version = "general-" + strconv.FormatUint(t.s.fit.Seed, 10)
	}
	if w.About == "" {
		w.About = fmt.Sprintf("Learned by %s on %d tasks.", method, t.n)
	}
	delete(w.Facts, "choices")
	delete(w.Facts, "steps")
	w.Facts["seed"], w.Facts["tasks"], w.Facts[fact] = strconv.FormatUint(t.s.fit.Seed, 10), strconv.Itoa(t.n), strconv.Itoa(n)
	if t.start.Version != "" {
		w.Facts["start"] = t.start.Version
	}
	if err := w.Check(); err != nil {
		return nil, diverged(err)
	}
	return &General{w}, nil
}

func diverged(err error) error {
	return fmt.Errorf("%w: the weights have diverged: use a smaller WithRate: %w", ErrTrain, err)
}

// rollouts plays n rollouts on all cores. The first error ends them all.
func (t *tuner) rollouts(ctx context.Context, n int, play func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	one := func(i int) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: a rollout panicked: %v\n%s", ErrTrain, p, debug.Stack())
			}
		}()
		return play(ctx, i)
	}
	var wait sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		wait.Go(func() {
			for i := core; i < n && ctx.Err() == nil; i += cores {
				if err := one(i); err != nil {
					stop(err)
				}
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil { // whatever the rollouts made of it
		return context.Cause(ctx)
	}
	return nil
}

// one makes a step and returns the mean reward, and how many groups were flat.
func (t *tuner) one(ctx context.Context) (reward float64, flat int, err error) {
	g := &t.s.grpo
	net, err := t.policy()
	if err != nil {
		return 0, 0, diverged(err)
	}
	picked := make([]int, g.groups)
	for i := range picked {
		picked[i] = t.rng.IntN(t.n)
	}
	seed := t.rng.Uint64()
	rolls := make([]rolled, g.groups*g.rollouts)
	err = t.rollouts(ctx, len(rolls), func(ctx context.Context, i int) (err error) {
		r := &rolls[i]
		p := net.Explore(1, seed+uint64(i)*0x9e3779b97f4a7c15, func(c policy.Choice) { r.choices = append(r.choices, c) })
		r.m, err = t.tasks.Play(ctx, picked[i/g.rollouts], p)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	var sum float64
	chosen := false
	advantages := make([]float64, len(rolls))
	for i := 0; i < len(rolls); i += g.rollouts {
		group := make([]Metrics, g.rollouts)
		for k := range group {
			chosen = chosen || len(rolls[i+k].choices) > 0
			group[k] = rolls[i+k].m
		}
		rewards, err := Rewards(group, t.tasks.Weights(picked[i/g.rollouts]), Paper)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: the metrics of task %d: %w", ErrTrain, picked[i/g.rollouts], err)
		}
		drop := Filter(group, rewards, g.minStd)
		if drop[0] == Flat || slices.Min(rewards) == slices.Max(rewards) {
			flat++
		}
		for k, a := range Advantages(rewards, g.advantage) {
			sum += rewards[k]
			if drop[k] == "" || drop[k] == NoAnswer { // to end without an answer is a choice to unlearn
				advantages[i+k] = a
			}
		}
	}
	if !chosen {
		return 0, 0, fmt.Errorf("%w: the policy made no choice among tools, experts and the end: Play has to use the policy that it is given, in an orchestrator with more than experts", ErrTrain)
	}
	for range g.passes {
		t.learn(rolls, advantages)
	}
	return sum / float64(len(rolls)), flat, nil
}

// learn makes one step down the clipped surrogate.
func (t *tuner) learn(rolls []rolled, advantages []float64) {
	g := &t.s.grpo
	grad := t.w.Zero()
	n := 0
	var x softmax
	for i := range rolls {
		a := advantages[i]
		if a == 0 {
			continue
		}
		for _, c := range rolls[i].choices {
			n++
			x.of(t.w, c.Candidates)
			ratio := math.Exp(math.Log(x.p[c.Picked]) - c.Logprob)
			if a > 0 && ratio > 1+g.clipHigh || a < 0 && ratio < 1-g.clipLow {
				continue
			}
			x.grad(t.w, c, c.Picked, a*ratio, grad)
		}
	}
	t.move(grad, n, g.rate*(0.05+0.95*(1-float64(t.step)/float64(g.steps))))
}

// move steps against the mean gradient of n choices.
func (t *tuner) move(grad *general.Weights, n int, rate float64) {
	if n > 0 {
		params := grad.Params()
		for _, p := range params {
			for k := range p {
				p[k] /= float32(n)
			}
		}
		t.adam.Step(params, rate, 0)
	}
}

// softmax is the chance of each candidate of a choice.
type softmax struct{ p []float64 }

func (x *softmax) of(w *general.Weights, candidates [][]float32) {
	x.p = x.p[:0]
	var f general.Features
	top, sum := math.Inf(-1), 0.0
	for _, c := range candidates {
		copy(f[:], c)
		v := float64(w.Score(&f))
		x.p, top = append(x.p, v), max(top, v)
	}
	for i, v := range x.p {
		x.p[i] = math.Exp(v - top)
		sum += x.p[i]
	}
	for i := range x.p {
		x.p[i] /= sum
	}
}

// grad adds the gradient of -weight · log p of a candidate.
func (x *softmax) grad(w *general.Weights, c policy.Choice, of int, weight float64, g *general.Weights) {
	for k, f := range c.Candidates {
		d := x.p[k]
		if k == of {
			d--
		}
		w.Grad(f, float32(weight*d), g)
	}
}
