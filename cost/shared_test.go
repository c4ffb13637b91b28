package cost_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// clock is a clock that tests set.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func shared(t testing.TB, s cost.Store, scopes []cost.Scope, opts ...cost.ShareOption) *cost.Shared {
	t.Helper()
	sh, err := cost.Share(s, scopes, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return sh
}

func scope(name string, micros int64) cost.Scope {
	return cost.Scope{Name: name, Budget: cost.Budget{USD: cost.Max(micro(micros))}}
}

func lease(t testing.TB, s *cost.Shared, micros int64, opts ...cost.LeaseOption) *cost.Lease {
	t.Helper()
	l, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(micro(micros))}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLease(t testing.TB, l *cost.Lease) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// pay makes a call that costs so many micro-USD.
func pay(t testing.TB, m *cost.Meter, micros int64) {
	t.Helper()
	h, err := m.Reserve(est("model", micros, micros))
	if err == nil {
		_, err = h.Settle(used(micros))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// balance checks what is spent and held, in micro-USD, scope by scope.
func balance(t testing.TB, s *cost.Shared, spentHeld ...int64) {
	t.Helper()
	bs, err := s.Balances(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, b := range bs {
		got = append(got, int64(b.Spent.USD)/1e6, int64(b.Held.USD)/1e6)
	}
	if !slices.Equal(got, spentHeld) {
		t.Errorf("spent and held are %v, want %v", got, spentHeld)
	}
}

// A lease is taken from all scopes or from none, and given back to all.
func TestLeaseCountsInEveryScope(t *testing.T) {
	store := cost.NewMemory()
	both := shared(t, store, []cost.Scope{scope("tenant", 100), scope("tag:red", 60)})
	tenant := shared(t, store, []cost.Scope{scope("tenant", 100)})
	l := lease(t, both, 50)
	balance(t, both, 0, 50, 0, 50)
	var exceeded *cost.ExceededError
	if _, err := both.Lease(t.Context(), cost.Budget{USD: cost.Max(micro(20))}); !errors.As(err, &exceeded) || exceeded.Scope != "tag:red" || exceeded.Held.USD != micro(50) {
		t.Fatal(err)
	}
	balance(t, both, 0, 50, 0, 50) // nothing was taken of the tenant's
	other := lease(t, tenant, 50)
	run, err := cost.FromContext(l.Context(t.Context())).Child("run", cost.Budget{USD: cost.USD(5)})
	if err != nil {
		t.Fatal(err)
	}
	pay(t, run, 30)
	if _, err := run.Reserve(est("model", 21, 21)); !errors.Is(err, cost.ErrExceeded) {
		t.Error("more than the lease has:", err)
	}
	if l.Granted().USD != micro(50) || l.Meter().Left().USD != micro(20) {
		t.Error(l.Granted(), l.Meter().Left())
	}
	closeLease(t, l)
	balance(t, both, 30, 50, 30, 0)
	closeLease(t, other)
	balance(t, both, 30, 0, 30, 0)
	rows := store.Ledger()
	if len(rows) != 1 || rows[0].USD != micro(30) || rows[0].Scope != "tenant/"+l.ID()+"/run" {
		t.Errorf("%+v", rows)
	}
	if _, err := l.Meter().Reserve(est("model", 1, 1)); !errors.Is(err, cost.ErrClosed) {
		t.Error("a closed lease spends:", err)
	}
}

func TestLeaseCountsTokensCallsAndGPUTime(t *testing.T) {
	store := cost.NewMemory()
	s := shared(t, store, []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.NoLimit(), Tokens: 1000, Calls: 3}}})
	l, err := s.Lease(t.Context(), cost.Budget{USD: cost.NoLimit(), Tokens: 5000, Calls: 9}, cost.WithMinimum(0))
	if err != nil {
		t.Fatal(err)
	}
	if g := l.Granted(); g != (cost.Spend{Tokens: 1000, Calls: 3}) {
		t.Errorf("%+v", g)
	}
	if left := l.Meter().Left(); left.Tokens != 1000 || left.Calls != 3 {
		t.Errorf("its meter has %+v", left)
	}
	e := est("m", 5, 5)
	e.Worst.Tokens = 400
	h := mustReserve(t, l.Meter(), e)
	if _, err := h.Settle(cost.Usage{Input: 100, Output: 50, GPU: time.Second, Known: true}, cost.Tokens(1, 1), nil); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	b, err := s.Balances(t.Context())
	if err != nil || b[0].Spent != (cost.Spend{USD: 150 * 1e6, Tokens: 150, Calls: 1, GPU: time.Second}) || b[0].Held != (cost.Spend{}) {
		t.Errorf("%+v, %v", b, err)
	}
	for _, c := range []struct {
		unit string
		ask  cost.Budget
	}{{"tokens", cost.Budget{USD: cost.NoLimit(), Tokens: 851, Calls: 1}}, {"calls", cost.Budget{USD: cost.NoLimit(), Tokens: 1, Calls: 3}}} {
		var exceeded *cost.ExceededError
		if _, err := s.Lease(t.Context(), c.ask); !errors.As(err, &exceeded) || exceeded.Unit != c.unit {
			t.Errorf("%s: %v", c.unit, err)
		}
	}
}

