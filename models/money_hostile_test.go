package models_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Servers that state their counts from the first chunk on have not stated those
// of a stream that the caller ended.
func TestCancelledStreamIsChargedForWhatCame(t *testing.T) {
	ctx, m := withMeter(t, cost.Budget{USD: cost.USD(1)})
	ctx, cancel := context.WithCancel(ctx)
	_, err := models.Metered(fn{info, func(ctx context.Context, r *models.Request) (*models.Response, error) {
		cancel()
		return nil, &models.Error{Sent: true, Err: context.Cause(ctx), Partial: &models.Response{Text: strings.Repeat("word", 20), Usage: cost.Usage{Input: 50, Output: 1, Known: true}}}
	}}).Generate(ctx, ask("x"))
	row := m.Ledger()[0]
	if !errors.Is(err, context.Canceled) || row.Usage.Output != 20 || row.Basis != cost.Estimated || row.USD != cost.Dollars(250e-6) {
		t.Errorf("%v, %+v", err, row)
	}
}

// A request that may fall into a tier without a price has no known price.
func TestTierWithoutRateIsUnpriced(t *testing.T) {
	i := info
	i.Price.Over = &cost.Tier{Above: 1000, Price: cost.Price{Input: cost.Per(2)}}
	m := models.Metered(fn{i, func(_ context.Context, r *models.Request) (*models.Response, error) {
		return &models.Response{Text: "x", Usage: cost.Usage{Input: 2000, Output: 100, Known: true}}, nil
	}})
	ctx, meter := withMeter(t, cost.Budget{})
	if _, err := m.Generate(ctx, ask(strings.Repeat("x", 2000))); !errors.Is(err, cost.ErrUnpriced) {
		t.Errorf("%v, %+v", err, meter.Spent())
	}
	if e := models.Estimate(m, ask("x")); !e.Priced {
		t.Error("a small request has a price")
	}
}

// A request that cannot be meant is refused, and costs nothing.
func TestMeteredRefusesWhatCannotBeMeant(t *testing.T) {
	called := false
	m := fn{info, func(context.Context, *models.Request) (*models.Response, error) {
		called = true
		return &models.Response{}, nil
	}}
	for name, x := range map[string]models.Model{"metered": models.Metered(m), "retry": models.Retry(models.Metered(m), models.RetryPolicy{}), "fallback": models.Fallback(models.Metered(m), models.Metered(m))} {
		for _, r := range []*models.Request{nil, {}, {Prompt: "x", MaxOutput: -1}} {
			ctx, meter := withMeter(t, cost.Budget{})
			if _, err := x.Generate(ctx, r); !errors.Is(err, models.ErrInvalidRequest) || called || len(meter.Ledger()) != 0 {
				t.Errorf("%s: %v, %d rows", name, err, len(meter.Ledger()))
			}
		}
	}
}

type counts struct {
	fn
	n int64
}

func (c counts) CountTokens(*models.Request) (int64, bool) { return c.n, true }

// Counts that no text has are not believed: what is reserved covers the bytes.
func TestImpossibleCountsAreNotBelieved(t *testing.T) {
	text := strings.Repeat("x", 4000)
	want := models.Estimate(fn{info: info}, ask(text)).Worst
	for _, n := range []int64{-1000, math.MinInt64} {
		if e := models.Estimate(counts{fn{info: info}, n}, ask(text)); e.Worst != want {
			t.Errorf("%d: %+v", n, e.Worst)
		}
	}
}
