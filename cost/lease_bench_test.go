package cost_test

import (
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Within a lease, calls cost what they cost on any meter: the store is not asked.
func BenchmarkLeaseReserveSettle(b *testing.B) {
	s := shared(b, cost.NewMemory(), []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.NoLimit()}}})
	one := func(l *cost.Lease) {
		h, err := l.Meter().Reserve(est("m", 1, 9))
		if err == nil {
			_, err = h.Settle(used(3))
		}
		if err != nil {
			b.Error(err)
		}
	}
	get := func() *cost.Lease {
		l, err := s.Lease(b.Context(), cost.Budget{USD: cost.NoLimit()})
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		l := get()
		for n := 1; b.Loop(); n++ {
			if one(l); n%1000 == 0 {
				l.Meter().Drain()
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			l := get()
			for n := 1; pb.Next(); n++ {
				if one(l); n%1000 == 0 {
					l.Meter().Drain()
				}
			}
		})
	})
}

// A lease that is taken and given back, in memory.
func BenchmarkLease(b *testing.B) {
	b.ReportAllocs()
	s := shared(b, cost.NewMemory(), []cost.Scope{{Name: "t", Budget: cost.Budget{USD: cost.NoLimit()}, Every: cost.Day}})
	for b.Loop() {
		l, err := s.Lease(b.Context(), cost.Budget{USD: cost.Max(micro(9))})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
