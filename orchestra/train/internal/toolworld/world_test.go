package toolworld

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func worldOf(t *testing.T, n int, seed uint64, held bool) *World {
	t.Helper()
	w, err := New(t.Context(), n, seed, held)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// The oracle solves every kind of task with real tools, and looks for nothing
// where nothing is to be found.
func TestThePlanWorks(t *testing.T) {
	for _, held := range []bool{false, true} {
		right, of := map[Kind]float64{}, map[Kind]float64{}
		for _, in := range worldOf(t, 360, 1, held).Instances() {
			for _, e := range in.Experts {
				e.Quality = 1 // no luck is needed
			}
			out, err := in.Play(t.Context(), Oracle{in})
			if err != nil {
				t.Fatal(err)
			}
			k := in.Task.Kind
			of[k]++
			if out.Right {
				right[k]++
			}
			if (k == LookUp || k == Both) != (out.Searches > 0) {
				t.Errorf("%s: %d searches for %q", k, out.Searches, in.Task.Prompt)
			}
			if out.Unasked > 0 {
				t.Errorf("%q has an unasked effect", in.Task.Prompt)
			}
		}
		for _, k := range Kinds {
			floor := 0.85 // answers that were cut off count as wrong
			if k == Program || k == Both {
				floor = 0.55 // some instances have nothing to compute with
			}
			if right[k] < floor*of[k] {
				t.Errorf("held out %v: %s: %.0f of %.0f right", held, k, right[k], of[k])
			}
		}
	}
}

func TestInstancesGoBySeed(t *testing.T) {
	a, b, c, held := worldOf(t, 60, 1, false), worldOf(t, 60, 1, false), worldOf(t, 60, 2, false), worldOf(t, 60, 1, true)
	prompts := map[string]bool{}
	for i, in := range a.Instances() {
		if !reflect.DeepEqual(in.Task, b.Instances()[i].Task) || !reflect.DeepEqual(in.Experts, b.Instances()[i].Experts) {
			t.Fatal("one seed makes two worlds")
		}
		prompts[in.Task.Prompt] = true
	}
	for _, w := range []*World{c, held} {
		same := 0
		for _, in := range w.Instances() {
			if prompts[in.Task.Prompt] {
				same++
			}
		}
		if same > 15 { // what experts know by themselves is from short lists
			t.Errorf("%d of 60 tasks are those of another world", same)
		}
	}
}

// A wrong answer never counts as right.
func TestAnswersAreChecked(t *testing.T) {
	for _, in := range worldOf(t, 120, 3, false).Instances() {
		for answer, want := range map[string]bool{in.Task.Answer: true, "It is " + in.Task.Answer + ", I think": true,
			in.mistake("model-1"): false, "x" + in.Task.Answer + "x": false, "": false} {
			if in.right(answer) != want && strings.TrimSpace(answer) != in.Task.Answer {
				t.Errorf("%q for %q: right is %v", answer, in.Task.Answer, !want)
			}
		}
	}
}
