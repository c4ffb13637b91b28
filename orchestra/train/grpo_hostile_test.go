package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// game is a task of one decision: to call the dearer of two tools is right.
type game struct {
	n       int
	weights []float64
	play    func(task int, m train.Metrics, picked int) (train.Metrics, error)
	plays   atomic.Int64
}

func (g *game) Len() int { return g.n }

func (g *game) Weights(int) []float64 {
	if g.weights != nil {
		return g.weights
	}
	return []float64{1, 0.1, 0.1}
}

func (g *game) Play(ctx context.Context, task int, p policy.Policy) (train.Metrics, error) {
	g.plays.Add(1)
	s := &policy.State{Turn: 1, Prompt: "Do it.", Prefer: prefs.Default(), Left: cost.Spend{USD: cost.Dollars(1), Turns: 5}, Limit: cost.Spend{USD: cost.Dollars(1)}}
	for i, name := range []string{"cheap", "dear"} {
		s.Tools = append(s.Tools, tools.Spec{Name: name, Effects: tools.ReadOnly | tools.Answers})
		s.Offers = append(s.Offers, policy.Offer{Tool: name, Args: json.RawMessage("{}"), Names: []string{name}, Effects: tools.ReadOnly | tools.Answers,
			Estimate: cost.Estimate{Mean: cost.Spend{USD: cost.Dollars(0.05 * float64(i))}, Priced: true}})
	}
	d, err := p.Decide(ctx, s)
	m, picked := train.Metrics{Failed: "it gave up", USD: 0.1}, -1
	if err == nil && len(d.Calls) == 1 {
		m.Failed = ""
		if m.Right = d.Calls[0].Tool == "dear"; m.Right {
			picked = 1
		} else {
			picked = 0
		}
	}
	if g.play != nil {
		return g.play(task, m, picked)
	}
	return m, nil
}

func grpo(t *testing.T, g train.Tasks, opts ...train.GRPOOption) (*train.General, error) {
	t.Helper()
	return train.GRPO(t.Context(), nil, g, append([]train.GRPOOption{train.WithSteps(4), train.WithGroups(3, 4)}, opts...)...)
}

