package orchestra_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// A call that was under way when its process died is charged the tokens and the
// GPU time that were held for it, not the money alone: its expert may be free.
func TestLostCallIsChargedTokensAndGPUTime(t *testing.T) {
	g, err := cost.NewGPUs(2)
	if err != nil {
		t.Fatal(err)
	}
	expert := models.OnGPUs(modeltest.Func(models.Info{Name: "free", Price: cost.Free(), MaxOutput: 1000}, func(context.Context, *models.Request) (*models.Response, error) {
		return &models.Response{Text: "42", Finish: models.FinishStop, Usage: cost.Usage{Input: 5, Output: 5, Known: true}}, nil
	}), g)
	o := newOrchestra(t, orchestra.WithPolicy(script(call("answer", `{"model":"answer-1"}`))), orchestra.WithExperts(expert))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{Tokens: 100_000, GPU: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	var cut []byte
	for line := range bytes.Lines(b.Bytes()) {
		cut = append(cut, line...)
		if bytes.Contains(line, []byte(`"called"`)) {
			break
		}
	}
	past, err := orchestra.ReadTrajectory(bytes.NewReader(cut))
	if err != nil {
		t.Fatal(err)
	}
	var held cost.Spend
	for e := range past.Events() {
		if c, ok := e.(orchestra.Called); ok {
			held = c.Held
		}
	}
	if held.Tokens == 0 || held.GPU == 0 {
		t.Fatalf("%+v of\n%s", held, cut)
	}
	res, _ = o.Resume(context.Background(), past).Result()
	if s := res.Spent; s.Tokens < held.Tokens || s.GPU < held.GPU || res.Ledger.Total().Tokens != s.Tokens || res.Ledger.Total().GPU != s.GPU {
		t.Errorf("%+v, and %+v was held", s, held)
	}
}
