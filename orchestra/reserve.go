package orchestra

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// prepare finds out, before anything is spent, whether the run can end with an
// answer, and sets aside what the cheapest way to one takes.
func (r *run) prepare() error {
	r.newUnits()
	s := &r.state
	for i := range r.units {
		r.refresh(&r.units[i])
	}
	r.offered = s.Work.Version()
	if err := r.canAnswer(); err != nil {
		return err
	}
	if err := r.canPay(); err != nil && !(r.resumed && r.state.Turn > 0) {
		return err
	}
	if _, _, attempts := s.Work.Len(); attempts > 0 { // of a run that was resumed
		r.ready = true
		return nil
	}
	s.Left = r.meter.Left()
	e := r.wayToAnswer(true)
	hold, err := r.meter.Reserve(e)
	var exceeded *cost.ExceededError
	switch {
	case errors.As(err, &exceeded) && r.resumed && r.state.Turn > 0: // as setAside: it goes on with what it has
		r.ready = true
		return nil
	case errors.As(err, &exceeded):
		return &InvalidError{Field: "Task.Budget", Err: err,
			Fix: wayTooDear(&e, s.Left, exceeded)}
	case err != nil:
		return &InvalidError{Field: "Task.Budget", Err: err}
	}
	r.reserve, r.aside, r.ready = hold, e.Floor, true
	return nil
}

// wayTooDear says what a run would need.
func wayTooDear(e *cost.Estimate, left cost.Spend, why *cost.ExceededError) string {
	if why.Unit != "USD" {
		return fmt.Sprintf("the cheapest way to an answer (%s) needs more of a limit than is left: raise that, or allow or add something cheaper", e.Name)
	}
	return fmt.Sprintf("the cheapest way to an answer (%s) takes at least %v, and %v is left: raise the budget, or allow or add something cheaper", e.Name, e.Floor.USD, left.USD)
}

// canAnswer checks that the tools and preferences leave a way to an answer.
func (r *run) canAnswer() error {
	var unpriced, wordless *unit
	var forbidden []string
	for i := range r.units {
		u := &r.units[i]
		switch {
		case !u.answers():
		case u.forever == policy.Forbidden:
			for _, n := range r.task.Prefer.Never {
				if slices.Contains(u.offer.Names, n) && !slices.Contains(forbidden, n) {
					forbidden = append(forbidden, n)
				}
			}
		case u.forever == policy.NoArguments:
			wordless = u
		case !u.offer.Estimate.Priced && u.why == "" && !r.task.Budget.AllowUnpriced:
			unpriced = u
		case u.forever == "":
			return nil
		}
	}
	switch {
	case unpriced != nil:
		name := unpriced.offer.Names[len(unpriced.offer.Names)-1]
		if unpriced.choice != nil {
			name = unpriced.choice.Info.Name
		}
		return &InvalidError{Field: fmt.Sprintf("the price of %q", name), Err: cost.ErrUnpriced,
			Fix: "state models.Info.Price (cost.Free() if it costs nothing), or set Budget.AllowUnpriced"}
	case r.o.info.Writes:
		return nil // it can answer in its own words
	case forbidden != nil:
		return &InvalidError{Field: "Task.Prefer.Never", Fix: "it leaves nothing that can give an answer: allow one of " + strings.Join(forbidden, ", ")}
	case wordless != nil:
		return &InvalidError{Field: fmt.Sprintf("tool %q", wordless.offer.Tool), Fix: "it could give an answer, but this policy cannot write its arguments: propose them (tools.WithPropose), or add a model with WithExperts"}
	}
	return &InvalidError{Field: "New", Fix: "nothing here can give an answer: add models with WithExperts, or a tool whose effects include tools.Answers"}
}

// canPay checks that limits by name leave an expert that can answer.
func (r *run) canPay() error {
	if r.o.info.Writes {
		return nil
	}
	var limit error
	for i := range r.units {
		if u := &r.units[i]; u.answers() && u.forever == "" {
			if limit = r.limited(u); limit == nil {
				return nil
			}
		}
	}
	return &InvalidError{Field: "Budget.PerName", Fix: "it leaves no expert that can answer", Err: limit}
}