// Closing charges what is under way, and what ends later changes nothing.
func TestLeaseClosedWhileCallsAreUnderWay(t *testing.T) {
	store := cost.NewMemory()
	s := shared(t, store, []cost.Scope{scope("t", 100)})
	l := lease(t, s, 50)
	run, _ := l.Meter().Child("run", cost.Budget{})
	late := mustReserve(t, run, est("slow", 20, 20))
	inner := mustReserve(t, mustReserve(t, run, est("tool", 10, 15)).Meter(), est("slow", 4, 4))
	closeLease(t, l)
	balance(t, s, 35, 0)
	for _, h := range []*cost.Hold{late, inner} {
		if _, err := h.Settle(used(3)); !errors.Is(err, cost.ErrSettled) {
			t.Error(err)
		}
	}
	closeLease(t, l) // does nothing
	if err := l.Renew(t.Context()); !errors.Is(err, cost.ErrClosed) {
		t.Error(err)
	}
	balance(t, s, 35, 0)
	if total := store.Ledger().Total().USD; total != micro(35) {
		t.Error(total)
	}
}

// A lease whose owner is silent is charged in full, and corrected when the owner
// turns up. What may be spent is the same all the time.
func TestLeaseLapses(t *testing.T) {
	store := cost.NewMemory()
	c := &clock{at(t, "2026-05-05T10:00:00Z")}
	s := shared(t, store, []cost.Scope{scope("t", 100)}, cost.WithClock(c.now), cost.WithTTL(time.Minute))
	l := lease(t, s, 60)
	pay(t, l.Meter(), 10)
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	balance(t, s, 10, 50)
	c.t = c.t.Add(59 * time.Second)
	balance(t, s, 10, 50)
	for _, jump := range []struct {
		name string
		by   time.Duration
	}{{"forwards", time.Second}, {"forwards again", time.Minute}, {"far back", -time.Hour}} {
		name, before := jump.name, c.t
		c.t = c.t.Add(jump.by)
		balance(t, s, 60, 0)
		balance(t, s, 60, 0)
		rows := store.Ledger()
		marked := slices.IndexFunc(rows, func(r cost.Row) bool { return r.Name == "lapsed lease" })
		if rows.Total().USD != micro(60) || marked < 0 || rows[marked].Basis != cost.Reserved || !strings.Contains(rows[marked].Err, "nothing was heard of") {
			t.Errorf("%s: %+v", name, rows)
		}
		if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(micro(41))}); !errors.Is(err, cost.ErrExceeded) {
			t.Errorf("%s: what is lapsed was leased again: %v", name, err)
		}
		if err := l.Renew(t.Context()); err != nil { // it is alive after all
			t.Fatal(name, err)
		}
		balance(t, s, 10, 50)
		c.t = before
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(name, err)
		}
		if total := store.Ledger().Total().USD; total != micro(10) {
			t.Errorf("%s: rows sum up to %v", name, total)
		}
	}
	pay(t, l.Meter(), 20)
	c.t = c.t.Add(time.Hour)
	balance(t, s, 60, 0)
	closeLease(t, l)
	balance(t, s, 30, 0)
	if total := store.Ledger().Total().USD; total != micro(30) {
		t.Error(total)
	}
}

// Each day has its budget, whichever way the clock jumps, and a lease counts on
// the day on which it was taken.
func TestWindowsOfAScope(t *testing.T) {
	c := &clock{at(t, "2026-03-01T14:59:59Z")} // a second before midnight in Tokyo
	daily := cost.Scope{Name: "t", Budget: cost.Budget{USD: cost.Max(micro(100))}, Every: cost.Day, Location: zone(t, "Asia/Tokyo")}
	monthly := cost.Scope{Name: "t", Budget: cost.Budget{USD: cost.Max(micro(150))}, Every: cost.Month, Location: zone(t, "Asia/Tokyo")}
	s := shared(t, cost.NewMemory(), []cost.Scope{daily, monthly}, cost.WithClock(c.now))
	l := lease(t, s, 100)
	if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	c.t = c.t.Add(time.Second)
	balance(t, s, 0, 0, 0, 100)
	pay(t, l.Meter(), 70)
	closeLease(t, l)
	balance(t, s, 0, 0, 70, 0)
	next := lease(t, s, 80)
	pay(t, next.Meter(), 80)
	closeLease(t, next)
	balance(t, s, 80, 0, 150, 0)
	c.t = c.t.Add(-time.Second)
	balance(t, s, 70, 0, 150, 0)
	var exceeded *cost.ExceededError
	if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}); !errors.As(err, &exceeded) || !strings.Contains(exceeded.Scope, "month from 2026-02-28T15:00:00Z") {
		t.Error(err)
	}
	c.t = at(t, "2026-04-01T00:00:00+09:00")
	balance(t, s, 0, 0, 0, 0)
}

