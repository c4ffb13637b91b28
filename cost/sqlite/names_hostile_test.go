package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// A name that JSON cannot keep would come back from the store as another: its
// lease would be charged again and again, or its account hold what is never given
// back. It is refused.
func TestNamesThatCannotBeKeptAreRefused(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	var invalid *cost.InvalidError
	if _, err := cost.Share(store, []cost.Scope{{Name: "tenant:\xff", Budget: cost.Budget{USD: cost.USD(1)}}}); !errors.As(err, &invalid) {
		t.Errorf("a scope: %v", err)
	}
	now := time.Date(2026, 5, 5, 10, 0, 0, 0, time.UTC)
	s, err := cost.Share(store, []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.USD(1)}}}, cost.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := s.Lease(t.Context(), cost.Budget{USD: cost.USD(0.1)}, cost.WithLeaseID("run-\xff")); !errors.As(err, &invalid) {
		t.Errorf("a lease: %v", err)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			now = now.Add(time.Hour)
			b, err := s.Balances(t.Context())
			t.Log(b, err)
		}
	}
}

// Names of every other kind come back as they were.
func TestNamesThatAreKept(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	for _, name := range []string{"a\x00b", "a\x00c", " ", "\u2028<&>", "é", "e\u0301", "日本", "'; DROP TABLE holds; --", "\ufffd", "A", "a"} {
		now := time.Date(2026, 5, 5, 10, 0, 0, 0, time.UTC)
		s, err := cost.Share(store, []cost.Scope{{Name: name, Budget: cost.Budget{USD: cost.USD(1)}}}, cost.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Lease(t.Context(), cost.Budget{USD: cost.USD(0.1)}, cost.WithLeaseID(name))
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if b, err := s.Balances(t.Context()); err != nil || b[0].Held.USD != cost.Dollars(0.1) {
			t.Errorf("%q: %+v, %v", name, b, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		now = now.Add(time.Hour)
		if b, err := s.Balances(t.Context()); err != nil || b[0] != (cost.Balance{}) {
			t.Errorf("%q: %+v, %v", name, b, err)
		}
	}
}

// Prune forgets what is over, not what counts today, whatever it is asked.
func TestPruneOfTheFutureKeepsToday(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	s, err := cost.Share(store, []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.USD(0.05)}, Every: cost.Month}})
	if err != nil {
		t.Fatal(err)
	}
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	was, err := s.Balances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(t.Context(), time.Now().AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if is, err := s.Balances(t.Context()); err != nil || is[0] != was[0] || was[0].Spent.USD == 0 {
		t.Errorf("%+v became %+v, %v", was, is, err)
	}
}
