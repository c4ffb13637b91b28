package toolworld

import (
	"math/rand/v2"
	"testing"
)

// A mistake has to be wrong.
func TestWrongAnswersAreWrong(t *testing.T) {
	for _, held := range []bool{false, true} {
		for _, k := range Kinds {
			for seed := range uint64(2000) {
				task := generate(rand.New(rand.NewPCG(seed, 3)), k, held)
				if task.Answer != "" && task.Answer == task.Wrong {
					t.Errorf("%s, seed %d: %q is both right and wrong: %s", k, seed, task.Answer, task.Prompt)
					break
				}
			}
		}
	}
}

// Documents of one task must not be taken for those of another.
func TestTasksOfOneWorldHaveDocumentsOfTheirOwn(t *testing.T) {
	w, err := New(t.Context(), 1500, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	seen := map[string]string{}
	for i, in := range w.Instances() {
		if want := Kinds[i%len(Kinds)]; in.Task.Kind != want {
			t.Errorf("task %d is of kind %s, want %s", i, in.Task.Kind, want)
		}
		for _, d := range in.Task.Docs {
			if text, ok := seen[d.ID]; ok {
				t.Errorf("%s: %q and %q", d.ID, text, d.Text)
			}
			seen[d.ID] = d.Text
		}
	}
}
