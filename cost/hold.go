package cost

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Hold is what a meter has set aside for one call. Exactly one of Settle,
// Finish and Release ends it; a deferred Release after that does nothing. A
// Hold is safe for concurrent use.
type Hold struct {
	m       *Meter
	name    string
	id      string
	floor   Spend
	granted Spend
	rem     Spend // of granted, what its own meter has not spent
	own     *Meter
	charged Spend // by Settle
	start   time.Time
	row     Row
	done    bool
	priced  bool
}

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
	h.grow(Spend{USD: min(left.USD, sub(e.Worst.USD, e.Floor.USD)), Tokens: min(left.Tokens, sub(e.Worst.Tokens, e.Floor.Tokens))})
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
		h.release()
	}
	var want Spend
	for i := range es {
		if holds[i], errs[i] = m.admit(&es[i]); errs[i] == nil {
			want.USD = add(want.USD, sub(es[i].Worst.USD, es[i].Floor.USD))
			want.Tokens = add(want.Tokens, sub(es[i].Worst.Tokens, es[i].Floor.Tokens))
		}
	}
	left := m.left()
	for i, h := range holds {
		if h != nil {
			e := &es[i]
			h.grow(Spend{
				USD:    Amount(share(int64(sub(e.Worst.USD, e.Floor.USD)), int64(left.USD), int64(want.USD))),
				Tokens: share(sub(e.Worst.Tokens, e.Floor.Tokens), left.Tokens, want.Tokens),
			})
		}
	}
	return holds, errs
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
	free.uncount()
	err := m.refuse(&e)
	for s := free.m; s != nil; s = s.parent {
		if u := s.subs[free.name]; u != nil {
			u.made++
		}
	}
	free.hold(held)
	return err
}

// refuse says which scope has no room for e's Floor, or nil.
func (m *Meter) refuse(e *Estimate) error {
	need := e.Floor
	if need.USD < 0 || need.Tokens < 0 || need.Calls < 0 || e.Worst.USD < 0 || e.Worst.Tokens < 0 {
		return &InvalidError{Field: "Estimate of " + e.Name, Value: fmt.Sprintf("%v to %v", need.USD, e.Worst.USD), Fix: "estimate zero or more"}
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
	h := &Hold{m: m, name: e.Name, id: e.ID, floor: e.Floor, priced: e.Priced, start: time.Now()}
	h.add(Spend{USD: need.USD, Tokens: need.Tokens, Calls: need.Calls})
	for s := m; s != nil; s = s.parent {
		if u := s.subs[e.Name]; u != nil {
			u.made++
		}
	}
	return h, nil
}

func (u *sub_) left() Amount {
	if u.usd == MaxAmount {
		return MaxAmount
	}
	return sub(u.usd, add(u.spent, u.held))
}

// grow sets aside more, as far as the limits by name allow. The caller has
// checked the other limits.
func (h *Hold) grow(more Spend) {
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			more.USD = min(more.USD, u.left())
		}
	}
	h.add(more)
}

// add moves more into the hold.
func (h *Hold) add(more Spend) {
	h.granted = h.granted.Add(more)
	h.rem = h.rem.Add(more)
	h.hold(more)
}

// hold is the inverse of take: it sets more aside in every scope that counts it.
func (h *Hold) hold(more Spend) {
	for s := h.m; s != nil; s = s.parent {
		s.held = s.held.Add(more)
		if s.from != nil {
			break
		}
	}
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			u.held = add(u.held, more.USD)
		}
	}
}

// Granted is what was set aside: at least the Floor, at most the Worst.
func (h *Hold) Granted() Spend {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.granted
}

// Spent is what the call has been charged so far: through the hold's Meter, and
// by Settle.
func (h *Hold) Spent() Spend {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	var s Spend
	if h.own != nil {
		s = h.own.spent
	}
	return s.Add(h.charged)
}

// Meter returns a meter that may spend what is held, and nothing else; calls
// made through it count as part of this one call.
func (h *Hold) Meter() *Meter {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.own == nil {
		h.own = &Meter{mu: h.m.mu, path: h.m.path, parent: h.m, from: h, usd: h.rem.USD, tokens: h.rem.Tokens,
			calls: unlimited.Calls, allowUnpriced: h.m.allowUnpriced, closed: h.done}
	}
	return h.own
}

// Resize changes what is set aside to between need.Floor and need.Worst. If
// the Floor does not fit, the hold stays as it is and the error says why. It is
// for holds whose Meter is not used.
func (h *Hold) Resize(need Estimate) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.done {
		return ErrSettled
	}
	old := h.granted
	h.take(old)
	h.granted, h.rem = Spend{}, Spend{}
	n, err := h.m.admit(&need)
	if err != nil {
		h.add(old)
		return err
	}
	h.uncount()
	h.granted, h.rem = n.granted, n.rem
	left := h.m.left()
	h.grow(Spend{USD: min(left.USD, sub(need.Worst.USD, need.Floor.USD)), Tokens: min(left.Tokens, sub(need.Worst.Tokens, need.Floor.Tokens))})
	return nil
}

// uncount takes back that the call was made, in the counts by name.
func (h *Hold) uncount() {
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			u.made--
		}
	}
}

