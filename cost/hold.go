package cost

import (
	"errors"
	"time"
)

// Hold is what a meter has set aside for one call. Exactly one of Settle,
// Finish and Release ends it; a deferred Release after that does nothing. A
// Hold is safe for concurrent use.
type Hold struct {
	m       *Meter
	name    string
	id      string
	granted Spend
	rem     Spend  // of granted, what its own meter has not spent
	fee     Amount // of rem, what own cannot spend
	vague   bool   // it asked for AnyTokens: they are not charged unseen
	own     *Meter
	around  *Meter // the meter of the hold around this one, which lists the live ones
	prev    *Hold
	next    *Hold
	charged Spend // by Settle
	start   time.Time
	done    bool
	priced  bool
}

func (u *subUse) left() Amount {
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
		h.own = &Meter{mu: h.m.mu, path: h.m.path, parent: h.m, from: h, usd: sub(h.rem.USD, h.fee), tokens: h.rem.Tokens,
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
	h.count(-1)
	h.granted, h.rem = Spend{}, Spend{}
	n, err := h.m.admit(&need)
	if err != nil {
		h.count(+1)
		h.add(old)
		return err
	}
	n.unlink() // it becomes this one
	h.name, h.id, h.fee, h.vague, h.priced = n.name, n.id, n.fee, n.vague, n.priced
	h.granted, h.rem = n.granted, n.rem
	left := h.m.left()
	h.grow(need.wants(left).upTo(left))
	return nil
}

// count corrects how often the call's name was used, in every scope that limits
// it.
func (h *Hold) count(by int) {
	for s := h.m; s != nil; s = s.parent {
		if u := s.subs[h.name]; u != nil {
			u.made += by
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

var errUnderWay = errors.New("the call was still under way when the call around it ended")

// Settle ends the hold with a charge: u at price p, or the whole hold if the
// usage is unknown. What was not needed is given back. A failure that was billed
// is settled with its error. The row is already in the ledgers.
//
// A usage that costs more than was held is charged in full and shows in Over:
// the money is gone, whatever was agreed. Settling twice is ErrSettled.
func (h *Hold) Settle(u Usage, p Price, failure error) (Row, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.settle(u, p, failure)
}

func (h *Hold) settle(u Usage, p Price, failure error) (Row, error) {
	if h.done {
		return Row{}, ErrSettled
	}
	h.abandonOwn()
	took := time.Since(h.start)
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
	if !r.Usage.Known && (r.Usage.USD == nil || *r.Usage.USD < 0) {
		r.USD, r.Basis = h.rem.USD, Reserved
		if !h.priced {
			r.Basis = Unpriced
		}
		if !h.vague {
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
	spent := Spend{USD: r.USD, Tokens: r.Usage.Tokens(), Calls: h.granted.Calls, GPU: max(r.Usage.GPU, 0)}
	if r.Basis == Unpriced {
		spent.Unpriced = 1
	}
	h.end(spent)
	h.charged = Spend{USD: r.USD, Tokens: r.Usage.Tokens()}
	for s := h.m; s != nil; s = s.parent {
		if s.from == nil && !s.quiet {
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
	for h.own.live != nil {
		_, _ = h.own.live.settle(Usage{}, Price{}, errUnderWay)
	}
}

// link keeps the hold with the hold around it, if there is one, until it ends.
func (h *Hold) link() {
	for s := h.m; s != nil; s = s.parent {
		if s.from != nil {
			if h.around, h.next = s, s.live; h.next != nil {
				h.next.prev = h
			}
			s.live = h
			return
		}
	}
}

// unlink is the inverse of link.
func (h *Hold) unlink() {
	if h.around == nil {
		return
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		h.around.live = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.around, h.prev, h.next = nil, nil, nil
}

// end replaces what is held by what is spent, in every scope.
func (h *Hold) end(spent Spend) {
	h.take(Spend{USD: h.rem.USD, Tokens: h.rem.Tokens, Calls: h.granted.Calls})
	h.done, h.rem = true, Spend{}
	h.unlink()
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
			used := Spend{USD: min(spent.USD, sub(h.rem.USD, h.fee)), Tokens: min(spent.Tokens, h.rem.Tokens)}
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
// nothing. What its Meter spent stays spent. A nil Hold may be released.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.release()
}

func (h *Hold) release() {
	if h.done {
		return
	}
	h.abandonOwn()
	h.count(-1)
	h.end(Spend{})
}
