package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// Metrics are what one rollout came to: M of the paper's eq. 2 (arXiv
// 2511.21689, §3.2).
type Metrics struct {
	Calls   []float64 // calls of each name, in the order of the reward's names
	Right   bool      // the outcome
	USD     float64   // all that was spent
	Seconds float64   // of active time
	Failed  string    // why there is no valid answer, "" if there is one: such a rollout stays in its group with reward 0
	Broken  bool      // it holds a malformed tool call
}

// Formula is how metrics become rewards.
type Formula uint8

const (
	// Paper is eq. 2 as written: every metric scaled to 0 … 1 over the group, cost
	// and latency negated, so that the cheapest and quickest score 1.
	Paper Formula = iota
	// Released is what the authors' code computes, for regression tests only: it
	// rewards dearer and slower rollouts, scales tools over their users alone, and
	// adds a constant for each of the last three weights.
	Released
)

// Advantage says how rewards become advantages (eq. 3). The zero value of each
// field is what the paper says, or the usual choice where it says nothing.
type Advantage struct {
	Population bool    // divide by n for the deviation, not by n-1
	Eps        float64 // added to the deviation; 0 = 1e-6, below 0 = nothing
	Clip       float64 // bound of |A|; 0 = none
	BoostFrom  float64 // advantages from here on …
	Boost      float64 // … get this much more; 0 = none
	Undivided  bool    // leave rewards centred, not divided
}

// finite reports whether advantages can come to numbers.
func (a *Advantage) finite() bool {
	return !math.IsNaN(a.Eps+a.BoostFrom) && !math.IsNaN(a.Clip) && !math.IsInf(a.Eps, 0) && a.Boost-a.Boost == 0
}

// ErrGroup means that metrics and weights do not fit together.
var ErrGroup = errors.New("train: unusable group")

// Rewards is eq. 2 over the rollouts of one task: the metrics, scaled over the
// group, weighed by p if the outcome is right, and 0 if it is not. p are the
// weights of each name, then of accuracy, cost and latency: see
// prefs.Vector.Weights. Errors wrap ErrGroup.
func Rewards(group []Metrics, p []float64, f Formula) ([]float64, error) {
	if len(p) < 3 {
		return nil, fmt.Errorf("%w: %d weights: pass those of prefs.Vector.Weights", ErrGroup, len(p))
	}
	for i := range group {
		m := &group[i]
		if len(m.Calls) != len(p)-3 {
			return nil, fmt.Errorf("%w: rollout %d counts calls of %d names, and there are weights for %d", ErrGroup, i, len(m.Calls), len(p)-3)
		}
		for _, x := range append(slices.Clone(m.Calls), m.USD, m.Seconds) {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				return nil, fmt.Errorf("%w: a metric of rollout %d is %v", ErrGroup, i, x)
			}
		}
	}
	for i, w := range p {
		if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			return nil, fmt.Errorf("%w: weight %d is %v: use 0 to 1", ErrGroup, i, w)
		}
	}
	if f != Paper && f != Released {
		return nil, fmt.Errorf("%w: there is no formula %d", ErrGroup, f)
	}
	r := eq2(group, p, f)
	for i, x := range r {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, fmt.Errorf("%w: the reward of rollout %d is too large a number: use weights from 0 to 1", ErrGroup, i)
		}
	}
	return r, nil
}

func eq2(group []Metrics, p []float64, f Formula) []float64 {
	if f == Released {
		return released(group, p)
	}
	r := make([]float64, len(group))
	for k, w := range p {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range group {
			x := group[i].metric(k, len(p))
			low, high = min(low, x), max(high, x)
		}
		if low == high {
			continue
		}
		for i := range group {
			r[i] += w * ((group[i].metric(k, len(p)) - low) / (high - low))
		}
	}
	for i := range group {
		if !group[i].valid() {
			r[i] = 0
		}
	}
	return r
}

func (m *Metrics) valid() bool { return m.Right && m.Failed == "" }

// metric is entry k of M, of n.
func (m *Metrics) metric(k, n int) float64 {
	switch k - (n - 3) {
	case 0:
		if m.valid() {
			return 1
		}
		return 0
	case 1:
		return -m.USD
	case 2:
		return -m.Seconds
	}
	return m.Calls[k]
}

