package prefs

import (
	"slices"
	"strings"
)

// sentence reads one sentence. Where a word may be a name or a word of the
// grammar, the reading counts that leaves fewest parts unread, of several the
// first one.
func (r *reader) sentence(ws []raw) {
	if len(ws) > maxWords {
		r.fail(span{ws[0].from, ws[len(ws)-1].to}, notUnderstood("it has more than %d words: make several sentences of it", maxWords))
		return
	}
	var use []clause
	for i, how := range []reading{allNames, namesInPlace, namesAfterVerbs, noNames} {
		if cs := r.clauses(r.tokens(ws, how)); i == 0 || failed(cs) < failed(use) {
			use = cs
		}
		if failed(use) == 0 {
			break
		}
	}
	for _, c := range use {
		if c.rule == nil {
			r.fail(c.span, notUnderstood("%s", c.why))
			continue
		}
		c.rule.say(r, c.match)
	}
}

// clause is a part of a sentence with the rule that fits, if one does.
type clause struct {
	span
	rule  *rule
	match *match
	why   string
}

func failed(cs []clause) (n int) {
	for _, c := range cs {
		if c.rule == nil {
			n++
		}
	}
	return n
}

// What to do about a part that no rule fits.
const (
	whyIf     = `no preference can hold under a condition: say what always holds`
	whyBare   = `say whether to prefer it ("prefer NAME") or never to use it ("never NAME")`
	whyForm   = `write wishes such as "cheap", "speed matters most", "cost does not matter", "prefer NAME" or "never NAME"`
	whyAmount = `sums, times and counts are limits: set them in the cost.Budget`
	whyMild   = `a mild dislike cannot be kept apart from a ban: say "never NAME", or prefer something else`
	whyOr     = `what "not" goes with may end before the "or" or behind it: say each alone, as in "never NAME. Never slow."`
	separates = ",&|b"
)

// maxWords bounds a sentence, since the time to read one grows with the square of
// its words.
const maxWords = 500

// clauses cuts a sentence into clauses that rules fit.
func (r *reader) clauses(ts []token) []clause {
	if len(ts) == 0 {
		return nil
	}
	if slices.ContainsFunc(ts, func(t token) bool { return t.class == cIf }) {
		return []clause{{span: span{ts[0].around.from, ts[len(ts)-1].around.to}, why: whyIf}}
	}
	var cs []clause
	for i := 0; i < len(ts); {
		if strings.IndexByte(separates, byte(ts[i].class)) >= 0 {
			i++
			continue
		}
		rule, m, n := r.find(ts[i:])
		c := clause{rule: rule, match: m, why: whyForm}
		if next, or := either(ts, i+n); or && negative(ts[i:i+n]) {
			c, n = clause{why: whyOr}, next-i
		}
		if c.rule == nil {
			names := c.why == whyForm
			for ; i+n < len(ts) && ts[i+n].class != cComma && ts[i+n].class != cBut; n++ {
				names = names && strings.ContainsRune("N&|P", rune(ts[i+n].class)) && ts[i+n].absent == ""
			}
			switch {
			case names:
				c.why = whyBare
			case slices.ContainsFunc(ts[i:i+n], func(t token) bool { return amount(t.absent) }):
				c.why = whyAmount
			}
		}
		end := i + n - 1
		for end > i && strings.IndexByte(separates, byte(ts[end].class)) >= 0 {
			end--
		}
		c.span = span{ts[i].around.from, ts[end].around.to}
		if c.match != nil {
			c.match.span = c.span
		}
		cs = append(cs, c)
		i += n
	}
	return cs
}

// negative reports whether ts hold a word that turns wishes round.
func negative(ts []token) bool {
	return slices.ContainsFunc(ts, func(t token) bool { return strings.IndexByte("!zx", byte(t.class)) >= 0 })
}

// either reports whether there is an "or" between the clause that ends at i and
// the next one, and where that begins.
func either(ts []token, i int) (next int, or bool) {
	or = i > 0 && ts[i-1].class == cOr
	for ; i < len(ts) && strings.IndexByte(separates, byte(ts[i].class)) >= 0; i++ {
		or = or || ts[i].class == cOr
	}
	return i, or && i < len(ts)
}

// amount reports whether unknown words begin with a number, or hold a sign of one.
func amount(w string) bool {
	return w != "" && w[0] >= '0' && w[0] <= '9' || strings.ContainsAny(w, "$€£%")
}

// fail notes a part that has no effect.
func (r *reader) fail(s span, err error) {
	r.bad = append(r.bad, Part{Text: r.text[s.from:s.to], Offset: s.from, Err: err})
}

func (r *reader) contradicts(name string, first, second *span) {
	if first.from > second.from {
		first, second = second, first
	}
	r.fail(*second, &ContradictionError{Name: name, First: r.text[first.from:first.to], Second: r.text[second.from:second.to]})
}