func file(t *testing.T, g *train.General) string {
	t.Helper()
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGRPOLearnsTheBetterTool(t *testing.T) {
	right := func(g *train.General) bool {
		p, err := g.Policy()
		if err != nil {
			t.Fatal(err)
		}
		m, err := new(game).Play(t.Context(), 0, p)
		if err != nil {
			t.Fatal(err)
		}
		return m.Right
	}
	start, err := train.ReadGeneral(bytes.NewReader(policy.ShippedWeights()))
	if err != nil {
		t.Fatal(err)
	}
	w, err := grpo(t, &game{n: 5}, train.WithSteps(150), train.WithRate(0.5)) // only the price tells the two apart
	if err != nil {
		t.Fatal(err)
	}
	if right(start) || !right(w) {
		t.Errorf("right before: %v, and after: %v", right(start), right(w))
	}
}

func TestGRPOGivesTheSameWeightsOnAnyNumberOfCoresAndAfterARestart(t *testing.T) {
	var kept [][]byte
	keep := train.WithSnapshots(1, func(b []byte) error { kept = append(kept, bytes.Clone(b)); return nil })
	whole, err := grpo(t, &game{n: 5}, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := grpo(t, &game{n: 5})
	if err != nil {
		t.Fatal(err)
	}
	if file(t, one) != file(t, whole) {
		t.Error("one core learns something else")
	}
	if len(kept) != 4 {
		t.Fatalf("%d snapshots of 4 steps", len(kept))
	}
	for i, b := range kept {
		again, err := grpo(t, &game{n: 5}, train.WithRestart(b))
		if err != nil {
			t.Fatal(err)
		}
		if file(t, again) != file(t, whole) {
			t.Errorf("from snapshot %d it comes to other weights", i)
		}
	}
}

// withoutFacts are weights of which nothing is known.
func withoutFacts(t *testing.T) *train.General {
	t.Helper()
	var w map[string]any
	if err := json.Unmarshal(policy.ShippedWeights(), &w); err != nil {
		t.Fatal(err)
	}
	delete(w, "facts")
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	g, err := train.ReadGeneral(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGRPORestartsFromWeightsWithoutFacts(t *testing.T) {
	var kept []byte
	opts := []train.GRPOOption{train.WithSteps(2), train.WithGroups(1, 2), train.WithSnapshots(1, func(b []byte) error { kept = b; return nil })}
	whole, err := train.GRPO(t.Context(), withoutFacts(t), &game{n: 1}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := train.GRPO(t.Context(), withoutFacts(t), &game{n: 1}, append(opts, train.WithRestart(kept))...)
	if err != nil {
		t.Fatal(err)
	}
	if file(t, again) != file(t, whole) {
		t.Error("it comes to other weights")
	}
}

func TestHostileTasksEndTraining(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		game *game
		is   error
	}{
		"an error": {&game{n: 3, play: func(int, train.Metrics, int) (train.Metrics, error) { return train.Metrics{}, boom }}, boom},
		"a panic":  {&game{n: 3, play: func(int, train.Metrics, int) (train.Metrics, error) { panic("boom") }}, train.ErrTrain},
		"no number": {&game{n: 3, play: func(_ int, m train.Metrics, _ int) (train.Metrics, error) {
			m.USD = math.NaN()
			return m, nil
		}}, train.ErrTrain},
		"a call too many": {&game{n: 3, play: func(_ int, m train.Metrics, _ int) (train.Metrics, error) {
			m.Calls = []float64{1}
			return m, nil
		}}, train.ErrTrain},
		"too few weights": {&game{n: 3, weights: []float64{1}}, train.ErrTrain},
		"no weights":      {&game{n: 3, weights: []float64{math.NaN(), 0, 0}}, train.ErrTrain},
		"no tasks":        {&game{}, train.ErrTrain},
	} {
		t.Run(name, func(t *testing.T) {
			if w, err := grpo(t, c.game); !errors.Is(err, c.is) || w != nil {
				t.Errorf("GRPO: %v, %v", w, err)
			}
		})
	}
	for name, play := range map[string]func(int, train.Metrics, int) (train.Metrics, error){
		"an error": func(int, train.Metrics, int) (train.Metrics, error) { return train.Metrics{}, boom },
		"a panic":  func(int, train.Metrics, int) (train.Metrics, error) { panic("boom") },
	} {
		teacher := func(int) policy.Policy { return policy.Embedded() }
		if w, err := train.Imitate(t.Context(), nil, &game{n: 3, play: play}, teacher); err == nil || w != nil {
			t.Errorf("Imitate, %s: %v, %v", name, w, err)
		}
	}
	for name, teacher := range map[string]func(int) policy.Policy{"none": func(int) policy.Policy { return nil }, "a panic": func(int) policy.Policy { panic("boom") }} {
		if w, err := train.Imitate(t.Context(), nil, &game{n: 3}, teacher); !errors.Is(err, train.ErrTrain) || w != nil {
			t.Errorf("teacher %s: %v, %v", name, w, err)
		}
	}
}

// Rollouts may cost money: none is played when one has failed.
func TestAnErrorStopsTheOtherRollouts(t *testing.T) {
	boom := errors.New("boom")
	g := &game{n: 1, play: func(int, train.Metrics, int) (train.Metrics, error) { return train.Metrics{}, boom }}
	if _, err := grpo(t, g, train.WithGroups(50, 8)); !errors.Is(err, boom) {
		t.Error(err)
	}
	if n := g.plays.Load(); n > int64(4*runtime.GOMAXPROCS(0)) {
		t.Errorf("%d rollouts were played after the first had failed", n)
	}
}

// shrinking says another number of tasks each time.
type shrinking struct {
	game
	asked atomic.Int64
}

func (s *shrinking) Len() int { return int(max(1-s.asked.Add(1)+1, 0)) }

func TestTheNumberOfTasksIsAskedOnce(t *testing.T) {
	if _, err := grpo(t, &shrinking{}); err != nil {
		t.Error(err)
	}
	if _, err := train.Imitate(t.Context(), nil, &shrinking{}, func(int) policy.Policy { return policy.Embedded() }); err != nil {
		t.Error(err)
	}
}

func TestHostileOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]train.GRPOOption{
		"groups":       train.WithGroups(math.MaxInt, 8),
		"rollouts":     train.WithGroups(8, math.MaxInt),
		"steps":        train.WithSteps(0),
		"rate":         train.WithRate(math.NaN()),
		"eps":          train.WithAdvantage(train.Advantage{Eps: math.NaN()}),
		"a boost":      train.WithAdvantage(train.Advantage{Boost: math.Inf(1), BoostFrom: -1}),
		"a snapshot":   train.WithRestart([]byte("{}")),
		"an empty one": train.WithRestart([]byte{}),
	} {
		if w, err := grpo(t, &game{n: 2}, o); !errors.Is(err, train.ErrTrain) || w != nil {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
	if w, err := train.GRPO(t.Context(), new(train.General), &game{n: 2}); !errors.Is(err, train.ErrTrain) || w != nil {
		t.Errorf("General that nobody made: %v, %v", w, err)
	}
}

// What a file says of itself comes back as it was written.
func TestGeneralWeightsKeepTheirTexts(t *testing.T) {
	const about = `see [1, 2],  [ b  c ] and "x,y" [`
	w, err := grpo(t, &game{n: 2}, train.WithAbout(about), train.WithVersion("v1 [beta 2]"))
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ About, Version string }
	if err := json.Unmarshal([]byte(file(t, w)), &said); err != nil {
		t.Fatal(err)
	}
	if said.About != about || said.Version != "v1 [beta 2]" {
		t.Errorf("%q, %q", said.About, said.Version)
	}
}

// What Write writes, Read reads: weights that are too long to read are not
// written, and nothing waits for them.
func TestGeneralWeightsAreReadBackOrNotWritten(t *testing.T) {
	if racing {
		t.Skip("reads some megabytes of numbers; nothing of it is concurrent")
	}
	var w map[string]any
	if err := json.Unmarshal(policy.ShippedWeights(), &w); err != nil {
		t.Fatal(err)
	}
	layer := func(in, out int) map[string]any {
		var rows [][]float32
		for range out {
			row := make([]float32, in)
			for k := range row {
				row[k] = 0.1234567
			}
			rows = append(rows, row)
		}
		return map[string]any{"weights": rows, "bias": make([]float32, out)}
	}
	layers := []any{layer(len(w["features"].([]any)), 256)}
	for range 6 {
		layers = append(layers, layer(256, 256))
	}
	w["layers"] = append(layers, layer(256, 1))
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	g, err := train.ReadGeneral(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var long bytes.Buffer
	if err := g.Write(&long); err != nil {
		t.Log("not written:", err)
		return
	}
	if _, err := train.ReadGeneral(strings.NewReader(long.String())); err != nil {
		t.Error(err)
	}
	if _, err := g.Policy(); err != nil {
		t.Error(err)
	}
}
