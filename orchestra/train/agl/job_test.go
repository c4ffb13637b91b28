package agl

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

func TestJobReadsTheRow(t *testing.T) {
	c, err := New(Config{Client: newFake(t).client(), GroupSize: 2, Play: toy})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		input  string
		prompt string
		prefer prefs.Vector
		err    string
	}{
		"ours":         {`{"task_id":"t","prompt":"p","pref_vec":{"accuracy":1,"cost":0.5,"web_search":0.3},"never":["gpt-5"]}`, "p", prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"web_search": 0.3}, Never: []string{"gpt-5"}}, ""},
		"in columns":   {`{"prompt":"p","pref_vec":{"accuracy":1,"cost":null,"latency":null,"web_search":null},"never":null}`, "p", prefs.Vector{Accuracy: 1}, ""},
		"a question":   {`{"question":"q","pref_vec":null}`, "q", prefs.Vector{}, ""},
		"a problem":    {`{"prompt":"","problem":"r"}`, "r", prefs.Vector{}, ""},
		"a chat":       {`{"prompt":[{"role":"user","content":"x"}]}`, "", prefs.Vector{}, ""},
		"no object":    {`["x"]`, "", prefs.Vector{}, ""},
		"nothing":      {`null`, "", prefs.Vector{}, ""},
		"bad weights":  {`{"pref_vec":[1,2]}`, "", prefs.Vector{}, "pref_vec is no object"},
		"a bad weight": {`{"pref_vec":{"cost":"much"}}`, "", prefs.Vector{}, "pref_vec is no object"},
		"a bad list":   {`{"never":"gpt-5"}`, "", prefs.Vector{}, "never is no list"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := c.newJob(&Rollout{ID: "r", Input: json.RawMessage(x.input), Timeout: 100 * time.Second}, "go-1")
			if x.err != "" {
				if err == nil || !strings.Contains(err.Error(), x.err) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if j.Task.Prompt != x.prompt || !reflect.DeepEqual(j.Task.Prefer, x.prefer) || j.Task.ID != "r-go-1" || j.Task.Budget.Time != 95*time.Second {
				t.Errorf("task %+v", j.Task)
			}
			if i := j.Model.Info(); !i.Raw || !i.Tools || i.Schema || i.Context != 32768 || !i.Price.Known() {
				t.Errorf("model %+v", i)
			}
			if v := j.Policy.Info().Version; v != "trained/training" {
				t.Errorf("policy %q", v)
			}
		})
	}
}

func TestJobDecodes(t *testing.T) {
	j := &Job{Rollout: Rollout{ID: "r", Input: json.RawMessage(`{"answer":"4"}`)}}
	var row struct{ Answer string }
	if err := j.Decode(&row); err != nil || row.Answer != "4" {
		t.Errorf("%+v, %v", row, err)
	}
	var n int
	if err := j.Decode(&n); err == nil || !strings.Contains(err.Error(), "the input of rollout r") {
		t.Errorf("error %v", err)
	}
}

func TestGroupsAreToldApartByTask(t *testing.T) {
	key := func(s string) string { return groupKey(&Rollout{Input: json.RawMessage(s)}) }
	for _, x := range []struct {
		a, b string
		same bool
	}{
		{`{"task_id":"t","x":1}`, `{"task_id":"t","x":2}`, true},
		{`{"task_id":7}`, `{"task_id": 7}`, true},
		{`{"task_id":"t"}`, `{"task_id":"u"}`, false},
		{`{"q":1, "r":2}`, `{"q":1,"r":2}`, true},
		{`{"q":1}`, `{"q":2}`, false},
		{`"t"`, `{"task_id":"t"}`, false},
		{``, ``, true},
	} {
		if (key(x.a) == key(x.b)) != x.same {
			t.Errorf("%s and %s: %q, %q", x.a, x.b, key(x.a), key(x.b))
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	client := newFake(t).client()
	for field, c := range map[string]Config{
		"Config.Client":    {GroupSize: 1, Play: toy},
		"Config.GroupSize": {Client: client, Play: toy},
		"Config.Play":      {Client: client, GroupSize: 1},
		"Config.Groups":    {Client: client, GroupSize: 1, Play: toy, Groups: -1},
		"Config.Formula":   {Client: client, GroupSize: 1, Play: toy, Formula: train.Released + 1},
	} {
		var e *ConfigError
		if _, err := New(c); !errors.As(err, &e) || !strings.HasPrefix(e.Field, field) || e.Fix == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := New(Config{Client: client, GroupSize: 1, Play: toy, Model: models.Info{MaxOutput: -1}}); err == nil {
		t.Error("no error for a model with less than no output")
	}
	var e *policy.TrainedError
	if _, err := New(Config{Client: client, GroupSize: 1, Play: toy, Policy: []policy.TrainedOption{policy.WithWording(99)}}); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
}

func TestCrashes(t *testing.T) {
	none := &orchestra.RunError{Stop: orchestra.Stuck}
	failed := &orchestra.RunError{Stop: orchestra.Failed, Err: errors.New("the policy is gone")}
	res := func(s orchestra.Stop) *orchestra.Result { return &orchestra.Result{Stop: s} }
	for name, x := range map[string]struct {
		p    one
		want string
	}{
		"an answer":             {one{res: res(orchestra.Answered)}, ""},
		"no answer":             {one{res: res(orchestra.Stuck), err: none}, ""},
		"failed":                {one{res: res(orchestra.Failed), err: failed}, "the policy is gone"},
		"failed, and saved":     {one{res: res(orchestra.Failed)}, "the run failed"},
		"an error of the judge": {one{res: res(orchestra.Answered), err: errors.New("no judge")}, "no judge"},
		"an error alone":        {one{err: errors.New("no tools")}, "no tools"},
		"late":                  {one{res: res(orchestra.Canceled), err: none, late: true}, "longer than its timeout_seconds"},
	} {
		if got := x.p.crashed(); (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
