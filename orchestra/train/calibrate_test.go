package train_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func questions(l *replay.Log) (qs []train.Question) {
	for i := range l.Rows {
		r := &l.Rows[i]
		qs = append(qs, train.Question{Domain: r.Category, Prompt: r.Query, Check: func(a string) bool { return a == r.Answer }})
	}
	return qs
}

func TestCalibrateMeasuresWhatWasRecorded(t *testing.T) {
	l := generated(t, 200, 8)
	got, err := train.Calibrate(t.Context(), l.Experts(), questions(l), cost.Budget{USD: cost.USD(10)})
	if err != nil {
		t.Fatal(err)
	}
	w := fitted(t, l)
	for m, want := range w.Cards(l, 0, 1) {
		g := got[m]
		if g.Asked != 200 || g.Card.Name != want.Name || math.Abs(g.Card.Mean-want.Mean) > 1e-6 || math.Abs(g.Card.Spread-want.Spread) > 1e-3 {
			t.Errorf("%+v, want %+v", g, want)
		}
		for d, v := range want.Skill {
			if math.Abs(g.Card.Skill[d]-v) > 1e-3 || math.Abs(g.Card.Tokens[d]-want.Tokens[d]) > 1e-3 || math.Abs(g.Card.Logs[d]-want.Logs[d]) > 1e-3 {
				t.Errorf("%s, %s: %+v, want %+v", want.Name, d, g.Card, want)
			}
		}
		if g.Spent <= 0 || g.Margin < 0.04 || g.Margin > 0.08 {
			t.Errorf("%+v", g)
		}
	}
	var cards []policy.Card
	for _, g := range got {
		cards = append(cards, g.Card)
	}
	read(t, w, policy.WithCards(cards...)) // they are what a network takes
}

func TestCalibrateStopsAtItsBudget(t *testing.T) {
	l := generated(t, 200, 8)
	budget := cost.Dollars(0.02)
	got, err := train.Calibrate(t.Context(), l.Experts(), questions(l), cost.Budget{USD: cost.Max(budget)})
	if !errors.Is(err, cost.ErrExceeded) {
		t.Fatal(err)
	}
	var spent cost.Amount
	for _, g := range got {
		spent += g.Spent
		if g.Asked < got[0].Asked-1 || g.Asked == 0 || g.Asked == 200 {
			t.Errorf("%s was asked %d times, the first %d times", g.Card.Name, g.Asked, got[0].Asked)
		}
		if s := g.Card.Skill; len(s) != 2 {
			t.Errorf("the domains did not take turns: %v", s)
		}
	}
	if spent > budget || spent < budget/2 {
		t.Errorf("spent %s of %s", spent, budget)
	}
	outer, err := cost.NewMeter("tenant", cost.Budget{USD: cost.Max(cost.Dollars(0.005))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Calibrate(cost.NewContext(t.Context(), outer), l.Experts(), questions(l), cost.Budget{USD: cost.USD(10)}); !errors.Is(err, cost.ErrExceeded) {
		t.Error("the meter of the context does not bound it:", err)
	}
}

func TestCalibrateEndsWithItsContext(t *testing.T) {
	l := generated(t, 100, 8)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	qs := questions(l)
	check := qs[10].Check
	qs[10].Check = func(a string) bool { cancel(why); return check(a) }
	got, err := train.Calibrate(ctx, l.Experts(), qs, cost.Budget{USD: cost.USD(10)})
	if !errors.Is(err, why) || len(got) != 3 || got[0].Asked == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	expert := []models.Model{modeltest.New(models.Info{Name: "a", Price: cost.Free()})}
	for name, c := range map[string]struct {
		experts []models.Model
		q       train.Question
	}{
		"nil expert": {[]models.Model{nil}, train.Question{Prompt: "x", Check: func(string) bool { return true }}},
		"no check":   {expert, train.Question{Prompt: "x"}},
		"no prompt":  {expert, train.Question{Check: func(string) bool { return true }}},
	} {
		if _, err := train.Calibrate(t.Context(), c.experts, []train.Question{c.q}, cost.Budget{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheLearningCurveIsAPicture(t *testing.T) {
	var c train.Course
	if _, err := train.Fit(t.Context(), generated(t, 200, 1), train.WithEffort(0.05), train.WithProgress(c.Add)); err != nil {
		t.Fatal(err)
	}
	var empty train.Course
	for _, c := range []*train.Course{&c, &empty} {
		var b bytes.Buffer
		if err := c.SVG(&b); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&b)
		lines := 0
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "polyline" {
				lines++
			}
		}
		if want := map[bool]int{true: 3}[c != &empty]; lines != want {
			t.Errorf("%d curves, want %d", lines, want)
		}
	}
}

func ExampleFit() {
	// A log of two models: one is dear and always right, one is cheap and right
	// where the question is easy.
	log := &replay.Log{Models: []replay.Model{{Name: "dear", In: 5, Out: 20}, {Name: "cheap", In: 0.1, Out: 0.4}}}
	for i := range 400 {
		r := replay.Row{Query: fmt.Sprintf("an easy question, number %d", i), Answer: "yes", In: 70}
		cheap := replay.Reply{Answer: "yes", Right: true, Out: 50}
		if i%2 == 0 {
			r.Query = fmt.Sprintf("a hard problem, number %d", i)
			cheap = replay.Reply{Answer: "no", Out: 50}
		}
		r.Replies = []replay.Reply{{Answer: "yes", Right: true, Out: 50}, cheap}
		log.Rows = append(log.Rows, r)
	}
	weights, err := train.Fit(context.Background(), log, train.Bound(), train.WithEffort(0.1))
	if err != nil {
		fmt.Println(err)
		return
	}
	curve, err := weights.Replay(log, []float64{0.01}, nil) // where a right answer is worth a cent
	if err != nil {
		fmt.Println(err)
		return
	}
	singles := replay.Singles(log, nil)
	p := curve.Points(nil)[0]
	fmt.Printf("dear alone is right in %.0f %% at %.2f mUSD, cheap in %.0f %%\n", 100*singles[0].Accuracy, 1000*singles[0].Cost, 100*singles[1].Accuracy)
	fmt.Println("the policy is right more often than cheap:", p.Accuracy > 0.9, "and cheaper than dear:", p.Cost < 0.7*singles[0].Cost)
	// Output:
	// dear alone is right in 100 % at 1.35 mUSD, cheap in 50 %
	// the policy is right more often than cheap: true and cheaper than dear: true
}
