package train_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// Whatever the order in which rollouts come, each group comes back once, whole,
// and with the same advantages.
func TestGroupsFromManyGoroutines(t *testing.T) {
	const groups, n = 50, 8
	play := func(seed uint64) map[string][]float64 {
		rng := rand.New(rand.NewPCG(7, 7))
		var all []*train.Rollout
		for g := range groups {
			for i := range n {
				all = append(all, member(fmt.Sprint("group-", g), fmt.Sprint(i), rng.IntN(2) == 0, rng.Float64(), rng.Float64()))
			}
		}
		order := rand.New(rand.NewPCG(seed, 0))
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		gs := train.NewGroups(n)
		var mu sync.Mutex
		whole := map[string][]float64{}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < len(all); i += 8 {
					g, err := gs.Add(all[i])
					if err != nil {
						t.Error(err)
					}
					if g == nil {
						continue
					}
					mu.Lock()
					if whole[g.ID] != nil || len(g.Rollouts) != n || g.Missing != 0 {
						t.Errorf("%+v", g)
					}
					for _, r := range g.Rollouts {
						whole[g.ID] = append(whole[g.ID], r.Reward, r.Advantage)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if left, err := gs.Flush(); err != nil || len(left) > 0 || len(whole) != groups {
			t.Errorf("%d groups came back, %d are left: %v", len(whole), len(left), err)
		}
		return whole
	}
	first, second := play(1), play(2)
	for id := range first {
		if !slices.Equal(first[id], second[id]) {
			t.Errorf("%s: %v in one order, %v in another", id, first[id], second[id])
		}
	}
}

// Close and the last Add may race: one of them gets the group.
func TestCloseAndAddRace(t *testing.T) {
	for i := range 200 {
		gs := train.NewGroups(2)
		if _, err := gs.Add(member("g", "a", true, .1, 1)); err != nil {
			t.Fatal(err)
		}
		var added, closed *train.Group
		var addErr, closeErr error
		var wg sync.WaitGroup
		wg.Go(func() { added, addErr = gs.Add(member("g", "b", true, .1, 1)) })
		wg.Go(func() { closed, closeErr = gs.Close(1, "g") })
		wg.Wait()
		if (added == nil) == (closed == nil) || (addErr == nil) == (closeErr == nil) {
			t.Fatalf("%d: %v (%v), %v (%v)", i, added, addErr, closed, closeErr)
		}
	}
}
