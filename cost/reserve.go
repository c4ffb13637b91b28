package cost

import (
	"fmt"
	"math/bits"
	"time"
)

// Reserve sets aside what e needs, in m and all scopes above it: at least
// e.Floor, at most e.Worst. It never waits. Errors are *ExceededError,
// ErrUnpriced, ErrClosed and ErrNoMeter.
func (m *Meter) Reserve(e Estimate) (*Hold, error) {
	if m == nil {
		return nil, ErrNoMeter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.admit(&e)
	if err != nil {
		return nil, err
	}
	h.fill(&e)
	return h, nil
}

// ReserveAll reserves several calls in one critical section, after releasing
// the holds in free. The Floors are set aside in order, calls whose Floor does
// not fit are refused, and what is left is shared by the others in proportion
// to Worst − Floor. Both results have an element per estimate.
func (m *Meter) ReserveAll(es []Estimate, free ...*Hold) ([]*Hold, []error) {
	holds, errs := make([]*Hold, len(es)), make([]error, len(es))
	if m == nil {
		for i := range errs {
			errs[i] = ErrNoMeter
		}
		return holds, errs
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range free {
		if h != nil {
			h.release()
		}
	}
	for i := range es {
		if holds[i], errs[i] = m.admit(&es[i]); holds[i] != nil {
			holds[i].add(es[i].Floor.units())
		}
	}
	left, _ := m.left()
	var all units
	for i, h := range holds {
		if h != nil {
			all = all.plus(es[i].wants(&left, m.onGPUs))
		}
	}
	for i, h := range holds {
		if h != nil {
			w := es[i].wants(&left, m.onGPUs)
			h.grow(units{}, units{usd: share(w.usd, left.usd, all.usd), tokens: share(w.tokens, left.tokens, all.tokens), gpu: share(w.gpu, left.gpu, all.gpu)})
		}
	}
	return holds, errs
}

// wants is what e would take beyond its Floor. AnyTokens is all that is left, so
// that it does not dwarf the wants of others, and so is its GPU time where that
// is bounded.
func (e *Estimate) wants(left *units, onGPUs bool) units {
	w := units{usd: sub(e.Worst.USD, e.Floor.USD), tokens: sub(e.Worst.Tokens, e.Floor.Tokens), gpu: sub(e.Worst.GPU, e.Floor.GPU)}
	if e.Worst.Tokens >= AnyTokens {
		w.tokens = min(w.tokens, left.tokens)
		if onGPUs {
			w.gpu = left.gpu
		}
	}
	return w
}

// share is the part of left that a want among all wants gets, rounded down.
func share[T number](want, left, all T) T {
	if all <= left {
		return want
	}
	hi, lo := bits.Mul64(uint64(want), uint64(left))
	q, _ := bits.Div64(hi, lo, uint64(all)) // hi < all, since want ≤ all and left < all < 2⁶³
	return T(q)
}

// Check says whether Reserve would admit e if the hold free (which may be nil)
// were released first. Nothing is set aside.
func (m *Meter) Check(e Estimate, free *Hold) error {
	if m == nil {
		return ErrNoMeter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if free == nil || free.done {
		return m.refuse(&e)
	}
	held := free.rem
	held.calls = free.granted.calls
	free.take(&held)
	free.count(-1)
	err := m.refuse(&e)
	free.count(+1)
	free.hold(&held)
	return err
}

// refuse says which scope has no room for e's Floor, or nil.
func (m *Meter) refuse(e *Estimate) error {
	need := &e.Floor
	if need.USD < 0 || need.Tokens < 0 || need.Calls < 0 || need.GPU < 0 || e.Worst.GPU < 0 || e.Worst.USD < 0 || e.Worst.Tokens < 0 || e.Fee < 0 || e.Fee > need.USD {
		return &InvalidError{Field: "Estimate of " + e.Name, Value: fmt.Sprintf("%v to %v", need.USD, e.Worst.USD), Fix: "estimate zero or more, and a Floor that covers the Fee"}
	}
	floor, bounded := need.units(), true // until a scope whose money is already held above
	top, named := m.countedFrom(e.Name), true
	for s := m; s != nil; s = s.parent {
		if s.closed {
			return fmt.Errorf("%w (%s, for %s)", ErrClosed, s.path, e.Name)
		}
		if !e.Priced && !s.allowUnpriced {
			return fmt.Errorf("%w: %s: state its Price (cost.Free() if it costs nothing), or set Budget.AllowUnpriced", ErrUnpriced, e.Name)
		}
		if bounded {
			left := s.limit.left(&s.spent, &s.held)
			if unit := floor.over(&left); unit != "" {
				return &ExceededError{Scope: s.path, Unit: unit, Name: e.Name, Need: e.Floor, Spent: s.spent, Held: s.held.spend(), Limit: s.limit.spend()}
			}
			bounded = s.from == nil
		}
		named = named && (top == nil || s != top)
		if u := s.subs[e.Name]; u != nil {
			unit := ""
			switch {
			case named && need.USD > u.left():
				unit = "USD"
			case u.made >= u.limit:
				unit = "calls"
			}
			if unit != "" {
				return &ExceededError{Scope: s.path, Unit: unit, Name: e.Name, Sub: true, Need: Spend{USD: need.USD, Tokens: need.Tokens, Calls: 1},
					Spent: Spend{USD: u.spent, Calls: u.made}, Held: Spend{USD: u.held}, Limit: Spend{USD: u.usd, Calls: u.limit}}
			}
		}
	}
	return nil
}

// admit makes a hold for e, if its Floor fits. Nothing is in it yet.
func (m *Meter) admit(e *Estimate) (*Hold, error) {
	if err := m.refuse(e); err != nil {
		return nil, err
	}
	h := &Hold{m: m, name: e.Name, id: e.ID, fee: e.Fee, vague: e.Worst.Tokens >= AnyTokens, priced: e.Priced, start: time.Now(), top: m.countedFrom(e.Name)}
	h.count(+1)
	h.link()
	return h, nil
}
