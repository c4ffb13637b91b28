package learned

import "math"

// Widths of the networks' inputs: what describes experts, and what belongs to
// experts that the network is bound to.
const (
	answerWidth   = 32
	answerBound   = 7
	stateWidth    = 26
	stateBound    = 6
	offerWidth    = 16
	topVoters     = 3
	topVotersGain = 2
)

// AnswerWidth is the number of inputs that describe an answer.
func AnswerWidth(domains, bound int) int { return answerWidth + domains + answerBound*bound }

// StateWidth is the number of inputs that describe where a task stands.
func StateWidth(domains, bound int) int { return stateWidth + domains + stateBound*bound }

// OfferWidth is the number of inputs that describe an expert that can be asked.
func OfferWidth(bound int) int { return offerWidth + bound }

// tally sums up the votes for an answer.
type tally struct {
	sum   float32 // of the voters' weights of evidence
	count int
	top   [topVoters]*Expert // the best voters
}

func (v *tally) add(e *Expert, weight float32) {
	v.sum += weight
	v.count++
	for i, o := range v.top {
		if o == nil || e.logit > o.logit {
			copy(v.top[i+1:], v.top[i:])
			v.top[i] = e
			break
		}
	}
}

// write describes the best voters.
func (v *tally) write(x []float32, voters int) []float32 {
	for _, e := range v.top[:voters] {
		if e == nil {
			x = append(x, 0, 0, 0)
		} else {
			x = append(x, 1, e.logit, e.z)
		}
	}
	return x
}

// count sorts the votes.
func (s *Scratch) count(t *Task) {
	s.tallies = append(s.tallies[:0], make([]tally, t.Answers)...)
	s.nulls, s.asked, s.best, s.next = tally{}, 0, nil, nil
	evidence := float32(math.Log(float64(t.options() - 1)))
	for i := range t.Experts {
		e := &t.Experts[i]
		switch {
		case !e.Asked:
			if s.best == nil || e.logit > s.best.logit {
				s.best, s.next = e, s.best
			} else if s.next == nil || e.logit > s.next.logit {
				s.next = e
			}
			continue
		case e.Answer >= 0:
			s.tallies[e.Answer].add(e, e.logit+evidence)
		default:
			s.nulls.add(e, 0)
		}
		s.asked++
	}
}

// logitOf is 0 where there is no expert.
func logitOf(e *Expert) float32 {
	if e == nil {
		return 0
	}
	return e.logit
}

// answer writes the inputs that describe answer i.
func (s *Scratch) answer(x []float32, n *Net, t *Task, i int) []float32 {
	own := &s.tallies[i]
	var rival, third tally
	for j := range s.tallies {
		switch o := &s.tallies[j]; {
		case j == i:
		case rival.count == 0 || o.sum > rival.sum:
			rival, third = *o, rival
		case third.count == 0 || o.sum > third.sum:
			third = *o
		}
	}
	x = own.write(x, topVoters)
	x = rival.write(x, topVoters)
	x = append(x, own.sum/4, rival.sum/4, third.sum/4, float32(own.count)/4, float32(rival.count)/4, float32(s.nulls.count)/4,
		float32(t.Answers)/4, float32(s.asked)/4, logitOf(s.nulls.top[0]), logitOf(s.nulls.top[1]), logitOf(s.best),
		t.options()/10, t.Length, t.Digits)
	x = append(x, t.Domains...)
	at := len(x)
	x = append(x, s.zeros[:answerBound*n.Bound]...)
	for k := range t.Experts {
		e := &t.Experts[k]
		if !e.Asked || e.Bound < 0 {
			continue
		}
		b := x[at+answerBound*e.Bound:][:answerBound]
		switch e.Answer {
		case i:
			b[0], b[1], b[2] = 1, e.logit, e.z
		case -1:
			b[3] = 1
		default:
			b[4], b[5], b[6] = 1, e.logit, e.z
		}
	}
	return x
}

// state writes the inputs that describe where the task stands. p are the
// probabilities of the answers, first and second the likeliest of them or -1.
func (s *Scratch) state(x []float32, n *Net, t *Task, p []float32, none float32, first, second int) []float32 {
	var a, b tally
	var pa, pb float32
	if first >= 0 {
		a, pa = s.tallies[first], p[first]
	}
	if second >= 0 {
		b, pb = s.tallies[second], p[second]
	}
	empty := float32(0)
	if s.asked == 0 {
		empty = 1
	}
	x = append(x, empty, pa, pb, none, logitOr0(pa), logLambda(learnedLambda(t)), float32(s.asked)/4, float32(s.nulls.count)/4, float32(t.Answers)/4)
	x = a.write(x, topVotersGain)
	x = b.write(x, topVotersGain)
	x = append(x, logitOf(s.best), logitOf(s.next), t.options()/10, t.Length, t.Digits)
	x = append(x, t.Domains...)
	at := len(x)
	x = append(x, s.zeros[:stateBound*n.Bound]...)
	for k := range t.Experts {
		e := &t.Experts[k]
		if e.Bound < 0 {
			continue
		}
		v := x[at+stateBound*e.Bound:][:stateBound]
		v[0] = e.logit
		switch {
		case !e.Asked:
			continue
		case e.Answer < 0:
			v[1] = 1
		case e.Answer == first:
			v[2] = 1
		case e.Answer == second:
			v[3] = 1
		default:
			v[4] = 1
		}
		v[5] = e.z
	}
	return x
}

func logitOr0(p float32) float32 {
	if p <= 0 {
		return 0
	}
	return logit(p)
}

// Lambdas that networks are fitted to. Beyond them the cost itself still counts
// at its weight, and what was learned of it stays as it is at the end.
const (
	LambdaLow  = 0.0025
	LambdaHigh = 0.45
)

// learnedLambda is the weight of cost within what was learned.
func learnedLambda(t *Task) float32 { return min(max(t.Lambda, LambdaLow), LambdaHigh) }

// logLambda brings the weight of cost into the range of the other inputs.
func logLambda(l float32) float32 {
	return (float32(math.Log(float64(max(l, 1e-4)))) + 4) / 2
}

// offer writes the inputs that describe an expert that can be asked.
func (s *Scratch) offer(x []float32, n *Net, t *Task, e *Expert, pa, pb, none float32) []float32 {
	a, empty, best := e.accuracy, float32(0), float32(0)
	if s.asked == 0 {
		empty = 1
	}
	if e == s.best {
		best = 1
	}
	x = append(x, a, e.logit, a-pa, float32((1-pa)*a), float32(none*a), float32(pb*a), float32(empty*a), best, e.Card.Mean,
		logLambda(e.cost), logLambda(float32(learnedLambda(t)*e.cost)), (e.log-4.5)/2, e.Card.Spread, e.logit-logitOf(s.best), float32(empty*e.logit), float32(a*(1-a)))
	at := len(x)
	x = append(x, s.zeros[:n.Bound]...)
	if e.Bound >= 0 {
		x[at+e.Bound] = 1
	}
	return x
}
