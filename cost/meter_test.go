package cost_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func meter(t testing.TB, b cost.Budget) *cost.Meter {
	t.Helper()
	m, err := cost.NewMeter("m", b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// est is a call between two amounts of micro-USD.
func est(name string, floor, worst int64) cost.Estimate {
	return cost.Estimate{Name: name, Floor: cost.Spend{USD: cost.Amount(floor * 1e6), Calls: 1}, Worst: cost.Spend{USD: cost.Amount(worst * 1e6), Calls: 1}, Priced: true}
}

func used(micro int64) (cost.Usage, cost.Price, error) {
	a := cost.Amount(micro * 1e6)
	return cost.Usage{Known: true, USD: &a}, cost.Free(), nil
}

func micro(n int64) cost.Amount { return cost.Amount(n * 1e6) }

func mustReserve(t *testing.T, m *cost.Meter, e cost.Estimate) *cost.Hold {
	t.Helper()
	h, err := m.Reserve(e)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestReserveSettleRelease(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
	h := mustReserve(t, m, est("a", 10, 70))
	if m.Left().USD != micro(30) || h.Granted().USD != micro(70) {
		t.Fatalf("left %v, granted %v", m.Left().USD, h.Granted().USD)
	}
	// 40 to 90 are wanted, and 30 are left.
	var exceeded *cost.ExceededError
	if _, err := m.Reserve(est("b", 40, 90)); !errors.As(err, &exceeded) || exceeded.Unit != "USD" || exceeded.Scope != "m" || !errors.Is(err, cost.ErrExceeded) {
		t.Fatal(err)
	}
	b := mustReserve(t, m, est("b", 10, 90)) // gets what is left
	if b.Granted().USD != micro(30) {
		t.Fatal(b.Granted())
	}
	b.Release()
	b.Release()
	row, err := h.Settle(used(25))
	if err != nil || row.USD != micro(25) || row.Held != micro(70) || m.Left().USD != micro(75) || m.Spent().USD != micro(25) {
		t.Fatalf("%+v, %v, left %v", row, err, m.Left().USD)
	}
	if again, err := h.Settle(used(60)); !errors.Is(err, cost.ErrSettled) || m.Spent().USD != micro(25) {
		t.Errorf("settled twice: %+v, %v", again, err)
	}
	if l := m.Ledger(); len(l) != 1 || l.Total().USD != m.Spent().USD {
		t.Errorf("%+v", l)
	}
}

func TestReserveAllShares(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
	reserve := mustReserve(t, m, est("reserve", 50, 50))
	// Floors 20 + 20 fit into 100 once the reserve is freed, 90 does not; the 60
	// that are left are shared 1:2.
	holds, errs := m.ReserveAll([]cost.Estimate{est("a", 20, 80), est("b", 90, 95), est("c", 20, 140)}, reserve)
	if errs[0] != nil || !errors.Is(errs[1], cost.ErrExceeded) || errs[2] != nil {
		t.Fatal(errs)
	}
	if a, c := holds[0].Granted().USD, holds[2].Granted().USD; a != micro(40) || c != micro(60) {
		t.Errorf("granted %v and %v", a, c)
	}
	if m.Left().USD != 0 {
		t.Error(m.Left())
	}
}

func TestScopes(t *testing.T) {
	top := meter(t, cost.Budget{USD: cost.Max(micro(100)), PerName: map[string]cost.Sub{"dear": {USD: cost.Max(micro(30)), Calls: 2}}})
	a, _ := top.Child("a", cost.Budget{USD: cost.Max(micro(60))})
	b, _ := top.Child("b", cost.Budget{USD: cost.NoLimit()})
	ha := mustReserve(t, a, est("x", 60, 60))
	if left := b.Left().USD; left != micro(40) {
		t.Errorf("b has %v left", left)
	}
	if _, err := b.Reserve(est("x", 41, 41)); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	if _, err := ha.Settle(used(60)); err != nil {
		t.Error(err)
	}
	h := mustReserve(t, b, est("dear", 10, 40)) // the name's own limit caps the grant
	if h.Granted().USD != micro(30) {
		t.Error(h.Granted())
	}
	if _, err := h.Settle(used(5)); err != nil {
		t.Error(err)
	}
	mustReserve(t, b, est("dear", 1, 1)).Release() // a release gives the call back
	mustReserve(t, b, est("dear", 1, 1)).Finish()
	var exceeded *cost.ExceededError
	if _, err := b.Reserve(est("dear", 1, 1)); !errors.As(err, &exceeded) || !exceeded.Sub || exceeded.Unit != "calls" {
		t.Error(err)
	}
	if got := top.Ledger(); len(got) != 2 || got[0].Scope != "m/a" || got[1].Scope != "m/b" {
		t.Errorf("%+v", got)
	}
	if a.Close(); !errors.Is(reserveErr(a), cost.ErrClosed) {
		t.Error("a closed meter reserves")
	}
}

func reserveErr(m *cost.Meter) error { _, err := m.Reserve(est("x", 0, 0)); return err }

// A hold's own meter spends what is held and nothing else.
func TestHoldMeter(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100)), Calls: 3, PerName: map[string]cost.Sub{"tool": {USD: cost.Max(micro(50))}}})
	h := mustReserve(t, m, est("tool", 0, 40))
	in := h.Meter()
	one := mustReserve(t, in, est("model", 10, 30))
	if m.Left().USD != micro(60) || in.Left().USD != micro(10) {
		t.Fatalf("outer %v, inner %v", m.Left().USD, in.Left().USD)
	}
	if _, err := one.Settle(used(12)); err != nil {
		t.Fatal(err)
	}
	if m.Spent().USD != micro(12) || m.Left().USD != micro(60) || in.Left().USD != micro(28) {
		t.Fatalf("spent %v, outer %v, inner %v", m.Spent().USD, m.Left().USD, in.Left().USD)
	}
	if _, err := in.Reserve(est("model", 29, 29)); !errors.Is(err, cost.ErrExceeded) {
		t.Fatal(err)
	}
	lost := mustReserve(t, in, est("model", 5, 8)) // never settled: its goroutine hangs
	h.Finish()
	if m.Spent().USD != micro(20) || m.Left().USD != micro(80) || m.Spent().Calls != 1 {
		t.Fatalf("spent %+v, left %v", m.Spent(), m.Left().USD)
	}
	if _, err := lost.Settle(used(7)); !errors.Is(err, cost.ErrSettled) || m.Spent().USD != micro(20) {
		t.Errorf("a late call was charged twice: %v, %v", err, m.Spent().USD)
	}
	if m.Ledger().Total().USD != m.Spent().USD {
		t.Errorf("rows %v, counter %v", m.Ledger().Total().USD, m.Spent().USD)
	}
	// 20 of the tool's 50 are spent.
	if h := mustReserve(t, m, est("tool", 0, 90)); h.Granted().USD != micro(30) {
		t.Error(h.Granted())
	}
}

