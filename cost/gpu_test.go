package cost_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func TestGPUTimeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := cost.NewGPUs(2)
		if err != nil {
			t.Fatal(err)
		}
		a := g.Start()
		time.Sleep(10 * time.Second) // a alone: 20
		b := g.Start()
		time.Sleep(6 * time.Second) // half of 12 each
		if got := a.Stop(); got != 26*time.Second {
			t.Error("a", got)
		}
		time.Sleep(time.Second) // b alone: 2
		if got := b.Stop(); got != 8*time.Second {
			t.Error("b", got)
		}
		time.Sleep(time.Hour) // nobody pays for this
		if got := b.Stop(); got != 8*time.Second {
			t.Error("b again", got)
		}
		c := g.Start()
		time.Sleep(time.Second)
		u := cost.Usage{GPU: c.Stop(), Known: true}
		if usd, basis, err := (cost.Price{GPUHour: cost.Per(3.6)}).Of(u); err != nil || basis != cost.Measured || usd != cost.Dollars(0.002) {
			t.Error(usd, basis, err)
		}
	})
}

// Whenever calls come and go, together they are charged for the time in which
// there was one, and none for more than it lasted.
func TestGPUTimeSumsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := cost.NewGPUs(1)
		var mu sync.Mutex
		var sum time.Duration
		var wg sync.WaitGroup
		start := time.Now()
		for range 200 {
			wait, take := rand.N(time.Second), time.Second+rand.N(time.Second)
			wg.Go(func() {
				time.Sleep(wait)
				u, from := g.Start(), time.Now()
				time.Sleep(take)
				took := u.Stop()
				if took > time.Since(from) {
					t.Errorf("charged %v for %v", took, time.Since(from))
				}
				mu.Lock()
				defer mu.Unlock()
				sum += took
			})
		}
		first := g.Start()
		wg.Wait()
		sum += first.Stop()
		if busy := time.Since(start); sum > busy || sum < busy-time.Millisecond {
			t.Errorf("charged %v, busy %v", sum, busy)
		}
	})
}

func TestNoGPUs(t *testing.T) {
	var invalid *cost.InvalidError
	for _, n := range []int{-1, 0, 1 << 20} {
		if _, err := cost.NewGPUs(n); !errors.As(err, &invalid) {
			t.Error(n, err)
		}
	}
	if g, err := cost.NewGPUs(8); err != nil || g.Count() != 8 {
		t.Error(g, err)
	}
}

// The bound on what GPUs cost does not wrap around to less.
func TestBoundOfManyGPUs(t *testing.T) {
	p := cost.Price{GPUHour: cost.Per(1)}
	if got := p.Bound(0, 0, 1<<62, 1<<20); got < cost.Dollars(1e6) {
		t.Error(got)
	}
	if got := p.Bound(0, 0, time.Hour, 8); got < cost.Dollars(8) || got > cost.Dollars(8)+2 {
		t.Error(got)
	}
}
