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
	left := m.left()
	h.grow(e.wants(left).upTo(left))
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
		holds[i], errs[i] = m.admit(&es[i])
	}
	left := m.left()
	var all Spend
	for i, h := range holds {
		if h != nil {
			w := es[i].wants(left)
			all.USD, all.Tokens = add(all.USD, w.USD), add(all.Tokens, w.Tokens)
		}
	}
	for i, h := range holds {
		if h != nil {
			w := es[i].wants(left)
			h.grow(Spend{USD: Amount(share(int64(w.USD), int64(left.USD), int64(all.USD))), Tokens: share(w.Tokens, left.Tokens, all.Tokens)})
		}
	}
	return holds, errs
}

// wants is what e would take beyond its Floor. AnyTokens is all that is left, so
// that it does not dwarf the wants of others.
func (e *Estimate) wants(left Spend) Spend {
	w := Spend{USD: sub(e.Worst.USD, e.Floor.USD), Tokens: sub(e.Worst.Tokens, e.Floor.Tokens)}
	if e.Worst.Tokens >= AnyTokens {
		w.Tokens = min(w.Tokens, left.Tokens)
	}
	return w
}

// upTo is a want as far as it can be met.
func (s Spend) upTo(left Spend) Spend {
	return Spend{USD: min(s.USD, left.USD), Tokens: min(s.Tokens, left.Tokens)}
}

// share is the part of left that a want among all wants gets, rounded down.
func share(want, left, all int64) int64 {
	if all <= left {
		return want
	}
	hi, lo := bits.Mul64(uint64(want), uint64(left))
	q, _ := bits.Div64(hi, lo, uint64(all)) // hi < all, since want ≤ all and left < all < 2⁶³
	return int64(q)
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
	held.Calls = free.granted.Calls
	free.take(held)
	free.count(-1)
	err := m.refuse(&e)
	free.count(+1)
	free.hold(held)
	return err
}

// refuse says which scope has no room for e's Floor, or nil.
func (m *Meter) refuse(e *Estimate) error {
	need := e.Floor
	if need.USD < 0 || need.Tokens < 0 || need.Calls < 0 || e.Worst.USD < 0 || e.Worst.Tokens < 0 || e.Fee < 0 || e.Fee > need.USD {
		return &InvalidError{Field: "Estimate of " + e.Name, Value: fmt.Sprintf("%v to %v", need.USD, e.Worst.USD), Fix: "estimate zero or more, and a Floor that covers the Fee"}
	}
	bounded := true // until a scope whose money is already held above
	for s := m; s != nil; s = s.parent {
		if s.closed {
			return fmt.Errorf("%w (%s, for %s)", ErrClosed, s.path, e.Name)
		}
		if !e.Priced && !s.allowUnpriced {
			return fmt.Errorf("%w: %s: state its Price (cost.Free() if it costs nothing), or set Budget.AllowUnpriced", ErrUnpriced, e.Name)
		}
		if bounded {
			unit := ""
			switch {
			case need.USD > s.leftUSD():
				unit = "USD"
			case need.Tokens > s.leftTokens():
				unit = "tokens"
			case need.Calls > s.leftCalls():
				unit = "calls"
			}
			if unit != "" {
				return &ExceededError{Scope: s.path, Unit: unit, Name: e.Name, Need: need, Spent: s.spent, Held: s.held,
					Limit: Spend{USD: s.usd, Tokens: s.tokens, Calls: s.calls}}
			}
			bounded = s.from == nil
		}
		if u := s.subs[e.Name]; u != nil {
			unit := ""
			switch {
			case need.USD > u.left():
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

// admit sets aside e's Floor.
func (m *Meter) admit(e *Estimate) (*Hold, error) {
	if err := m.refuse(e); err != nil {
		return nil, err
	}
	need := e.Floor
	h := &Hold{m: m, name: e.Name, id: e.ID, fee: e.Fee, vague: e.Worst.Tokens >= AnyTokens, priced: e.Priced, start: time.Now()}
	h.add(Spend{USD: need.USD, Tokens: need.Tokens, Calls: need.Calls})
	h.count(+1)
	h.link()
	return h, nil
}
