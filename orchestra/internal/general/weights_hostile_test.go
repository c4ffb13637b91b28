package general

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// Numbers may be finite and still too large to reckon with: scores would be
// infinite, or none.
func TestHugeWeightsAreRefused(t *testing.T) {
	for _, x := range []float32{math.MaxFloat32, -1e30} {
		w := New(rand.New(rand.NewPCG(1, 1)))
		w.Layers[0].Weights[0][0] = x
		if err := w.Check(); !errors.Is(err, ErrFile) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// Every score of weights that pass is a number.
func TestScoresOfCheckedWeightsAreNumbers(t *testing.T) {
	w := New(rand.New(rand.NewPCG(1, 1)), 8, 8)
	for _, p := range w.Params() {
		for i := range p {
			p[i] = most
			if i%2 == 1 {
				p[i] = -most
			}
		}
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	var f Features
	for i := range f {
		f[i] = 1.5
	}
	if y := w.Score(&f); y-y != 0 {
		t.Error(y)
	}
}
