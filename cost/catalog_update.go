package cost

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is something in an updated price list that looks like a mistake.
type Change struct {
	Provider, Model string
	Rate            string // as Price names it, for example "Input" or "Over.Output"; "" = all of them
	Before          Amount // USD per the unit of the rate
	After           Amount
	Why             string // "jumped" (by more than ten times), "became free", "vanished", or "is no discount any more"
}

// String describes the change for people.
func (c Change) String() string {
	s := c.Provider + " " + strconv.Quote(c.Model)
	if c.Rate != "" {
		s += " " + c.Rate
	}
	if s += " " + c.Why; c.Rate != "" && c.Why != "vanished" {
		s += fmt.Sprintf(" (%v to %v)", c.Before, c.After)
	}
	return s
}

// ChangesError is an update that was not taken over because of what it changes.
type ChangesError struct {
	Changes []Change // in the order of the lists
}

// Error says what happened, and what to do about it.
func (e *ChangesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cost: the new price list was not taken over for %d doubtful changes", len(e.Changes))
	for i, c := range e.Changes {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(e.Changes)-i)
			break
		}
		b.WriteString("; " + c.String())
	}
	return b.String() + ": check them, and let Update's accept return true for those that are meant"
}

// Update returns a catalog that has next's prices from the time since on, and
// c's before, so that what ran earlier is priced as it was. A model that next
// lacks is unpriced from then on. What With stated to c stays. A name that gets
// an entry of its own keeps what it cost before; one whose entry does not match it
// any more, without that, costs at all times what next says.
//
// Rates that move by more than ten times, become free, or vanish (a missing rate
// falls back to a dearer one, so a lost discount counts too), and service tiers
// that are no cheaper any more, are refused with a *ChangesError, unless accept
// says that they are meant. A nil accept means none.
func (c *Catalog) Update(next *Catalog, since time.Time, accept func(Change) bool) (*Catalog, error) {
	var doubts []Change
	doubt := func(ch Change) {
		if accept == nil || !accept(ch) {
			doubts = append(doubts, ch)
		}
	}
	out := &Catalog{source: next.source, byID: make(map[string]*vendor, len(next.byID)), own: maps.Clone(c.own)}
	for _, old := range c.providers {
		v := &vendor{id: old.id, fallback: old.fallback, byID: make(map[string]*listed, len(old.byID))}
		after := next.byID[old.id]
		if after == nil {
			after = &vendor{}
		} else {
			v.fallback = after.fallback
		}
		for _, l := range after.models { // its order says which entry is first
			before := c.entry(old.id, l.id) // by whatever way its name was priced
			if before == nil {
				v.add(l) // there is no earlier price to keep
				continue
			}
			v.add(before.updated(l, since))
			before.compare(v.id, l, since, doubt)
		}
		for _, l := range old.models {
			if after.byID[l.id] != nil {
				continue
			}
			p := l.at(since)
			if p.Known() {
				doubt(Change{Provider: v.id, Model: l.id, Why: "vanished"})
				l = l.ended(since)
			}
			v.add(l)
		}
		c.resold(old, v, next, since, doubt)
		out.add(v)
	}
	for _, old := range c.providers {
		c.matched(old, out, since, doubt)
	}
	for _, n := range next.providers {
		if c.byID[n.id] == nil {
			out.add(n)
		}
	}
	if len(doubts) > 0 {
		return nil, &ChangesError{doubts}
	}
	return out, nil
}

// resold looks at what a provider had from others, where it resells those of
// others now. What is priced no more keeps its earlier prices in v.
func (c *Catalog) resold(old, v *vendor, next *Catalog, since time.Time, doubt func(Change)) {
	if slices.Equal(old.fallback, v.fallback) {
		return
	}
	for _, id := range old.fallback {
		w := c.byID[id]
		if w == nil {
			continue
		}
		for _, l := range w.models {
			if c.entry(old.id, l.id) != l || v.byID[l.id] != nil {
				continue
			}
			was, now := l.at(since), next.entry(old.id, l.id)
			switch {
			case !was.Known():
			case now != nil:
				l.compare(old.id, now, since, doubt)
			default:
				doubt(Change{Provider: old.id, Model: l.id, Why: "vanished"})
				v.add(l.ended(since))
			}
		}
	}
}

// matched looks at names that another entry than before has in the new catalog,
// or none, as far as patterns say which names they match.
func (c *Catalog) matched(old *vendor, out *Catalog, since time.Time, doubt func(Change)) {
	for _, l := range old.models {
		for _, p := range l.match {
			if p.kind == '~' || old.find(p.text) != l {
				continue
			}
			was, now := l.at(since), out.entry(old.id, p.text)
			switch {
			case !was.Known() || now != nil && now.id == l.id:
			case now == nil:
				doubt(Change{Provider: old.id, Model: p.text, Why: "vanished"})
			default:
				is := now.at(since)
				compare(&was, &is, "", func(ch Change) {
					ch.Provider, ch.Model = old.id, p.text
					doubt(ch)
				})
			}
		}
	}
}

