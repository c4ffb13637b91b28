package prefs

import (
	"maps"
	"slices"
	"strings"
)

// Parse reads wishes in plain English, such as a user's settings sentence:
//
//	cheap please, prefer local search, never gpt-5
//
// It goes by a small fixed grammar, without a model and without guessing. Names
// are the known ones of tools, models and sources. Case, spaces, dashes and
// underscores do not matter in them ("Local Search" is local_search), the
// longest name counts ("gpt-5-mini" is not gpt-5), and a word without digits that
// is part of names stands for all of these ("never gpt", "the web").
//
// What is understood, clause by clause:
//   - "never X", "avoid X and Y", "no X", "without X", "X is off limits": Never.
//   - "prefer X", "use X", "I like X", "X first", "prefer X over Y", "open models like
//     X": Use 1. "If in doubt, prefer X", "slightly prefer X": Use 0.3.
//   - "only X", "nothing but X", "stick to X": Use 1, and Never for the other
//     names. Each of groups lists names of one kind, for example all models; with
//     groups, "only X" leaves other kinds alone. "Anything but X" is Never.
//   - "cheap", "be quick", "as accurate as possible", "not too expensive", "save
//     money", "cost matters": the weight of that aspect is 1. "Somewhat cheap"
//     makes it 0.5, "cost matters a little" or "does not matter much" 0.2.
//   - "cost doesn't matter", "expensive is fine", "no need to hurry", "whatever it
//     costs", "it need not be cheap": 0.
//   - "Speed matters most", "the cheapest": 1, and at most 0.5 for aspects not
//     mentioned. "Only speed matters": 0 for these. "Accuracy over cost": 1, 0.2.
//   - "X is fine", "you may use X", "no preference": understood, changes nothing.
//
// If an aspect is mentioned, the others get Default's weights; if none is, all
// three stay 0, which stands for Default. What Describe writes is read back:
// exactly, where aspects weigh 0, 0.2, 0.5 or 1 and names 0.3 or 1.
//
// A wish that is not understood is never passed over: the error is a *ParseError
// which quotes each such part and says why. The Vector then holds the other
// parts, is valid, and may be used by callers who show the error. A sentence with
// a condition ("unless", "if") or a mild dislike ("rather not", "never X if
// possible") is such a part, because no Vector can say it. So is a "not" that may
// reach over an "or" ("not slow or cheap"), a sentence of more than 500 words, and a
// text of more than 8,192 bytes.
// Errors within are *UnknownNameError, *ContradictionError and ErrNotUnderstood:
// use errors.As and errors.Is. An empty text gives the zero Vector. Parse is
// deterministic and safe for concurrent use.
func Parse(text string, names []string, groups ...[]string) (Vector, error) {
	if len(text) > maxText {
		return Vector{}, &ParseError{Parts: []Part{{Text: strings.ToValidUTF8(text[:40], "") + " …", Err: notUnderstood("it is longer than %d bytes: say it shorter", maxText)}}}
	}
	r := newReader(text, names, groups)
	for _, s := range r.sentences() {
		r.sentence(s)
	}
	v := r.vector()
	if len(r.bad) > 0 {
		slices.SortStableFunc(r.bad, func(a, b Part) int { return a.Offset - b.Offset })
		return v, &ParseError{Parts: r.bad}
	}
	return v, nil
}

// maxText bounds what is read, in bytes.
const maxText = 8 << 10

// The weights that words stand for.
const (
	muchWeight   = 1.0
	someWeight   = 0.5
	littleWeight = 0.2
	doubtWeight  = 0.3 // of a name preferred if in doubt
)

// vector is what all wishes come to. Contradictions are added to bad, and take no
// side: neither of two wishes that exclude each other counts.
func (r *reader) vector() Vector {
	var v Vector
	for _, n := range slices.Sorted(maps.Keys(r.wishes)) {
		w := r.wishes[n]
		switch {
		case w.never != nil && (w.use != nil || w.fine != nil):
			second := w.use
			if second == nil {
				second = w.fine
			}
			r.contradicts(n, w.never, second)
		case w.never != nil:
			v.Never = append(v.Never, n)
		case w.use != nil:
			if v.Use == nil {
				v.Use = map[string]float64{}
			}
			v.Use[n] = w.weight
		}
	}
	r.weigh(&v)
	return v
}

// weigh sets the weights of the aspects.
func (r *reader) weigh(v *Vector) {
	d := Default()
	weights := [aspects]*float64{&v.Accuracy, &v.Cost, &v.Latency}
	defaults := [aspects]float64{d.Accuracy, d.Cost, d.Latency}
	var most, sole, said [aspects]bool
	var any bool
	for a, list := range r.said {
		for i := range list {
			if f := &list[0]; (f.weight == 0) != (list[i].weight == 0) {
				r.contradicts(aspectNames[a], &f.span, &list[i].span)
				said[a] = false
				break
			}
			said[a], any = true, true
			*weights[a] = list[i].weight // what is said last counts
			most[a], sole[a] = most[a] || list[i].most, sole[a] || list[i].sole
		}
	}
	if !any {
		return
	}
	for a, w := range weights {
		if said[a] {
			continue
		}
		*w = defaults[a]
		if slices.Contains(most[:], true) {
			*w = min(*w, someWeight)
		}
		if slices.Contains(sole[:], true) {
			*w = 0
		}
	}
	if v.Accuracy == 0 && v.Cost == 0 && v.Latency == 0 {
		r.bad = append(r.bad, Part{Text: strings.TrimSpace(r.text), Err: notUnderstood("by it nothing matters, which no vector can say, since all weights 0 stand for the default: say what does matter")})
	}
}

var aspectNames = [aspects]string{"Accuracy", "Cost", "Latency"}
