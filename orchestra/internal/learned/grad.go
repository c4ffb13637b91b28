package learned

import "math"

// Sizes are the widths of the hidden layers.
type Sizes struct{ Answer, Value1, Value2 int }

// New makes a network of zeros.
func New(domains, bound int, z Sizes) *Net {
	layer := func(in, out int) Layer {
		return Layer{In: in, Out: out, Weights: make([]float32, in*out), Bias: make([]float32, out)}
	}
	second := Layer{In: bound, Out: secondWidth + domains, Weights: make([]float32, bound*(secondWidth+domains))}
	heads := Layer{In: bound, Out: z.Value2, Weights: make([]float32, bound*z.Value2)}
	offer := layer(OfferWidth(bound), z.Value1)
	offer.Bias = nil
	return &Net{
		Domains: domains, Bound: bound,
		IDF: make([]float32, Buckets), Text: layer(Buckets, domains+bound), Second: second,
		Answer1: layer(AnswerWidth(domains, bound), z.Answer), Answer2: layer(z.Answer, 1),
		State: layer(StateWidth(domains, bound), z.Value1), Offer: offer,
		Value2: layer(z.Value1, z.Value2), Value3: layer(z.Value2, 1), Heads: heads,
	}
}

// AnswerGrad adds to g the gradient of the negative log-likelihood that answer
// right is the right one (-1: none of those seen), and returns it.
func (n *Net) AnswerGrad(t *Task, right int, g *Net, none *float32, s *Scratch) float32 {
	p, pn := n.Posterior(t, s)
	if len(p) == 0 {
		return 0
	}
	h := grow(&s.hidden, n.Answer1.Out)
	for i := range p {
		d := p[i]
		if i == right {
			d--
		}
		s.in = s.answer(s.in[:0], n, t, i)
		n.Answer1.Forward(s.in, h)
		relu(h)
		g.Answer2.Bias[0] += d
		axpy(d, h, g.Answer2.Weights)
		for k, v := range h {
			if v > 0 {
				h[k] = float32(d * n.Answer2.Weights[k])
			}
		}
		axpy(1, h, g.Answer1.Bias)
		outer(s.in, 0, h, &g.Answer1)
	}
	likely := pn
	if right >= 0 {
		likely = p[right]
		*none += pn
	} else {
		*none += pn - 1
	}
	return -float32(math.Log(float64(max(likely, 1e-9))))
}

// outer adds x·hᵀ to the weights of g, from the row first on.
func outer(x []float32, first int, h []float32, g *Layer) {
	at := first * g.Out
	for _, v := range x {
		if v != 0 {
			axpy(v, h, g.Weights[at:at+g.Out])
		}
		at += g.Out
	}
}

// ValueGrad adds to g the gradient of a loss of which d[i] is the derivative by
// the value of expert i. p and none are those of Posterior for the same task and
// scratch.
func (n *Net) ValueGrad(t *Task, p []float32, none float32, d []float32, g *Net, s *Scratch) {
	first, second, pa, pb := leaders(p)
	s.state0 = s.state(s.state0[:0], n, t, p, none, first, second)
	base := grow(&s.base, n.State.Out)
	n.State.Forward(s.state0, base)
	h1, h2 := grow(&s.h1, n.State.Out), grow(&s.h2, n.Value2.Out)
	back, all := grow(&s.back, n.State.Out), grow(&s.all, n.State.Out)
	clear(all)
	for i := range t.Experts {
		e := &t.Experts[i]
		if e.Asked || d[i] == 0 {
			continue
		}
		s.in = s.offer(s.in[:0], n, t, e, pa, pb, none)
		copy(h1, base)
		n.Offer.Add(s.in, 0, h1)
		relu(h1)
		n.Value2.Forward(h1, h2)
		relu(h2)
		g.Value3.Bias[0] += d[i]
		axpy(d[i], h2, g.Value3.Weights)
		var head []float32
		if e.Bound >= 0 {
			at := e.Bound * n.Heads.Out
			head = n.Heads.Weights[at : at+n.Heads.Out]
			axpy(d[i], h2, g.Heads.Weights[at:at+n.Heads.Out])
		}
		for k, v := range h2 {
			if v > 0 {
				w := n.Value3.Weights[k]
				if head != nil {
					w += head[k]
				}
				h2[k] = float32(d[i] * w)
			}
		}
		axpy(1, h2, g.Value2.Bias)
		outer(h1, 0, h2, &g.Value2)
		for k, v := range h1 {
			if v > 0 {
				back[k] = dot(n.Value2.Weights[k*n.Value2.Out:(k+1)*n.Value2.Out], h2)
			} else {
				back[k] = 0
			}
		}
		outer(s.in, 0, back, &g.Offer)
		axpy(1, back, all)
	}
	axpy(1, all, g.State.Bias)
	outer(s.state0, 0, all, &g.State)
}
