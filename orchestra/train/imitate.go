package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/fit"
)

// Rounds and passes of Imitate.
const (
	imitateRounds = 4
	imitatePasses = 12
	imitateBatch  = 64
)

// Imitate has the general weights of the embedded policy learn to decide as a
// teacher does: a policy that knows more, such as a large model or a plan for
// tasks whose solution is known. In the first round the teacher plays and is
// watched; in later ones the learner plays and the teacher says what it would have
// done, so that the learner also sees what its own mistakes lead to. What the
// teacher does that the embedded policy cannot (write arguments, call two tools at
// once) is not learned. A teacher gives up by policy.ErrNothingLeft. start is where
// it begins; nil is the policy that ships with the module.
//
// All tasks are played four times, and the teacher is asked in every turn of each:
// a teacher that is a model costs that much, within the meter of each run, and
// nothing is held for it. teacher is called from several goroutines; each policy
// that it returns plays one rollout. Of the options, WithSeed, WithVersion,
// WithAbout, WithRate and WithNetwork count. Errors are those of GRPO.
func Imitate(ctx context.Context, start *General, tasks Tasks, teacher func(task int) policy.Policy, opts ...GRPOOption) (*General, error) {
	s := settings{}
	s.fit.Seed, s.grpo.rate = 1, 0.03
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: option %d is nil: leave it out", ErrTrain, i+1)
		}
		o.grpo(&s)
	}
	switch {
	case tasks == nil || teacher == nil:
		return nil, fmt.Errorf("%w: there are no tasks, or no teacher", ErrTrain)
	case !(s.grpo.rate > 0 && s.grpo.rate <= 1):
		return nil, fmt.Errorf("%w: WithRate takes a rate above 0, at most 1", ErrTrain)
	}
	t, err := newTuner(&s, start, tasks, 0x696d6974)
	if err != nil {
		return nil, err
	}
	var lessons []policy.Choice
	for round := range imitateRounds {
		more, err := t.watch(ctx, teacher, round)
		if err != nil {
			return nil, err
		}
		lessons = append(lessons, more...)
		if len(lessons) == 0 {
			return nil, fmt.Errorf("%w: the teacher did nothing that the embedded policy can do", ErrTrain)
		}
		t.adam = fit.NewAdam(t.w.Params())
		for pass := range imitatePasses {
			order := t.rng.Perm(len(lessons))
			for i := 0; i < len(order); i += imitateBatch {
				grad, n := t.w.Zero(), 0
				var x softmax
				for _, k := range order[i:min(i+imitateBatch, len(order))] {
					x.of(t.w, lessons[k].Candidates)
					x.grad(t.w, lessons[k], lessons[k].Picked, 1, grad)
					n++
				}
				t.move(grad, n, s.grpo.rate/float64(1+pass))
			}
		}
	}
	return t.finish("imitation", "choices", len(lessons))
}

// watch plays all tasks once and returns the choices with what the teacher would
// pick, in the order of tasks.
func (t *tuner) watch(ctx context.Context, teacher func(task int) policy.Policy, round int) ([]policy.Choice, error) {
	net, err := t.policy()
	if err != nil {
		return nil, diverged(err)
	}
	seed := t.rng.Uint64()
	lessons := make([][]policy.Choice, t.n)
	err = t.rollouts(ctx, t.n, func(ctx context.Context, i int) error {
		p := &pupil{teacher: teacher(i), follow: round == 0}
		if p.teacher == nil {
			return fmt.Errorf("%w: there is no teacher for task %d", ErrTrain, i)
		}
		p.net = net.Explore(0.3, seed+uint64(i), func(c policy.Choice) { p.last = c })
		_, err := t.tasks.Play(ctx, i, p)
		lessons[i] = p.lessons
		return err
	})
	return slices.Concat(lessons...), err
}

// pupil decides as the learner or the teacher, and notes what the teacher would
// have picked of the learner's candidates. It is for one run.
type pupil struct {
	net     *policy.Network
	teacher policy.Policy
	follow  bool
	last    policy.Choice
	lessons []policy.Choice
}

// Info describes the policy.
func (p *pupil) Info() policy.Info { return p.net.Info() }

// Decide decides.
func (p *pupil) Decide(ctx context.Context, s *policy.State) (policy.Decision, error) {
	p.last = policy.Choice{}
	own, ownErr := p.net.Decide(ctx, s)
	d, err := p.teacher.Decide(ctx, s)
	if gaveUp := errors.Is(err, policy.ErrNothingLeft); err == nil || gaveUp {
		for i, o := range p.last.Offers {
			if gaveUp && o < 0 || err == nil && same(s, o, &d) {
				p.last.Picked = i
				p.lessons = append(p.lessons, p.last)
				break
			}
		}
	}
	if p.follow {
		return d, err
	}
	return own, ownErr
}

// same reports whether a decision is to take an offer, or with -1 to end.
func same(s *policy.State, offer int, d *policy.Decision) bool {
	if offer < 0 || len(d.Calls) != 1 {
		return offer < 0 && len(d.Calls) == 0 && d.Finish != nil
	}
	o, c := &s.Offers[offer], &d.Calls[0]
	return o.Tool == c.Tool && o.Writer == c.Writer && bytes.Equal(o.Args, c.Args)
}
