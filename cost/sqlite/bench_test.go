package sqlite_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// What a shared budget in a file adds to a run: a lease, and its end with one
// row.
func BenchmarkLease(b *testing.B) {
	s := share(open(b, filepath.Join(b.TempDir(), "budget.db")), cost.MaxAmount-1)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := use(s); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
