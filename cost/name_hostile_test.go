package cost_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Whatever is within what, each charge counts once for each name around it, and
// nothing stays held.
func TestRandomNestsCountOnceByName(t *testing.T) {
	names := []string{"a", "b", "c"}
	limits := map[string]cost.Sub{}
	for _, n := range names {
		limits[n] = cost.Sub{USD: cost.Max(micro(5000))}
	}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := meter(t, cost.Budget{USD: cost.NoLimit(), PerName: limits})
		want := map[string]int64{}
		var nest func(m *cost.Meter, around []string, depth int)
		nest = func(m *cost.Meter, around []string, depth int) {
			for range 1 + r.IntN(3) {
				name := names[r.IntN(len(names))]
				if r.IntN(3) == 0 {
					m, _ = m.Child("run", cost.Budget{PerName: limits})
				}
				h, err := m.Reserve(est(name, 1, 1+r.Int64N(400)))
				if errors.Is(err, cost.ErrExceeded) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				within := append(append([]string(nil), around...), name)
				pay, end := r.Int64N(300), r.IntN(4)
				if depth < 4 && end != 2 && r.IntN(2) == 0 { // Resize is for holds that nobody spends from
					nest(h.Meter(), within, depth+1)
				}
				switch end {
				case 0:
					h.Release()
				case 1:
					h.Finish()
				case 2:
					_ = h.Resize(est(names[r.IntN(3)], 1, 50)) // or it stays as it is
					h.Release()
				}
				if end != 3 {
					continue
				}
				row, err := h.Settle(used(pay)) // more than held, now and then
				if err != nil {
					t.Fatal(err)
				}
				seen := map[string]bool{}
				for _, n := range within {
					if !seen[n] {
						seen[n] = true
						want[n] += int64(row.USD / micro(1))
					}
				}
			}
		}
		nest(m, nil, 0)
		for _, n := range names {
			left := max(5000-want[n], 0)
			h, err := m.Reserve(est(n, left, left))
			if err != nil {
				t.Fatalf("seed %d: %d left for %s: %v", seed, left, n, err)
			}
			h.Release()
			if _, err := m.Reserve(est(n, left+1, left+1)); !errors.Is(err, cost.ErrExceeded) {
				t.Fatalf("seed %d: more than %d left for %s", seed, left, n)
			}
		}
		if l := m.Left(); l.USD != cost.MaxAmount {
			t.Fatal(l)
		}
	}
}
