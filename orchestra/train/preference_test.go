package train

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// Worked out by hand.
func TestPreferenceRewardByHand(t *testing.T) {
	base := Baseline{Calls: []float64{4, 0.5}, Right: 1, USD: 0.20, Seconds: 600} // 20 cents, 10 minutes
	played := Metrics{Calls: []float64{2, 3}, Right: true, USD: 0.05, Seconds: 300}
	for name, c := range map[string]struct {
		p    []float64
		m    Metrics
		u    Units
		want float64
	}{
		"a name, by the baseline's calls":         {[]float64{1, 0, 0, 0, 0}, played, Units{}, 2.0 / 4},
		"a name the baseline hardly calls, by 1":  {[]float64{0, 1, 0, 0, 0}, played, Units{}, 3},
		"the outcome":                             {[]float64{0, 0, 1, 0, 0}, played, Units{}, 1},
		"cost":                                    {[]float64{0, 0, 0, 1, 0}, played, Units{}, 20.0 / 5},
		"latency":                                 {[]float64{0, 0, 0, 0, 1}, played, Units{}, 10.0 / 5},
		"all":                                     {[]float64{1, 0.5, 1, 0.5, 0.2}, played, Units{}, .5 + 1.5 + 1 + 2 + .4},
		"cost below a cent counts as a cent":      {[]float64{0, 0, 0, 1, 0}, Metrics{Calls: []float64{0, 0}, Right: true, USD: 0.001}, Units{}, 20},
		"in tenths of a cent it does not":         {[]float64{0, 0, 0, 1, 0}, Metrics{Calls: []float64{0, 0}, Right: true, USD: 0.001}, Units{USD: 0.001}, 200},
		"latency below a minute":                  {[]float64{0, 0, 0, 0, 1}, Metrics{Calls: []float64{0, 0}, Right: true, Seconds: 6}, Units{}, 10},
		"latency in seconds":                      {[]float64{0, 0, 0, 0, 1}, Metrics{Calls: []float64{0, 0}, Right: true, Seconds: 6}, Units{Seconds: 1}, 100},
		"dearer than the baseline is less than 1": {[]float64{0, 0, 0, 1, 0}, Metrics{Calls: []float64{0, 0}, Right: true, USD: 0.40}, Units{}, .5},
		"wrong":           {[]float64{1, 1, 1, 1, 1}, Metrics{Calls: []float64{2, 3}, USD: 0.05}, Units{}, 0},
		"no valid answer": {[]float64{1, 1, 1, 1, 1}, Metrics{Calls: []float64{2, 3}, Right: true, Failed: "stuck"}, Units{}, 0},
	} {
		p, err := PreferenceReward([]PreferenceExample{{Weights: c.p, Rollout: c.m, Baseline: base}}, c.u)
		if err != nil || math.Abs(p.Sum-c.want) > 1e-12 || p.Mean != p.Sum || p.Each[0] != p.Sum {
			t.Errorf("%s: %+v, %v, want %v", name, p, err, c.want)
		}
	}
}

func TestPreferenceRewardIsSummedOverExamples(t *testing.T) {
	one := PreferenceExample{Weights: []float64{1, 1, 0}, Rollout: Metrics{Right: true, USD: 0.02}, Baseline: Baseline{Right: 1, USD: 0.04, Seconds: 1}}
	wrong := one
	wrong.Rollout.Right = false
	quick := one
	quick.Rollout.USD, quick.Rollout.Seconds = 0.001, 90
	p, err := PreferenceReward([]PreferenceExample{one, wrong, quick}, Units{})
	if err != nil || math.Abs(p.Sum-(3+0+5)) > 1e-12 || math.Abs(p.Mean-8.0/3) > 1e-12 || len(p.Each) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if p.USDBlind != 1 || p.SecondsBlind != 2 {
		t.Errorf("one cost less than a cent, two took less than a minute: %+v", p)
	}
}

