package search

import "strings"

// Bounds on what is read of a question. A set of its terms is one word of bits.
const (
	maxTerms = 64
	maxQuery = 64 << 10 // bytes
)

// query is a question as a list of terms, each with a weight.
type query struct {
	terms  []string
	at     map[string]int // place in terms
	weight []float64
	total  float64
}

// parse finds the terms of a question: at most maxTerms different ones, without
// the stop words unless it has no others.
func parse(text string) *query {
	text = start(text, maxQuery)
	q := &query{}
	q.collect(text, false)
	if len(q.terms) == 0 {
		q.collect(text, true)
	}
	return q
}

func (q *query) collect(text string, stops bool) {
	q.at = make(map[string]int)
	add := func(t string) {
		if _, ok := q.at[t]; !ok && len(q.terms) < maxTerms {
			q.at[t] = len(q.terms)
			q.terms = append(q.terms, t)
		}
	}
	scan(text, func(run string) bool {
		if stops || !stop(strings.ToLower(run)) {
			add(term(run))
			split(run, func(part string) {
				if len(part) > 1 {
					add(term(part))
				}
			})
		}
		return len(q.terms) < maxTerms
	})
}

// weigh gives each term the weight that of returns.
func (q *query) weigh(of func(term string) float64) {
	q.weight, q.total = make([]float64, len(q.terms)), 0
	for i, t := range q.terms {
		q.weight[i] = of(t)
		q.total += q.weight[i]
	}
}

// set is a set of the terms of a query.
type set uint64

// in finds the terms of the query that text has, also as parts of names.
func (q *query) in(text string) set {
	var s set
	look := func(run string) {
		if i, ok := q.at[term(run)]; ok {
			s |= 1 << i
		}
	}
	scan(text, func(run string) bool {
		look(run)
		split(run, look)
		return true
	})
	return s
}

// share is the weight of a set as a share of all, 0 to 1.
func (q *query) share(s set) float64 {
	if q.total == 0 {
		return 0
	}
	sum := 0.0
	for i, w := range q.weight {
		if s&(1<<i) != 0 {
			sum += w
		}
	}
	return min(1, sum/q.total)
}

// stop reports whether a lower-case word only holds sentences together.
func stop(word string) bool { return strings.Contains(stopWords, " "+word+" ") }

// English, and the words that questions begin with.
const stopWords = " a about am an and any are as at be been being but by can could did do does doing done for from had has have having " +
	"he her here him his how i if in into is it its itself me may might must my of on one or our shall she should so some such than that the " +
	"their them then there these they this those to us was we were what when where which while who whom whose why will with would you your "