// released is the authors' code, with its slips: cost and latency are scaled as
// positive numbers by the bounds of the negated ones; a tool's least count is
// that of the rollouts which used it; and the last three weights are taken for
// tools once more, with a count of 0 beside the group's greatest.
func released(group []Metrics, p []float64) []float64 {
	n := len(p)
	r := make([]float64, len(group))
	span := func(get func(*Metrics) float64) (low, high float64) {
		low, high = math.Inf(1), math.Inf(-1)
		for i := range group {
			x := get(&group[i])
			low, high = min(low, x), max(high, x)
		}
		return low, high
	}
	add := func(w, low, high float64, get func(*Metrics) float64) {
		if high <= low {
			return
		}
		for i := range group {
			r[i] += w * (get(&group[i]) - low) / (high - low)
		}
	}
	for k := range n - 3 {
		calls := func(m *Metrics) float64 { return m.Calls[k] }
		low, high := math.Inf(1), 0.0
		for i := range group {
			if c := group[i].Calls[k]; c > 0 {
				low, high = min(low, c), max(high, c)
			}
		}
		add(p[k], low, high, calls)
	}
	for k, get := range []func(*Metrics) float64{
		func(m *Metrics) float64 { return m.metric(n-3, n) },
		func(m *Metrics) float64 { return m.USD },
		func(m *Metrics) float64 { return m.Seconds },
	} {
		low, high := span(get)
		if k > 0 {
			low, high = span(func(m *Metrics) float64 { return -get(m) })
			add(p[n-3+k], low, high, func(*Metrics) float64 { return 0 }) // as a tool that nobody called
		}
		add(p[n-3+k], low, high, get)
	}
	for i := range group {
		if !group[i].valid() {
			r[i] = 0
		}
	}
	return r
}

// Advantages is eq. 3: rewards less their mean, divided by their deviation. Of a
// group of one, of equal rewards, or with one that is not finite, all are 0: there
// is nothing to learn from.
func Advantages(r []float64, o Advantage) []float64 {
	a := make([]float64, len(r))
	if len(r) < 2 || slices.Min(r) == slices.Max(r) || slices.ContainsFunc(r, func(x float64) bool { return !finite(x) }) {
		return a
	}
	mean, std := moments(r, o.Population)
	eps := o.Eps
	switch {
	case eps == 0:
		eps = 1e-6
	case eps < 0:
		eps = 0
	}
	if !o.Undivided && !(std+eps > 0) { // rewards that differ by less than numbers can tell
		return a
	}
	for i, x := range r {
		a[i] = x - mean
		if !o.Undivided {
			a[i] /= std + eps
		}
		if o.Clip > 0 {
			a[i] = min(max(a[i], -o.Clip), o.Clip)
		}
		if o.Boost != 0 && a[i] >= o.BoostFrom {
			a[i] += o.Boost
		}
	}
	return a
}

// moments are the mean and the standard deviation.
func moments(r []float64, population bool) (mean, std float64) {
	for _, x := range r {
		mean += x / float64(len(r))
	}
	n := float64(len(r))
	if !population {
		n--
	}
	for _, x := range r {
		std += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(std)
}

// Drop is why a rollout is not learned from; "" = it is.
type Drop string

// Reasons to drop a rollout (arXiv 2511.21689, §3.3).
const (
	Flat      Drop = "flat"      // the rewards of its group hardly differ
	Malformed Drop = "malformed" // it holds a malformed tool call
	NoAnswer  Drop = "no_answer" // it has no valid answer
)

// MinStd is the deviation of rewards below which the paper drops a group.
const MinStd = 0.1

// Filter says which rollouts are dropped. Their rewards count for the group's
// mean and deviation all the same. A minStd of 0 keeps flat groups; otherwise a
// group of one is flat.
func Filter(group []Metrics, rewards []float64, minStd float64) []Drop {
	d := make([]Drop, len(group))
	flat := minStd > 0
	if len(rewards) > 1 {
		_, std := moments(rewards, false)
		flat = !(std >= minStd) // so is a group with a reward that is no number
	}
	for i := range d {
		switch {
		case flat:
			d[i] = Flat
		case group[i].Broken:
			d[i] = Malformed
		case group[i].Failed != "":
			d[i] = NoAnswer
		}
	}
	return d
}

// Blind warns of a preference vector under which a right answer may score no
// better than a wrong one, or "".
func Blind(v prefs.Vector) string {
	v = v.OrDefault()
	if v.Accuracy > 0 {
		return ""
	}
	return "the weight of accuracy is 0: in a group where no other metric differs, a right answer scores 0 like a wrong one"
}
