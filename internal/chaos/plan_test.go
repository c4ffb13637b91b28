package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// play asks a model of a plan n times and returns what was drawn for it.
func play(t *testing.T, p *chaos.Plan, point string, n int) string {
	m := p.Model(point, modeltest.New(models.Info{Name: "m"}, modeltest.Forever(modeltest.Say("hello"))))
	for range n {
		_ = caught(func() error { _, err := m.Generate(t.Context(), &models.Request{Prompt: "x"}); return err })
	}
	var mine []string
	_, all, _ := strings.Cut(p.String(), ": ")
	for _, s := range strings.Split(all, ", "+point) {
		mine = append(mine, strings.TrimPrefix(s, point))
	}
	return strings.Join(mine, ",")
}

// A seed draws the same again; another seed, or another point, draws otherwise;
// and what one point draws does not depend on the others.
func TestSeeds(t *testing.T) {
	c := chaos.Config{Rate: 0.5, Slow: time.Microsecond, Not: []chaos.Kind{chaos.Hang}}
	first := play(t, chaos.New(7, c), "a", 30)
	if again := play(t, chaos.New(7, c), "a", 30); again != first {
		t.Errorf("seed 7 drew\n%s\nand then\n%s", first, again)
	}
	if other := play(t, chaos.New(8, c), "a", 30); other == first {
		t.Error("seeds 7 and 8 draw the same")
	}
	if other := play(t, chaos.New(7, c), "b", 30); other == first {
		t.Error("points a and b draw the same")
	}
	p := chaos.New(7, c)
	play(t, p, "b", 5)
	if late := play(t, p, "a", 30); !strings.HasSuffix(late, first) {
		t.Errorf("beside another point seed 7 drew\n%s\nnot\n%s", late, first)
	}
}

// CHAOS_SEED plays one seed alone.
func TestReplay(t *testing.T) {
	list := func() (seeds []uint64) {
		for s := range chaos.Seeds(t, 3) {
			seeds = append(seeds, s)
		}
		return seeds
	}
	t.Setenv(chaos.Env, "")
	if s := list(); len(s) != 3 || s[0] != 1 || s[2] != 3 {
		t.Errorf("seeds %v", s)
	}
	t.Setenv(chaos.Env, "77")
	if s := list(); len(s) != 1 || s[0] != 77 {
		t.Errorf("seeds %v with %s=77", s, chaos.Env)
	}
}

// Every kind is drawn, and none that was excluded.
func TestKinds(t *testing.T) {
	p := chaos.New(1, chaos.Config{Rate: 1, Slow: time.Microsecond, Not: []chaos.Kind{chaos.Hang, chaos.Panic}})
	play(t, p, "a", 300)
	drawn := p.Drawn()
	if drawn[chaos.Hang]+drawn[chaos.Panic]+drawn[chaos.Jump] > 0 {
		t.Errorf("what was excluded was drawn: %v", drawn)
	}
	for _, k := range []chaos.Kind{chaos.Failure, chaos.Status, chaos.Deaf, chaos.Nothing, chaos.Truncate, chaos.NoUsage, chaos.LyingUsage, chaos.BadArgs, chaos.SameIDs, chaos.InvalidText} {
		if drawn[k] == 0 {
			t.Errorf("%s was never drawn", k)
		}
	}
}
