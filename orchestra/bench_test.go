package orchestra_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

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

// BenchmarkRun measures a whole run of the work item. Divide by six for a turn.
func BenchmarkRun(b *testing.B) {
	type in struct {
		Q string `json:"q" desc:"the query"`
	}
	var ran atomic.Int64
	for name, tool := range map[string]tools.Tool{
		"raw": noop("t", &ran),
		"typed": tools.Must(tools.New("t", "does nothing", func(_ context.Context, x in) (string, error) {
			ran.Add(1)
			return "ok", nil
		})),
	} {
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