// take gives back part of what is held, in every scope that counts it.
func (h *Hold) take(less Spend) {
	for s := h.m; s != nil; s = s.parent {
		s.held.USD, s.held.Tokens, s.held.Calls = sub(s.held.USD, less.USD), sub(s.held.Tokens, less.Tokens), sub(s.held.Calls, less.Calls)
		if s.from != nil {
			break
		}
	}
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			u.held = sub(u.held, less.USD)
		}
	}
}

// Settle ends the hold with a charge: u at price p, or the whole hold if the
// usage is unknown. What was not needed is given back. A failure that was billed
// is settled with its error. The row is already in the ledgers.
//
// A usage that costs more than was held is charged in full and shows in Over:
// the money is gone, whatever was agreed. Settling twice returns the first row
// and ErrSettled.
func (h *Hold) Settle(u Usage, p Price, failure error) (Row, error) {
	took := time.Since(h.start)
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.done {
		return h.row, ErrSettled
	}
	if h.orphaned() {
		// The call around it has ended and was charged for this one.
		h.done = true
		return h.row, ErrClosed
	}
	r := Row{ID: h.id, Scope: h.m.path, Name: h.name, Usage: u, Held: h.granted.USD, Start: h.start, Took: took}
	if h.m.from != nil {
		r.Call = h.m.from.id
	}
	if failure != nil {
		r.Err = clip(failure.Error(), 500)
	}
	h.price(&r, p)
	h.charge(r)
	return r, nil
}

// price fills in what the row costs.
func (h *Hold) price(r *Row, p Price) {
	if !r.Usage.Known && r.Usage.USD == nil {
		r.USD, r.Basis = h.rem.USD, Reserved
		if !h.priced {
			r.Basis = Unpriced
		}
		if h.rem.Tokens < AnyTokens {
			r.Usage.Input = h.rem.Tokens // tokens are charged like money
		}
		return
	}
	var err error
	r.USD, r.Basis, err = p.Of(r.Usage)
	r.Inconsistent = errors.Is(err, ErrInconsistent)
	r.Over = sub(r.USD, h.rem.USD)
	if !h.priced {
		r.Over = 0
	}
}

// charge books the row and ends the hold.
func (h *Hold) charge(r Row) {
	h.abandonOwn()
	spent := Spend{USD: r.USD, Tokens: r.Usage.Tokens(), Calls: h.granted.Calls, GPU: max(r.Usage.GPU, 0)}
	if r.Basis == Unpriced {
		spent.Unpriced = 1
	}
	h.end(spent)
	h.row, h.charged = r, Spend{USD: r.USD, Tokens: r.Usage.Tokens()}
	for s := h.m; s != nil; s = s.parent {
		if s.from == nil {
			s.rows = append(s.rows, r)
		}
	}
}

// Finish ends a call that has no price of its own: it is counted, what its Meter
// spent stays spent, the rest is given back, and no row is written.
func (h *Hold) Finish() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if !h.done {
		h.abandonOwn()
		h.end(Spend{Calls: h.granted.Calls})
	}
}

// abandonOwn closes the hold's meter and charges calls that are still on their
// way below it in full: nobody will be left to say what they cost.
func (h *Hold) abandonOwn() {
	if h.own == nil {
		return
	}
	h.own.closed = true
	if lost := h.own.held; lost.USD > 0 || lost.Tokens > 0 {
		h.own.held = Spend{}
		lost.Calls = 0
		if lost.Tokens >= AnyTokens {
			lost.Tokens = 0
		}
		h.own.book(lost)
		r := Row{ID: h.id, Scope: h.m.path, Call: h.id, Name: h.name, Usage: Usage{Input: lost.Tokens}, USD: lost.USD, Held: lost.USD,
			Basis: Reserved, Start: h.start, Took: time.Since(h.start), Err: "calls were still under way when their tool call ended"}
		for s := h.m; s != nil; s = s.parent {
			if s.from == nil {
				s.rows = append(s.rows, r)
			}
		}
	}
}

// orphaned reports whether a call around this one has ended.
func (h *Hold) orphaned() bool {
	for s := h.m; s != nil; s = s.parent {
		if s.from != nil && s.from.done {
			return true
		}
	}
	return false
}

// end replaces what is held by what is spent, in every scope.
func (h *Hold) end(spent Spend) {
	h.done = true
	if h.orphaned() {
		return
	}
	h.take(Spend{USD: h.rem.USD, Tokens: h.rem.Tokens, Calls: h.granted.Calls})
	h.m.book(spent)
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			u.spent = add(u.spent, spent.USD)
		}
	}
}

// book adds to what m and the scopes above have spent. Where m spends a hold,
// the scopes above hold that much less.
func (m *Meter) book(spent Spend) {
	for s := m; s != nil; s = s.parent {
		s.spent = s.spent.Add(spent)
		if h := s.from; h != nil {
			spent.Calls = 0 // part of the call that holds
			used := Spend{USD: min(spent.USD, h.rem.USD), Tokens: min(spent.Tokens, h.rem.Tokens)}
			h.rem.USD -= used.USD
			h.rem.Tokens -= used.Tokens
			h.take(used)
			for t := h.m; t != nil; t = t.parent {
				if u := t.subs[h.name]; u != nil {
					u.spent = add(u.spent, spent.USD)
				}
			}
		}
	}
}

// Release ends the hold without a charge: the call was not made, or cost
// nothing. What its Meter spent stays spent.
func (h *Hold) Release() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.release()
}

func (h *Hold) release() {
	if h == nil || h.done {
		return
	}
	h.abandonOwn()
	h.uncount()
	h.end(Spend{})
}
