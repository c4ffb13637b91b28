package orchestra_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// workItem asks 5 times for the tool with the same arguments, then answers: six
// turns. It is the work item by which agent loops are compared.
func workItem() policy.Policy {
	args := json.RawMessage(`{"q":"x"}`)
	return decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if len(s.Turns) < 5 {
			return policy.Decision{Calls: []policy.Call{{Tool: "t", Args: args}}}, nil
		}
		return policy.Decision{Finish: &policy.Finish{Text: "done"}}, nil
	})
}

// workTools are the tools that the work item is measured with. They count their
// calls.
func workTools(ran *atomic.Int64) map[string]tools.Tool {
	type in struct {
		Q string `json:"q" desc:"the query"`
	}
	return map[string]tools.Tool{
		"raw": noop("t", ran),
		"typed": tools.Must(tools.New("t", "does nothing", func(_ context.Context, x in) (string, error) {
			ran.Add(1)
			return "ok", nil
		})),
	}
}

// BenchmarkRun measures a whole run of the work item. Divide by six for a turn.
func BenchmarkRun(b *testing.B) {
	var ran atomic.Int64
	for name, tool := range workTools(&ran) {
		b.Run(name, func(b *testing.B) {
			o := newOrchestra(b, orchestra.WithPolicy(workItem()), orchestra.WithTools(tool))
			ran.Store(0)
			b.ReportAllocs()
			for b.Loop() {
				if res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"}); err != nil || res.Answer != "done" {
					b.Fatal(res.Answer, err)
				}
			}
			if ran.Load() != 5*int64(b.N) {
				b.Fatalf("%d runs made %d calls", b.N, ran.Load())
			}
		})
	}
}

// BenchmarkRunMeter says what part of a run of the work item its meter takes, of
// medians, since other programs interrupt. "%reserved" is what keeps the budget:
// all that the run reserves and settles is reserved and settled once more after
// it, on a meter of its own. "%meter" is with the questions that the loop asks
// the meter for its policy and its events. What a policy, tool or model does
// would come on top of the run, and make the parts smaller.
func BenchmarkRunMeter(b *testing.B) {
	ctx := context.Background()
	var ran atomic.Int64
	for name, tool := range workTools(&ran) {
		b.Run(name, func(b *testing.B) {
			o := newOrchestra(b, orchestra.WithPolicy(workItem()), orchestra.WithTools(tool))
			var runs, reserved, meters []time.Duration
			for b.Loop() {
				start := time.Now()
				if res, err := o.Run(ctx, orchestra.Task{Prompt: "x"}); err != nil || res.Answer != "done" {
					b.Fatal(res.Answer, err)
				}
				ran := time.Now()
				if err := meterOfWorkItem(ctx, false); err != nil {
					b.Fatal(err)
				}
				kept := time.Now()
				if err := meterOfWorkItem(ctx, true); err != nil {
					b.Fatal(err)
				}
				runs, reserved, meters = append(runs, ran.Sub(start)), append(reserved, kept.Sub(ran)), append(meters, time.Since(kept))
			}
			median := func(ds []time.Duration) float64 {
				slices.Sort(ds)
				return float64(ds[len(ds)/2])
			}
			run := median(runs)
			b.ReportMetric(run, "run-ns/op")
			b.ReportMetric(100*median(reserved)/run, "%reserved")
			b.ReportMetric(100*median(meters)/run, "%meter")
		})
	}
}

// meterOfWorkItem does what a run of the work item has its meter do, with the
// questions or without.
func meterOfWorkItem(ctx context.Context, questions bool) error {
	m, err := cost.NewMeter("run", cost.Budget{}.WithDefaults())
	if err != nil {
		return err
	}
	limit := m.Left()
	reserve, err := m.Reserve(cost.Estimate{Name: "answer reserve", Priced: true})
	if err != nil {
		return err
	}
	one := cost.Estimate{Name: "t", Floor: cost.Spend{Calls: 1}, Worst: cost.Spend{Calls: 1, Tokens: cost.AnyTokens}, Priced: true}
	for turn := range 6 {
		if questions {
			if m.Left().USD > limit.USD || m.Spent().USD > 0 {
				return cost.ErrExceeded
			}
			if err := m.Check(one, nil); err != nil {
				return err
			}
		}
		if turn == 5 {
			break
		}
		h, err := m.Reserve(one)
		if err != nil {
			return err
		}
		c := h.Context(ctx)
		if questions && (c.Err() != nil || h.Granted().Calls != 1) {
			return cost.ErrExceeded
		}
		if h.Finish().USD > 0 {
			return cost.ErrExceeded
		}
	}
	reserve.Release()
	m.Close()
	return nil
}
