package train_test

import (
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// A few megabytes that would become gigabytes are refused before they do.
func TestLinesThatGrowInMemoryAreRefused(t *testing.T) {
	const head = `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"r",`
	for what, line := range map[string]string{
		"turns":             head + `"turns":[` + strings.Repeat("{},", 1<<20) + `{}]}`,
		"turns of no kind":  head + `"turns":[` + strings.Repeat("0,", 1<<20) + `0]}`,
		"turns of null":     head + `"turns":[` + strings.Repeat("null,", 1<<20) + `null]}`,
		"messages":          head + `"turns":[{"messages":[` + strings.Repeat("{},", 1<<20) + `{}]}]}`,
		"calls":             head + `"turns":[{"tool_calls":[` + strings.Repeat("{},", 1<<20) + `{}]}]}`,
		"tools":             head + `"turns":[{"tools":[` + strings.Repeat("0,", 1<<20) + `0]}]}`,
		"turns that are {}": head + `"turns":{}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := 0
		for r, err := range train.ReadRollouts(strings.NewReader(line + "\n")) {
			n++
			if r != nil || !errors.Is(err, train.ErrRollout) {
				t.Errorf("%s: %v, %v", what, r != nil, err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; n != 1 || got > 120 {
			t.Errorf("%s: %d lines, and %d MB for a line of %d MB", what, n, got, len(line)>>20)
		}
	}
}

// A number that is none would make every weight of the policy one.
func TestAdvantagesAreFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		r    []float64
		o    train.Advantage
		zero bool
	}{
		{nil, train.Advantage{}, true},
		{[]float64{7}, train.Advantage{Eps: -1}, true},
		{[]float64{7, 7, 7}, train.Advantage{Eps: -1}, true},
		{[]float64{nan, nan}, train.Advantage{}, true},
		{[]float64{0, nan, 1}, train.Advantage{Clip: 5}, true},
		{[]float64{0, inf}, train.Advantage{}, true},
		{[]float64{0, 1e-200}, train.Advantage{Eps: -1}, true},
		{[]float64{0, 1e-200}, train.Advantage{}, false},
		{[]float64{0, 1}, train.Advantage{Eps: -1}, false},
	} {
		a := train.Advantages(c.r, c.o)
		if len(a) != len(c.r) {
			t.Errorf("%v: %v", c.r, a)
		}
		for _, x := range a {
			if x-x != 0 || (x == 0) != c.zero {
				t.Errorf("advantages of %v by %+v: %v", c.r, c.o, a)
				break
			}
		}
	}
	if d := train.Filter(make([]train.Metrics, 2), []float64{nan, 0}, train.MinStd); d[0] != train.Flat {
		t.Errorf("a reward that is no number is learned from: %q", d)
	}
	m := []train.Metrics{{Right: true, USD: 1, Seconds: 1}, {USD: 2, Seconds: 2}}
	for _, f := range []train.Formula{train.Paper, train.Released} {
		if r, err := train.Rewards(m, []float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, f); !errors.Is(err, train.ErrGroup) {
			t.Errorf("formula %d: rewards %v, %v", f, r, err)
		}
	}
}

func TestMissingRolloutsHaveIDsOfTheirOwn(t *testing.T) {
	gs := train.NewGroups(3)
	if _, err := gs.Add(member("g", "missing-1", true, .1, 1)); err != nil {
		t.Fatal(err)
	}
	g, err := gs.Close(1, "g")
	if err != nil || g.Missing != 2 || len(g.Rollouts) != 3 {
		t.Fatalf("%+v, %v", g, err)
	}
	ids := map[string]bool{}
	for _, r := range g.Rollouts {
		ids[r.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("ids %v", ids)
	}
}

// What is written can be read.
func TestListsThatCouldNotBeReadAreNotWritten(t *testing.T) {
	const most = 1 << 14
	for what, r := range map[string]*train.Rollout{
		"turns":    {Turns: make([]train.RolloutTurn, most)},
		"messages": {Turns: []train.RolloutTurn{{Messages: make([]train.RolloutMessage, most)}}},
		"calls":    {Turns: []train.RolloutTurn{{Calls: make([]train.RolloutCall, most)}}},
	} {
		r.Group, r.ID = "g", "r"
		var b strings.Builder
		if err := train.WriteRollouts(&b, r); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for got, err := range train.ReadRollouts(strings.NewReader(b.String())) {
			if err != nil || len(got.Turns) != len(r.Turns) || len(got.Turns[0].Messages) != len(r.Turns[0].Messages) || len(got.Turns[0].Calls) != len(r.Turns[0].Calls) {
				t.Errorf("%s come back otherwise: %v", what, err)
			}
		}
		switch what {
		case "turns":
			r.Turns = append(r.Turns, train.RolloutTurn{})
		case "messages":
			r.Turns[0].Messages = append(r.Turns[0].Messages, train.RolloutMessage{})
		case "calls":
			r.Turns[0].Calls = append(r.Turns[0].Calls, train.RolloutCall{})
		}
		if err := train.WriteRollouts(io.Discard, r); !errors.Is(err, train.ErrRollout) {
			t.Errorf("one more of %s: %v", what, err)
		}
	}
}
