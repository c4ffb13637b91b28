package general

import (
	"math"
	"math/rand/v2"
)

// New makes weights of those widths of hidden layers; none makes a linear
// scorer, which starts at 0.
func New(rng *rand.Rand, hidden ...int) *Weights {
	w := &Weights{Schema: Schema, Features: Names[:], Facts: map[string]string{}}
	in := int(NumFeatures)
	for i, out := range append(hidden, 1) {
		l := Layer{Bias: make([]float32, out)}
		for range out {
			row := make([]float32, in)
			if len(hidden) > 0 && i < len(hidden) {
				for k := range row {
					row[k] = float32(rng.NormFloat64() / math.Sqrt(float64(in)))
				}
			}
			l.Weights = append(l.Weights, row)
		}
		w.Layers = append(w.Layers, l)
		in = out
	}
	return w
}

// Zero makes a gradient: weights of the same shape, all 0.
func (w *Weights) Zero() *Weights {
	g := w.Clone()
	for _, p := range g.Params() {
		clear(p)
	}
	return g
}

// Grad adds d times the gradient of the score of f to g.
func (w *Weights) Grad(f []float32, d float32, g *Weights) {
	var acts [8][maxWidth]float32
	ins := make([][]float32, 0, 8)
	x := f
	for i, l := range w.Layers {
		ins = append(ins, x)
		x = l.forward(x, acts[i][:], i < len(w.Layers)-1)
	}
	back := []float32{d}
	for i := len(w.Layers) - 1; i >= 0; i-- {
		l, in := w.Layers[i], ins[i]
		var next []float32
		if i > 0 {
			next = make([]float32, len(in))
		}
		for j, e := range back {
			g.Layers[i].Bias[j] += e
			for k, v := range in {
				g.Layers[i].Weights[j][k] += e * v
				if i > 0 {
					next[k] += e * l.Weights[j][k]
				}
			}
		}
		for k := range next { // through tanh
			next[k] *= 1 - in[k]*in[k]
		}
		back = next
	}
}

// Params lists the parameters, as slices of w itself.
func (w *Weights) Params() (p [][]float32) {
	for _, l := range w.Layers {
		p = append(append(p, l.Weights...), l.Bias)
	}
	return p
}