// named are the known names of a group; others are noted as unknown.
func (r *reader) named(field string, m *match, group int) (names []string, all bool) {
	all = true
	for _, t := range m.groups[group] {
		if t.absent != "" {
			r.fail(t.span, unknown(field, t.absent, r.known()))
			all = false
		}
		for _, n := range t.names {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names, all
}

func (r *reader) known() []string {
	var all []string
	for _, ns := range r.full {
		all = append(all, ns...)
	}
	return all
}

func (r *reader) wish(n string) *wish {
	w := r.wishes[n]
	if w == nil {
		w = &wish{}
		r.wishes[n] = w
	}
	return w
}

func (r *reader) never(names []string, s *span) {
	for _, n := range names {
		r.wish(n).never = s
	}
}

func (r *reader) use(names []string, s *span, weight float64) {
	for _, n := range names {
		w := r.wish(n)
		w.use, w.weight = s, max(w.weight, weight)
	}
}

func sayNever(r *reader, m *match) { sayBan(r, m, 0) }

func sayOnly(r *reader, m *match) {
	if r.hedged(m.span) {
		sayMild(r, m)
		return
	}
	names, all := r.named("Use", m, 0)
	if !all {
		return // or everything would be ruled out for a slip of the pen
	}
	r.use(names, &m.span, muchWeight)
	for _, g := range r.groups {
		if !slices.ContainsFunc(g, func(n string) bool { return slices.Contains(names, n) }) {
			continue
		}
		r.never(slices.DeleteFunc(slices.Clone(g), func(n string) bool { return slices.Contains(names, n) }), &m.span)
	}
}

func sayPrefer(r *reader, m *match) {
	names, _ := r.named("Use", m, 2)
	weight := muchWeight
	for _, g := range [][]token{m.groups[0], m.groups[1], m.groups[3]} {
		for _, t := range g {
			switch t.class {
			case cLittle:
				weight = min(weight, doubtWeight)
			case cSome:
				weight = min(weight, someWeight)
			}
		}
	}
	r.use(names, &m.span, weight)
}

// saySuch: "cheap models such as X" is a wish for cheap ones and for X.
func saySuch(names func(*reader, *match, int)) func(*reader, *match) {
	return func(r *reader, m *match) {
		r.say(m, m.groups[0], saying{weight: muchWeight})
		names(r, m, 1)
	}
}

func sayUse(r *reader, m *match, group int) {
	names, _ := r.named("Use", m, group)
	r.use(names, &m.span, muchWeight)
}

func sayBan(r *reader, m *match, group int) {
	if r.hedged(m.span) {
		sayMild(r, m)
		return
	}
	names, _ := r.named("Never", m, group)
	r.never(names, &m.span)
}

// sayPreferOver: the second names are known, and get no weight.
func sayPreferOver(r *reader, m *match) {
	sayUse(r, m, 0)
	r.named("Use", m, 1)
}

func sayPreferNot(r *reader, m *match) {
	sayUse(r, m, 0)
	sayBan(r, m, 1)
}

func sayMild(r *reader, m *match) { r.fail(m.span, notUnderstood("%s", whyMild)) }

func sayAllowed(r *reader, m *match) {
	names, all := r.named("Use", m, 0)
	if !all {
		return
	}
	for _, n := range names {
		r.wish(n).fine = &m.span
	}
}

func sayNothing(*reader, *match) {}

// say says something of the aspects of a group of tokens.
func (r *reader) say(m *match, group []token, s saying) {
	s.span = m.span
	if r.oneOf(m, group) {
		r.fail(m.span, notUnderstood("it may be about one thing or several: say it of each alone"))
		return
	}
	noun := slices.ContainsFunc(group, func(t token) bool { return t.class == cDown })
	for _, t := range group {
		switch t.class {
		case cSpend:
			if noun { // "spend less time" is not about money
				continue
			}
			fallthrough
		case cUp, cDown, cGood, cBad, cZero:
			one := s
			one.most = s.weight == muchWeight && (s.most || t.most)
			if t.most && s.weight == 0 { // "not the cheapest" may still be cheap
				one.weight = littleWeight
			}
			r.said[t.aspect] = append(r.said[t.aspect], one)
		case cAtAll:
			r.said[costs] = append(r.said[costs], s)
		}
	}
}

// oneOf reports a list with the verb of one thing: "accuracy and cost doesn't
// matter".
func (r *reader) oneOf(m *match, group []token) bool {
	if n := len(group); n < 3 || !slices.ContainsFunc(group, func(t token) bool { return t.class == cAnd }) {
		return false
	}
	after := group[len(group)-1].to
	return slices.ContainsFunc(r.words, func(w raw) bool {
		return w.from >= after && w.to <= m.to && slices.Contains([]string{"does", "is", "matters", "counts", "isn"}, w.low)
	})
}

func sayWeight(w float64) func(*reader, *match) {
	return func(r *reader, m *match) {
		for _, g := range m.groups {
			r.say(m, g, saying{weight: w})
		}
	}
}

func sayMost(r *reader, m *match) { r.say(m, m.groups[0], saying{weight: muchWeight, most: true}) }

func saySole(r *reader, m *match) { r.say(m, m.groups[0], saying{weight: muchWeight, sole: true}) }

func sayOver(r *reader, m *match) {
	r.say(m, m.groups[0], saying{weight: muchWeight})
	r.say(m, m.groups[1], saying{weight: littleWeight})
}

func sayUnder(r *reader, m *match) {
	r.say(m, m.groups[1], saying{weight: muchWeight})
	r.say(m, m.groups[0], saying{weight: littleWeight})
}

func sayFirstNot(r *reader, m *match) {
	r.say(m, m.groups[0], saying{weight: muchWeight})
	r.say(m, m.groups[1], saying{})
}