func TestThePolicyThatIsItsOwnBaselineScoresItsWeights(t *testing.T) {
	m := Metrics{Calls: []float64{2, 1}, Right: true, USD: 0.03, Seconds: 90}
	base, err := MeanBaseline([]Metrics{m, m})
	if err != nil {
		t.Fatal(err)
	}
	w := prefs.Vector{Accuracy: 1, Cost: .5, Latency: .2, Use: map[string]float64{"a": 1}}.Weights([]string{"a", "b"})
	p, err := PreferenceReward([]PreferenceExample{{Weights: w, Rollout: m, Baseline: base}}, Units{})
	if err != nil || math.Abs(p.Sum-2.7) > 1e-12 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestMeanBaseline(t *testing.T) {
	b, err := MeanBaseline([]Metrics{
		{Calls: []float64{1, 0}, Right: true, USD: 1, Seconds: 10},
		{Calls: []float64{3, 1}, USD: 3, Seconds: 30},
		{Calls: []float64{2, 2}, Right: true, Failed: "timeout", USD: 2, Seconds: 20},
		{Calls: []float64{2, 1}, USD: 2, Seconds: 20},
	})
	if err != nil || b.Calls[0] != 2 || b.Calls[1] != 1 || b.Right != .25 || b.USD != 2 || b.Seconds != 20 {
		t.Errorf("%+v, %v", b, err)
	}
	for name, m := range map[string][]Metrics{"none": nil, "other names": {{Calls: []float64{1}}, {}}} {
		if _, err := MeanBaseline(m); !errors.Is(err, ErrPreference) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnusablePreferenceExamplesAreRefused(t *testing.T) {
	good := PreferenceExample{Weights: []float64{1, 1, 1, 1}, Rollout: Metrics{Calls: []float64{1}}, Baseline: Baseline{Calls: []float64{1}}}
	for name, spoil := range map[string]func(*PreferenceExample, *Units){
		"too few weights":       func(e *PreferenceExample, _ *Units) { e.Weights = e.Weights[:2] },
		"weights of more names": func(e *PreferenceExample, _ *Units) { e.Weights = make([]float64, 5) },
		"another baseline":      func(e *PreferenceExample, _ *Units) { e.Baseline.Calls = nil },
		"negative weight":       func(e *PreferenceExample, _ *Units) { e.Weights[0] = -1 },
		"infinite weight":       func(e *PreferenceExample, _ *Units) { e.Weights[3] = math.Inf(1) },
		"negative calls":        func(e *PreferenceExample, _ *Units) { e.Rollout.Calls[0] = -1 },
		"cost not a number":     func(e *PreferenceExample, _ *Units) { e.Rollout.USD = math.NaN() },
		"infinite latency":      func(e *PreferenceExample, _ *Units) { e.Rollout.Seconds = math.Inf(1) },
		"negative baseline":     func(e *PreferenceExample, _ *Units) { e.Baseline.USD = -1 },
		"baseline not a number": func(e *PreferenceExample, _ *Units) { e.Baseline.Right = math.NaN() },
		"negative unit":         func(_ *PreferenceExample, u *Units) { u.USD = -1 },
		"unit not a number":     func(_ *PreferenceExample, u *Units) { u.Seconds = math.NaN() },
		"sum beyond numbers": func(e *PreferenceExample, u *Units) {
			e.Rollout.Right, e.Baseline.USD, u.USD = true, 1e308, 1e-300
		},
		"sum that is not a number": func(e *PreferenceExample, u *Units) {
			e.Rollout.Right, e.Baseline.USD, u.USD, e.Weights[2] = true, 1e308, 1e-300, 0
		},
	} {
		e, u := good, Units{}
		e.Weights, e.Rollout.Calls = append([]float64(nil), good.Weights...), []float64{1}
		spoil(&e, &u)
		if _, err := PreferenceReward([]PreferenceExample{e}, u); !errors.Is(err, ErrPreference) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := PreferenceReward(nil, Units{}); !errors.Is(err, ErrPreference) {
		t.Error("no example has a mean")
	}
	if _, err := PreferenceReward([]PreferenceExample{good}, Units{}); err != nil {
		t.Error(err)
	}
}

func ExamplePreferenceReward() {
	names := []string{"web_search", "local_search"}
	want := prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"local_search": 1}}.Weights(names)
	base := Baseline{Calls: []float64{2, 1}, Right: 1, USD: 0.04, Seconds: 120}
	p, _ := PreferenceReward([]PreferenceExample{
		{want, Metrics{Calls: []float64{0, 2}, Right: true, USD: 0.02, Seconds: 60}, base}, // 2 + 1 + 0.5·2
		{want, Metrics{Calls: []float64{2, 0}, Right: true, USD: 0.04, Seconds: 60}, base}, // 0 + 1 + 0.5·1
		{want, Metrics{Calls: []float64{0, 2}, USD: 0.01, Seconds: 30}, base},              // wrong
	}, Units{})
	fmt.Printf("%.2f in all, %.2f a task\n", p.Sum, p.Mean)
	// Output: 5.50 in all, 1.83 a task
}
