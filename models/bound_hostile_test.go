package models_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func randomPrice(r *rand.Rand, tiers int) (p cost.Price) {
	some := func(most float64) cost.Rate {
		if r.IntN(2) == 0 {
			return cost.Rate{}
		}
		return cost.Per(float64(r.IntN(1000)) * most / 1000)
	}
	p = cost.Price{Input: cost.Per(float64(r.IntN(1000)) / 10), Output: cost.Per(float64(r.IntN(1000)) / 10),
		CacheRead: some(100), CacheWrite: some(100), CacheWrite1h: some(200), Reasoning: some(300), Citation: some(50),
		InputMedia: cost.MediaRates{Audio: some(200), Image: some(100)}, OutputMedia: cost.MediaRates{Audio: some(400)},
		Request: some(0.01), Second: some(0.001), GPUHour: some(5)}
	if tiers > 0 && r.IntN(2) == 0 {
		p.Over = &cost.Tier{Above: int64(r.IntN(300) + 1), Price: randomPrice(r, 0)}
	}
	return p
}

// A server that keeps its word about the output cap, and no other, is never
// charged more than was held, whatever it says that the tokens were, which tier
// served them and how long it took.
func TestNoUsageWithinTheCapIsOver(t *testing.T) {
	rows := 0
	for seed := range uint64(3000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			i := models.Info{Name: "m", Price: randomPrice(r, 1), MaxOutput: 1 + r.IntN(2000), MinOutput: 1 + r.IntN(100), Latency: time.Duration(r.IntN(3000)) * time.Millisecond}
			for _, s := range []**cost.Price{&i.Price.Batch, &i.Price.Flex, &i.Price.Priority} {
				if r.IntN(2) == 0 {
					p := randomPrice(r, 1)
					*s = &p
				}
			}
			var m models.Model = fn{i, func(ctx context.Context, q *models.Request) (*models.Response, error) {
				if r.IntN(2) == 0 {
					time.Sleep(time.Duration(r.IntN(60)) * time.Second)
				} else if d, ok := ctx.Deadline(); ok {
					time.Sleep(time.Until(d) + time.Duration(r.IntN(3))*time.Second)
				}
				most := int64(len(q.Messages[0].Text)) + 80
				in, out := r.Int64N(most+1), r.Int64N(int64(q.MaxOutput)+1)
				if r.IntN(2) == 0 {
					in, out = most, int64(q.MaxOutput)
				}
				part := func() int64 { return r.Int64N(most) }
				u := cost.Usage{Input: in, Output: out, Reasoning: part(), Citations: part(), Known: true, Service: []string{"", "batch", "FLEX", "priority", "x"}[r.IntN(5)]}
				u.CacheRead = r.Int64N(in + 1)
				u.CacheWrite = r.Int64N(in - u.CacheRead + 1)
				u.CacheWrite1h = r.Int64N(in - u.CacheRead - u.CacheWrite + 1)
				u.InputMedia, u.CacheMedia, u.OutputMedia = cost.Media{Audio: part(), Image: part(), Video: part()}, cost.Media{Audio: part(), Image: part()}, cost.Media{Audio: part(), Video: part()}
				return &models.Response{Text: "x", Usage: u}, nil
			}}
			b := cost.Budget{USD: cost.Max(cost.Amount(r.Int64N(2e11))), Tokens: int64(r.IntN(2)) * r.Int64N(5000), GPU: time.Duration(r.IntN(2)) * time.Duration(r.Int64N(int64(time.Hour)))}
			if r.IntN(2) == 0 {
				g, err := cost.NewGPUs(1 + r.IntN(8))
				if err != nil {
					t.Fatal(err)
				}
				m = models.OnGPUs(m, g)
			}
			ctx, meter := withMeter(t, b)
			for range 3 {
				_, err := models.Metered(m).Generate(ctx, ask(string(make([]byte, r.IntN(600)))))
				if err != nil && !errors.Is(err, cost.ErrExceeded) {
					t.Fatal(seed, err)
				}
			}
			limit, _ := b.USD.Amount()
			spent := meter.Spent()
			for _, row := range meter.Ledger() {
				rows++
				if row.Over != 0 && row.Basis != cost.Unpriced || row.OverTokens != 0 || row.OverGPU != 0 {
					t.Errorf("seed %d: %+v of %+v", seed, row, i.Price)
				}
			}
			if total := meter.Ledger().Total(); spent.USD > limit || total.USD != spent.USD || total.Tokens != spent.Tokens || total.GPU != spent.GPU || b.Tokens > 0 && spent.Tokens > b.Tokens || b.GPU > 0 && spent.GPU > b.GPU {
				t.Errorf("seed %d: %+v of %+v, and the rows sum up to %+v", seed, spent, b, total)
			}
		})
		if t.Failed() {
			return
		}
	}
	if rows < 1000 {
		t.Errorf("%d rows say little", rows)
	}
}
