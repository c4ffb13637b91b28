package orchestra_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// A run takes no more GPU time than its budget has: a call is cut when its part
// is over, and an expert that does not fit is not offered.
func TestRunWithinItsGPUTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := cost.NewGPUs(2)
		if err != nil {
			t.Fatal(err)
		}
		slow := func(d time.Duration) models.Model {
			return models.OnGPUs(modeltest.Func(models.Info{Name: "local", Price: cost.Free(), MaxOutput: 100, MinOutput: 1}, func(ctx context.Context, r *models.Request) (*models.Response, error) {
				select {
				case <-time.After(d):
					return &models.Response{Text: "42", Finish: models.FinishStop, Usage: cost.Usage{Known: true}}, nil
				case <-ctx.Done():
					return nil, &models.Error{Model: "local", Sent: true, Err: context.Cause(ctx), Partial: &models.Response{Usage: cost.Usage{Known: true}}}
				}
			}), g)
		}
		for _, c := range []struct {
			name   string
			takes  time.Duration
			budget time.Duration
			answer bool
			spent  time.Duration
		}{
			{"it fits", 3 * time.Second, 10 * time.Second, true, 6 * time.Second},
			{"it is cut", time.Hour, 10 * time.Second, false, 10 * time.Second},
			{"not even the least fits", time.Second, time.Second, false, 0},
			{"it is not bounded", 200 * time.Second, 0, true, 400 * time.Second},
		} {
			o := newOrchestra(t, orchestra.WithExperts(slow(c.takes)))
			res, err := o.Run(t.Context(), orchestra.Task{Prompt: "what is it", Budget: cost.Budget{GPU: c.budget}})
			if c.name == "not even the least fits" && (!strings.Contains(err.Error(), "of GPU time") || strings.Contains(err.Error(), "$0")) {
				t.Errorf("the refusal speaks of another limit: %v", err)
			}
			if (err == nil) != c.answer || res.Spent.GPU != c.spent || res.Ledger.Total().GPU != c.spent {
				t.Errorf("%s: %q, %v, stop %s, spent %v, rows %v", c.name, res.Answer, err, res.Stop, res.Spent.GPU, res.Ledger.Total().GPU)
			}
		}
	})
}
