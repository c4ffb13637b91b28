package cost_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// faulty is a store whose transactions fail, before or after they count.
type faulty struct {
	*cost.Memory
	before, after error
	twice         bool
}

func (f *faulty) Update(ctx context.Context, do func(cost.Tx) error) error {
	if f.before != nil {
		return f.before
	}
	if f.twice {
		if err := f.Memory.Update(ctx, do); err != nil {
			return err
		}
	}
	if err := f.Memory.Update(ctx, do); err != nil {
		return err
	}
	return f.after
}

var errDisk = &cost.StoreError{Op: "update budget.db", Err: errors.New("disk full"), Fix: "free space"}

// Without its store, a shared budget admits nothing.
func TestStoreThatFails(t *testing.T) {
	f := &faulty{Memory: cost.NewMemory()}
	s := shared(t, f, []cost.Scope{scope("t", 100)})
	l := lease(t, s, 50)
	pay(t, l.Meter(), 20)
	f.before = errDisk
	_, errLease := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}, cost.WithWait(time.Hour))
	_, errBalance := s.Balances(t.Context())
	for name, err := range map[string]error{"lease": errLease, "balance": errBalance, "renew": l.Renew(t.Context()), "close": l.Close()} {
		if !errors.Is(err, cost.ErrStore) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Meter().Reserve(est("m", 1, 1)); !errors.Is(err, cost.ErrClosed) {
		t.Error("a lease that could not be closed spends:", err)
	}
	f.before = nil
	balance(t, s, 0, 50) // nothing was lost: it is held
	closeLease(t, l)
	balance(t, s, 20, 0)
	if rows := f.Ledger(); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
}

// A report whose answer was lost, and one that arrives twice, count once.
func TestReportsCountOnce(t *testing.T) {
	f := &faulty{Memory: cost.NewMemory()}
	s := shared(t, f, []cost.Scope{scope("t", 100)})
	f.twice = true
	l := lease(t, s, 50)
	lease(t, s, 30) // keeps what it has, whatever is said of the other
	balance(t, s, 0, 80)
	pay(t, l.Meter(), 20)
	f.after = errDisk
	if err := l.Renew(t.Context()); !errors.Is(err, cost.ErrStore) {
		t.Fatal(err)
	}
	pay(t, l.Meter(), 5)
	if err := l.Close(); !errors.Is(err, cost.ErrStore) {
		t.Fatal(err)
	}
	f.after = nil
	balance(t, s, 25, 30)
	closeLease(t, l)
	balance(t, s, 25, 30)
	if rows := f.Ledger(); len(rows) != 2 || rows.Total().USD != micro(25) {
		t.Errorf("%+v", rows)
	}
}

// An id is good once, for whoever asks, whatever became of its lease.
func TestLeaseIDIsGoodOnce(t *testing.T) {
	c := &clock{at(t, "2026-05-05T10:00:00Z")}
	s := shared(t, cost.NewMemory(), []cost.Scope{scope("t", 100)}, cost.WithClock(c.now))
	l := lease(t, s, 10, cost.WithLeaseID("run-1"))
	again := func(state string) {
		t.Helper()
		if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}, cost.WithLeaseID("run-1")); !errors.Is(err, cost.ErrLeased) {
			t.Errorf("%s: %v", state, err)
		}
	}
	again("open")
	c.t = c.t.Add(2 * cost.DefaultTTL)
	balance(t, s, 10, 0)
	again("lapsed")
	closeLease(t, l)
	again("settled")
	balance(t, s, 0, 0)
}