// heldFor is what a call is charged if nobody can say what it used: tokens and GPU
// time as well, unless it asked for all that is left.
func heldFor(h *cost.Hold, e *cost.Estimate) cost.Spend {
	held := h.Granted()
	if e.Worst.Tokens >= cost.AnyTokens {
		held.Tokens, held.GPU = 0, 0
	}
	return held
}

func (u *unit) answers() bool { return u.tool.spec.Effects&tools.Answers != 0 }

// wayToAnswer is what the cheapest allowed way to make an attempt takes: its
// Floor, with the policy's call where the policy costs anything.
func (r *run) wayToAnswer(withPolicy bool) cost.Estimate {
	e := cost.Estimate{Name: "answer reserve", Priced: true}
	if u := r.cheapest(); u != nil {
		e.Name, e.Floor, e.Priced = u.offer.Tool, u.offer.Estimate.Floor, u.offer.Estimate.Priced || u.why != ""
		e.Floor.Calls = 1
	}
	if p, err := r.policyEstimate(); withPolicy && err == nil && r.o.info.Estimate != nil {
		e.Floor.USD, e.Floor.Tokens, e.Floor.GPU = e.Floor.USD+p.Floor.USD, e.Floor.Tokens+p.Floor.Tokens, e.Floor.GPU+p.Floor.GPU
		e.Priced = e.Priced && p.Priced
	}
	e.Mean, e.Worst = e.Floor, e.Floor
	return e
}

// policyEstimate is what one decision costs; nothing if the policy does not say.
func (r *run) policyEstimate() (e cost.Estimate, err error) {
	if r.o.info.Estimate == nil {
		return e, nil
	}
	defer r.caught("policy.Info.Estimate", func() { err = errors.New("orchestra: the policy's Estimate panicked") })
	return r.o.info.Estimate(&r.state), nil
}

// cheapest is the unit that makes an attempt for the least, or nil.
func (r *run) cheapest() *unit {
	var best *unit
	for i := range r.units {
		u := &r.units[i]
		if !u.answers() || u.forever != "" || u.fails >= brokenAfter || r.limited(u) != nil {
			continue
		}
		if !u.offer.Estimate.Priced && u.why == "" && !r.task.Budget.AllowUnpriced {
			continue
		}
		if best == nil || u.offer.Estimate.Floor.USD < best.offer.Estimate.Floor.USD {
			best = u
		}
	}
	return best
}

// setAside keeps the answer reserve at what an answer takes now. Once there is
// an attempt it is released: the run can end with that.
func (r *run) setAside(withPolicy bool) {
	if _, _, attempts := r.state.Work.Len(); attempts > 0 {
		if r.reserve != nil {
			r.reserve.Release()
			r.reserve = nil
		}
		return
	}
	e := r.wayToAnswer(withPolicy)
	if r.reserve == nil {
		// The last call that could have answered failed. If what is left does not
		// suffice for another, the run goes on with what it has.
		r.reserve, _ = r.meter.Reserve(e)
		r.aside = e.Floor
		return
	}
	if r.aside != e.Floor && r.reserve.Resize(e) == nil { // if it does not fit, the old one stays
		r.aside = e.Floor
	}
}

// lastAttempt uses the answer reserve when a run must end and has no attempt.
func (r *run) lastAttempt(why Stop) {
	if _, _, attempts := r.state.Work.Len(); attempts > 0 || r.ctx.Err() != nil || !r.ready {
		return
	}
	r.emit(Noted{Text: "one last attempt, since the run must end (" + string(why) + ")"})
	for range 3 { // experts, the cheapest first
		r.offer() // brings the units up to date
		var best *unit
		for i := range r.units {
			u := &r.units[i]
			if u.answers() && u.offer.Effects&(tools.NeedsApproval|tools.ClientSide) == 0 && u.now == "" && u.offer.Args != nil &&
				(best == nil || u.offer.Estimate.Floor.USD < best.offer.Estimate.Floor.USD) {
				best = u
			}
		}
		if best == nil {
			return
		}
		best.fails = brokenAfter // not again
		if _, err := r.act([]policy.Call{{Tool: best.offer.Tool, Args: best.offer.Args}}); err != nil {
			r.emit(Noted{Text: "the last attempt failed", Err: err.Error()})
			return
		}
		if _, _, attempts := r.state.Work.Len(); attempts > 0 || r.ctx.Err() != nil {
			return
		}
	}
}
