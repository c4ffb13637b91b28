package learned

import "math"

// Net is a learned policy's parameters. It is not changed while it is used.
type Net struct {
	Domains int // number of task domains that the text model tells apart
	Bound   int // number of experts that it has parameters for; 0 = it knows experts by their cards alone

	IDF    []float32 // weight of each text feature
	Text   Layer     // text features to logits: domains, then bound experts
	Second Layer     // a row per bound expert (In = Bound, Out = inputs)

	Answer1, Answer2 Layer // an answer's inputs to its logit
	None             float32

	State, Offer Layer // together the first layer of the value of asking
	Value2       Layer
	Value3       Layer // to one number
	Heads        Layer // a row per bound expert: added to Value3's weights
}

// MaxBound bounds the experts that a network is bound to.
const MaxBound = 64

// Scratch is the memory of one decision. It is not for concurrent use; its
// results are valid until the next call.
type Scratch struct {
	tallies    []tally
	nulls      tally
	asked      int
	best, next *Expert // the most promising experts not asked
	zeros      [answerBound * MaxBound]float32
	in, hidden []float32
	p          []float32
	base, h1   []float32
	h2         []float32
	gains      []float32
	state0     []float32 // of gradients, as are the next two
	back, all  []float32
}

// Read sets what the text alone tells: the domains and, for bound networks, how
// likely each expert is right.
func (n *Net) Read(t *Task, features []TextFeature) {
	y := grow(&t.Text, n.Text.Out)
	copy(y, n.Text.Bias)
	for _, f := range features {
		at := int(f.Index) * n.Text.Out
		axpy(f.Value, n.Text.Weights[at:at+n.Text.Out], y)
	}
	d := grow(&t.Domains, n.Domains)
	Softmax(y[:n.Domains], d)
	t.Text = t.Text[:copy(t.Text, y[n.Domains:])]
}

// Softmax writes the softmax of x into y.
func Softmax(x, y []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v - top)))
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
}

// grow returns *s with n entries.
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return *s
}

// Posterior returns how likely each answer seen is right, and how likely none
// of them is.
func (n *Net) Posterior(t *Task, s *Scratch) (p []float32, none float32) {
	s.count(t)
	p = grow(&s.p, t.Answers)
	if t.Answers == 0 {
		return p, 1
	}
	h := grow(&s.hidden, n.Answer1.Out)
	unseen := n.unseen(t)
	top := unseen
	for i := range p {
		s.in = s.answer(s.in[:0], n, t, i)
		n.Answer1.Forward(s.in, h)
		relu(h)
		p[i] = n.Answer2.Bias[0] + dot(h, n.Answer2.Weights)
		top = max(top, p[i])
	}
	none = float32(math.Exp(float64(unseen - top)))
	sum := none
	for i, v := range p {
		p[i] = float32(math.Exp(float64(v - top)))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p, none / sum
}

// unseen is the logit of all answers that nobody gave.
func (n *Net) unseen(t *Task) float32 {
	return n.None + float32(math.Log(float64(max(t.options()-float32(t.Answers), 0.1))))
}

// Best are the two likeliest answers, -1 where there is none. The earlier of
// equals counts.
func Best(p []float32) (first, second int) {
	first, second = -1, -1
	for i, v := range p {
		switch {
		case first < 0 || v > p[first]:
			first, second = i, first
		case second < 0 || v > p[second]:
			second = i
		}
	}
	return first, second
}

// leaders are the two likeliest answers and how likely they are, 0 where there is
// none.
func leaders(p []float32) (first, second int, pa, pb float32) {
	first, second = Best(p)
	if first >= 0 {
		pa = p[first]
	}
	if second >= 0 {
		pb = p[second]
	}
	return first, second, pa, pb
}

// Values returns what asking each expert is worth, in probability of a right
// answer, its cost taken off; for those that were asked already it is -Inf. p
// and none are those of Posterior for the same task and scratch.
func (n *Net) Values(t *Task, p []float32, none float32, s *Scratch) []float32 {
	first, second, pa, pb := leaders(p)
	s.in = s.state(s.in[:0], n, t, p, none, first, second)
	base := grow(&s.base, n.State.Out)
	n.State.Forward(s.in, base)
	h1, h2 := grow(&s.h1, n.State.Out), grow(&s.h2, n.Value2.Out)
	gains := grow(&s.gains, len(t.Experts))
	for i := range t.Experts {
		e := &t.Experts[i]
		if e.Asked {
			gains[i] = float32(math.Inf(-1))
			continue
		}
		s.in = s.offer(s.in[:0], n, t, e, pa, pb, none)
		copy(h1, base)
		n.Offer.Add(s.in, 0, h1)
		relu(h1)
		n.Value2.Forward(h1, h2)
		relu(h2)
		v := n.Value3.Bias[0] + dot(h2, n.Value3.Weights)
		if e.Bound >= 0 {
			v += dot(h2, n.Heads.Weights[e.Bound*n.Heads.Out:][:n.Heads.Out])
		}
		if s.asked == 0 {
			v += e.accuracy
		}
		gains[i] = v - float32(t.Lambda*e.cost)
	}
	return gains
}
