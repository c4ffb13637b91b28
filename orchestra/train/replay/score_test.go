package replay_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	m "github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func ExampleHull() {
	ps := []replay.Point{{1, .5}, {2, .4}, {2, .6}, {3, .9}, {4, .8}, {5, 1}}
	h := replay.Hull(ps)
	fmt.Println(h, replay.At(h, 2), replay.Top(h))
	c, ok := replay.CostTo(h, .7)
	fmt.Printf("%.2f %v\n", c, ok)
	fmt.Printf("%.3f\n", replay.AUC(ps, 1, 5))
	// Output:
	// [{1 0.5} {3 0.9} {5 1}] 0.7 {5 1}
	// 2.00 true
	// 0.825
}

// The hull is checked against its definition: at every cost the best mixture of
// two points that costs no more.
func TestHullIsTheBestMixture(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var ps []replay.Point
		for range 1 + rng.IntN(8) {
			ps = append(ps, replay.Point{Cost: float64(rng.IntN(6)), Accuracy: float64(rng.IntN(6)) / 5})
		}
		h := replay.Hull(ps)
		for c := 0.0; c <= 6; c += 0.25 {
			best := 0.0
			for _, a := range ps {
				for _, b := range ps {
					switch {
					case a.Cost <= c:
						best = max(best, a.Accuracy)
						if b.Cost > c {
							best = max(best, a.Accuracy+(b.Accuracy-a.Accuracy)*(c-a.Cost)/(b.Cost-a.Cost))
						}
					}
				}
			}
			if got := replay.At(h, c); math.Abs(got-best) > 1e-9 {
				t.Fatalf("%v: %v at %v, want %v", ps, got, c, best)
			}
		}
	}
}

func TestAUCOfDegenerateCurves(t *testing.T) {
	if a := replay.AUC([]replay.Point{{1, .5}}, 0, 2); a != .25 {
		t.Errorf("half of the costs cannot be had at all: %v", a)
	}
	if replay.AUC([]replay.Point{{3, 1}}, 0, 2) != 0 || replay.AUC(nil, 0, 1) != 0 || replay.AUC([]replay.Point{{1, 1}}, 2, 1) != 0 {
		t.Error("nothing has an area")
	}
	if a := replay.AUC([]replay.Point{{0, .5}}, 0, 2); a != .5 {
		t.Error(a)
	}
	if _, ok := replay.CostTo(replay.Hull([]replay.Point{{1, .5}}), .6); ok {
		t.Error("an accuracy that is never reached has a cost")
	}
	if replay.Top(nil) != (replay.Point{}) {
		t.Error("nothing has a top")
	}
}

func TestBootstrapHoldsTheMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	inside := 0
	for seed := range uint64(200) {
		right := make([]float64, 200)
		for i := range right {
			if rng.Float64() < .6 {
				right[i] = 1
			}
		}
		v := replay.Bootstrap(len(right), 400, seed, func(index []int) float64 {
			sum := 0.0
			for _, i := range index {
				sum += right[i]
			}
			return sum / float64(len(index))
		})
		if v.Low > v.Mean || v.High < v.Mean || v.High-v.Low > .2 {
			t.Fatalf("%+v", v)
		}
		if v.Low <= .6 && .6 <= v.High {
			inside++
		}
	}
	if inside < 180 || inside > 199 {
		t.Errorf("%d of 200 intervals of 95 %% hold the true mean", inside)
	}
	if a, b := replay.Bootstrap(5, 10, 1, sum), replay.Bootstrap(5, 10, 1, sum); a != b {
		t.Error("the same seed draws other rows")
	}
}

func sum(index []int) (s float64) {
	for _, i := range index {
		s += float64(i)
	}
	return s
}

