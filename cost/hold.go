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
	granted units
	rem     units  // of granted, what its own meter has not spent
	fee     Amount // of rem, what own cannot spend
	own     *Meter
	top     *Meter // the first scope by name that does not count it: a hold of the same name around it does
	around  *Meter // the meter of the hold around this one, which lists the live ones
	prev    *Hold
	next    *Hold
	charged units // by Settle
	start   time.Time
	done    bool
	priced  bool
	vague   bool // it asked for AnyTokens: neither they nor GPU time are charged unseen
}

func (u *subUse) left() Amount {
	if u.usd == MaxAmount {
		return MaxAmount
	}
	return sub(u.usd, add(u.spent, u.held))
}

// grow sets aside at least floor, and more as far as the limits by name allow.
// The caller has checked the other limits.
func (h *Hold) grow(floor, more units) {
	for s := h.m.byName; s != h.top; s = s.above() {
		if u := s.subs[h.name]; u != nil {
			more.usd = min(more.usd, sub(u.left(), floor.usd))
		}
	}
	h.add(floor.plus(more))
}

// fill sets aside between e.Floor and e.Worst: all that it can.
func (h *Hold) fill(e *Estimate) {
	floor := e.Floor.units()
	left, _ := h.m.left()
	left = left.minus(floor)
	h.grow(floor, e.wants(&left, h.m.onGPUs).upTo(left))
}

// add moves more into the hold.
func (h *Hold) add(more units) {
	h.granted = h.granted.plus(more)
	h.rem = h.rem.plus(more)
	h.hold(&more)
}

// hold is the inverse of take: it sets more aside in every scope that counts it.
func (h *Hold) hold(more *units) {
	for s := h.m; s != nil; s = s.parent {
		s.held = s.held.plus(*more)
		if s.from != nil {
			break
		}
	}
	for s := h.m.byName; s != h.top; s = s.above() {
		if u := s.subs[h.name]; u != nil {
			u.held = add(u.held, more.usd)
		}
	}
}

// Granted is what was set aside: at least the Floor, at most the Worst.
func (h *Hold) Granted() Spend {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.granted.spend()
}

// Spent is what the call has been charged so far: through the hold's Meter, and
// by Settle.
func (h *Hold) Spent() Spend {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.spent()
}

func (h *Hold) spent() (s Spend) {
	if h.own != nil {
		s = h.own.spent
	}
	s.count(&h.charged, 0)
	return s
}