// A hold that spent less than nothing gives nothing back.
func TestDamagedHold(t *testing.T) {
	m := cost.NewMemory()
	s := shared(t, m, []cost.Scope{scope("t", 100)})
	l := lease(t, s, 10)
	err := m.Update(t.Context(), func(tx cost.Tx) error {
		h, _, err := tx.Hold(l.ID())
		h.Spent.USD = -1
		return errors.Join(err, tx.PutHold(h))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
}

// A store that lies is not believed.
func TestDamagedStore(t *testing.T) {
	m := cost.NewMemory()
	s := shared(t, m, []cost.Scope{scope("t", 100)})
	l := lease(t, s, 10)
	put := func(b cost.Balance) {
		if err := m.Update(t.Context(), func(tx cost.Tx) error { return tx.PutAccount(cost.Key{Scope: "t"}, b) }); err != nil {
			t.Fatal(err)
		}
	}
	put(cost.Balance{Spent: cost.Spend{USD: -5}})
	if _, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(1)}); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
	put(cost.Balance{})
	if err := m.Update(t.Context(), func(tx cost.Tx) error { return tx.PutHold(cost.StoredHold{ID: l.ID(), Owner: "somebody else"}) }); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, cost.ErrLeased) {
		t.Error(err)
	}
	bad := cost.StoredHold{ID: "bad", Keys: []cost.Key{{Scope: "t"}}, Spent: cost.Spend{USD: -50}, Granted: cost.Spend{USD: 1}}
	if err := m.Update(t.Context(), func(tx cost.Tx) error { return tx.PutHold(bad) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Balances(t.Context()); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
	f := &faulty{Memory: cost.NewMemory()}
	l = lease(t, shared(t, f, []cost.Scope{scope("t", 100)}), 10)
	f.Memory = cost.NewMemory() // somebody deleted the file
	if err := l.Close(); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
}

// Nothing of a transaction that fails is kept.
func TestMemoryRollsBack(t *testing.T) {
	m := cost.NewMemory()
	boom := errors.New("boom")
	k := cost.Key{Scope: "t"}
	err := m.Update(t.Context(), func(tx cost.Tx) error {
		for _, err := range []error{tx.PutAccount(k, cost.Balance{Spent: cost.Spend{USD: 1}}), tx.PutHold(cost.StoredHold{ID: "h"}), tx.PutRow("h", 0, cost.Row{USD: 1})} {
			if err != nil {
				return err
			}
		}
		if b, err := tx.Account(k); err != nil || b.Spent.USD != 1 {
			t.Error("a transaction does not see what it wrote", b, err)
		}
		return boom
	})
	if err != boom || len(m.Ledger()) != 0 {
		t.Error(err, m.Ledger())
	}
	_ = m.Update(t.Context(), func(tx cost.Tx) error {
		b, _ := tx.Account(k)
		if _, ok, _ := tx.Hold("h"); ok || b != (cost.Balance{}) {
			t.Error("it was kept")
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Update(ctx, func(cost.Tx) error { t.Error("it ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Drain forgets rows and old ids; sums and open leases stay.
func TestMemoryDrains(t *testing.T) {
	m := cost.NewMemory()
	s := shared(t, m, []cost.Scope{scope("t", 100)})
	old, open := lease(t, s, 10, cost.WithLeaseID("old")), lease(t, s, 10, cost.WithLeaseID("open"))
	pay(t, old.Meter(), 10)
	closeLease(t, old)
	if l := m.Drain(); l.Total().USD != micro(10) || len(m.Ledger()) != 0 {
		t.Errorf("%+v, %+v", l, m.Ledger())
	}
	pay(t, open.Meter(), 5)
	closeLease(t, open)
	balance(t, s, 15, 0)
	lease(t, s, 10, cost.WithLeaseID("old"))
}

// No sequence of runs, crashes and clock jumps overspends a shared budget.
func TestRandomRunsNeverOverspend(t *testing.T) {
	const each = 500 // runs on one budget
	var wg sync.WaitGroup
	jobs := make(chan uint64)
	for range 2 {
		wg.Go(func() {
			for seed := range jobs {
				if err := randomRuns(t, seed, each); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for seed := range uint64(randomRunsTotal / each) {
		jobs <- seed
	}
	close(jobs)
	wg.Wait()
}

func randomRuns(t *testing.T, seed uint64, n int) error {
	r := rand.New(rand.NewPCG(seed, 4))
	draw := func(n int64) cost.Amount { return cost.Amount(r.Int64N(n) + 1) }
	c := &clock{at(t, "2026-05-05T10:00:00Z")}
	m := cost.NewMemory()
	scopes := []cost.Scope{
		{Name: "t", Budget: cost.Budget{USD: cost.Max(100_000)}},
		{Name: "t", Budget: cost.Budget{USD: cost.Max(20_000)}, Every: cost.Hour},
		{Name: "tag", Budget: cost.Budget{USD: cost.Max(60_000), Calls: 4000}},
	}
	all := shared(t, m, scopes, cost.WithClock(c.now), cost.WithTTL(time.Minute))
	some := shared(t, m, scopes[:2], cost.WithClock(c.now), cost.WithTTL(time.Minute))
	var real, tagged cost.Amount // what the calls cost, whether anybody reported it or not
	hours := map[int64]cost.Amount{}
	type run struct {
		*cost.Lease
		hour int64
		tag  bool
	}
	var zombies []run // of processes that hang, or are dead
	work := func(l run) error {
		for range 1 + r.IntN(4) {
			h, err := l.Meter().Reserve(cost.Estimate{Name: "m", Floor: cost.Spend{USD: draw(50), Calls: 1}, Worst: cost.Spend{USD: 50 + draw(300)}, Priced: true})
			if errors.Is(err, cost.ErrExceeded) {
				return nil
			} else if err != nil {
				return err
			}
			usd := draw(int64(h.Granted().USD)) // granted is at least one
			switch r.IntN(10) {
			case 0:
				h.Release()
				continue
			case 1: // the usage is unknown: the hold counts
				usd = h.Granted().USD
				_, err = h.Settle(cost.Usage{}, cost.Free(), nil)
			default:
				_, err = h.Settle(cost.Usage{Known: true, USD: &usd}, cost.Free(), nil)
			}
			if err != nil {
				return err
			}
			real += usd
			hours[l.hour] += usd
			if l.tag {
				tagged += usd
			}
		}
		return nil
	}
	for range n {
		s, tag := all, true
		if r.IntN(2) == 0 {
			s, tag = some, false
		}
		ask := draw(900)
		lease, err := s.Lease(t.Context(), cost.Budget{USD: cost.Max(ask), Calls: 1 + r.IntN(8)}, cost.WithMinimum(draw(100)))
		if err == nil {
			l := run{lease, c.t.Truncate(time.Hour).Unix(), tag}
			if err := work(l); err != nil {
				return err
			}
			switch r.IntN(8) {
			case 0:
				zombies = append(zombies, l)
			case 1:
				if err := errors.Join(l.Renew(t.Context()), work(l)); err != nil {
					return err
				}
				fallthrough
			default:
				if err := l.Close(); err != nil {
					return err
				}
			}
		} else if !errors.Is(err, cost.ErrExceeded) {
			return err
		}
		if len(zombies) > 0 && r.IntN(10) == 0 { // one goes on, long after it lapsed
			i := r.IntN(len(zombies))
			err := work(zombies[i])
			switch r.IntN(3) {
			case 0:
				err = errors.Join(err, zombies[i].Close())
				zombies = append(zombies[:i], zombies[i+1:]...)
			case 1:
				err = errors.Join(err, zombies[i].Renew(t.Context()))
			}
			if err != nil {
				return err
			}
		}
		if r.IntN(5) == 0 {
			c.t = c.t.Add(time.Duration(r.Int64N(int64(40*time.Minute))) - 15*time.Minute)
		}
	}
	for h, usd := range hours {
		if usd > 20_000 {
			return fmt.Errorf("%d were spent in the hour %d", int64(usd), h)
		}
	}
	if real > 100_000 || tagged > 60_000 {
		return fmt.Errorf("%d were spent, %d of it tagged", int64(real), int64(tagged))
	}
	// In the end, all are dead: what is counted covers what was spent.
	c.t = c.t.Add(24 * time.Hour)
	var bs []cost.Balance
	for range len(zombies)/100 + 1 {
		var err error
		if bs, err = all.Balances(t.Context()); err != nil {
			return err
		}
	}
	spent := bs[0].Spent.USD
	if rows := m.Ledger().Total().USD; rows != spent || spent < real || spent > 100_000 || bs[0].Held != (cost.Spend{}) {
		return fmt.Errorf("spent %d, counted %d, rows %d, held %+v", int64(real), int64(spent), int64(rows), bs[0].Held)
	}
	if bs[2].Spent.USD < tagged || bs[2].Spent.USD > 60_000 || bs[2].Spent.Calls > 4000 {
		return fmt.Errorf("tagged %d, counted %+v", int64(tagged), bs[2].Spent)
	}
	return nil
}
