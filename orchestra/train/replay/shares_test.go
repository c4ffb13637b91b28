package replay_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func TestSharesByHand(t *testing.T) {
	l := &replay.Log{Models: make([]replay.Model, 4)}
	m := replay.Shares(l, []replay.Outcome{{Asked: []int{0, 2}}, {Asked: []int{2}}, {}, {Asked: []int{2, 9, -1}}})
	if !slices.Equal(m, replay.Mix{.25, 0, .75, 0}) {
		t.Error(m)
	}
	if i, s := m.Largest(); i != 2 || s != .75 {
		t.Error(i, s)
	}
	if h := m.Entropy(); math.Abs(h-(.25*2+.75*math.Log2(4.0/3))) > 1e-12 {
		t.Error(h)
	}
}

func TestMixOfKnownSpreads(t *testing.T) {
	for name, c := range map[string]struct {
		m                  replay.Mix
		entropy, effective float64
		largest            int
	}{
		"collapsed":         {replay.Mix{0, 1, 0}, 0, 1, 1},
		"even over four":    {replay.Mix{.25, .25, .25, .25}, 2, 4, 0},
		"even over two":     {replay.Mix{0, .5, 0, .5}, 1, 2, 1},
		"nothing was asked": {replay.Mix{0, 0}, 0, 0, 0},
		"no models":         {nil, 0, 0, -1},
	} {
		i, _ := c.m.Largest()
		if math.Abs(c.m.Entropy()-c.entropy) > 1e-12 || math.Abs(c.m.Effective()-c.effective) > 1e-12 || i != c.largest {
			t.Errorf("%s: entropy %v, effective %v, largest %d", name, c.m.Entropy(), c.m.Effective(), i)
		}
	}
}

func TestApart(t *testing.T) {
	a, b := replay.Mix{.5, .5, 0}, replay.Mix{.25, .25, .5}
	if a.Apart(a) != 0 || a.Apart(b) != .5 || b.Apart(a) != .5 || (replay.Mix{1, 0}).Apart(replay.Mix{0, 1}) != 1 || a.Apart(nil) != 1 {
		t.Error(a.Apart(a), a.Apart(b))
	}
}

// A policy that always asks one model is far from the oracle, the oracle is not.
func TestCollapseShows(t *testing.T) {
	l := world(t, 600, 8)
	worths := []float64{1}
	oracle := replay.Shares(l, replay.Oracle(l, worths).Runs[0])
	collapsed := replay.Shares(l, replay.Single(l, replay.Strongest(l)).Runs[0])
	even := replay.Shares(l, replay.Random(l, 1).Runs[0])
	if collapsed.Effective() != 1 || oracle.Effective() < 1.4 || even.Effective() < 1.9 {
		t.Errorf("effective: collapsed %v, oracle %v, random %v", collapsed.Effective(), oracle.Effective(), even.Effective())
	}
	if d := collapsed.Apart(oracle); d < .3 {
		t.Errorf("collapsed is %.2f apart from the oracle %v", d, oracle)
	}
}

func ExampleShares() {
	l := &replay.Log{Models: []replay.Model{{Name: "small"}, {Name: "large"}}}
	policy := replay.Shares(l, []replay.Outcome{{Asked: []int{0}}, {Asked: []int{0, 1}}, {Asked: []int{0}}})
	oracle := replay.Shares(l, []replay.Outcome{{Asked: []int{0}}, {Asked: []int{1}}, {Asked: []int{0}}})
	fmt.Printf("%.2f beside %.2f, %.2f apart; %.1f models in effect\n", policy, oracle, policy.Apart(oracle), policy.Effective())
	// Output: [0.75 0.25] beside [0.67 0.33], 0.08 apart; 1.8 models in effect
}
