package train_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// realAdvantages is what verl's and TRL's own functions made of random groups:
// see .ci/advantages/make.py.
type realAdvantages struct {
	Versions map[string]string
	Float32  map[string]map[string]float64 `json:"float32_deviation"`
	Groups   []struct {
		Shape       string
		Rewards     []float64
		Verl        []float64
		VerlCentred []float64 `json:"verl_centred"`
		TRL         []float64
		TRLCentred  []float64 `json:"trl_centred"`
	}
}

func readReal(t *testing.T) *realAdvantages {
	t.Helper()
	f, err := os.Open("testdata/advantages.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var real realAdvantages
	if err := json.NewDecoder(z).Decode(&real); err != nil {
		t.Fatal(err)
	}
	return &real
}

// Both packages take the sample deviation. The fixture is of float64, rounded to
// nine decimals.
func TestAdvantagesAreThoseOfVerlAndTRL(t *testing.T) {
	real := readReal(t)
	if len(real.Groups) != 1000 || real.Versions["verl"] == "" || real.Versions["trl"] == "" {
		t.Fatalf("%d groups of %v", len(real.Groups), real.Versions)
	}
	furthest := map[string]float64{}
	sizes, shapes, lone := map[int]bool{}, map[string]int{}, 0
	for i, g := range real.Groups {
		sizes[len(g.Rewards)] = true
		shapes[g.Shape]++
		if len(g.Rewards) == 1 {
			lone++
		}
		for _, c := range []struct {
			name string
			want []float64
			o    train.Advantage
		}{
			{"verl", g.Verl, train.Advantage{}},
			{"verl, centred", g.VerlCentred, train.Advantage{Undivided: true}},
			{"TRL", g.TRL, train.Advantage{Eps: 1e-4}},
			{"TRL, centred", g.TRLCentred, train.Advantage{Eps: 1e-4, Undivided: true}},
		} {
			if len(g.Rewards) == 1 && c.name[0] == 'v' {
				continue // see below
			}
			got := train.Advantages(g.Rewards, c.o)
			if len(got) != len(c.want) || len(got) != len(g.Rewards) {
				t.Fatalf("group %d: %d advantages, want %d", i, len(got), len(c.want))
			}
			for j := range got {
				d := math.Abs(got[j] - c.want[j])
				if !(d <= 1e-6) {
					t.Fatalf("%s: group %d (%s) of %v: advantages %v, want %v", c.name, i, g.Shape, g.Rewards, got, c.want)
				}
				furthest[c.name] = max(furthest[c.name], d)
			}
		}
	}
	if len(sizes) != 16 || len(shapes) != 9 || lone != 20 {
		t.Errorf("the groups have %d sizes and %d shapes, and %d have one member: the fixture shows less than it should", len(sizes), len(shapes), lone)
	}
	t.Logf("of %v: furthest away %v; in float32 the packages themselves are off by %v", real.Versions, furthest, real.Float32)
}

// A member alone has nothing to be compared with, so its advantage is 0, in TRL
// too. verl gives it its own reward.
func TestALoneMemberLearnsNothingWhereVerlGivesItItsReward(t *testing.T) {
	for _, g := range readReal(t).Groups {
		if len(g.Rewards) > 1 {
			continue
		}
		r := g.Rewards[0]
		if a := train.Advantages(g.Rewards, train.Advantage{}); len(a) != 1 || a[0] != 0 || g.TRL[0] != 0 {
			t.Errorf("reward %v: advantage %v, and TRL's is %v", r, a, g.TRL)
		}
		if math.Abs(g.Verl[0]-r) > 1e-6*math.Abs(r)+1e-9 || g.VerlCentred[0] != r {
			t.Errorf("reward %v: verl's advantage is %v, centred %v", r, g.Verl, g.VerlCentred)
		}
	}
}