// world is a log where the words tell which model is right.
func world(t *testing.T, rows int, seed uint64) *replay.Log {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	l := &replay.Log{Models: models(t)}
	for i := range rows {
		kind := rng.IntN(2)
		r := replay.Row{Category: []string{"prose", "sums"}[kind], Answer: "A", In: 100}
		r.Query = fmt.Sprintf("%s %d\nOptions: (A) x (B) y (C) z", []string{"write a letter of thanks", "add the numbers of apples"}[kind], i)
		for _, p := range []float64{.9, []float64{.3, .9}[kind]} {
			a := []string{"A", "B", "C", "B"}[rng.IntN(4)]
			if rng.Float64() < p {
				a = "A"
			}
			r.Replies = append(r.Replies, replay.Reply{Answer: a, Right: a == "A", Out: 50})
		}
		l.Rows = append(l.Rows, r)
	}
	return l
}

func TestBaselines(t *testing.T) {
	fit, test := world(t, 600, 1), world(t, 600, 2)
	worths := replay.Worths(1e-6, 1, 24)
	singles := replay.Singles(test, nil)
	if replay.Strongest(test) != 0 || replay.Cheapest(test) != 1 {
		t.Fatal(singles)
	}
	low, high := singles[1].Cost, singles[0].Cost
	auc := func(c *replay.Curve) float64 { return replay.AUC(c.Points(nil), low, high) }
	zero := replay.AUC(singles, low, high)
	oracle := auc(replay.Oracle(test, worths))
	for _, c := range []*replay.Curve{
		replay.Logistic(fit, test, worths, 1), replay.Nearest(fit, test, worths, 20), replay.NaiveBayes(fit, test, worths),
	} {
		if a := auc(c); a < zero+.02 || a > oracle {
			t.Errorf("%s: %.3f; the zero router has %.3f, the oracle %.3f", c.Name, a, zero, oracle)
		}
	}
	cheap := replay.CheapFirst(fit, test)
	if len(cheap.Runs) != 2 || len(cheap.Runs[1][0].Asked) != 1 || len(cheap.Runs[0][0].Asked) != 2 {
		t.Errorf("%d settings, the first asks %v", len(cheap.Runs), cheap.Runs[0][0].Asked)
	}
	if p := replay.Random(test, 1).Points(nil)[0]; p.Accuracy <= singles[1].Accuracy || p.Accuracy >= singles[0].Accuracy {
		t.Error(p)
	}
	if got, want := replay.Single(test, 1).Points(nil)[0], singles[1]; got != want {
		t.Error(got, want)
	}
	half := make([]int, 0, 300)
	for i := range 300 {
		half = append(half, i)
	}
	if got := replay.Single(test, 1).Points(half)[0]; got == singles[1] {
		t.Error("an index of rows changes nothing")
	}
}

func TestRecordedExperts(t *testing.T) {
	l := logOf(t, row("1", "A", "A", "null"), row("2", "B", "C", "B"))
	experts := l.Experts()
	ask := func(e m.Model, text string, most int) (*m.Response, error) {
		return e.Generate(t.Context(), &m.Request{MaxOutput: most, Messages: []m.Message{{Role: m.User, Text: text}}})
	}
	r, err := ask(experts[0], "Problem: question 1", 0)
	if err != nil || r.Text != "<answer>A</answer>" || r.Usage.Input != 100 || r.Usage.Output != 50 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := ask(experts[1], "Answer proposed by big: A\n\nProblem: question 1", 0); err != nil || r.Text != "" || r.Usage.Output != 20 {
		t.Errorf("an unusable answer: %+v, %v", r, err)
	}
	if r, err := ask(experts[0], "question 2", 10); err != nil || r.Text != "" || r.Finish != m.FinishLength || r.Usage.Output != 10 {
		t.Errorf("an answer beyond the cap: %+v, %v", r, err)
	}
	if _, err := ask(experts[0], "another question", 0); !errors.Is(err, replay.ErrUnrecorded) {
		t.Error(err)
	}
	if p, ok := experts[0].Info().Price.Output.Amount(); !ok || p.Dollars() != 8 {
		t.Error(p)
	}
}
