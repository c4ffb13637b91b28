package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// A file behaves as memory does: the same leases are granted and refused, and
// the same is counted.
func TestSameAsMemory(t *testing.T) {
	now := time.Date(2026, 5, 5, 10, 0, 0, 0, time.UTC)
	clock := cost.WithClock(func() time.Time { return now })
	scopes := []cost.Scope{
		{Name: "t", Budget: cost.Budget{USD: cost.Max(50_000)}},
		{Name: "t", Budget: cost.Budget{USD: cost.Max(9000), Tokens: 50_000, GPU: 3000}, Every: cost.Hour},
	}
	file, memory := open(t, filepath.Join(t.TempDir(), "budget.db")), cost.NewMemory()
	var shared [2]*cost.Shared
	for i, s := range []cost.Store{memory, file} {
		var err error
		if shared[i], err = cost.Share(s, scopes, clock, cost.WithTTL(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	var open [][2]*cost.Lease
	both := func(f func(i int) string) {
		t.Helper()
		if a, b := f(0), f(1); a != b {
			t.Fatalf("memory: %s\nfile: %s", a, b)
		}
	}
	refused := 0
	for n := range 300 {
		ask, least := cost.Amount(r.Int64N(2000)), cost.Amount(r.Int64N(300))
		var pair [2]*cost.Lease
		both(func(i int) string {
			var err error
			pair[i], err = shared[i].Lease(t.Context(), cost.Budget{USD: cost.Max(ask), Tokens: 2000, GPU: 100}, cost.WithMinimum(least), cost.WithLeaseID(fmt.Sprint(n)))
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(pair[i].Granted())
		})
		if pair[0] == nil {
			refused++
		} else {
			open = append(open, pair)
		}
		if len(open) > 0 {
			k, usd, what := r.IntN(len(open)), cost.Amount(r.Int64N(400)), r.IntN(4)
			both(func(i int) string {
				h, err := open[k][i].Meter().Reserve(cost.Estimate{Name: "m", Worst: cost.Spend{USD: usd, Tokens: 100, GPU: 8}, Priced: true})
				if err == nil {
					_, err = h.Settle(cost.Usage{Input: 90, Output: 3, GPU: 5, Known: true, USD: &usd}, cost.Price{}, nil)
				}
				switch what {
				case 0, 1:
					err = errors.Join(err, open[k][i].Close())
				case 2:
					err = errors.Join(err, open[k][i].Renew(t.Context()))
				}
				return fmt.Sprint(err)
			})
			if what < 2 {
				open = append(open[:k], open[k+1:]...)
			}
		}
		if n%10 == 0 {
			now = now.Add(time.Duration(r.Int64N(int64(30*time.Minute))) - 10*time.Minute)
			both(func(i int) string { b, err := shared[i].Balances(t.Context()); return fmt.Sprint(b, err) })
		}
	}
	rows := ledger(t, file)
	if a, b := memory.Ledger().Total(), rows.Total(); a.USD != b.USD || a.Tokens != b.Tokens || a.Calls != b.Calls || a.GPU != b.GPU || a.USD == 0 {
		t.Errorf("rows of memory %+v, of the file %+v", a, b)
	}
	if refused == 0 || refused == 300 || !slices.ContainsFunc(rows, func(r cost.Row) bool { return r.Name == "lapsed lease" }) {
		t.Errorf("%d were refused", refused)
	}
}
