package replay

import "math"

// Mix is how calls spread over the models of a log: the share of each, in the
// order of Log.Models. They sum to 1, or are all 0 if nothing was asked.
type Mix []float64

// Shares are the shares of calls in one run of a Curve, by model. A model that is
// asked twice in a row counts twice. Calls of models that l lacks are left out.
//
// They show whether a policy has collapsed onto one model: compare them with the
// oracle's at the same worth of a right answer,
//
//	policy, oracle := replay.Shares(l, c.Runs[s]), replay.Shares(l, replay.Oracle(l, worths).Runs[s])
//	policy.Apart(oracle); policy.Effective()
func Shares(l *Log, run []Outcome) Mix {
	m := make(Mix, len(l.Models))
	n := 0.0
	for i := range run {
		for _, a := range run[i].Asked {
			if a >= 0 && a < len(m) {
				m[a]++
				n++
			}
		}
	}
	for i := range m {
		m[i] /= max(n, 1)
	}
	return m
}

// Largest is the model that is asked most, the first of several, and its share.
// Of an empty Mix it is -1.
func (m Mix) Largest() (model int, share float64) {
	model = -1
	for i, s := range m {
		if model < 0 || s > share {
			model, share = i, s
		}
	}
	return model, share
}

// Entropy is that of the shares in bits: 0 if all calls go to one model, log2(n)
// if they spread evenly over n.
func (m Mix) Entropy() float64 {
	h := 0.0
	for _, s := range m {
		if s > 0 {
			h -= s * math.Log2(s)
		}
	}
	return h
}

// Effective is how many models the policy really uses: 2 to the power of the
// entropy, so n for an even spread over n models. A policy that has collapsed
// comes close to 1. It is 0 if nothing was asked.
func (m Mix) Effective() float64 {
	if _, s := m.Largest(); s == 0 {
		return 0
	}
	return math.Exp2(m.Entropy())
}

// Apart is the share of calls that would have to go to other models for m to be
// like other: half the sum of the differences, 0 to 1. Of mixes over different
// models it is 1.
func (m Mix) Apart(other Mix) float64 {
	if len(m) != len(other) {
		return 1
	}
	d := 0.0
	for i := range m {
		d += math.Abs(m[i]-other[i]) / 2
	}
	return d
}
