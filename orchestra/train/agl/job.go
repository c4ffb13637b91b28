package agl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// Job is one rollout to play.
type Job struct {
	// Rollout is the entry of the queue. Decode reads its Input.
	Rollout Rollout
	// Attempt is this one's id. A rollout has another where a controller died
	// while it played it.
	Attempt string
	// Task is what Input says in the fields of trajectories.jsonl: its Prompt is
	// "prompt", "question" or "problem", whichever is a text, and its Prefer is
	// "pref_vec" (a weight for each name, and "accuracy", "cost" and "latency") with
	// "never". Its Budget.Time is a little less than the rollout's timeout, so that
	// a run ends with what it has. Its ID is unique to the attempt: it seeds what the
	// policy samples, so rollouts of one ID would all be the same.
	Task orchestra.Task
	// Policy is policy.Trained on Model, in the wording of training.
	Policy policy.Policy
	// Model is the model under training, behind the gateway. It takes raw prompts
	// and chats with tools, so that other policies can be trained as well.
	Model models.Model

	task, category string
	paused         *pauses
}

// Decode reads the rollout's Input, the row of the data set, into v.
func (j *Job) Decode(v any) error {
	if err := json.Unmarshal(j.Rollout.Input, v); err != nil {
		return fmt.Errorf("agl: the input of rollout %s: %w", j.Rollout.ID, err)
	}
	return nil
}

// newJob prepares a rollout for Play.
func (c *Controller) newJob(r *Rollout, attempt string) (*Job, error) {
	in, err := readInput(r.Input)
	if err != nil {
		return nil, err
	}
	j := &Job{Rollout: *r, Attempt: attempt, task: in.task, category: in.category, paused: &pauses{}}
	j.Task = orchestra.Task{ID: r.ID + "-" + attempt, Prompt: in.prompt, Prefer: in.prefer}
	j.Task.Budget.Time = r.Timeout - r.Timeout/20
	base, err := c.client.Gateway(r.ID, attempt, r.Train)
	if err != nil {
		return nil, err
	}
	m, err := openai.New(c.model.Name, openai.Config{BaseURL: base, Key: c.client.key, Info: c.model, HTTP: &http.Client{
		Transport:     &patient{next: c.client.http.Transport, waited: j.paused},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, err
	}
	j.Model = models.Retry(m, models.RetryPolicy{Attempts: 4})
	j.Policy, err = policy.Trained(j.Model, append([]policy.TrainedOption{policy.WithWording(policy.Training), policy.WithMaxOutput(c.model.MaxOutput), policy.WithTokens()}, c.policy...)...)
	return j, err
}

// input is what is understood of a row.
type input struct {
	task, category, prompt string
	prefer                 prefs.Vector
}

// readInput reads a row. Fields that have another form than ours are another
// data set's, and left to Play; but preferences that cannot be meant would be
// rewarded wrongly.
func readInput(raw json.RawMessage) (input, error) {
	var in input
	var row map[string]json.RawMessage
	if json.Unmarshal(raw, &row) != nil {
		return in, nil
	}
	in.task, in.category = text(row["task_id"]), text(row["category"])
	for _, name := range []string{"prompt", "question", "problem"} {
		if in.prompt == "" {
			in.prompt = text(row[name])
		}
	}
	if p := row["pref_vec"]; given(p) {
		var weights map[string]*float64
		if err := json.Unmarshal(p, &weights); err != nil {
			return in, fmt.Errorf("agl: pref_vec is no object of names and weights: %w", err)
		}
		for name, w := range weights {
			switch {
			case w == nil: // a data set in columns gives each row the names of all rows
			case name == "accuracy":
				in.prefer.Accuracy = *w
			case name == "cost":
				in.prefer.Cost = *w
			case name == "latency":
				in.prefer.Latency = *w
			case in.prefer.Use == nil:
				in.prefer.Use = map[string]float64{name: *w}
			default:
				in.prefer.Use[name] = *w
			}
		}
	}
	if n := row["never"]; given(n) {
		if err := json.Unmarshal(n, &in.prefer.Never); err != nil {
			return in, fmt.Errorf("agl: never is no list of names: %w", err)
		}
	}
	return in, nil
}

func given(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

// text reads a string, or a number as it is written.
func text(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(b, &n) == nil {
		return n.String()
	}
	return ""
}

// groupKey tells groups apart: rollouts of one row. The trainer's own id of a
// group is not to be had, so it is the task, or else the whole row.
func groupKey(r *Rollout) string {
	in, _ := readInput(r.Input)
	if in.task != "" {
		return "task " + in.task
	}
	var b bytes.Buffer
	if json.Compact(&b, r.Input) != nil {
		return string(r.Input)
	}
	return b.String()
}

// errNoPlay is a Play that says nothing.
var errNoPlay = errors.New("agl: no run: Play returned neither a result nor an error")
