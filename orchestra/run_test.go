package orchestra_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// The whole way as a user goes it: an expert, a budget, an answer, a bill.
func TestRunAnswersAndBills(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", "It is <answer>42</answer>.", cost.Tokens(1, 10))))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "What is six times seven?"})
	if err != nil {
		t.Fatal(err)
	}
	if res.Answer != "42" || res.Stop != orchestra.Answered {
		t.Errorf("answer %q, stop %q", res.Answer, res.Stop)
	}
	want := cost.Dollars(100e-6 + 200e-6)
	if res.Spent.USD != want || res.Ledger.Total().USD != want || len(res.Ledger) != 1 {
		t.Errorf("spent %v, ledger %+v, want %v", res.Spent.USD, res.Ledger, want)
	}
	if r := res.Ledger[0]; r.Name != "mini" || r.Basis != cost.Measured || r.Call == "" {
		t.Errorf("row %+v", r)
	}
}

func TestTrajectoryIsTheRun(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))), orchestra.WithTools(noop("t", nil)))
	res, err := o.Run(context.Background(), orchestra.Task{ID: "r1", Prompt: "What?", Meta: map[string]string{"k": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	file := b.String()
	unknown := `{"event":"blessed","by":"a later version"}`
	lines := strings.SplitAfter(file, "\n")
	withUnknown := lines[0] + unknown + "\n" + strings.Join(lines[1:], "")
	back, err := orchestra.ReadTrajectory(strings.NewReader(withUnknown))
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if _, err := back.WriteTo(&b); err != nil || b.String() != withUnknown {
		t.Errorf("round trip changed the file (%v):\n%s\n%s", err, withUnknown, b.String())
	}
	got := back.Result()
	if got.Answer != res.Answer || got.Spent != res.Spent || got.Stop != res.Stop || len(got.Ledger) != len(res.Ledger) || got.Ledger.Total().USD != res.Spent.USD {
		t.Errorf("read back %+v, want %+v", got, res)
	}
	if n := len(back.Turns()); n != len(res.Trajectory.Turns()) || n == 0 || back.Task().Meta["k"] != "v" {
		t.Errorf("%d turns, task %+v", n, back.Task())
	}
	if _, err := orchestra.ReadTrajectory(strings.NewReader(strings.Replace(file, "trajectory/1", "trajectory/2", 1))); !errors.Is(err, orchestra.ErrSchema) {
		t.Errorf("later major: %v", err)
	}
	torn, err := orchestra.ReadTrajectory(strings.NewReader(file[:len(file)-20]))
	var line *orchestra.LineError
	if !errors.As(err, &line) || len(torn.Turns()) == 0 {
		t.Errorf("torn tail: %v, %d turns", err, len(torn.Turns()))
	}
}

func FuzzReadTrajectory(f *testing.F) {
	o := newOrchestra(f, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))))
	res, err := o.Run(context.Background(), orchestra.Task{ID: "r", Prompt: "x"})
	if err != nil {
		f.Fatal(err)
	}
	var b strings.Builder
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"event":"started","schema":"toolorchestra.trajectory/1"}` + "\n" + `{"event":"new","x":[1]}`)
	f.Add(`{"event":"started","schema":"toolorchestra.trajectory/9"}`)
	f.Fuzz(func(t *testing.T, s string) {
		tr, err := orchestra.ReadTrajectory(strings.NewReader(s))
		tr.Result() // whatever was read can be used
		tr.Turns()
		var line *orchestra.LineError
		if err != nil {
			if !errors.As(err, &line) || line.Line < 1 {
				t.Fatal(err)
			}
			return
		}
		var b strings.Builder
		if _, err := tr.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := orchestra.ReadTrajectory(strings.NewReader(b.String())); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func TestStreamConsumerLeaves(t *testing.T) {
	var ran atomic.Int64
	o := newOrchestra(t, orchestra.WithPolicy(script(call("t", "{}"), call("t", "{}"), call("t", "{}"))), orchestra.WithTools(noop("t", &ran)),
		orchestra.WithExperts(expert("mini", "x", cost.Tokens(1, 1))))
	s := o.Stream(context.Background(), orchestra.Task{Prompt: "x"})
	n := 0
	for e := range s.Events() {
		if _, ok := e.(orchestra.Returned); ok {
			if n++; n == 2 {
				break
			}
		}
	}
	res, err := s.Result()
	if res.Stop != orchestra.Canceled || !errors.Is(err, context.Canceled) || !errors.Is(err, orchestra.ErrNoAnswer) {
		t.Errorf("stop %q, err %v", res.Stop, err)
	}
	if ran.Load() != 2 || len(res.Trajectory.Turns()) != 2 {
		t.Errorf("%d calls, %d turns", ran.Load(), len(res.Trajectory.Turns()))
	}
}

func TestStreamDeltas(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))))
	var text strings.Builder
	for e := range o.Stream(context.Background(), orchestra.Task{Prompt: "x"}).Events() {
		if d, ok := e.(orchestra.Delta); ok {
			text.WriteString(d.Text)
		}
	}
	if text.String() != "<answer>42</answer>" {
		t.Errorf("streamed %q", text.String())
	}
}

func TestWriterWritesArguments(t *testing.T) {
	type in struct {
		City string `json:"city" validate:"required" desc:"name of the city"`
	}
	var got string
	weather := tools.Must(tools.New("weather", "Weather of a city today.", func(_ context.Context, x in) (string, error) {
		got = x.City
		return "rain in " + x.City, nil
	}, tools.WithEffects(tools.ReadOnly)))
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", `{"city": "Bergen"}`, cost.Tokens(1, 10))), orchestra.WithTools(weather))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "Weather in the city of Bergen today?"})
	if err != nil || got != "Bergen" {
		t.Fatalf("weather was asked for %q: %v\n%+v", got, err, res.Trajectory.Turns())
	}
	if res.Spent.USD != res.Ledger.Total().USD || len(res.Ledger) != 2 {
		t.Errorf("ledger %+v", res.Ledger)
	}
}
