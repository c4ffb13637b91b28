package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// golden is the group of four whose rewards were worked out by hand and by an
// independent program, for the paper's formula and for the released code.
var golden = []Metrics{
	{Calls: []float64{1, 0, 2}, Right: true, USD: 0.30, Seconds: 60},
	{Calls: []float64{0, 1, 1}, Right: true, USD: 0.05, Seconds: 20},
	{Calls: []float64{1, 0, 0}, USD: 0.10, Seconds: 30},
	{Calls: []float64{0, 1, 0}, USD: 0.02, Seconds: 10},
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-6 })
}

func TestGoldenRewards(t *testing.T) {
	for _, c := range []struct {
		name       string
		p          []float64
		f          Formula
		rewards    []float64
		advantages []float64
	}{
		{"paper", []float64{0, 0, 0, 1, 1, 1}, Paper, []float64{1, 2.692857, 0, 0}, []float64{.060439, 1.392918, -.726678, -.726678}},
		{"paper, a tool preferred", []float64{0, 1, 0, 1, .5, 0}, Paper, []float64{1, 2.446429, 0, 0}, []float64{.119619, 1.369835, -.744727, -.744727}},
		{"released", []float64{0, 0, 0, 1, 1, 1}, Released, []float64{7.814286, 6.121429, 0, 0}, []float64{1.060887, .646157, -.853522, -.853522}},
		{"released, a tool preferred", []float64{0, 1, 0, 1, .5, 0}, Released, []float64{2.607143, 2.160714, 0, 0}, []float64{1.019304, .697757, -.858531, -.858531}},
	} {
		r, err := Rewards(golden, c.p, c.f)
		if err != nil || !near(r, c.rewards) {
			t.Errorf("%s: rewards %v, %v, want %v", c.name, r, err, c.rewards)
		}
		if a := Advantages(r, Advantage{}); !near(a, c.advantages) {
			t.Errorf("%s: advantages %v, want %v", c.name, a, c.advantages)
		}
	}
}

// draw makes a random group and weights.
func draw(rng *rand.Rand) ([]Metrics, []float64) {
	g := make([]Metrics, 2+rng.IntN(9))
	names := rng.IntN(4)
	for i := range g {
		for range names {
			g[i].Calls = append(g[i].Calls, float64(rng.IntN(4)))
		}
		g[i].Right, g[i].USD, g[i].Seconds = rng.IntN(3) > 0, rng.Float64(), 100*rng.Float64()
	}
	p := make([]float64, names+3)
	for i := range p {
		p[i] = rng.Float64()
	}
	return g, p
}

func rewards(t *testing.T, g []Metrics, p []float64) []float64 {
	t.Helper()
	r, err := Rewards(g, p, Paper)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Two rollouts that differ in one metric only are compared within one group.
func TestBetterNeverScoresLower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	strict := 0
	for range 5000 {
		g, p := draw(rng)
		one := g[0]
		better := one
		better.Calls = slices.Clone(one.Calls)
		switch k := rng.IntN(4); {
		case k == 0:
			better.USD /= 2
		case k == 1:
			better.Seconds /= 2
		case k == 2:
			better.Right = true
		case len(better.Calls) > 0:
			better.Calls[rng.IntN(len(better.Calls))] += 1 // weights are 0 or more: no name is disliked
		}
		r := rewards(t, append(g, better), p)
		if last := r[len(r)-1]; last < r[0]-1e-12 {
			t.Fatalf("%+v scores %v, %+v scores %v, with weights %v", better, last, one, r[0], p)
		} else if last > r[0] {
			strict++
		}
	}
	if strict < 1000 {
		t.Errorf("only %d of 5000 scored higher: the test shows little", strict)
	}
}

func TestWrongAndFailedRolloutsScoreNothing(t *testing.T) {
	g := []Metrics{{Right: true, USD: 1}, {USD: 0}, {Right: true, Failed: "timeout"}}
	r := rewards(t, g, []float64{1, 1, 1})
	if r[0] != 1 || r[1] != 0 || r[2] != 0 {
		t.Error(r)
	}
}

