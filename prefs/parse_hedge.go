package prefs

import (
	"slices"
	"strings"
)

// hedges are small words that a ban does not go with: it would not always hold.
var hedges = strings.Split("if possible,when possible,where possible,whenever possible,whenever you can,if you can,when you can,where you can,as far as possible,in general,generally,usually,normally,typically", ",")

const hedgeWords = 4

// hedged reports whether a clause holds at most for the most part: "if possible",
// within it or in the commas beside it.
func (r *reader) hedged(s span) bool {
	at := func(ws []raw) bool {
		for i := range ws {
			for n := min(len(ws)-i, hedgeWords); n > 0; n-- {
				if slices.Contains(hedges, phraseOf(ws[i:i+n])) {
					return true
				}
			}
		}
		return false
	}
	from := slices.IndexFunc(r.words, func(w raw) bool { return w.from >= s.from && w.low != "" })
	to := from
	for to < len(r.words) && r.words[to].from < s.to {
		to++
	}
	if at(r.words[from:to]) {
		return true
	}
	before, after := from, to
	for before > 0 && r.words[before-1].mark == cComma && r.words[before-1].low == "" {
		before--
	}
	if first := start(r.words, before); before < from && slices.Contains(hedges, phraseOf(r.words[first:before])) {
		return true
	}
	for after < len(r.words) && r.words[after].mark == cComma && r.words[after].low == "" {
		after++
	}
	last := after
	for last < len(r.words) && r.words[last].low != "" {
		last++
	}
	return after > to && slices.Contains(hedges, phraseOf(r.words[after:last]))
}

// start is where the words before i begin.
func start(ws []raw, i int) int {
	for i > 0 && ws[i-1].low != "" {
		i--
	}
	return i
}

func phraseOf(ws []raw) string {
	var b strings.Builder
	for i, w := range ws {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.low)
	}
	return b.String()
}
