package fit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// rows makes rows of two experts: the first is always right, the second by
// chance.
func rows(n int) *Data {
	rng := rand.New(rand.NewPCG(1, 1))
	d := &Data{Domains: []string{"any"}, In: []float32{1e-6, 1e-7}, Out: []float32{4e-6, 4e-7}}
	for i := range n {
		right := rng.IntN(2) == 0
		r := Row{Text: []string{"long hard words", "short ones"}[i%2], In: 100, Answers: 2, Replies: []Reply{{0, 50}, {1, 50}}}
		if right {
			r.Replies[1].Answer, r.Answers = 0, 1
		}
		d.Rows = append(d.Rows, r)
	}
	return d
}

func small() Options {
	return Options{Seed: 1, Bind: true, Calibration: 10, Draws: 2, Folds: 2, Sizes: learned.Sizes{Answer: 8, Value1: 8, Value2: 8},
		AnswerEpochs: 3, AnswerRate: 1e-2, ValueSteps: 30, ValueRate: 1e-2, GradientSteps: 10, GradientRate: 1e-3, Groups: 8, Rollouts: 4, Passes: 2,
		Temperature: 0.1, ClipLow: 0.2, ClipHigh: 0.28, LambdaLow: 0.01, LambdaHigh: 0.2}
}

func flat(n *learned.Net) []float32 {
	return slices.Concat(n.Text.Weights, n.Second.Weights, slices.Concat(answerParams(n)...), slices.Concat(valueParams(n)...))
}

func TestTheNumberOfCoresDoesNotMatter(t *testing.T) {
	for _, bind := range []bool{true, false} {
		o := small()
		o.Bind = bind
		var got [][]float32
		for _, cores := range []int{1, 3} {
			was := runtime.GOMAXPROCS(cores)
			n, err := Fit(t.Context(), rows(200), o)
			runtime.GOMAXPROCS(was)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, flat(n))
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("bound %v: another number of cores gives other weights", bind)
		}
	}
}

func TestAdamFindsTheLeastOfABowl(t *testing.T) {
	x := []float32{3, -2}
	a := NewAdam([][]float32{x})
	for step := range 2000 {
		a.Step([][]float32{{2 * (x[0] - 1), 20 * (x[1] - 0.5)}}, cosine(0.05, step, 2000), 0)
	}
	if math.Abs(float64(x[0]-1)) > 0.01 || math.Abs(float64(x[1]-0.5)) > 0.01 {
		t.Error(x)
	}
	y := []float32{1}
	d := NewAdam([][]float32{y})
	for range 100 {
		d.Step([][]float32{{0}}, 0.1, 0.1)
	}
	if y[0] > 0.4 || y[0] < 0.3 { // 0.99 to the hundredth
		t.Errorf("decay leaves %v", y[0])
	}
}

func TestChancesOfChoices(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		name    string
		values  []float32
		asked   int
		answers int
		want    []float64
	}{
		{"no end without an answer", []float32{0, 0}, 0, 0, []float64{.5, .5, 0}},
		{"the end has value 0", []float32{0, inf}, 1, 1, []float64{.5, 0, .5}},
		{"nothing but the end", []float32{inf, inf}, 2, 0, []float64{0, 0, 1}},
	} {
		got := choose(c.values, c.asked, c.answers, 0.1, nil)
		for i, v := range c.want {
			if math.Abs(got[i]-v) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

// At a high temperature the first choices are nearly random. The gradient must
// raise what pays: the reliable expert, where cost is worth little.
func TestPolicyGradientRaisesRewards(t *testing.T) {
	d := rows(200)
	o := small()
	o.ValueSteps, o.AnswerEpochs = 1, 40
	var means []float64
	o.Progress = func(stage string, done, of int, figure float64) {
		if stage == "gradient" {
			means = append(means, figure)
		}
	}
	o.GradientSteps, o.GradientRate, o.LambdaHigh, o.Temperature = 400, 5e-3, 0.02, 1
	if _, err := Fit(t.Context(), d, o); err != nil {
		t.Fatal(err)
	}
	if first, last := means[0], means[len(means)-1]; last < first+0.03 {
		t.Errorf("mean reward went from %.3f to %.3f", first, last)
	}
}

func TestCardsMeasure(t *testing.T) {
	d := rows(400)
	all := make([]int, len(d.Rows))
	for i := range all {
		all[i] = i
	}
	cs := d.Cards(all)
	if cs[0].Skill[0] < 0.95 || math.Abs(float64(cs[1].Skill[0])-0.5) > 0.08 || math.Abs(float64(cs[0].Tokens[0])-50) > 1e-3 {
		t.Errorf("%+v", cs)
	}
	few := d.Draw(all, 10, rand.New(rand.NewPCG(1, 1)))
	slices.Sort(few)
	if len(few) != 10 || len(slices.Compact(few)) != 10 {
		t.Error(few)
	}
}
