package train

import (
	"errors"
	"fmt"
	"math"
)

// Units are what cost and latency are counted in by PreferenceReward. They
// matter, since the formula divides by at least one unit: see there.
type Units struct {
	USD     float64 // 0 = 0.01, a US cent
	Seconds float64 // 0 = 60, a minute
}

// Baseline is M_0, what the policy that others are measured against comes to: one
// rollout, or the mean of several.
type Baseline struct {
	Calls   []float64 // calls of each name, in the order of the weights
	Right   float64   // 0 or 1, or the share that is right
	USD     float64
	Seconds float64
}

// PreferenceExample is a task with a user's preferences, played by a policy and by
// the baseline policy.
type PreferenceExample struct {
	Weights  []float64 // P: see prefs.Vector.Weights
	Rollout  Metrics   // M_s
	Baseline Baseline  // M_0: of this task, or the mean over all of them
}

// Preference is how well a policy keeps to what users prefer.
type Preference struct {
	Sum  float64   // over the examples, as the paper has it
	Mean float64   // Sum by their number, which compares sets of different sizes
	Each []float64 // R_e
	// USDBlind and SecondsBlind are how many rollouts cost or took less than one
	// unit. Among them cost and latency make no difference. Where they are many,
	// use smaller units.
	USDBlind, SecondsBlind int
}

// ErrPreference means that examples cannot be scored.
var ErrPreference = errors.New("train: unusable preference example")

// PreferenceReward scores a policy by the paper's preference evaluation (arXiv
// 2511.21689, App. L, eq. 5 and 6). With M_0 of the baseline, M_s of the policy
// and P the weights,
//
//	M_norm[k] = M_s[k] / max(1, M_0[k])  for calls and the outcome
//	M_norm[k] = M_0[k] / max(1, M_s[k])  for cost and latency
//	R_e       = M_norm · P if the answer is right, else 0
//
// and the score is the sum of R_e. The baseline is the untrained policy that a
// training run starts from; it must be the same for all policies compared, and
// played with the same preferences. More calls of a preferred name, lower cost
// and lower latency than the baseline's score higher.
//
// Because of max(1, ·), the score depends on the units: a rollout below one
// unit of cost counts as one unit, so that saving more gains nothing. The paper
// does not state its units; its tables print US cents and minutes, where a task
// comes to about ten of each, and so the zero Units are these. For cheaper or
// quicker tasks choose units below what the cheapest rollout comes to (say
// Units{USD: 1e-6, Seconds: 0.01}): then the term is the plain ratio of the
// baseline's cost to the policy's. USDBlind and SecondsBlind say whether the
// units are small enough. Scores in different units cannot be compared.
//
// A ratio has no upper bound: with weights of 1, costing a fiftieth of the
// baseline is worth as much as fifty right answers. Show accuracy beside it.
// Errors wrap ErrPreference.
func PreferenceReward(examples []PreferenceExample, u Units) (Preference, error) {
	if u.USD == 0 {
		u.USD = 0.01
	}
	if u.Seconds == 0 {
		u.Seconds = 60
	}
	if !positive(u.USD) || !positive(u.Seconds) {
		return Preference{}, fmt.Errorf("%w: units of %v USD and %v s: use numbers above 0", ErrPreference, u.USD, u.Seconds)
	}
	if len(examples) == 0 {
		return Preference{}, fmt.Errorf("%w: there is none", ErrPreference)
	}
	p := Preference{Each: make([]float64, len(examples))}
	for i := range examples {
		e := &examples[i]
		if err := e.check(); err != nil {
			return Preference{}, fmt.Errorf("%w: example %d: %w", ErrPreference, i, err)
		}
		if e.Rollout.USD < u.USD {
			p.USDBlind++
		}
		if e.Rollout.Seconds < u.Seconds {
			p.SecondsBlind++
		}
		p.Each[i] = e.reward(u)
		p.Sum += p.Each[i]
	}
	if p.Sum-p.Sum != 0 {
		return Preference{}, fmt.Errorf("%w: the sum is too large a number: use larger units", ErrPreference)
	}
	p.Mean = p.Sum / float64(len(examples))
	return p, nil
}

// reward is R_e.
func (e *PreferenceExample) reward(u Units) float64 {
	m, base, w := &e.Rollout, &e.Baseline, e.Weights
	if !m.valid() {
		return 0
	}
	r := 0.0
	for k, calls := range m.Calls {
		r += w[k] * calls / max(1, base.Calls[k])
	}
	last := w[len(m.Calls):]
	r += last[0] * 1 / max(1, base.Right)
	r += last[1] * (base.USD / u.USD) / max(1, m.USD/u.USD)
	r += last[2] * (base.Seconds / u.Seconds) / max(1, m.Seconds/u.Seconds)
	return r
}

// check says what of an example is unusable.
func (e *PreferenceExample) check() error {
	n := len(e.Weights) - 3
	if n < 0 {
		return fmt.Errorf("%d weights: pass those of prefs.Vector.Weights", len(e.Weights))
	}
	if len(e.Rollout.Calls) != n || len(e.Baseline.Calls) != n {
		return fmt.Errorf("calls of %d names, of %d in the baseline, and weights for %d", len(e.Rollout.Calls), len(e.Baseline.Calls), n)
	}
	for _, list := range []struct {
		what   string
		values []float64
	}{
		{"weight", e.Weights},
		{"metric", e.Rollout.Calls},
		{"metric", []float64{e.Rollout.USD, e.Rollout.Seconds}},
		{"metric of the baseline", e.Baseline.Calls},
		{"metric of the baseline", []float64{e.Baseline.Right, e.Baseline.USD, e.Baseline.Seconds}},
	} {
		for _, x := range list.values {
			if x != 0 && !positive(x) {
				return fmt.Errorf("a %s is %v: use a number from 0", list.what, x)
			}
		}
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// MeanBaseline is the mean of a baseline policy's rollouts, for a Baseline that
// is the same for all tasks. A rollout without a valid answer counts as wrong.
// Errors wrap ErrPreference.
func MeanBaseline(rollouts []Metrics) (Baseline, error) {
	if len(rollouts) == 0 {
		return Baseline{}, fmt.Errorf("%w: the baseline has no rollout", ErrPreference)
	}
	n := float64(len(rollouts))
	b := Baseline{Calls: make([]float64, len(rollouts[0].Calls))}
	for i := range rollouts {
		m := &rollouts[i]
		if len(m.Calls) != len(b.Calls) {
			return Baseline{}, fmt.Errorf("%w: rollout %d of the baseline counts calls of %d names, the first one of %d", ErrPreference, i, len(m.Calls), len(b.Calls))
		}
		for k, c := range m.Calls {
			b.Calls[k] += c / n
		}
		if m.valid() {
			b.Right += 1 / n
		}
		b.USD += m.USD / n
		b.Seconds += m.Seconds / n
	}
	return b, nil
}
