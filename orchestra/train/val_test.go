package train_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

func TestBaselinesOnMMLUPro(t *testing.T) {
	fit, val := recorded(t)
	zero := &replay.Curve{Name: "zero router"}
	for m := range val.Models {
		zero.Runs = append(zero.Runs, replay.Single(val, m).Runs...)
	}
	got := map[string]figures{}
	curves := []*replay.Curve{zero, replay.Single(val, replay.Strongest(val)), replay.Single(val, replay.Cheapest(val)), replay.Random(val, 1),
		replay.CheapFirst(fit, val), replay.Logistic(fit, val, worths(), 1), replay.NaiveBayes(fit, val, worths()), replay.Oracle(val, worths())}
	if os.Getenv("TRAIN_FULL") != "" {
		curves = append(curves, replay.Nearest(fit, val, worths(), 100))
	}
	for _, c := range curves {
		got[c.Name] = measure(val, c, nil)
		t.Logf("%-26s %v", c.Name, got[c.Name])
	}
	// These were measured before, by another program.
	for name, want := range map[string]float64{"zero router": .6650, "naive Bayes, category told": .6887} {
		if f := got[name]; math.Abs(f.auc-want) > .003 {
			t.Errorf("%s: AUC %.4f, want about %.4f", name, f.auc, want)
		}
	}
}

func TestBoundNetworkOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	bayes := replay.NaiveBayes(fit, val, worths())
	var all []figures
	for seed := uint64(1); seed <= 3; seed++ {
		w := kept(t, fmt.Sprintf("bound-%d.net", seed), fit, train.Bound(), train.WithSeed(seed))
		c := play(t, w, val, nil)
		all = append(all, measure(val, c, nil))
		t.Logf("seed %d: %v", seed, all[len(all)-1])
		less := func(f func(figures) float64) replay.Interval {
			return replay.Bootstrap(len(val.Rows), 300, seed, func(index []int) float64 { return f(measure(val, c, index)) })
		}
		t.Logf("95 %%: AUC %.4f, less the zero router's %.4f, best less best single %.4f, CostSave %.2f", less(func(f figures) float64 { return f.auc }),
			less(func(f figures) float64 { return f.auc - f.zero }), less(func(f figures) float64 { return f.top - f.single }), less(func(f figures) float64 { return f.save }))
		t.Logf("95 %%: AUC less naive Bayes' %.4f", replay.Bootstrap(len(val.Rows), 300, seed, func(index []int) float64 {
			return measure(val, c, index).auc - measure(val, bayes, index).auc
		}))
	}
	f := mean(all)
	t.Logf("mean: %v", f)
	nb := measure(val, bayes, nil)
	for name, ok := range map[string]bool{
		"AUC at least the zero router's + .022":               f.auc >= f.zero+.022,
		"AUC not below naive Bayes that is told the category": f.auc >= nb.auc,
		"best + .022 at 1.15 of the cost":                     f.at115 >= f.single+.022,
		"best + .014 at 0.90 of the cost":                     f.at90 >= f.single+.014,
		"CostSave of 33 %":                                    f.save >= .33,
		"AUC not above what can be reached":                   f.auc < .703,
	} {
		if !ok {
			t.Errorf("not so: %s", name)
		}
	}
}

func TestDescriptorsOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	var all []figures
	for seed := uint64(1); seed <= 3; seed++ {
		w := kept(t, fmt.Sprintf("cards-%d.net", seed), fit, train.WithSeed(seed))
		for draw := range uint64(3) {
			c := play(t, w, val, w.Cards(fit, 50, draw))
			all = append(all, measure(val, c, nil))
			t.Logf("seed %d, cards %d: %v", seed, draw, all[len(all)-1])
		}
	}
	f := mean(all)
	t.Logf("mean: %v", f)
	if f.auc < f.zero+.010 {
		t.Errorf("AUC %.4f, want the zero router's %.4f + .010", f.auc, f.zero)
	}
}

func TestUnseenPricesOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	w := kept(t, "cards-1.net", fit)
	for draw := range uint64(20) {
		rng := rand.New(rand.NewPCG(draw, 9))
		l := *val
		l.Models = nil
		for _, m := range val.Models {
			f := math.Exp((2*rng.Float64() - 1) * math.Log(5))
			l.Models = append(l.Models, replay.Model{Name: m.Name, In: m.In * f, Out: m.Out * f})
		}
		f := measure(&l, play(t, w, &l, w.Cards(fit, 50, draw)), nil)
		t.Logf("draw %d: %v", draw, f)
		if f.auc <= f.zero {
			t.Errorf("draw %d: AUC %.4f, zero router %.4f", draw, f.auc, f.zero)
		}
	}
}

// without is a log without some of its models.
func without(l *replay.Log, drop []int) *replay.Log {
	out := &replay.Log{Total: l.Total}
	dropped := map[int]bool{}
	for _, m := range drop {
		dropped[m] = true
	}
	for m, x := range l.Models {
		if !dropped[m] {
			out.Models = append(out.Models, x)
		}
	}
	for _, r := range l.Rows {
		var replies []replay.Reply
		for m, p := range r.Replies {
			if !dropped[m] {
				replies = append(replies, p)
			}
		}
		r.Replies = replies
		out.Rows = append(out.Rows, r)
	}
	return out
}

func TestUnseenExpertsOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	effort := train.WithEffort(0.3)
	full := learn(t, fit, effort)
	var diff, loss float64
	const draws = 10
	for draw := range uint64(draws) {
		rng := rand.New(rand.NewPCG(draw, 5))
		drop := rng.Perm(len(fit.Models))[:3]
		part := without(fit, drop)
		w := learn(t, part, effort)
		cards := w.Cards(fit, 50, draw)
		all := measure(val, play(t, w, val, cards), nil)
		// The pool without them is measured over the same span of costs.
		few := replay.AUC(play(t, w, val, w.Cards(part, 50, draw)).Points(nil), replay.Singles(val, nil)[replay.Cheapest(val)].Cost, replay.Singles(val, nil)[replay.Strongest(val)].Cost)
		ref := measure(val, play(t, full, val, full.Cards(fit, 50, draw)), nil)
		t.Logf("without %v: AUC %.4f; not offered %.4f; trained on all %.4f", drop, all.auc, few, ref.auc)
		diff += (all.auc - few) / draws
		loss += (ref.auc - all.auc) / draws
	}
	t.Logf("mean: %+.4f to the pool without them, %+.4f to full training", diff, -loss)
	if diff < 0 || loss > .012 {
		t.Error("unseen experts hurt")
	}
}

// sweep runs rows through the orchestrator with some preferences.
func sweep(t testing.TB, l *replay.Log, w *train.Weights, cards []policy.Card, rows int, v prefs.Vector) (accuracy, usd float64, calls map[string]int) {
	t.Helper()
	o, err := orchestra.New(orchestra.WithPolicy(read(t, w, policy.WithCards(cards...))), orchestra.WithExperts(l.Experts()...),
		orchestra.WithBudget(cost.Budget{USD: cost.USD(10), Time: time.Hour, Failures: 20}), orchestra.WithPreferences(v))
	if err != nil {
		t.Fatal(err)
	}
	calls = map[string]int{}
	for i := range rows {
		res, _ := o.Run(t.Context(), orchestra.Task{ID: l.Rows[i].ID, Prompt: l.Rows[i].Query})
		if res.Answer == l.Rows[i].Answer {
			accuracy += 1 / float64(rows)
		}
		usd += res.Spent.USD.Dollars() / float64(rows)
		for _, r := range res.Ledger {
			calls[r.Name]++
		}
	}
	return accuracy, usd, calls
}

func share(calls map[string]int, name string) float64 {
	n := 0
	for _, c := range calls {
		n += c
	}
	return float64(calls[name]) / float64(max(n, 1))
}

func TestPreferencesOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	w := kept(t, "cards-1.net", fit)
	preferences(t, val, w, w.Cards(fit, 50, 1), []float64{.001, .003, .01, .03, .1, .3, 1}, 600, 5, "Meta-Llama-3_1-70B-Instruct", "gemini-1.5-pro-002")
}

// preferences checks that they steer: mean cost falls with the weight of cost by
// the factor spread, Never masks, Use draws.
func preferences(t *testing.T, l *replay.Log, w *train.Weights, cards []policy.Card, costs []float64, rows int, spread float64, use, never string) {
	t.Helper()
	var first, last float64
	for i, c := range costs {
		right, usd, calls := sweep(t, l, w, cards, rows, prefs.Vector{Accuracy: 1, Cost: c})
		t.Logf("cost %.3f: right %.3f at %.1f µUSD, calls %v", c, right, usd*1e6, calls)
		if i == 0 {
			first = usd
		} else if usd > last {
			t.Errorf("cost %.3f: %.1f µUSD, more than before", c, usd*1e6)
		}
		last = usd
	}
	if first < spread*last {
		t.Errorf("the weight of cost moves mean cost by %.1f, want %.1f", first/last, spread)
	}
	v := prefs.Vector{Accuracy: 1, Cost: .1, Never: []string{never}}
	if _, _, calls := sweep(t, l, w, cards, rows, v); calls[never] != 0 {
		t.Errorf("%s was called %d times", never, calls[never])
	}
	before := -1.0
	for _, u := range []float64{0, .3, 1} {
		v := prefs.Vector{Accuracy: 1, Cost: .1, Use: map[string]float64{use: u}}
		_, _, calls := sweep(t, l, w, cards, rows, v)
		t.Logf("use %.1f of %s: %.3f of the calls", u, use, share(calls, use))
		if s := share(calls, use); s < before || u == 1 && s <= before {
			t.Errorf("use %.1f: share %.3f, less than before", u, s)
		} else {
			before = s
		}
	}
}

func TestPreferencesSteer(t *testing.T) {
	l := generated(t, 600, 5)
	w := fitted(t, l)
	preferences(t, generated(t, 200, 6), w, w.Cards(l, 50, 1), []float64{.01, 1}, 200, 1.1, "poor", "dear")
}

func TestOrchestratorDecidesAsTheEvaluatorOnMMLUPro(t *testing.T) {
	fit, val := recorded(t)
	few := *fit
	few.Rows = fit.Rows[:600]
	sameDecisions(t, val, fitted(t, &few, train.Bound()), nil, 200)
}

// The network in the module is what training makes, to the bit.
func TestTheShippedNetworkOnMMLUPro(t *testing.T) {
	long(t)
	fit, _ := recorded(t)
	w := learn(t, fit, train.WithVersion("learned-1"),
		train.WithAbout("The answers are those that TIGER-AI-Lab/MMLU-Pro recorded (eval_results at f418b11, Apache-2.0); the weights are numbers only."))
	want, err := os.ReadFile("../policy/network.net")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, w), want) {
		t.Error("it makes another file than orchestra/policy/network.net")
	}
}
