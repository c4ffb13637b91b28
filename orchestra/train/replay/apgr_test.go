package replay_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func TestPGRByHand(t *testing.T) {
	weak, strong := replay.Point{Cost: 1, Accuracy: .5}, replay.Point{Cost: 5, Accuracy: .9}
	for accuracy, want := range map[float64]float64{.5: 0, .6: .25, .9: 1, 1: 1.25, .3: -.5} {
		if got, ok := replay.PGR(replay.Point{Cost: 3, Accuracy: accuracy}, weak, strong); !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("accuracy %v: %v, %v, want %v", accuracy, got, ok, want)
		}
	}
	nan := replay.Point{Accuracy: math.NaN()}
	for name, c := range map[string][2]replay.Point{"no gap": {weak, weak}, "the weak one is better": {strong, weak}, "not a number": {nan, strong}} {
		if _, ok := replay.PGR(weak, c[0], c[1]); ok {
			t.Error(name)
		}
		if _, ok := replay.APGR([]replay.Point{weak}, c[0], c[1]); ok {
			t.Error(name)
		}
	}
}

func TestAPGRByHand(t *testing.T) {
	weak, strong := replay.Point{Cost: 0, Accuracy: .5}, replay.Point{Cost: 1, Accuracy: .9}
	for name, c := range map[string]struct {
		points []replay.Point
		want   float64
	}{
		"a mixture by chance":               {nil, .5},
		"its points change nothing":         {[]replay.Point{{.25, .6}, {.5, .7}}, .5},
		"the ends given":                    {[]replay.Point{{0, .5}, {1, .9}}, .5},
		"half of the gap at half the calls": {[]replay.Point{{.5, .7}}, .5},
		"all of it at half the calls":       {[]replay.Point{{.5, .9}}, .25 + .5},
		"better than the strong model":      {[]replay.Point{{.5, 1}}, 1.25/4 + (1.25+1)/4},
		"worse than the weak model":         {[]replay.Point{{.5, .5}}, .25},
		"any order":                         {[]replay.Point{{.75, .9}, {.25, .7}}, .25*.25 + .5*.75 + .25},
		"no hull":                           {[]replay.Point{{.5, .9}, {.75, .5}}, .25 + .25*.5 + .25*.5},
		"the mean of points at one cost":    {[]replay.Point{{.5, .9}, {.5, .7}, {.5, .8}}, .5*.375 + .5*.875},
		"better ends":                       {[]replay.Point{{0, .7}, {1, .9}}, .75},
		"points outside are left out":       {[]replay.Point{{-1, .9}, {2, .1}}, .5},
	} {
		given := slices.Clone(c.points)
		if got, ok := replay.APGR(c.points, weak, strong); !ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, c.want)
		}
		if !slices.Equal(given, c.points) {
			t.Errorf("%s: the points were changed", name)
		}
	}
	if _, ok := replay.APGR(nil, replay.Point{Cost: 1, Accuracy: .5}, replay.Point{Cost: 1, Accuracy: .9}); ok {
		t.Error("there is no way from one cost to the same")
	}
}

// The figure does not depend on the unit of cost.
func TestAPGRHasNoUnit(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		weak, strong := replay.Point{Cost: rng.Float64(), Accuracy: .3}, replay.Point{Cost: 1 + rng.Float64(), Accuracy: .8}
		var a, b []replay.Point
		for range 1 + rng.IntN(9) {
			p := replay.Point{Cost: 2 * rng.Float64(), Accuracy: rng.Float64()}
			a, b = append(a, p), append(b, replay.Point{Cost: 1e-6*p.Cost + 3, Accuracy: p.Accuracy})
		}
		x, _ := replay.APGR(a, weak, strong)
		y, _ := replay.APGR(b, replay.Point{Cost: 1e-6*weak.Cost + 3, Accuracy: .3}, replay.Point{Cost: 1e-6*strong.Cost + 3, Accuracy: .8})
		if math.Abs(x-y) > 1e-6 {
			t.Fatalf("%v: %v, in other units %v", a, x, y)
		}
	}
}

// RouteLLM's own definition, for a curve that reaches both ends: the area under
// it less that under the weak model, by that between the models.
func TestAPGRIsAQuotientOfAreas(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 200 {
		shares := []float64{0, 1}
		for range rng.IntN(10) {
			shares = append(shares, rng.Float64())
		}
		slices.Sort(shares)
		var ps []replay.Point
		area := 0.0
		for i, s := range shares {
			ps = append(ps, replay.Point{Cost: s, Accuracy: rng.Float64()})
			if i > 0 {
				area += (s - shares[i-1]) * (ps[i].Accuracy + ps[i-1].Accuracy) / 2
			}
		}
		const weak, strong = .25, .75
		got, _ := replay.APGR(ps, replay.Point{Cost: 0, Accuracy: weak}, replay.Point{Cost: 1, Accuracy: strong})
		if want := (area - weak) / (strong - weak); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v: %v, want %v", ps, got, want)
		}
	}
}

func TestStrongPoints(t *testing.T) {
	c := replay.Curve{Runs: [][]replay.Outcome{{
		{Right: true, Cost: 7, Asked: []int{0}}, {Cost: 9, Asked: []int{1, 0}}, {Right: true, Cost: 3, Asked: []int{1}}, {Cost: 2},
	}, {{Asked: []int{0}}, {Asked: []int{0}}, {Asked: []int{0}}, {Asked: []int{0}}}}}
	if ps := c.StrongPoints(0, nil); !slices.Equal(ps, []replay.Point{{.5, .5}, {1, 0}}) {
		t.Error(ps)
	}
	if ps := c.StrongPoints(1, []int{2, 2, 0, 0}); !slices.Equal(ps, []replay.Point{{.5, 1}, {0, 0}}) {
		t.Error(ps)
	}
	if c.Runs[0][0].Cost != 7 {
		t.Error("the curve was changed")
	}
}

// Over the share of strong calls and over USD a router between two models whose
// calls always cost the same comes to the same.
func TestAPGROverSharesAndOverUSDAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := world(t, 400, 7)
	var c replay.Curve
	for s := range 11 {
		run := make([]replay.Outcome, len(l.Rows))
		for i := range l.Rows {
			m := 1
			if rng.Float64() < float64(s)/10 {
				m = 0
			}
			run[i] = replay.Outcome{Right: l.Rows[i].Replies[m].Right, Cost: l.Cost(&l.Rows[i], m), Asked: []int{m}}
		}
		c.Runs = append(c.Runs, run)
	}
	singles := replay.Singles(l, nil)
	usd, ok := replay.APGR(c.Points(nil), singles[1], singles[0])
	shares, ok2 := replay.APGR(c.StrongPoints(0, nil), replay.Point{Accuracy: singles[1].Accuracy}, replay.Point{Cost: 1, Accuracy: singles[0].Accuracy})
	if !ok || !ok2 || math.Abs(usd-shares) > 1e-9 || math.Abs(shares-.5) > .1 {
		t.Errorf("%v over USD, %v over shares", usd, shares)
	}
}

func ExampleAPGR() {
	weak, strong := replay.Point{Cost: 0.001, Accuracy: .60}, replay.Point{Cost: 0.005, Accuracy: .80}
	curve := []replay.Point{{0.002, .70}, {0.003, .78}, {0.004, .81}}
	apgr, _ := replay.APGR(curve, weak, strong)
	pgr, _ := replay.PGR(curve[1], weak, strong)
	fmt.Printf("APGR %.4f; at $0.003 %.0f %% of the gap\n", apgr, 100*pgr)
	// Output: APGR 0.7375; at $0.003 90 % of the gap
}
