package cost_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// onGPUs is a call that takes between two numbers of GPU seconds and costs
// nothing else.
func onGPUs(name string, floor, worst int) cost.Estimate {
	s := func(n int) cost.Spend { return cost.Spend{Calls: 1, GPU: time.Duration(n) * time.Second} }
	return cost.Estimate{Name: name, Floor: s(floor), Worst: s(worst), Priced: true}
}

// settleGPU settles a call that took so many GPU seconds.
func settleGPU(t testing.TB, h *cost.Hold, seconds int) cost.Row {
	t.Helper()
	row, err := h.Settle(cost.Usage{GPU: time.Duration(seconds) * time.Second, Known: true}, cost.Free(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func gpuLeft(t testing.TB, m *cost.Meter, seconds int) {
	t.Helper()
	if got := m.Left().GPU; got != time.Duration(seconds)*time.Second {
		t.Errorf("%v of GPU time are left, want %d s", got, seconds)
	}
}

func TestGPUTimeIsReservedAndSettled(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 100 * time.Second})
	h := mustReserve(t, m, onGPUs("a", 10, 70))
	gpuLeft(t, m, 30)
	var exceeded *cost.ExceededError
	if _, err := m.Reserve(onGPUs("b", 40, 90)); !errors.As(err, &exceeded) || exceeded.Unit != "GPU" || exceeded.Limit.GPU != 100*time.Second || exceeded.Held.GPU != 70*time.Second {
		t.Fatal(err)
	}
	b := mustReserve(t, m, onGPUs("b", 10, 90)) // gets what is left
	if b.Granted().GPU != 30*time.Second {
		t.Fatal(b.Granted())
	}
	b.Release()
	gpuLeft(t, m, 30)
	settleGPU(t, h, 25)
	gpuLeft(t, m, 75)
	if l, s := m.Ledger(), m.Spent(); s.GPU != 25*time.Second || l.Total() != (cost.Spend{Calls: 1, GPU: 25 * time.Second, Time: l[0].Took}) || h.Spent().GPU != 25*time.Second {
		t.Errorf("spent %+v, rows %+v, hold %+v", s, l.Total(), h.Spent())
	}
	// What the server took beyond what was held is counted in full.
	settleGPU(t, mustReserve(t, m, onGPUs("c", 5, 5)), 80)
	gpuLeft(t, m, 0)
	if m.Spent().GPU != 105*time.Second {
		t.Error(m.Spent())
	}
	// A usage below zero gives nothing back.
	if row := settleGPU(t, mustReserve(t, m, onGPUs("d", 0, 0)), -50); !row.Inconsistent || m.Spent().GPU != 105*time.Second || m.Ledger().Total().GPU != 105*time.Second {
		t.Errorf("%+v, %v, %v", row, m.Spent().GPU, m.Ledger().Total().GPU)
	}
}

func TestGPUTimeIsNotBoundedByDefault(t *testing.T) {
	for name, b := range map[string]cost.Budget{"zero": {}, "unlimited": {GPU: cost.Unlimited}, "a run's": cost.Budget{}.WithDefaults()} {
		m := meter(t, b)
		settleGPU(t, mustReserve(t, m, onGPUs("a", 1e6, 1e9)), 1e9)
		// A tool that states no GPU time may use models that take some.
		h := mustReserve(t, m, cost.Estimate{Name: "tool", Worst: cost.Spend{Calls: 1}, Priced: true})
		settleGPU(t, mustReserve(t, h.Meter(), onGPUs("a", 1, 1000)), 7)
		h.Finish()
		if m.Spent().GPU != (1e9+7)*time.Second {
			t.Errorf("%s: %v", name, m.Spent().GPU)
		}
	}
}

// The most that is granted is what every scope above has left, and all of them
// count it.
func TestGPUTimeInScopes(t *testing.T) {
	tenant := meter(t, cost.Budget{GPU: 60 * time.Second})
	run, err := tenant.Child("run", cost.Budget{GPU: 50 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	other, err := tenant.Child("other", cost.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	o := mustReserve(t, other, onGPUs("x", 20, 20))
	h := mustReserve(t, run, onGPUs("a", 0, 90))
	if h.Granted().GPU != 40*time.Second {
		t.Error(h.Granted())
	}
	gpuLeft(t, other, 0)
	settleGPU(t, h, 15)
	settleGPU(t, o, 20)
	gpuLeft(t, run, 25)
	gpuLeft(t, other, 25)
}

func TestGPUTimeWithinAHold(t *testing.T) {
	for name, tool := range map[string]cost.Estimate{
		"stated":                onGPUs("tool", 0, 30),
		"whatever is left":      {Name: "tool", Floor: cost.Spend{Calls: 1}, Worst: cost.Spend{Tokens: cost.AnyTokens, Calls: 1}, Priced: true},
		"whatever, and a floor": {Name: "tool", Floor: cost.Spend{GPU: 5 * time.Second, Calls: 1}, Worst: cost.Spend{Tokens: cost.AnyTokens, Calls: 1}, Priced: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := meter(t, cost.Budget{GPU: 30 * time.Second})
			h := mustReserve(t, m, tool)
			gpuLeft(t, m, 0)
			gpuLeft(t, h.Meter(), 30)
			inner := mustReserve(t, h.Meter(), onGPUs("a", 1, 20))
			gpuLeft(t, h.Meter(), 10)
			if _, err := h.Meter().Reserve(onGPUs("b", 11, 11)); !errors.Is(err, cost.ErrExceeded) {
				t.Error(err)
			}
			settleGPU(t, inner, 12)
			gpuLeft(t, h.Meter(), 18)
			gpuLeft(t, m, 0)
			h.Finish()
			gpuLeft(t, m, 18)
			if m.Spent() != (cost.Spend{Calls: 1, GPU: 12 * time.Second}) {
				t.Errorf("%+v", m.Spent())
			}
		})
	}
	t.Run("none was asked for", func(t *testing.T) {
		m := meter(t, cost.Budget{GPU: 30 * time.Second})
		h := mustReserve(t, m, est("tool", 0, 10))
		if _, err := h.Meter().Reserve(onGPUs("a", 1, 1)); !errors.Is(err, cost.ErrExceeded) {
			t.Error(err)
		}
		run, err := m.Child("run", cost.Budget{}) // what bounds it may be further up
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mustReserve(t, run, est("tool", 0, 10)).Meter().Reserve(onGPUs("a", 1, 1)); !errors.Is(err, cost.ErrExceeded) {
			t.Error(err)
		}
	})
}

// What nobody knows is charged like money: in full, unless it was never stated.
func TestUnknownUsageChargesTheGPUTimeHeld(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 100 * time.Second})
	row, err := mustReserve(t, m, onGPUs("a", 0, 40)).Settle(cost.Usage{}, cost.Free(), nil)
	if err != nil || row.Basis != cost.Reserved || row.Usage.GPU != 40*time.Second {
		t.Errorf("%+v, %v", row, err)
	}
	gpuLeft(t, m, 60)
	h := mustReserve(t, m, onGPUs("tool", 0, 50))
	mustReserve(t, h.Meter(), onGPUs("under way", 20, 20))
	h.Finish() // nobody is left to say what the inner call took
	gpuLeft(t, m, 40)
	any := mustReserve(t, m, cost.Estimate{Name: "any", Worst: cost.Spend{Tokens: cost.AnyTokens}, Priced: true})
	if _, err := any.Settle(cost.Usage{}, cost.Free(), nil); err != nil {
		t.Fatal(err)
	}
	gpuLeft(t, m, 40)
}

func TestGPUTimeIsSharedByParallelCalls(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 100 * time.Second})
	reserve := mustReserve(t, m, onGPUs("reserve", 50, 50))
	holds, errs := m.ReserveAll([]cost.Estimate{onGPUs("a", 20, 80), onGPUs("b", 90, 95), onGPUs("c", 20, 140)}, reserve)
	if errs[0] != nil || !errors.Is(errs[1], cost.ErrExceeded) || errs[2] != nil {
		t.Fatal(errs)
	}
	if a, c := holds[0].Granted().GPU, holds[2].Granted().GPU; a != 40*time.Second || c != 60*time.Second {
		t.Error(a, c)
	}
}