func (c *Catalog) add(v *vendor) {
	c.providers = append(c.providers, v)
	c.byID[v.id] = v
}

func (v *vendor) add(l *listed) {
	v.models = append(v.models, l)
	v.byID[l.id] = l
}

// ended is l without a price from since on.
func (l *listed) ended(since time.Time) *listed {
	return &listed{id: l.id, match: l.match, versions: append(slices.Clip(l.versions), version{from: since})}
}

// updated is l with the versions of a newer entry from since on.
func (l *listed) updated(next *listed, since time.Time) *listed {
	out := &listed{id: next.id, match: next.match, versions: l.versions}
	if !l.ends(next.versions, since) {
		out.versions = slices.Clip(l.versions)
		for _, v := range next.versions {
			if v.from.Before(since) {
				v.from = since
			}
			out.versions = append(out.versions, v)
		}
	}
	return out
}

// ends reports whether l's last versions are these already, as far as times from
// since on are concerned.
func (l *listed) ends(versions []version, since time.Time) bool {
	n := len(l.versions) - len(versions)
	if n < 0 {
		return false
	}
	for i, v := range versions {
		w := l.versions[n+i]
		past := !v.from.After(since) && !w.from.After(since)
		if !reflect.DeepEqual(v.price, w.price) || v.daily != w.daily || v.start != w.start || v.end != w.end || !past && !v.from.Equal(w.from) {
			return false
		}
	}
	return true
}

// compare looks for doubtful changes in the versions of a newer entry that may
// hold at since or later. Each is compared with what it follows: the last of the
// same hours before it, or else what holds at since.
func (l *listed) compare(provider string, next *listed, since time.Time, doubt func(Change)) {
	if l.ends(next.versions, since) {
		return
	}
	seen := map[Change]bool{}
	for _, v := range next.versions {
		old := l.at(since)
		for _, w := range l.versions {
			if w.daily == v.daily && w.start == v.start && w.end == v.end && !w.from.After(since) {
				old = w.price
			}
		}
		compare(&old, &v.price, "", func(ch Change) {
			ch.Provider, ch.Model = provider, next.id
			if !seen[ch] {
				seen[ch] = true
				doubt(ch)
			}
		})
	}
}

const jump = 10

func compare(old, p *Price, prefix string, doubt func(Change)) {
	after := p.rates()
	for i, before := range old.rates() {
		a := after[i]
		ch := Change{Rate: prefix + before.name, Before: before.usd, After: a.usd}
		switch {
		case !before.set:
		case !a.set:
			ch.Why = "vanished"
		case before.usd > 0 && a.usd == 0:
			ch.Why = "became free"
		case before.usd > 0 && (scale(int64(before.usd), 1, jump) > int64(a.usd) || int64(before.usd) < scale(int64(a.usd), 1, jump)):
			ch.Why = "jumped"
		}
		if ch.Why != "" {
			doubt(ch)
		}
	}
	alone := *old // what requests cost that fall into a tier now
	alone.Over, alone.Batch, alone.Flex, alone.Priority = nil, nil, nil, nil
	switch {
	case p.Over == nil && old.Over != nil:
		doubt(Change{Rate: prefix + "Over", Why: "vanished"})
	case p.Over != nil:
		if old.Over == nil || p.Over.Above < old.Over.Above {
			compare(&alone, &p.Over.Price, prefix+"Over.", doubt)
		}
		if old.Over != nil {
			compare(&old.Over.Price, &p.Over.Price, prefix+"Over.", doubt)
		}
	}
	services := p.services()
	for i, s := range old.services() {
		now := services[i].price
		switch {
		case s.price == nil:
			if now != nil && s.name != "Priority" { // the ordinary price was charged
				compare(&alone, now, prefix+s.name+".", func(ch Change) {
					if ch.Why != "vanished" {
						doubt(ch)
					}
				})
			}
		case now == nil:
			doubt(Change{Rate: prefix + s.name, Why: "vanished"})
		default:
			compare(s.price, now, prefix+s.name+".", doubt)
			if s.name != "Priority" && s.price.Input.usd < old.Input.usd && now.Input.usd >= p.Input.usd {
				doubt(Change{Rate: prefix + s.name + ".Input", Before: s.price.Input.usd, After: now.Input.usd, Why: "is no discount any more"})
			}
		}
	}
}
