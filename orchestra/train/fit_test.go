package train_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// fitted trains on a generated log.
func fitted(t testing.TB, l *replay.Log, opts ...train.FitOption) *train.Weights {
	t.Helper()
	if racing {
		t.Skip("training is arithmetic, twenty times as slow under the race detector; the goroutines are tested in internal/fit")
	}
	w, err := train.Fit(t.Context(), l, append([]train.FitOption{train.WithEffort(0.05)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func written(t testing.TB, w *train.Weights) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read takes weights through their file, as users do.
func read(t testing.TB, w *train.Weights, opts ...policy.NetworkOption) *policy.Network {
	t.Helper()
	n, err := policy.ReadNetwork(bytes.NewReader(written(t, w)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sameDecisions runs rows through the orchestrator and compares whom it asks,
// what it answers and what that costs with the fast evaluator's.
func sameDecisions(t *testing.T, l *replay.Log, w *train.Weights, cards []policy.Card, rows int) {
	t.Helper()
	const worth = 0.02
	part := *l
	part.Rows = l.Rows[:min(rows, len(l.Rows))]
	// The file rounds weights, so that both sides read it.
	back, err := train.Read(bytes.NewReader(written(t, w)))
	if err != nil {
		t.Fatal(err)
	}
	curve, err := back.Replay(&part, []float64{worth}, cards)
	if err != nil {
		t.Fatal(err)
	}
	o, err := orchestra.New(orchestra.WithPolicy(read(t, w, policy.WithWorth(cost.Dollars(worth)), policy.WithCards(cards...))),
		orchestra.WithExperts(part.Experts()...), orchestra.WithBudget(cost.Budget{USD: cost.USD(10), Time: time.Hour, Failures: 20}))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for i := range part.Rows {
		want := curve.Runs[0][i]
		res, err := o.Run(t.Context(), orchestra.Task{ID: part.Rows[i].ID, Prompt: part.Rows[i].Query})
		if (err == nil) != (want.Answer != "") || res.Answer != want.Answer {
			t.Fatalf("row %s: answer %q, %v, want %q", part.Rows[i].ID, res.Answer, err, want.Answer)
		}
		var names []string
		for _, row := range res.Ledger {
			names = append(names, row.Name)
		}
		if len(names) != len(want.Asked) {
			t.Fatalf("row %s: asked %v, want %v", part.Rows[i].ID, names, want.Asked)
		}
		for k, m := range want.Asked {
			if names[k] != l.Models[m].Name {
				t.Fatalf("row %s: asked %v, want %v", part.Rows[i].ID, names, want.Asked)
			}
		}
		if d := res.Spent.USD.Dollars() - want.Cost; d > 1e-9 || d < -1e-9 {
			t.Fatalf("row %s: spent %v, want %v", part.Rows[i].ID, res.Spent.USD, want.Cost)
		}
		asked += len(names)
	}
	t.Logf("%d rows, %d calls", len(part.Rows), asked)
}

func TestOrchestratorDecidesAsTheEvaluator(t *testing.T) {
	l := generated(t, 800, 1)
	test := generated(t, 200, 2)
	t.Run("bound", func(t *testing.T) { sameDecisions(t, test, fitted(t, l, train.Bound()), nil, 200) })
	t.Run("by cards", func(t *testing.T) {
		w := fitted(t, l)
		sameDecisions(t, test, w, w.Cards(l, 50, 1), 200)
	})
}

func TestTrainingIsRepeatable(t *testing.T) {
	l := generated(t, 200, 1)
	for _, opts := range [][]train.FitOption{nil, {train.Bound()}} {
		a, b := written(t, fitted(t, l, opts...)), written(t, fitted(t, l, opts...))
		if !bytes.Equal(a, b) {
			t.Error("the same seed gave other weights")
		}
		if c := written(t, fitted(t, l, append(opts, train.WithSeed(2))...)); bytes.Equal(a, c) {
			t.Error("another seed gave the same weights")
		}
	}
}

func TestALearnedPolicyBeatsSingleModels(t *testing.T) {
	l, test := generated(t, 1000, 3), generated(t, 1000, 4)
	worths := replay.Worths(1e-6, 0.1, 20)
	singles := replay.Singles(test, nil)
	low, high := singles[replay.Cheapest(test)].Cost, singles[replay.Strongest(test)].Cost
	zero := replay.AUC(singles, low, high)
	for name, opts := range map[string][]train.FitOption{"bound": {train.Bound()}, "by cards": nil} {
		w := fitted(t, l, append(opts, train.WithEffort(0.1))...)
		var cards []policy.Card
		if opts == nil {
			cards = w.Cards(l, 50, 1)
		}
		c, err := w.Replay(test, worths, cards)
		if err != nil {
			t.Fatal(err)
		}
		auc := replay.AUC(c.Points(nil), low, high)
		t.Logf("%s: AUC %.3f, zero router %.3f", name, auc, zero)
		if auc < zero+0.05 {
			t.Errorf("%s: AUC %.3f is not above the zero router's %.3f by 0.05", name, auc, zero)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	l := generated(t, 200, 1)
	one := *l
	one.Models = l.Models[:1]
	few := *l
	few.Rows = l.Rows[:50]
	for name, c := range map[string]struct {
		l    *replay.Log
		opts []train.FitOption
	}{
		"no log":          {nil, nil},
		"few rows":        {&few, nil},
		"one model":       {&one, nil},
		"nil option":      {l, []train.FitOption{nil}},
		"no effort":       {l, []train.FitOption{train.WithEffort(0)}},
		"no calibration":  {l, []train.FitOption{train.WithCalibration(0)}},
		"negative effort": {l, []train.FitOption{train.WithEffort(-1)}},
	} {
		if _, err := train.Fit(t.Context(), c.l, c.opts...); !errors.Is(err, train.ErrTrain) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFitStopsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var stages []string
	_, err := train.Fit(ctx, generated(t, 300, 1), train.WithEffort(0.05), train.WithCheckpoint(func(stage string, w *train.Weights) error {
		stages = append(stages, stage)
		cancel(why)
		return nil
	}))
	if !errors.Is(err, why) || len(stages) != 1 {
		t.Errorf("%v after %v", err, stages)
	}
}

func TestCheckpointsAndProgress(t *testing.T) {
	var stages []string
	var last train.Progress
	w, err := train.Fit(t.Context(), generated(t, 300, 1), train.WithEffort(0.05),
		train.WithProgress(func(p train.Progress) {
			if p.Elapsed < last.Elapsed || p.Done > p.Of {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
		}),
		train.WithCheckpoint(func(stage string, w *train.Weights) error {
			stages = append(stages, stage)
			if stage == "values" { // a policy already
				read(t, w)
			}
			return nil
		}))
	if err != nil || len(stages) != 4 || stages[3] != "gradient" || last.Stage != "gradient" || last.Left != 0 {
		t.Errorf("%v, %v, %+v", err, stages, last)
	}
	if read(t, w).Facts()["rows"] != "300" {
		t.Error("the file does not say what it was learned from")
	}
	stop := errors.New("disk full")
	if _, err := train.Fit(t.Context(), generated(t, 300, 1), train.WithEffort(0.05), train.WithCheckpoint(func(string, *train.Weights) error { return stop })); !errors.Is(err, stop) {
		t.Error(err)
	}
}