func TestResizeAndCheckOfGPUTime(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 100 * time.Second})
	h := mustReserve(t, m, onGPUs("reserve", 60, 60))
	if m.Check(onGPUs("a", 41, 41), nil) == nil || m.Check(onGPUs("a", 100, 100), h) != nil {
		t.Error("Check counts GPU time wrong")
	}
	gpuLeft(t, m, 40)
	if err := h.Resize(onGPUs("reserve", 101, 101)); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	gpuLeft(t, m, 40)
	if err := h.Resize(onGPUs("reserve", 10, 20)); err != nil || h.Granted().GPU != 20*time.Second {
		t.Error(h.Granted(), err)
	}
	h.Release()
	gpuLeft(t, m, 100)
	bad := onGPUs("bad", 0, 0)
	bad.Worst.GPU = -1
	var invalid *cost.InvalidError
	if _, err := m.Reserve(bad); !errors.As(err, &invalid) {
		t.Error(err)
	}
}

func TestGPUTimeExceededSaysWhatToDo(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 10 * time.Second})
	settleGPU(t, mustReserve(t, m, onGPUs("a", 4, 4)), 4)
	_, err := m.Reserve(onGPUs("llm", 20, 20))
	const want = `cost: budget exceeded: llm needs at least 20s of GPU time, and of 10s in "m" 4s are spent and 0s held: raise Budget.GPU or allow something cheaper`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestGPUTimeInBudgets(t *testing.T) {
	var invalid *cost.InvalidError
	if err := (cost.Budget{GPU: -2}).Validate(); !errors.As(err, &invalid) || invalid.Field != "Budget.GPU" {
		t.Error(err)
	}
	a, b := cost.Budget{GPU: time.Minute}, cost.Budget{GPU: time.Hour}
	none := cost.Budget{GPU: cost.Unlimited}
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"or", a.Or(b).GPU, time.Minute}, {"nothing or", cost.Budget{}.Or(b).GPU, time.Hour},
		{"plus", a.Plus(b).GPU, time.Hour + time.Minute}, {"plus nothing", a.Plus(cost.Budget{}).GPU, time.Minute},
		{"no bound plus", cost.Budget{}.Plus(b).GPU, 0}, {"plus no bound", a.Plus(none).GPU, cost.Unlimited},
		{"default", cost.Budget{}.WithDefaults().GPU, 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	text, err := json.Marshal(cost.Budget{GPU: time.Second})
	var back cost.Budget
	if err != nil || string(text) != `{"gpu":1000000000}` || json.Unmarshal(text, &back) != nil || back.GPU != time.Second {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := json.Marshal(cost.Spend{USD: 1}); err != nil || strings.Contains(string(text), "gpu") {
		t.Errorf("%s, %v", text, err)
	}
}

// A run that goes on has used what its rows say.
func TestRestoreCountsGPUTime(t *testing.T) {
	m := meter(t, cost.Budget{GPU: 100 * time.Second})
	settleGPU(t, mustReserve(t, m, onGPUs("a", 30, 30)), 30)
	again := meter(t, cost.Budget{GPU: 100 * time.Second})
	again.Restore(m.Ledger(), nil)
	gpuLeft(t, again, 70)
	if again.Spent().GPU != 30*time.Second {
		t.Error(again.Spent())
	}
}

func TestLeaseOfGPUTime(t *testing.T) {
	c := &clock{at(t, "2026-05-05T10:00:00Z")}
	store := cost.NewMemory()
	s := shared(t, store, []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.NoLimit(), GPU: 100 * time.Second}}}, cost.WithClock(c.now), cost.WithTTL(time.Minute))
	ask := func(seconds int) cost.Budget {
		return cost.Budget{USD: cost.NoLimit(), GPU: time.Duration(seconds) * time.Second}
	}
	check := func(spent, held int) {
		t.Helper()
		b, err := s.Balances(t.Context())
		if err != nil || b[0].Spent.GPU != time.Duration(spent)*time.Second || b[0].Held.GPU != time.Duration(held)*time.Second {
			t.Errorf("%+v, %v; want %d s spent, %d s held", b, err, spent, held)
		}
	}
	take := func(seconds int, opts ...cost.LeaseOption) *cost.Lease {
		t.Helper()
		l, err := s.Lease(t.Context(), ask(seconds), opts...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	var invalid *cost.InvalidError
	if _, err := s.Lease(t.Context(), ask(0)); !errors.As(err, &invalid) || !strings.Contains(invalid.Field, "Budget.GPU") {
		t.Error(err)
	}
	l := take(60)
	check(0, 60)
	gpuLeft(t, l.Meter(), 60)
	settleGPU(t, mustReserve(t, l.Meter(), onGPUs("a", 1, 90)), 25)
	if _, err := l.Meter().Reserve(onGPUs("a", 36, 36)); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(25, 35)
	closeLease(t, l)
	check(25, 0)
	var exceeded *cost.ExceededError
	if _, err := s.Lease(t.Context(), ask(76)); !errors.As(err, &exceeded) || exceeded.Unit != "GPU" {
		t.Error(err)
	}
	// Of one who is not heard of, all that is held counts, until it says otherwise.
	l = take(500, cost.WithMinimum(0))
	if l.Granted().GPU != 75*time.Second {
		t.Error(l.Granted())
	}
	gpuLeft(t, l.Meter(), 75)
	c.t = c.t.Add(time.Hour)
	check(100, 0)
	if rows := store.Ledger().Total().GPU; rows != 100*time.Second {
		t.Error(rows)
	}
	settleGPU(t, mustReserve(t, l.Meter(), onGPUs("a", 5, 5)), 5)
	closeLease(t, l)
	check(30, 0)
	if rows := store.Ledger().Total().GPU; rows != 30*time.Second {
		t.Error(rows)
	}
}

// Whatever calls come and go at once, no scope spends more GPU time than it has,
// and in the end nothing is held.
func TestGPUTimeIsNeverOverspent(t *testing.T) {
	const limit = 2000 * time.Millisecond
	tenant := meter(t, cost.Budget{GPU: 3 * limit})
	var wg sync.WaitGroup
	var refused atomic.Int64
	var runs []*cost.Meter
	for i := range 4 {
		run, err := tenant.Child("run", cost.Budget{GPU: limit})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
		for j := range 2 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				draw := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most) + 1)) }
				for range 200 {
					floor := draw(20 * time.Millisecond)
					e := cost.Estimate{Name: "m", Floor: cost.Spend{GPU: floor}, Worst: cost.Spend{GPU: floor + draw(100*time.Millisecond)}, Priced: true}
					h, err := run.Reserve(e)
					if errors.Is(err, cost.ErrExceeded) {
						refused.Add(1)
						continue
					} else if err != nil {
						t.Error(err)
						return
					}
					granted := h.Granted().GPU
					if granted < floor || granted > e.Worst.GPU {
						t.Errorf("granted %v of %v to %v", granted, floor, e.Worst.GPU)
					}
					switch r.IntN(4) {
					case 0:
						h.Release()
					case 1: // through the hold's own meter
						if in, err := h.Meter().Reserve(cost.Estimate{Name: "in", Worst: cost.Spend{GPU: granted}, Priced: true}); err != nil {
							t.Error(err)
						} else if _, err := in.Settle(cost.Usage{GPU: draw(granted), Known: true}, cost.Free(), nil); err != nil {
							t.Error(err)
						}
						h.Finish()
					default:
						if _, err := h.Settle(cost.Usage{GPU: draw(granted), Known: true}, cost.Free(), nil); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	var sum time.Duration
	for _, run := range runs {
		s := run.Spent().GPU
		if sum += s; s > limit || s != run.Ledger().Total().GPU {
			t.Errorf("spent %v of %v, rows %v", s, limit, run.Ledger().Total().GPU)
		}
	}
	if sum > 3*limit || tenant.Spent().GPU != sum || tenant.Left().GPU != 3*limit-sum || refused.Load() == 0 {
		t.Errorf("runs spent %v, tenant %v, left %v, refused %d", sum, tenant.Spent().GPU, tenant.Left().GPU, refused.Load())
	}
}
