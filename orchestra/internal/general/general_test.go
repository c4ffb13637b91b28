package general

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// random makes weights of some shape with nothing at 0.
func random(rng *rand.Rand, hidden ...int) *Weights {
	w := New(rng, hidden...)
	for _, p := range w.Params() {
		for k := range p {
			p[k] = float32(rng.NormFloat64()) / 3
		}
	}
	return w
}

func TestGradientsAreThoseOfTheScore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, hidden := range [][]int{nil, {5}, {7, 3}} {
		w := random(rng, hidden...)
		var f Features
		for i := range f {
			f[i] = float32(rng.NormFloat64())
		}
		g := w.Zero()
		w.Grad(f[:], 2, g)
		params, grads := w.Params(), g.Params()
		for i, p := range params {
			for k := range p {
				was := p[k]
				const step = 1e-2
				p[k] = was + step
				up := w.Score(&f)
				p[k] = was - step
				down := w.Score(&f)
				p[k] = was
				want := 2 * float64(up-down) / (2 * step)
				if got := float64(grads[i][k]); math.Abs(got-want) > 0.02+0.02*math.Abs(want) {
					t.Fatalf("%v: gradient %d,%d is %v, and the score changes by %v", hidden, i, k, got, want)
				}
			}
		}
	}
}

func TestFilesKeepWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	w := random(rng, 4)
	w.Version = "v"
	full := func(outputs int) Head {
		x := make([]float32, Buckets*outputs)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return NewHead(x, make([]float32, outputs))
	}
	w.Reading = &Reading{Task: full(2), Tool: full(3)}
	var b bytes.Buffer
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(w.Params(), back.Params(), slices.Equal[[]float32]) {
		t.Error("weights changed in the file")
	}
	var h learned.Hasher
	if a, b := w.Reading.OfTask("how many", &h), back.Reading.OfTask("how many", &h); a != b {
		t.Errorf("read as %v, and from the file as %v", a, b)
	}
	c := back.Clone()
	c.Params()[0][0]++
	c.Facts["x"] = "y"
	if back.Params()[0][0] == c.Params()[0][0] || back.Facts["x"] != "" {
		t.Error("a clone shares what may be changed")
	}
	for name, change := range map[string]func(*Weights){
		"no data":          func(w *Weights) { w.Reading = &Reading{Task: w.Reading.Task} },
		"half the data":    func(w *Weights) { r := *w.Reading; r.Tool.Data = r.Tool.Data[:len(r.Tool.Data)/2]; w.Reading = &r },
		"an endless scale": func(w *Weights) { r := *w.Reading; r.Tool.Scale = []float32{1, 1, 1e9}; w.Reading = &r },
		"no layers":        func(w *Weights) { w.Layers = nil },
		"a wide layer":     func(w *Weights) { *w = *New(rng, maxWidth+1) },
	} {
		bad := back.Clone()
		change(bad)
		if err := bad.Write(&bytes.Buffer{}); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(bytes.NewReader(make([]byte, maxFile+1))); !errors.Is(err, ErrFile) {
		t.Error(err)
	}
}

func TestWithoutAReadingNothingIsKnown(t *testing.T) {
	var r *Reading
	var h learned.Hasher
	if n := r.OfTask("anything", &h); n != (Needs{}) {
		t.Error(n)
	}
	if k := r.OfTool("anything", &h); k != (Kind{Other: 1}) {
		t.Error(k)
	}
}

func TestScoringAllocatesNothing(t *testing.T) {
	w := random(rand.New(rand.NewPCG(3, 3)), 16)
	var f Features
	if n := testing.AllocsPerRun(100, func() { w.Score(&f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	w := random(rand.New(rand.NewPCG(4, 4)))
	if err := w.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"layers":[{"weights":[[]],"bias":[0]}],"reading":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var x Features
		if s := w.Score(&x); s != s {
			t.Fatal("the weights that were accepted score no number")
		}
		if err := w.Write(&bytes.Buffer{}); err != nil {
			t.Fatal("what was read cannot be written:", err)
		}
	})
}
