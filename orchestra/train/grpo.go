package train

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
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
	// Play runs a task with a policy, as an orchestrator of the application does,
	// and says what it came to. Metrics.Calls has an entry for each name that
	// Weights has one for. An error ends training; a run without an answer is no
	// error but Metrics.Failed.
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

// Write writes the weights as a file for policy.EmbeddedWith.
func (g *General) Write(to io.Writer) error { return g.w.Write(to) }

// Policy is the embedded policy with these weights.
func (g *General) Policy(opts ...policy.NetworkOption) (*policy.Network, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(g.w.Write(w)) }()
	return policy.EmbeddedWith(r, opts...)
}

// WithSteps sets how many steps of GRPO are made; the default is 300.
func WithSteps(n int) Option { return optionFunc(func(s *settings) { s.grpo.steps = n }) }

// WithGroups sets how many tasks a step of GRPO plays, and how often each; the
// default is 16 tasks, 8 rollouts each, as in the paper.
func WithGroups(tasks, rollouts int) Option {
	return optionFunc(func(s *settings) { s.grpo.groups, s.grpo.rollouts = tasks, rollouts })
}

// WithRate sets the step size of GRPO's optimiser, Adam; the default is 0.03.
func WithRate(rate float64) Option { return optionFunc(func(s *settings) { s.grpo.rate = rate }) }

// WithAdvantage says how rewards become advantages in GRPO; the default is the
// paper's, divided by the group's deviation.
func WithAdvantage(a Advantage) Option {
	return optionFunc(func(s *settings) { s.grpo.advantage = a })
}

// WithMinStd sets the deviation of rewards below which GRPO leaves a group out;
// the default is the paper's, MinStd. 0 leaves out only groups of equal rewards.
func WithMinStd(std float64) Option { return optionFunc(func(s *settings) { s.grpo.minStd = std }) }

type grpoSettings struct {
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
	err     error
}

// GRPO improves the general weights of the embedded policy on tasks of the
// application, by the paper's method: groups of rollouts of one task, the rewards
// of eq. 2, the advantages of eq. 3, groups of nearly equal rewards left out, and
// the clipped surrogate of eq. 4. start is where it begins; nil is the policy that
// ships with the module. It plays on all cores, each rollout through Tasks.Play.
//
// With the same seed, tasks and options it gives the same weights, to the bit, if
// Play does the same again. Of the options, WithSeed, WithVersion, WithAbout,
// WithProgress, WithSteps, WithGroups, WithRate, WithSnapshots and WithRestart
// count. Errors wrap ErrTrain, the context's cause, or that of Play.
func GRPO(ctx context.Context, start *General, tasks Tasks, opts ...Option) (*General, error) {
	s := settings{}
	s.fit.Seed = 1
	s.grpo = grpoSettings{steps: 300, groups: 16, rollouts: 8, passes: 2, rate: 0.03, clipLow: 0.2, clipHigh: 0.28, minStd: MinStd}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: option %d is nil: leave it out", ErrTrain, i+1)
		}
		o.apply(&s)
	}
	g := &s.grpo
	switch {
	case tasks == nil || tasks.Len() < 1:
		return nil, fmt.Errorf("%w: there are no tasks", ErrTrain)
	case g.steps < 1 || g.groups < 1 || g.rollouts < 2:
		return nil, fmt.Errorf("%w: GRPO takes at least 1 step, 1 task and 2 rollouts of it", ErrTrain)
	case !(g.rate > 0 && g.rate <= 1):
		return nil, fmt.Errorf("%w: WithRate takes a rate above 0, at most 1", ErrTrain)
	}
	if start == nil {
		var err error
		if start, err = shippedGeneral(); err != nil {
			return nil, err
		}
	}
	t := &tuner{s: &s, tasks: tasks, w: start.w.Clone(), source: rand.NewPCG(s.fit.Seed, 0x6772706f)}
	t.rng = rand.New(t.source)
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
		reward, err := t.one(ctx)
		if err != nil {
			return nil, err
		}
		if s.progress != nil {
			p := Progress{Stage: "grpo", Done: t.step + 1, Of: g.steps, Figure: reward, Elapsed: time.Since(begin)}
			p.Left = p.Elapsed / time.Duration(t.step+1-first) * time.Duration(g.steps-t.step-1)
			s.progress(p)
		}
	}
	t.finish(start.w, fmt.Sprintf("Learned by GRPO on %d tasks.", tasks.Len()))
	t.w.Facts["steps"] = strconv.Itoa(g.steps)
	return &General{t.w}, t.w.Check()
}

// tuner is training under way.
type tuner struct {
	s      *settings
	tasks  Tasks
	w      *general.Weights
	adam   *fit.Adam
	source *rand.PCG
	rng    *rand.Rand
	step   int
}

// finish says in the weights where they come from.
func (t *tuner) finish(start *general.Weights, about string) {
	w := t.w
	w.Version, w.About = t.s.version, t.s.about
	if w.Version == "" {
		w.Version = "general-" + strconv.FormatUint(t.s.fit.Seed, 10)
	}
	if w.About == "" {
		w.About = about
	}
	w.Facts["seed"], w.Facts["tasks"] = strconv.FormatUint(t.s.fit.Seed, 10), strconv.Itoa(t.tasks.Len())
	if start.Version != "" {
		w.Facts["start"] = start.Version
	}
}

// one makes a step and returns the mean reward.
func (t *tuner) one(ctx context.Context) (float64, error) {
	g := &t.s.grpo
	net, err := (&General{t.w}).Policy()
	if err != nil {
		return 0, err
	}
	picked := make([]int, g.groups)
	for i := range picked {
		picked[i] = t.rng.IntN(t.tasks.Len())
	}
	seed := t.rng.Uint64()
	rolls := make([]rolled, g.groups*g.rollouts)
	var wait sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		wait.Go(func() {
			for i := core; i < len(rolls); i += cores {
				r := &rolls[i]
				if r.err = ctx.Err(); r.err != nil {
					r.err = context.Cause(ctx)
					return
				}
				p := net.Explore(1, seed+uint64(i)*0x9e3779b97f4a7c15, func(c policy.Choice) { r.choices = append(r.choices, c) })
				r.m, r.err = t.tasks.Play(ctx, picked[i/g.rollouts], p)
			}
		})
	}
	wait.Wait()
	var sum float64
	advantages := make([]float64, len(rolls))
	for i := 0; i < len(rolls); i += g.rollouts {
		group := make([]Metrics, g.rollouts)
		for k := range group {
			if err := rolls[i+k].err; err != nil {
				return 0, err
			}
			group[k] = rolls[i+k].m
		}
		rewards, err := Rewards(group, t.tasks.Weights(picked[i/g.rollouts]), Paper)
		if err != nil {
			return 0, err
		}
		drop := Filter(group, rewards, g.minStd)
		for k, a := range Advantages(rewards, g.advantage) {
			sum += rewards[k]
			if drop[k] == "" || drop[k] == NoAnswer { // to end without an answer is a choice to unlearn
				advantages[i+k] = a
			}
		}
	}
	for range g.passes {
		t.learn(rolls, advantages)
	}
	return sum / float64(len(rolls)), nil
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