// Lease waits for what others hold, not for what is spent.
func TestLeaseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared(t, cost.NewMemory(), []cost.Scope{scope("t", 100)})
		first := lease(t, s, 90)
		pay(t, first.Meter(), 30)
		time.AfterFunc(3*time.Second, func() { _ = first.Close() })
		start := time.Now()
		if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(micro(70))}, cost.WithWait(time.Second)); !errors.Is(err, cost.ErrExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(micro(101))}, cost.WithWait(time.Minute)); !errors.Is(err, cost.ErrExceeded) || time.Since(start) != time.Second {
			t.Errorf("it waited for what cannot come: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Lease(ctx, cost.Budget{USD: cost.Max(micro(70))}, cost.WithWait(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		second := lease(t, s, 70, cost.WithWait(time.Minute))
		if d := time.Since(start); d < 3*time.Second || d > 3300*time.Millisecond {
			t.Errorf("it waited %v", d)
		}
		pay(t, second.Meter(), 70)
		closeLease(t, second)
		before := time.Now()
		if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}, cost.WithWait(time.Minute)); !errors.Is(err, cost.ErrExceeded) || time.Since(before) != 0 {
			t.Errorf("it waited for what is spent: %v", err)
		}
	})
}

// A new window is worth waiting for.
func TestLeaseWaitsForAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shared(t, cost.NewMemory(), []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.Max(micro(100))}, Every: cost.Minute}})
		time.Sleep(50 * time.Second)
		l := lease(t, s, 100)
		pay(t, l.Meter(), 100)
		closeLease(t, l)
		ask := cost.Budget{USD: cost.Max(micro(100))}
		start := time.Now()
		if _, err := s.Lease(t.Context(), ask, cost.WithWait(9*time.Second)); !errors.Is(err, cost.ErrExceeded) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := s.Lease(t.Context(), ask, cost.WithWait(11*time.Second)); err != nil || time.Since(start) > 10300*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWhatCannotBeShared(t *testing.T) {
	ok := scope("t", 1)
	for name, scopes := range map[string][]cost.Scope{
		"none":     nil,
		"no name":  {{}},
		"twice":    {ok, ok},
		"per name": {{Name: "t", Budget: cost.Budget{PerName: map[string]cost.Sub{"gpt-5": {Calls: 1}}}}},
		"negative": {scope("t", -1)},
		"period":   {{Name: "t", Every: 99}},
	} {
		var invalid *cost.InvalidError
		if _, err := cost.Share(cost.NewMemory(), scopes); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var invalid *cost.InvalidError
	for name, opt := range map[string]cost.ShareOption{"ttl": cost.WithTTL(0), "clock": cost.WithClock(nil)} {
		if _, err := cost.Share(cost.NewMemory(), []cost.Scope{ok}, opt); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cost.Share(nil, []cost.Scope{ok}); !errors.As(err, &invalid) {
		t.Error(err)
	}
	s := shared(t, cost.NewMemory(), []cost.Scope{{Name: "t", Budget: cost.Budget{Tokens: 10, Calls: 10}}})
	full := cost.Budget{USD: cost.Max(1), Tokens: 1, Calls: 1}
	for name, c := range map[string]struct {
		change func(*cost.Budget)
		opts   []cost.LeaseOption
	}{
		"no limit":         {func(b *cost.Budget) { b.USD = cost.NoLimit() }, nil},
		"no tokens":        {func(b *cost.Budget) { b.Tokens = 0 }, nil},
		"unlimited calls":  {func(b *cost.Budget) { b.Calls = cost.Unlimited }, nil},
		"negative":         {func(b *cost.Budget) { b.USD = cost.USD(-1) }, nil},
		"negative minimum": {func(*cost.Budget) {}, []cost.LeaseOption{cost.WithMinimum(-1)}},
		"empty id":         {func(*cost.Budget) {}, []cost.LeaseOption{cost.WithLeaseID("")}},
	} {
		b := full
		c.change(&b)
		if _, err := s.Lease(t.Context(), b, c.opts...); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Lease(t.Context(), full); err != nil {
		t.Error(err)
	}
}

// Unknown prices need the leave of every scope and of the lease.
func TestLeaseOfUnpricedCalls(t *testing.T) {
	e := est("m", 0, 0)
	e.Priced = false
	for _, c := range []struct{ a, b, lease bool }{{true, true, true}, {true, false, true}, {true, true, false}} {
		s := shared(t, cost.NewMemory(), []cost.Scope{
			{Name: "a", Budget: cost.Budget{AllowUnpriced: c.a}}, {Name: "b", Budget: cost.Budget{AllowUnpriced: c.b}}})
		l, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(5), AllowUnpriced: c.lease})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Meter().Reserve(e); (err == nil) != (c.a && c.b && c.lease) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