func TestUnknownUsageChargesTheHold(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100)), Tokens: 1000})
	e := est("a", 10, 70)
	e.Worst.Tokens = 500
	h := mustReserve(t, m, e)
	row, _ := h.Settle(cost.Usage{}, cost.Tokens(1, 1), errors.New("no reply"))
	if row.USD != micro(70) || row.Basis != cost.Reserved || row.Err != "no reply" || m.Left().Tokens != 500 {
		t.Errorf("%+v, %+v", row, m.Left())
	}
}

func TestLyingUsageIsChargedAndMarked(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
	h := mustReserve(t, m, est("a", 10, 70))
	if row, _ := h.Settle(used(170)); row.USD != micro(170) || row.Over != micro(100) || m.Left().USD != 0 {
		t.Errorf("%+v, left %v", row, m.Left().USD)
	}
	// A priced zero passes an exhausted budget.
	mustReserve(t, m, est("free", 0, 0)).Finish()
}

func TestUnpriced(t *testing.T) {
	e := est("a", 0, 0)
	e.Priced = false
	if _, err := meter(t, cost.Budget{}).Reserve(e); !errors.Is(err, cost.ErrUnpriced) {
		t.Error(err)
	}
	m := meter(t, cost.Budget{AllowUnpriced: true, Tokens: 100})
	e.Worst.Tokens = 60
	h := mustReserve(t, m, e)
	row, _ := h.Settle(cost.Usage{Input: 30, Known: true}, cost.Price{}, nil)
	if row.Basis != cost.Unpriced || m.Spent().Unpriced != 1 || m.Spent().Tokens != 30 {
		t.Errorf("%+v, %+v", row, m.Spent())
	}
}

