package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/agl"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// asks is a policy that asks one expert.
type asks string

func (a asks) Info() policy.Info { return policy.Info{Name: string(a), Writes: true} }

func (a asks) Decide(context.Context, *policy.State) (policy.Decision, error) {
	return policy.Decision{Calls: []policy.Call{{Tool: "answer", Args: json.RawMessage(`{"model":"` + string(a) + `"}`)}}, Finish: &policy.Finish{}}, nil
}

func TestTheToyTasksCanBePlayed(t *testing.T) {
	right := map[asks]int{}
	n := 0
	for line := range strings.Lines(tasks) {
		n++
		var row task
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		v := prefs.Vector{Accuracy: row.Prefer["accuracy"], Cost: row.Prefer["cost"], Latency: row.Prefer["latency"]}
		for name, w := range row.Prefer {
			if name == "teacher" || name == "guesser" {
				v.Use = map[string]float64{name: w}
			}
		}
		for _, expert := range []asks{"answer-1", "answer-2"} {
			j := &agl.Job{Rollout: agl.Rollout{ID: row.ID, Input: json.RawMessage(line)}, Policy: expert, Task: orchestra.Task{Prompt: row.Prompt, Prefer: v}}
			res, ok, err := play(t.Context(), j)
			if err != nil || res.Stop != orchestra.Answered {
				t.Fatalf("%s: %v", row.ID, err)
			}
			if ok {
				right[expert]++
			}
		}
	}
	if n != 16 || right["answer-1"] != n || right["answer-2"] == 0 || right["answer-2"] == n {
		t.Errorf("%d tasks, right %v: the dear expert must know all, the cheap one some", n, right)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	if err := run(t.Context(), "localhost", 8, "", "", filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), "ClientConfig.URL") {
		t.Errorf("error %v", err)
	}
}
