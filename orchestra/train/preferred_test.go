package train_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// wishes draws a user's preferences for each row: how much cost matters, and for
// every other row an expert to prefer.
func wishes(l *replay.Log, seed uint64) (list []prefs.Vector) {
	rng := rand.New(rand.NewPCG(seed, 0x77697368))
	for i := range l.Rows {
		v := prefs.Vector{Accuracy: 1, Cost: rng.Float64()}
		if i%2 == 0 {
			v.Use = map[string]float64{l.Models[rng.IntN(len(l.Models))].Name: 1}
		}
		list = append(list, v)
	}
	return list
}

// rewarded scores what was done with each row by the preference reward. A unit of
// cost is what the start policy, which asks one expert at random, comes to on
// average: more expensive rollouts lose, and cheaper ones cannot gain more than
// a right answer.
func rewarded(t *testing.T, l *replay.Log, wish []prefs.Vector, done []train.Metrics) train.Preference {
	t.Helper()
	var names []string
	for _, m := range l.Models {
		names = append(names, m.Name)
	}
	var start []train.Metrics
	for _, o := range replay.Random(l, 1).Runs[0] {
		start = append(start, asMetrics(l, o))
	}
	base, err := train.MeanBaseline(start)
	if err != nil {
		t.Fatal(err)
	}
	var list []train.PreferenceExample
	for i := range l.Rows {
		list = append(list, train.PreferenceExample{Weights: wish[i].Weights(names), Rollout: done[i], Baseline: base})
	}
	p, err := train.PreferenceReward(list, train.Units{USD: base.USD})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func asMetrics(l *replay.Log, o replay.Outcome) train.Metrics {
	m := train.Metrics{Calls: make([]float64, len(l.Models)), Right: o.Right, USD: o.Cost}
	for _, a := range o.Asked {
		m.Calls[a]++
	}
	return m
}

// The preference reward of the learned policy is above that of every baseline,
// each at the setting that suits it best.
func TestPreferenceRewardOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	w := kept(t, "cards-1.net", fit)
	cards := w.Cards(fit, 50, 1)
	o, err := orchestra.New(orchestra.WithPolicy(read(t, w, policy.WithCards(cards...))), orchestra.WithExperts(val.Experts()...),
		orchestra.WithBudget(cost.Budget{USD: cost.USD(10), Time: time.Hour, Failures: 20}))
	if err != nil {
		t.Fatal(err)
	}
	wish := wishes(val, 1)
	var ours []train.Metrics
	right := 0
	for i := range val.Rows {
		res, _ := o.Run(t.Context(), orchestra.Task{ID: val.Rows[i].ID, Prompt: val.Rows[i].Query, Prefer: wish[i]})
		m := train.Metrics{Calls: make([]float64, len(val.Models)), Right: res.Answer == val.Rows[i].Answer, USD: res.Spent.USD.Dollars()}
		for _, row := range res.Ledger {
			for k, x := range val.Models {
				if x.Name == row.Name {
					m.Calls[k]++
				}
			}
		}
		if m.Right {
			right++
		}
		ours = append(ours, m)
	}
	got := rewarded(t, val, wish, ours)
	t.Logf("%-28s reward %.4f a task, %.3f right", "learned", got.Mean, float64(right)/float64(len(val.Rows)))
	for _, c := range baselines(fit, val) {
		best, at := -1.0, 0
		for s, run := range c.Runs {
			var done []train.Metrics
			for _, out := range run {
				done = append(done, asMetrics(val, out))
			}
			if p := rewarded(t, val, wish, done); p.Mean > best {
				best, at = p.Mean, s
			}
		}
		t.Logf("%-28s reward %.4f a task at its best setting (%d of %d)", c.Name, best, at+1, len(c.Runs))
		if best >= got.Mean {
			t.Errorf("%s has %.4f, the learned policy %.4f", c.Name, best, got.Mean)
		}
	}
}

func baselines(fit, val *replay.Log) []*replay.Curve {
	zero := &replay.Curve{Name: "zero router"}
	for m := range val.Models {
		zero.Runs = append(zero.Runs, replay.Single(val, m).Runs...)
	}
	return []*replay.Curve{zero, replay.Single(val, replay.Strongest(val)), replay.Single(val, replay.Cheapest(val)), replay.Random(val, 2),
		replay.CheapFirst(fit, val), replay.Logistic(fit, val, worths(), 1), replay.NaiveBayes(fit, val, worths()), replay.Nearest(fit, val, worths(), 100)}
}

// Nobody is asked for everything: shares of calls beside those of the oracle at
// the same worth of a right answer, and APGR of the share of rows that the
// strongest model is asked for.
func TestSharesOnMMLUPro(t *testing.T) {
	long(t)
	fit, val := recorded(t)
	oracle := replay.Oracle(val, worths())
	w := kept(t, "cards-1.net", fit)
	b := kept(t, "bound-1.net", fit, train.Bound(), train.WithSeed(1))
	strong, weak := replay.Strongest(val), replay.Cheapest(val)
	ends := replay.Singles(val, nil)
	for name, c := range map[string]*replay.Curve{"descriptors": play(t, w, val, w.Cards(fit, 50, 1)), "bound": play(t, b, val, nil)} {
		apgr, ok := replay.APGR(c.StrongPoints(strong, nil), replay.Point{Accuracy: ends[weak].Accuracy}, replay.Point{Cost: 1, Accuracy: ends[strong].Accuracy})
		t.Logf("%s: APGR %.3f (%v)", name, apgr, ok)
		for s := 0; s < len(c.Runs); s += 6 {
			p, q := replay.Shares(val, c.Runs[s]), replay.Shares(val, oracle.Runs[s])
			i, share := p.Largest()
			t.Logf("%s, worth $%.5f: as many experts as %.1f asked alike (oracle %.1f), most often %s with %.2f; apart from the oracle %.2f",
				name, worths()[s], p.Effective(), q.Effective(), val.Models[i].Name, share, p.Apart(q))
			if worths()[s] >= 0.009 && (share > .8 || p.Effective() < 2) { // from where it beats the best single model
				t.Errorf("%s, worth $%.5f: it asks %s for nearly everything (%s)", name, worths()[s], val.Models[i].Name, fmt.Sprint(p))
			}
		}
	}
}
