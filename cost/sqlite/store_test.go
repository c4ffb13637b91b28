package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/cost/sqlite"
)

func open(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// use takes a lease, spends a cent of it and closes it.
func use(s *cost.Shared) error {
	l, err := s.Lease(context.Background(), cost.Budget{USD: cost.USD(0.02)})
	if err != nil {
		return err
	}
	h, err := l.Meter().Reserve(cost.Estimate{Name: "m", Worst: cost.Spend{USD: cost.Dollars(0.01)}, Priced: true})
	if err != nil {
		return err
	}
	if _, err := h.Settle(cost.Usage{}, cost.Price{}, nil); err != nil {
		return err
	}
	return l.Close()
}

func spent(t testing.TB, s *cost.Shared) cost.Amount {
	t.Helper()
	b, err := s.Balances(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return b[0].Spent.USD
}

// A restart forgets nothing, and finds the hold of a lease that was open.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%c?d#e.db") // any name will do
	first := open(t, path)
	if err := use(share(first, cost.Dollars(1))); err != nil {
		t.Fatal(err)
	}
	if _, err := share(first, cost.Dollars(1)).Lease(t.Context(), cost.Budget{USD: cost.USD(0.5)}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	second := share(open(t, path), cost.Dollars(1))
	b, err := second.Balances(t.Context())
	if err != nil || b[0].Spent.USD != cost.Dollars(0.01) || b[0].Held.USD != cost.Dollars(0.5) {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := second.Lease(t.Context(), cost.Budget{USD: cost.USD(0.5)}); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
}

// A file that is unusable is refused, with the reason, and left as it is.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := func(name, query string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newer := filepath.Join(dir, "newer")
	if err := open(t, newer).Exec(`PRAGMA user_version=3`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, fix string }{
		{"no path", "", "give the path"},
		{"memory", ":memory:", "NewMemory"},
		{"no folder", filepath.Join(dir, "no", "such", "folder"), "folder must exist"},
		{"folder", dir, "folder must exist"},
		{"text", write("text", strings.Repeat("not a database at all\n", 1000)), "damaged"},
		{"another program's", foreign("foreign", `CREATE TABLE accounts (a)`), "another path"},
		{"a newer version's", newer, "another path"},
	} {
		s, err := sqlite.Open(c.path)
		var e *cost.StoreError
		if !errors.As(err, &e) || !strings.Contains(e.Fix, c.fix) || !errors.Is(err, cost.ErrStore) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "text")); err != nil || !strings.HasPrefix(string(text), "not a database") {
		t.Error("a foreign file was changed", err)
	}
}

// While the file cannot be written, nothing is admitted; when it can again,
// nothing was lost.
func TestStoreThatCannotWrite(t *testing.T) {
	for _, c := range []struct{ name, on, off, fix string }{
		{"read-only", `PRAGMA query_only=1`, `PRAGMA query_only=0`, "writable"},
		{"full", `PRAGMA max_page_count=1`, `PRAGMA max_page_count=1000000`, "free space"},
		{"without tables", `ALTER TABLE holds RENAME TO x`, `ALTER TABLE x RENAME TO holds`, ""},
		{"negative", `UPDATE accounts SET usd = usd - 1000000000000`, `UPDATE accounts SET usd = usd + 1000000000000`, "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := open(t, filepath.Join(t.TempDir(), "budget.db"))
			s := share(store, cost.Dollars(1))
			if err := use(s); err != nil {
				t.Fatal(err)
			}
			l, err := s.Lease(t.Context(), cost.Budget{USD: cost.USD(0.1)})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Exec(c.on); err != nil {
				t.Fatal(err)
			}
			var e *cost.StoreError
			for i := 0; ; i++ { // a file that is full has some room left in its last pages
				if err := use(s); errors.As(err, &e) {
					if !strings.Contains(e.Fix, c.fix) {
						t.Error(err)
					}
					break
				} else if err != nil || i == 50 {
					t.Fatalf("after %d leases: %v", i, err)
				}
			}
			if c.name != "full" {
				if err := l.Close(); !errors.Is(err, cost.ErrStore) {
					t.Error(err)
				}
			}
			if err := store.Exec(c.off); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if rows := ledger(t, store).Total().USD; rows != spent(t, s) {
				t.Errorf("rows %v, spent %v", rows, spent(t, s))
			}
		})
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.db")
	store, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := share(store, cost.Dollars(1))
	for range 20 {
		if err := use(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil { // what was logged is in the file now
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(text[4096:], bytes.Repeat([]byte{0xa5}, len(text)-4096))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err = sqlite.Open(path)
	if err == nil {
		defer store.Close()
		err = use(share(store, cost.Dollars(1)))
	}
	var e *cost.StoreError
	if !errors.As(err, &e) || !strings.Contains(e.Fix, "damaged") {
		t.Error(err)
	}
}

// Holds that are no JSON are refused, as is a row.
func TestDamagedRecords(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	s := share(store, cost.Dollars(1))
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	if err := store.Exec(`UPDATE ledger SET entry = '{'; UPDATE holds SET hold = '{', state = 0, due_from = 0`); err != nil {
		t.Fatal(err)
	}
	if err := use(s); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
	n := 0
	for _, err := range store.Ledger(t.Context()) {
		if n++; !errors.Is(err, cost.ErrStore) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.db")
	one, two := open(t, path), open(t, path, sqlite.WithBusyTimeout(10*time.Millisecond))
	s := share(two, cost.Dollars(1))
	err := one.Update(t.Context(), func(cost.Tx) error {
		err := use(s)
		var e *cost.StoreError
		if !errors.As(err, &e) || !strings.Contains(e.Fix, "locked") {
			t.Error(err)
		}
		// Whoever waits for this process's own turn can be cancelled.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := share(one, 1).Balances(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := use(s); err != nil {
		t.Error(err)
	}
}

// Closed, the store admits nothing.
func TestClosedStore(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := use(share(store, cost.Dollars(1))); !errors.Is(err, cost.ErrStore) {
		t.Error(err)
	}
}

// The ledger is read in parts, which a consumer may leave.
func TestLedgerInParts(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	err := store.Update(t.Context(), func(tx cost.Tx) error {
		for i := range 1201 {
			if err := tx.PutRow(fmt.Sprint("lease-", i%3), i, cost.Row{ID: fmt.Sprint(i), USD: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range ledger(t, store) {
		seen[r.ID] = true
	}
	if len(seen) != 1201 {
		t.Errorf("%d rows", len(seen))
	}
	n := 0
	for range store.Ledger(t.Context()) {
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range store.Ledger(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := use(share(store, cost.Dollars(1))); err != nil {
		t.Error("reading has left a lock:", err)
	}
}

// Prune forgets what is over, and nothing that still counts.
func TestPrune(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "budget.db"))
	now := time.Date(2026, 5, 5, 10, 0, 0, 0, time.UTC)
	s, err := cost.Share(store, []cost.Scope{{Name: "t"}, {Name: "t", Every: cost.Day}}, cost.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	old, err := s.Lease(t.Context(), cost.Budget{USD: cost.USD(0.01)})
	if err != nil {
		t.Fatal(err)
	}
	begin := now
	now = now.AddDate(0, 3, 0)
	if err := old.Renew(t.Context()); err != nil { // still open
		t.Fatal(err)
	}
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	if err := store.Prune(t.Context(), now.AddDate(0, -1, 0)); err != nil {
		t.Fatal(err)
	}
	b, err := s.Balances(t.Context())
	if err != nil || b[0].Spent.USD != cost.Dollars(0.02) || b[0].Held.USD != cost.Dollars(0.01) || b[1].Spent.USD != cost.Dollars(0.01) {
		t.Errorf("%+v, %v", b, err)
	}
	if rows := ledger(t, store); len(rows) != 1 {
		t.Errorf("%+v", rows)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	now = begin
	if b, err = s.Balances(t.Context()); err != nil || b[1] != (cost.Balance{}) {
		t.Errorf("the old window is kept: %+v, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Prune(ctx, now); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