// Meter returns a meter that may spend what is held, and nothing else; calls
// made through it count as part of this one call.
func (h *Hold) Meter() *Meter {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.own == nil {
		h.own = &Meter{mu: h.m.mu, path: h.m.path, parent: h.m, from: h, limit: h.rem, onTokens: h.m.onTokens, onGPUs: h.m.onGPUs, byName: h.m.byName, allowUnpriced: h.m.allowUnpriced, closed: h.done}
		h.own.limit.usd, h.own.limit.calls = sub(h.rem.usd, h.fee), boundless.calls
		if !h.m.onGPUs { // where no scope bounds it, nobody need have asked for it
			h.own.limit.gpu = boundless.gpu
		}
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
	h.take(&old)
	h.count(-1)
	h.granted, h.rem = units{}, units{}
	n, err := h.m.admit(&need)
	if err != nil {
		h.count(+1)
		h.add(old)
		return err
	}
	n.unlink() // it becomes this one
	h.name, h.id, h.fee, h.vague, h.priced, h.top = n.name, n.id, n.fee, n.vague, n.priced, n.top
	h.fill(&need)
	return nil
}

// count corrects how often the call's name was used, in every scope that limits
// it.
func (h *Hold) count(by int) {
	for s := h.m.byName; s != nil; s = s.above() {
		if u := s.subs[h.name]; u != nil {
			u.made += by
		}
	}
}

// take gives back part of what is held, in every scope that counts it.
func (h *Hold) take(less *units) {
	for s := h.m; s != nil; s = s.parent {
		s.held = s.held.minus(*less)
		if s.from != nil {
			break
		}
	}
	for s := h.m.byName; s != h.top; s = s.above() {
		if u := s.subs[h.name]; u != nil {
			u.held = sub(u.held, less.usd)
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
	r := h.settle(&u, &p, failure)
	if r == nil {
		return Row{}, ErrSettled
	}
	return *r, nil
}

// settle returns the row, which the ledgers keep, or nil if the hold had ended.
func (h *Hold) settle(u *Usage, p *Price, failure error) *Row {
	if h.done {
		return nil
	}
	h.abandonOwn()
	took := time.Since(h.start)
	r := &Row{ID: h.id, Scope: h.m.path, Name: h.name, Usage: *u, Held: h.granted.usd, Start: h.start, Took: took}
	if h.m.from != nil {
		r.Call = h.m.from.id
	}
	if failure != nil {
		r.Err = clip(failure.Error(), 500)
	}
	h.price(r, p)
	h.charge(r)
	return r
}

// price fills in what the row costs.
func (h *Hold) price(r *Row, p *Price) {
	if usd := r.Usage.USD; usd != nil && !usd.Valid() { // it could not be written down
		r.Usage.USD, r.Inconsistent = nil, true
	}
	if !r.Usage.Known && (r.Usage.USD == nil || *r.Usage.USD < 0) {
		r.USD, r.Basis = h.rem.usd, Reserved
		if !h.priced {
			r.Basis = Unpriced
		}
		if !h.vague { // charged like money, whatever part of it was said
			r.Usage = Usage{Input: h.rem.tokens, GPU: h.rem.gpu, Requests: r.Usage.Requests, Wall: r.Usage.Wall, Service: r.Usage.Service}
		}
		h.over(r)
		return
	}
	var err error
	r.USD, r.Basis, err = p.of(&r.Usage)
	r.Inconsistent = r.Inconsistent || errors.Is(err, ErrInconsistent)
	if h.priced || r.Basis != Unpriced {
		r.Over = sub(r.USD, h.rem.usd)
	}
	h.over(r)
}

// over marks a row that used more tokens or GPU time than was held for it.
func (h *Hold) over(r *Row) {
	if h.m.onTokens {
		r.OverTokens = sub(r.Usage.Tokens(), h.rem.tokens)
	}
	if h.m.onGPUs {
		r.OverGPU = sub(max(r.Usage.GPU, 0), h.rem.gpu)
	}
}

// charge books the row and ends the hold.
func (h *Hold) charge(r *Row) {
	spent, unpriced := units{usd: r.USD, tokens: r.Usage.Tokens(), gpu: max(r.Usage.GPU, 0), calls: h.granted.calls}, 0
	if r.Basis == Unpriced {
		unpriced = 1
	}
	h.charged = spent
	h.charged.calls = 0
	h.end(spent, unpriced)
	for s := h.m; s != nil; s = s.parent {
		if s.from == nil && !s.quiet {
			s.rows = append(s.rows, r)
		}
	}
}

// Finish ends a call that has no price of its own: it is counted, what its Meter
// spent stays spent, the rest is given back, and no row is written. It returns
// what Spent does.
func (h *Hold) Finish() Spend {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if !h.done {
		h.abandonOwn()
		h.end(units{calls: h.granted.calls}, 0)
	}
	return h.spent()
}

// abandonOwn closes the hold's meter and charges calls that are still on their
// way below it in full: nobody will be left to say what they cost.
func (h *Hold) abandonOwn() {
	if h.own == nil {
		return
	}
	h.own.closed = true
	for h.own.live != nil {
		h.own.live.settle(&Usage{}, &Price{}, errUnderWay)
	}
}

// countedFrom is the first scope by name, from m upwards, in which money for a
// name is held already: by a hold of that name that m spends from.
func (m *Meter) countedFrom(name string) *Meter {
	if m.byName == nil {
		return nil
	}
	for s := m; s != nil; s = s.parent {
		if s.from != nil && s.from.name == name {
			return s.from.m.byName
		}
	}
	return nil
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
func (h *Hold) end(spent units, unpriced int) {
	h.rem.calls = h.granted.calls
	h.take(&h.rem)
	h.done, h.rem = true, units{}
	h.unlink()
	h.m.book(spent, unpriced)
	for s := h.m.byName; s != h.top; s = s.above() {
		if u := s.subs[h.name]; u != nil {
			u.spent = add(u.spent, spent.usd)
		}
	}
}

// book adds to what m and the scopes above have spent. Where m spends a hold,
// the scopes above hold that much less.
func (m *Meter) book(spent units, unpriced int) {
	for s := m; s != nil; s = s.parent {
		s.spent.count(&spent, unpriced)
		if h := s.from; h != nil {
			spent.calls = 0 // part of the call that holds
			used := spent.upTo(h.rem)
			used.usd = min(used.usd, sub(h.rem.usd, h.fee))
			h.rem = h.rem.minus(used)
			h.take(&used)
			for t := h.m.byName; t != h.top; t = t.above() {
				if u := t.subs[h.name]; u != nil {
					u.spent = add(u.spent, spent.usd)
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
	h.end(units{}, 0)
}
