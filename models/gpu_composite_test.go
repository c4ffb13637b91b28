package models_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// A composite reserves the GPU time of all attempts, so that a later one is not
// refused inside the hold of the call.
func TestCompositesReserveGPUTime(t *testing.T) {
	remote := fn{info, func(context.Context, *models.Request) (*models.Response, error) {
		return nil, &models.Error{Status: 503, Retryable: true}
	}}
	g := gpus(t, 2)
	self := models.OnGPUs(takes(0, cost.Usage{Known: true}), g)
	one := 2 * models.MaxWall
	pool, err := models.Pool([]models.Model{remote, self}, models.PoolPolicy{Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m    models.Model
		want time.Duration
	}{
		"retry":    {models.Retry(self, models.RetryPolicy{Attempts: 3}), 3 * one},
		"fallback": {models.Fallback(remote, self), one},
		"pool":     {pool, 2 * one},
	} {
		m := models.Metered(c.m)
		if e := models.Estimate(m, ask("x")); e.Worst.GPU != c.want {
			t.Errorf("%s: %v, want %v", name, e.Worst.GPU, c.want)
		}
		_, meter := withMeter(t, cost.Budget{USD: cost.USD(1), GPU: time.Minute})
		hold, err := meter.Reserve(models.Estimate(m, ask("x")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(cost.NewContext(t.Context(), hold.Meter()), ask("x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
