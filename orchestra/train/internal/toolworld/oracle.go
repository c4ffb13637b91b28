package toolworld

import (
	"context"
	"math"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Oracle is a policy that knows what kind of task the instance is and how good
// every expert truly is, but not its luck: it gathers what the task needs, once,
// by the way that is worth most, then answers in the way that is worth most, and
// ends. What is worth most goes by the chance of success less what the share of
// the dearest expert's price is worth (policy.CostShare), as for the learned
// policy.
type Oracle struct{ In *Instance }

// Info describes the policy.
func (o Oracle) Info() policy.Info { return policy.Info{Name: "oracle"} }

// Decide follows the plan.
func (o Oracle) Decide(_ context.Context, s *policy.State) (policy.Decision, error) {
	in := o.In
	docs, runs, attempts := s.Work.Len()
	k := in.Task.Kind
	if attempts > 0 {
		best, trust := newest(s)
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == "answer" && !asked(s, of) }, forAnswer); of != nil && o.value(s, of, forAnswer) > trust+atLeast {
			return policy.Decision{Calls: []policy.Call{{Tool: of.Tool, Args: of.Args}}}, nil
		}
		return policy.Decision{Finish: &policy.Finish{Attempt: best}}, nil
	}
	call := func(of *policy.Offer) (policy.Decision, error) {
		return policy.Decision{Calls: []policy.Call{{Tool: of.Tool, Args: of.Args, Writer: of.Writer}}}, nil
	}
	if (k == LookUp || k == Both) && docs == 0 {
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == in.searchName() && !repeated(s, of) }, forQuery); of != nil {
			return call(of)
		}
	}
	if k == Custom && docs == 0 && !dead(s, customs[in.Task.Tool].name, customs[in.Task.Tool].acts) {
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == customs[in.Task.Tool].name }, forArgs); of != nil {
			return call(of)
		}
	}
	if k == Arithmetic || k == Both {
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == "calculator" }, ""); of != nil {
			return call(of)
		}
	}
	if k == LookUp {
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == "extract" }, ""); of != nil && !repeated(s, of) {
			return call(of)
		}
	}
	if (k == Program || k == Both) && runs == 0 {
		if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == in.reasonName() }, forCode); of != nil {
			return call(of)
		}
	}
	if of := o.best(s, func(of *policy.Offer) bool { return of.Tool == "answer" }, forAnswer); of != nil {
		return call(of)
	}
	return policy.Decision{}, policy.ErrNothingLeft
}

// atLeast is what a further answer has to be worth more than one that is there.
const atLeast = 0.05

// newest is the attempt that is trusted most, the newest of equals: what was cut
// off hardly, what quotes by its own word, others fully.
func newest(s *policy.State) (id string, trust float64) {
	for _, a := range s.Work.Attempts() {
		t := 1.0
		if a.Confidence > 0 {
			t = a.Confidence
		}
		if t >= trust {
			id, trust = a.ID, t
		}
	}
	return id, trust
}

// asked reports whether an expert has answered already.
func asked(s *policy.State, of *policy.Offer) bool {
	for _, t := range s.Turns {
		for _, d := range t.Done {
			if d.Call.Tool == of.Tool && string(d.Call.Args) == string(of.Args) && d.Err == nil {
				return true
			}
		}
	}
	return false
}

// dead reports whether a tool is not tried again: it failed twice, or once if it
// changes something.
func dead(s *policy.State, tool string, acts bool) bool {
	n, ran := 0, false
	for _, t := range s.Turns {
		for _, d := range t.Done {
			if d.Call.Tool == tool && d.Err != nil && len(d.Call.Args) > 0 {
				n, ran = n+1, true
			}
		}
	}
	return n > 1 || ran && acts
}

func (in *Instance) reasonName() string {
	if in.reasonSpec.name != "" {
		return in.reasonSpec.name
	}
	return "enhance_reasoning"
}

// repeated reports whether an offer was made use of already.
func repeated(s *policy.State, of *policy.Offer) bool {
	for _, t := range s.Turns {
		for _, d := range t.Done {
			if d.Call.Tool == of.Tool {
				return true
			}
		}
	}
	return false
}

// best is the offer that is worth most of those that fit, or nil.
func (o Oracle) best(s *policy.State, fits func(*policy.Offer) bool, purpose string) *policy.Offer {
	dearest := 0.0
	for i := range s.Offers {
		if of := &s.Offers[i]; fits(of) {
			dearest = max(dearest, of.Estimate.Mean.USD.Dollars())
		}
	}
	var best *policy.Offer
	top := math.Inf(-1)
	for i := range s.Offers {
		if of := &s.Offers[i]; fits(of) {
			if v := o.worth(s, of, purpose, dearest); v > top {
				best, top = of, v
			}
		}
	}
	return best
}

// value is what an offer is worth beside all of its tool.
func (o Oracle) value(s *policy.State, of *policy.Offer, purpose string) float64 {
	dearest := 0.0
	for i := range s.Offers {
		if s.Offers[i].Tool == of.Tool {
			dearest = max(dearest, s.Offers[i].Estimate.Mean.USD.Dollars())
		}
	}
	return o.worth(s, of, purpose, dearest)
}

func (o Oracle) worth(s *policy.State, of *policy.Offer, purpose string, dearest float64) (v float64) {
	docs, runs, _ := s.Work.Len()
	if e := o.In.expert(s, of); e != nil {
		v = chance(e.Quality, &o.In.Task, purpose, docs > 0, runs > 0)
	}
	if dearest > 0 {
		v -= policy.CostShare * s.Prefer.Cost / s.Prefer.Accuracy * of.Estimate.Mean.USD.Dollars() / dearest
	}
	return v + 0.1*preferred(s.Prefer, of)
}

func preferred(v prefs.Vector, of *policy.Offer) float64 { return v.Weight(of.Names...) }

// expert is the one that an offer asks.
func (in *Instance) expert(s *policy.State, of *policy.Offer) *Expert {
	for _, e := range in.Experts {
		for _, n := range of.Names {
			if n == e.Info.Name && (of.Choice != "" || of.Writer != "") {
				return e
			}
		}
	}
	return nil
}

var _ tools.Retriever = (*retriever)(nil)
