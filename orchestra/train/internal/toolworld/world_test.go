package toolworld

import (
	"fmt"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

func TestMain(m *testing.M) { leak.Main(m) }

func measure(t *testing.T, w *World, p func(*Instance) policy.Policy) map[Kind][5]float64 {
	sums := map[Kind][5]float64{}
	for _, in := range w.Instances() {
		out, err := in.Play(t.Context(), p(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []Kind{in.Task.Kind, "all"} {
			s := sums[k]
			s[0]++
			if out.Right {
				s[1]++
			}
			s[2] += out.USD
			if out.Searches > 0 {
				s[3]++
			}
			s[4] += float64(out.Turns)
			sums[k] = s
		}
	}
	return sums
}

func show(t *testing.T, name string, sums map[Kind][5]float64) {
	for _, k := range append(Kinds, "all") {
		s := sums[k]
		t.Log(fmt.Sprintf("%-10s %-12s n %4.0f right %.3f, $%.6f each, searched %.0f, %.1f turns", name, k, s[0], s[1]/s[0], s[2]/s[0], s[3], s[4]/s[0]))
	}
}

func TestOracle(t *testing.T) {
	for _, held := range []bool{false, true} {
		w, err := New(t.Context(), 600, 1, held)
		if err != nil {
			t.Fatal(err)
		}
		show(t, fmt.Sprint("oracle ", held), measure(t, w, func(in *Instance) policy.Policy { return Oracle{in} }))
		show(t, fmt.Sprint("embedded ", held), measure(t, w, func(in *Instance) policy.Policy { return policy.Embedded() }))
		w.Close()
	}
}
