package train_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// recorded opens the recorded answers of eleven models to MMLU-Pro, where they
// are at hand.
func recorded(t testing.TB) (fit, val *replay.Log) {
	t.Helper()
	if racing {
		t.Skip("arithmetic over thousands of rows, twenty times as slow under the race detector")
	}
	dir := os.Getenv("TOOLORCHESTRA_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, "mmlupro")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recorded answers: set TOOLORCHESTRA_DATA to a folder with mmlupro/models.json, train.jsonl.gz and val.jsonl.gz")
	}
	fit, err := replay.Open(filepath.Join(dir, "models.json"), filepath.Join(dir, "train.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if val, err = replay.Open(filepath.Join(dir, "models.json"), filepath.Join(dir, "val.jsonl.gz")); err != nil {
		t.Fatal(err)
	}
	return fit, val
}

// long skips tests that train for minutes, unless TRAIN_FULL is set.
func long(t testing.TB) {
	t.Helper()
	if os.Getenv("TRAIN_FULL") == "" {
		t.Skip("trains for minutes: set TRAIN_FULL=1, and -timeout 1h")
	}
}

// worths are the settings that curves are measured over.
func worths() []float64 { return replay.Worths(1e-5, 0.5, 48) }

// figures are what is claimed of a curve.
type figures struct{ auc, zero, single, top, topCost, at90, at100, at115, save float64 }

func (f figures) String() string {
	return fmt.Sprintf("AUC %.4f (zero router %+.4f), best %.4f (single %+.4f) at %.2f; at 0.90 %+.4f, 1.00 %+.4f, 1.15 %+.4f; CostSave %.2f",
		f.auc, f.auc-f.zero, f.top, f.top-f.single, f.topCost, f.at90-f.single, f.at100-f.single, f.at115-f.single, f.save)
}

// measure scores a curve; an index counts rows as often as it lists them.
func measure(l *replay.Log, c *replay.Curve, index []int) figures {
	singles := replay.Singles(l, index)
	low, best := singles[replay.Cheapest(l)], singles[replay.Strongest(l)]
	high := best.Cost
	if high <= low.Cost { // the strongest is the cheapest: up to the dearest then
		for _, p := range singles {
			high = max(high, p.Cost)
		}
	}
	ps := c.Points(index)
	h := replay.Hull(ps)
	f := figures{auc: replay.AUC(ps, low.Cost, high), zero: replay.AUC(singles, low.Cost, high), single: best.Accuracy,
		at90: replay.At(h, .9*best.Cost), at100: replay.At(h, best.Cost), at115: replay.At(h, 1.15*best.Cost)}
	f.top, f.topCost = replay.Top(h).Accuracy, replay.Top(h).Cost/best.Cost
	if c, ok := replay.CostTo(h, best.Accuracy); ok {
		f.save = 1 - c/best.Cost
	} else {
		f.save = math.Inf(-1)
	}
	return f
}

// mean of several figures.
func mean(fs []figures) (m figures) {
	n := float64(len(fs))
	for _, f := range fs {
		m.auc, m.zero, m.single, m.top, m.topCost = m.auc+f.auc/n, m.zero+f.zero/n, m.single+f.single/n, m.top+f.top/n, m.topCost+f.topCost/n
		m.at90, m.at100, m.at115, m.save = m.at90+f.at90/n, m.at100+f.at100/n, m.at115+f.at115/n, m.save+f.save/n
	}
	return m
}

func play(t testing.TB, w *train.Weights, l *replay.Log, cards []policy.Card) *replay.Curve {
	t.Helper()
	c, err := w.Replay(l, worths(), cards)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// learn trains and says how long it took.
func learn(t testing.TB, l *replay.Log, opts ...train.FitOption) *train.Weights {
	t.Helper()
	begin := time.Now()
	w, err := train.Fit(t.Context(), l, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("trained in %v", time.Since(begin).Round(time.Second))
	return w
}

// keep writes weights into the folder TRAIN_KEEP, if that is set, and checks the
// size of the file.
func keep(t testing.TB, name string, w *train.Weights) {
	t.Helper()
	b := written(t, w)
	t.Logf("%s: %d bytes", name, len(b))
	if len(b) > 600_000 {
		t.Errorf("the file has %d bytes, and 600,000 are allowed", len(b))
	}
	if dir := os.Getenv("TRAIN_KEEP"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// kept returns weights of an earlier run out of TRAIN_KEEP, or trains.
func kept(t testing.TB, name string, l *replay.Log, opts ...train.FitOption) *train.Weights {
	t.Helper()
	if f, err := os.Open(filepath.Join(os.Getenv("TRAIN_KEEP"), name)); err == nil && os.Getenv("TRAIN_KEEP") != "" {
		defer f.Close()
		if w, err := train.Read(f); err == nil {
			return w
		}
	}
	w := learn(t, l, opts...)
	keep(t, name, w)
	return w
}
