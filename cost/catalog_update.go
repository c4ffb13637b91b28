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
// lacks is unpriced from then on; one that was unpriced costs what next says,
// before as well. What With stated to c stays.
//
// Rates that move by more than ten times, become free, or vanish (a missing rate
// falls back to a dearer one, so a lost discount counts too), and service tiers
// that are no cheaper any more, are refused with a *ChangesError, unless accept
// says that they are meant. A nil accept means none. Names are compared, as far as
// the list says which there are: not those that only a regular expression matches.
func (c *Catalog) Update(next *Catalog, since time.Time, accept func(Change) bool) (*Catalog, error) {
	var doubts []Change
	for _, v := range c.providers {
		c.compare(v, next, since, func(ch Change) {
			if accept == nil || !accept(ch) {
				doubts = append(doubts, ch)
			}
		})
	}
	if len(doubts) > 0 {
		return nil, &ChangesError{doubts}
	}
	out := &Catalog{source: next.source, byID: make(map[string]*vendor, len(next.byID)), own: maps.Clone(c.own), earlier: c, until: since}
	for _, v := range next.providers {
		out.add(v.sharing(c.byID[v.id]))
	}
	if slices.Equal(out.providers, c.providers) { // nothing has changed
		out.earlier, out.until = c.earlier, c.until
	}
	return out, nil
}

// compare looks at what a provider's names cost.
func (c *Catalog) compare(v *vendor, next *Catalog, since time.Time, doubt func(Change)) {
	seen := map[string]bool{}
	check := func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		before, now := c.priced(v.id, name, since), next.entry(v.id, name)
		switch {
		case before == nil:
		case now == nil:
			doubt(Change{Provider: v.id, Model: name, Why: "vanished"})
		default:
			before.compare(now, since, func(ch Change) {
				ch.Provider, ch.Model = v.id, name
				doubt(ch)
			})
		}
	}
	lists := []*vendor{v}
	for _, id := range v.fallback {
		if w := c.byID[id]; w != nil {
			lists = append(lists, w)
		}
	}
	names := lists
	if w := next.byID[v.id]; w != nil {
		names = append(names[:len(lists):len(lists)], w) // they had a price by another entry
	}
	for _, w := range names {
		for _, l := range w.models {
			check(l.id)
		}
	}
	for _, w := range lists {
		for _, l := range w.models {
			for _, p := range l.match {
				// A part of names is compared like a name, where that entry has it.
				if p.kind != '~' && c.entry(v.id, p.text) == l && next.entry(v.id, p.text) != next.entry(v.id, l.id) {
					check(p.text)
				}
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

// sharing is v with the entries of old that are the same, or old if all are: a
// catalog that is updated every day remains small, and so does its file.
func (v *vendor) sharing(old *vendor) *vendor {
	if old == nil {
		return v
	}
	out := &vendor{id: v.id, fallback: v.fallback, byID: make(map[string]*listed, len(v.byID))}
	for _, l := range v.models {
		if o := old.byID[l.id]; o != nil && reflect.DeepEqual(o.file(), l.file()) {
			l = o
		}
		out.add(l)
	}
	if slices.Equal(out.models, old.models) && slices.Equal(out.fallback, old.fallback) {
		return old
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
func (l *listed) compare(next *listed, since time.Time, doubt func(Change)) {
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
