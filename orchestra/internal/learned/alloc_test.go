//go:build !race

package learned

import "testing"

// (The race detector allocates on its own.)
func TestScoringDoesNotAllocate(t *testing.T) {
	n := random(3, 5, 5)
	var s Scratch
	var h Hasher
	k := task(n, 3, 1)
	if allocs := testing.AllocsPerRun(100, func() {
		n.Read(k, h.Features("Which of these is a prime number?\nOptions: (A) 4 (B) 7 (C) nine", n.IDF))
		n.Begin(k)
		p, none := n.Posterior(k, &s)
		n.Values(k, p, none, &s)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