func TestResizeAndCheck(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100)), PerName: map[string]cost.Sub{"r": {Calls: 1}}})
	r := mustReserve(t, m, est("r", 40, 40))
	if err := m.Check(est("r", 90, 90), nil); err == nil {
		t.Error("90 do not fit beside 40")
	}
	if err := m.Check(est("r", 90, 90), r); err != nil {
		t.Error(err)
	}
	if err := r.Resize(est("r", 80, 80)); err != nil || m.Left().USD != micro(20) {
		t.Error(err, m.Left())
	}
	if err := r.Resize(est("r", 101, 101)); !errors.Is(err, cost.ErrExceeded) || m.Left().USD != micro(20) {
		t.Error(err, m.Left())
	}
	r.Release()
	if m.Left().USD != micro(100) {
		t.Error(m.Left())
	}
	mustReserve(t, m, est("r", 1, 1)) // the count by name came back, too
}

func TestNilMeterRefuses(t *testing.T) {
	var m *cost.Meter
	if _, err := m.Reserve(est("a", 0, 0)); !errors.Is(err, cost.ErrNoMeter) {
		t.Error(err)
	}
	if _, err := m.Child("x", cost.Budget{}); !errors.Is(err, cost.ErrNoMeter) {
		t.Error(err)
	}
	_, errs := m.ReserveAll(make([]cost.Estimate, 2))
	if m.Spent() != (cost.Spend{}) || m.Left() != (cost.Spend{}) || m.Ledger() != nil || m.Close() != (cost.Spend{}) || len(errs) != 2 {
		t.Error("a nil meter is not empty")
	}
}

func TestConcurrentReservations(t *testing.T) {
	top := meter(t, cost.Budget{USD: cost.Max(micro(1000))})
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			run, err := top.Child(fmt.Sprint("run-", g), cost.Budget{USD: cost.Max(micro(200))})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range int64(50) {
				if h, err := run.Reserve(est("m", 3, 9)); err == nil {
					// A model honours the cap that it was granted.
					if _, err := h.Settle(used(min(3+i%5, int64(h.Granted().USD)/1e6))); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	spent := top.Spent().USD
	if spent > micro(1000) || spent < micro(990) || top.Ledger().Total().USD != spent || top.Left().USD != micro(1000)-spent {
		t.Errorf("spent %v, left %v", spent, top.Left().USD)
	}
	if n := len(top.Drain()); n == 0 || top.Ledger() != nil || top.Spent().USD != spent {
		t.Error("drained", n)
	}
}

// One reservation and its settlement. Runs have meters of their own, so two of
// them on two processors should take half the time of one, each ("parallel");
// "contended" is one meter for all.
func BenchmarkReserveSettle(b *testing.B) {
	one := func(b *testing.B, m *cost.Meter, n int) {
		h, err := m.Reserve(est("m", 1, 9))
		if err == nil {
			_, err = h.Settle(used(3))
		}
		if err != nil {
			b.Error(err)
		}
		if n%1000 == 0 {
			m.Drain()
		}
	}
	unbounded := cost.Budget{USD: cost.NoLimit()}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		m := meter(b, unbounded)
		for n := 0; b.Loop(); n++ {
			one(b, m, n)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			m := meter(b, unbounded)
			for n := 0; pb.Next(); n++ {
				one(b, m, n)
			}
		})
	})
	b.Run("contended", func(b *testing.B) {
		b.ReportAllocs()
		m := meter(b, unbounded)
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				one(b, m, n)
			}
		})
	})
}