func TestAdvantageOptions(t *testing.T) {
	r := []float64{0, 0, 0, 1}
	for name, c := range map[string]struct {
		o    Advantage
		want []float64
	}{
		"sample deviation":     {Advantage{Eps: -1}, []float64{-.5, -.5, -.5, 1.5}},
		"population deviation": {Advantage{Eps: -1, Population: true}, []float64{-.577350, -.577350, -.577350, 1.732051}},
		"eps":                  {Advantage{Eps: .5}, []float64{-.25, -.25, -.25, .75}},
		"clip":                 {Advantage{Eps: -1, Clip: 1}, []float64{-.5, -.5, -.5, 1}},
		"boost":                {Advantage{Eps: -1, BoostFrom: 1, Boost: .1}, []float64{-.5, -.5, -.5, 1.6}},
		"undivided":            {Advantage{Undivided: true}, []float64{-.25, -.25, -.25, .75}},
	} {
		if a := Advantages(r, c.o); !near(a, c.want) {
			t.Errorf("%s: %v, want %v", name, a, c.want)
		}
	}
	for _, r := range [][]float64{nil, {1}, {.3, .3, .3}} {
		for _, a := range Advantages(r, Advantage{}) {
			if a != 0 {
				t.Errorf("rewards %v have an advantage", r)
			}
		}
	}
}

func TestAdvantagesHaveMeanZeroAndDeviationOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		g, p := draw(rng)
		r := rewards(t, g, p)
		a := Advantages(r, Advantage{Eps: -1})
		mean, std := moments(a, false)
		if slices.Min(r) != slices.Max(r) && (math.Abs(mean) > 1e-9 || math.Abs(std-1) > 1e-9) {
			t.Fatalf("%v: mean %v, deviation %v", r, mean, std)
		}
	}
}

func TestUnusableGroupsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		g []Metrics
		p []float64
	}{
		"too few weights": {[]Metrics{{}}, []float64{1, 1}},
		"other names":     {[]Metrics{{Calls: []float64{1}}}, []float64{1, 1, 1}},
		"not a number":    {[]Metrics{{USD: math.NaN()}}, []float64{1, 1, 1}},
		"negative cost":   {[]Metrics{{USD: -1}}, []float64{1, 1, 1}},
		"infinite time":   {[]Metrics{{Seconds: math.Inf(1)}}, []float64{1, 1, 1}},
		"negative weight": {[]Metrics{{}}, []float64{1, -1, 1}},
	} {
		for _, f := range []Formula{Paper, Released} {
			if _, err := Rewards(c.g, c.p, f); !errors.Is(err, ErrGroup) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestFilter(t *testing.T) {
	g := []Metrics{{Right: true}, {Broken: true}, {Failed: "stuck"}, {}}
	if d := Filter(g, []float64{1, 0, 0, 0}, MinStd); !slices.Equal(d, []Drop{"", Malformed, NoAnswer, ""}) {
		t.Error(d)
	}
	if d := Filter(g, []float64{.1, 0, 0, 0}, MinStd); !slices.Equal(d, []Drop{Flat, Flat, Flat, Flat}) {
		t.Error(d)
	}
	if d := Filter(g, []float64{.1, 0, 0, 0}, 0); d[0] != "" {
		t.Error(d)
	}
	if d := Filter(g[:1], []float64{1}, MinStd); d[0] != Flat {
		t.Error("a group of one teaches nothing")
	}
}

func TestBlindPreferencesAreNamed(t *testing.T) {
	if Blind(prefs.Vector{Cost: 1}) == "" || Blind(prefs.Vector{}) != "" || Blind(prefs.Vector{Accuracy: .1}) != "" {
		t.Error("only a weight of accuracy of 0 is blind")
	}
}

func ExampleRewards() {
	names := []string{"web_search", "local_search"}
	group := []Metrics{
		{Calls: []float64{2, 0}, Right: true, USD: 0.04, Seconds: 20},
		{Calls: []float64{0, 2}, Right: true, USD: 0.02, Seconds: 20},
		{Calls: []float64{0, 1}, USD: 0.01, Seconds: 5},
	}
	want := prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"local_search": 1}}
	r, _ := Rewards(group, want.Weights(names), Paper)
	a := Advantages(r, Advantage{})
	fmt.Printf("rewards %.2f, advantages %.2f\n", r, a)
	// Output: rewards [1.00 2.33 0.00], advantages [-0.09 1.04 -0.95]
}