// Finding by finding: holds within holds, ended in the wrong order.
func TestHoldsEndInAnyOrder(t *testing.T) {
	t.Run("settled unknown while a call is under way", func(t *testing.T) {
		m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
		h := mustReserve(t, m, est("tool", 0, 10))
		mustReserve(t, h.Meter(), est("model", 8, 8))
		if _, err := h.Settle(cost.Usage{}, cost.Price{}, nil); err != nil || m.Spent().USD != micro(10) || m.Ledger().Total().USD != micro(10) {
			t.Errorf("spent %v, rows %v, %v", m.Spent().USD, m.Ledger().Total().USD, err)
		}
	})
	t.Run("inner calls end after the outer", func(t *testing.T) {
		for name, end := range map[string]func(h *cost.Hold){"finish": func(h *cost.Hold) { h.Finish() }, "release": (*cost.Hold).Release, "settle": func(h *cost.Hold) { _, _ = h.Settle(used(5)) }} {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100)), PerName: map[string]cost.Sub{"inner": {Calls: 5}}})
			outer := mustReserve(t, m, est("outer", 30, 30))
			inner := mustReserve(t, outer.Meter(), est("inner", 20, 20))
			mustReserve(t, inner.Meter(), est("model", 20, 20))
			outer.Finish()
			other := mustReserve(t, m, est("other", 40, 40))
			end(inner)
			if m.Spent().USD != micro(20) || m.Left().USD != micro(40) {
				t.Errorf("%s: spent %v, left %v", name, m.Spent().USD, m.Left().USD)
			}
			other.Release()
		}
	})
	t.Run("resized under another name", func(t *testing.T) {
		m := meter(t, cost.Budget{USD: cost.Max(micro(100)), PerName: map[string]cost.Sub{"a": {Calls: 1}, "b": {Calls: 1}}})
		h := mustReserve(t, m, est("a", 5, 5))
		if err := h.Resize(est("b", 7, 7)); err != nil {
			t.Fatal(err)
		}
		mustReserve(t, m, est("a", 1, 1)) // a has its call back
		if _, err := m.Reserve(est("a", 1, 1)); err == nil {
			t.Error("a was admitted twice")
		}
		h.Release()
		mustReserve(t, m, est("b", 1, 1))
	})
	t.Run("a limit by name gets its money back, and counts what was lost", func(t *testing.T) {
		m := meter(t, cost.Budget{USD: cost.Max(micro(100)), PerName: map[string]cost.Sub{"model": {USD: cost.Max(micro(50))}}})
		tool := mustReserve(t, m, est("tool", 40, 40))
		run, err := tool.Meter().Child("nested", cost.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		deep := mustReserve(t, run, est("tool", 30, 30))
		lost := mustReserve(t, deep.Meter(), est("model", 20, 20))
		tool.Finish()
		if h := mustReserve(t, m, est("model", 1, 90)); h.Granted().USD != micro(30) || m.Spent().USD != micro(30) {
			t.Errorf("granted %v, spent %v", h.Granted().USD, m.Spent().USD)
		}
		lost.Release()
		if rows := m.Ledger(); len(rows) != 2 || rows[0].Name != "model" || rows[0].USD != micro(20) || rows[1].Name != "tool" || rows[1].USD != micro(10) {
			t.Errorf("%+v", rows)
		}
	})
	t.Run("the fee is not the meter's", func(t *testing.T) {
		m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
		e := est("tool", 10, 30)
		e.Fee = micro(10)
		h := mustReserve(t, m, e)
		if left := h.Meter().Left().USD; left != micro(20) {
			t.Errorf("the meter has %v", left)
		}
		e.Fee = micro(11)
		if _, err := m.Reserve(e); err == nil {
			t.Error("a fee above the floor was admitted")
		}
	})
	t.Run("any tokens do not dwarf others", func(t *testing.T) {
		m := meter(t, cost.Budget{Tokens: 100_000})
		plain, model := est("plain", 0, 0), est("model", 0, 0)
		plain.Worst.Tokens, model.Worst.Tokens = cost.AnyTokens, 50_000
		holds, errs := m.ReserveAll([]cost.Estimate{plain, model})
		if errs[0] != nil || errs[1] != nil || holds[1].Granted().Tokens < 20_000 {
			t.Errorf("granted %d tokens", holds[1].Granted().Tokens)
		}
		if row, _ := holds[0].Settle(cost.Usage{}, cost.Price{}, nil); row.Usage.Tokens() != 0 {
			t.Errorf("charged %d tokens that nobody used", row.Usage.Tokens())
		}
	})
	t.Run("a negative amount is no amount", func(t *testing.T) {
		m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
		minus := micro(-7)
		if row, _ := mustReserve(t, m, est("a", 10, 10)).Settle(cost.Usage{USD: &minus}, cost.Free(), nil); row.USD != micro(10) || row.Basis != cost.Reserved {
			t.Errorf("%+v", row)
		}
	})
}
