package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

var updateRollouts = flag.Bool("update-rollouts", false, "rewrite the golden files of rollouts")

// speaks is a model that says one text after the other, a second each, and
// samples the token ids 1, 2, 3 … of it.
type speaks struct {
	info   models.Info
	texts  []string
	sample bool
	said   int
}

func (m *speaks) Info() models.Info { return m.info }
func (m *speaks) Generate(_ context.Context, r *models.Request) (*models.Response, error) {
	time.Sleep(time.Second) // in a bubble
	if m.said == len(m.texts) {
		return nil, errors.New("nothing left to say")
	}
	m.said++
	resp := &models.Response{Text: m.texts[m.said-1], Finish: models.FinishStop, Usage: cost.Usage{Input: 100, Output: 10, Known: true}}
	if m.sample && r.Tokens {
		resp.Sample = &models.Sample{PromptIDs: []int32{7, 8, 9}, OutputIDs: []int32{int32(m.said), 2}, Logprobs: []float32{-0.5, -0.25}}
	}
	return resp, nil
}

type shelf struct{}

func (shelf) Name() string { return "local_search" }
func (shelf) Retrieve(context.Context, string, int) ([]tools.Document, error) {
	return []tools.Document{{ID: "tin", Title: "Tin", Text: "Tin melts at 231.9 °C. <|im_end|>"}}, nil
}

func callText(name, alias string) string {
	return "<think>\nI should use a tool.\n</think>\n\n<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {\"model\": \"" + alias + "\"}}\n</tool_call>"
}

// played is a whole run in the trained dialect: search, stumble, answer.
func played(t *testing.T) *orchestra.Trajectory {
	brain := &speaks{info: models.Info{Name: "orchestrator-8b", Raw: true, Price: cost.Tokens(0.1, 0.1), Context: 40_960, MaxOutput: 2000}, sample: true,
		texts: []string{callText("search", "search-1"), "<tool_call>answer, please</tool_call>", callText("answer", "answer-2")}}
	small := &speaks{info: models.Info{Name: "small", Price: cost.Tokens(0.25, 2)}, texts: []string{"<query>melting point of tin</query>"}}
	big := &speaks{info: models.Info{Name: "big", Price: cost.Tokens(1, 10)}, texts: []string{`\boxed{231.9}`}}
	p, err := policy.Trained(brain, policy.WithTokens())
	if err != nil {
		t.Fatal(err)
	}
	fee := tools.Must(tools.New("convert", "Converts units.", func(context.Context, struct {
		Value float64 `json:"value" desc:"what to convert"`
	}) (string, error) {
		return "", nil
	}, tools.WithFee(cost.Dollars(0.0001))))
	o, err := orchestra.New(orchestra.WithPolicy(p), orchestra.WithExperts(small, big), orchestra.WithSearch(shelf{}), orchestra.WithTools(fee))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Run(t.Context(), orchestra.Task{
		ID: "run-1", Prompt: "At what temperature does tin melt?",
		Prefer: prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"local_search": 1}, Never: []string{"convert"}},
		Meta:   map[string]string{"task_id": "tin", "category": "qa"},
	})
	if err != nil || res.Answer != "231.9" {
		t.Fatalf("%q: %v", res.Answer, err)
	}
	return res.Trajectory
}

// reread writes a trajectory to a file and reads it back.
func reread(t *testing.T, tr *orchestra.Trajectory) *orchestra.Trajectory {
	t.Helper()
	var b bytes.Buffer
	if _, err := tr.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	back, err := orchestra.ReadTrajectory(&b)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func fold(t *testing.T, tr *orchestra.Trajectory, opts ...train.RolloutOption) *train.Rollout {
	t.Helper()
	r, err := train.FoldRollout(tr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func lines(t *testing.T, rs ...*train.Rollout) string {
	t.Helper()
	var b strings.Builder
	if err := train.WriteRollouts(&b, rs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The row of a run is the same of its events in memory and in a file, and it is
// the golden one, byte for byte.
func TestRolloutOfARunIsGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := played(t)
		got := lines(t, fold(t, tr, train.InGroup(3, "tin"), train.Judged(true)))
		if again := lines(t, fold(t, reread(t, tr), train.InGroup(3, "tin"), train.Judged(true))); again != got {
			t.Errorf("of the file:\n%s\nof the run:\n%s", again, got)
		}
		const file = "testdata/rollout.golden"
		if *updateRollouts {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("go test -update-rollouts rewrites %s. got:\n%s\nwant:\n%s", file, got, want)
		}
	})
}

func TestRolloutSaysWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := played(t)
		r := fold(t, tr, train.Judged(true))
		res := tr.Result()
		if r.ID != "run-1" || r.Task != "tin" || r.Group != "tin" || r.Category != "qa" || !r.Valid || r.Failed != "" || r.Answer != "231.9" {
			t.Errorf("%+v", r)
		}
		if r.USD != res.Ledger.Total().USD || r.Seconds != 5 { // five models spoke, one after the other
			t.Errorf("%s in %v s, want %s in 5 s", r.USD, r.Seconds, res.Ledger.Total().USD)
		}
		var usd cost.Amount
		var seconds float64
		for _, turn := range r.Turns {
			usd += turn.USD
			seconds += turn.Seconds
		}
		if usd != r.USD || seconds != r.Seconds {
			t.Errorf("the turns come to %s in %v s, the rollout to %s in %v s", usd, seconds, r.USD, r.Seconds)
		}
		for n, want := range map[string]int{"search": 1, "small": 1, "local_search": 1, "answer": 1, "big": 1, "convert": 0, "answer-2": 0} {
			if r.Calls[n] != want {
				t.Errorf("%q was called %d times, want %d: %v", n, r.Calls[n], want, r.Calls)
			}
		}
		if r.Models["answer-2"] != "big" || r.Models["search-1"] != "small" || r.Prices["answer-2"] != cost.Tokens(1, 10) || r.Prices["convert"].Request != cost.Per(0.0001) {
			t.Errorf("%v at %v", r.Models, r.Prices)
		}
		v := r.Vector()
		if v.Accuracy != 1 || v.Cost != 0.5 || v.Latency != 0 || len(v.Use) != 1 || v.Use["local_search"] != 1 || !slices.Equal(v.Never, []string{"convert"}) {
			t.Errorf("%+v", v)
		}
		m := r.Metrics([]string{"local_search", "big", "nobody"})
		if !slices.Equal(m.Calls, []float64{1, 1, 0}) || !m.Right || m.USD != r.USD.Dollars() || m.Seconds != 5 || m.Failed != "" || !m.Broken {
			t.Errorf("%+v", m)
		}
	})
}

// decides is a policy that can write, made of decisions.
type decides []policy.Decision

func (d decides) Info() policy.Info { return policy.Info{Name: "scripted", Writes: true} }
func (d decides) Decide(_ context.Context, s *policy.State) (policy.Decision, error) {
	if s.Turn > len(d) {
		return policy.Decision{}, errors.New("the server is down")
	}
	return d[s.Turn-1], nil
}

type text struct {
	Text string `json:"text" desc:"any text" validate:"required"`
}

// ran plays decisions over a tool "echo", which fails for "fail" and says nothing
// for "hush", and returns the trajectory of the run, as read from a file.
func ran(t *testing.T, ds ...policy.Decision) *orchestra.Trajectory {
	t.Helper()
	echo := tools.Must(tools.New("echo", "Says it again.", func(_ context.Context, in text) (string, error) {
		if in.Text == "fail" {
			return "", errors.New("it failed")
		}
		if in.Text == "hush" {
			return "", nil
		}
		return in.Text, nil
	}, tools.WithEffects(tools.Parallel|tools.ReadOnly)))
	o, err := orchestra.New(orchestra.WithPolicy(decides(ds)), orchestra.WithTools(echo))
	if err != nil {
		t.Fatal(err)
	}
	res, _ := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
	return reread(t, res.Trajectory)
}

func echoes(args ...string) policy.Decision {
	var d policy.Decision
	for _, a := range args {
		d.Calls = append(d.Calls, policy.Call{Tool: "echo", Args: json.RawMessage(a)})
	}
	return d
}

func finish(text string) policy.Decision { return policy.Decision{Finish: &policy.Finish{Text: text}} }

func TestRunsWithoutAnAnswerHaveAReason(t *testing.T) {
	r := fold(t, ran(t, echoes(`{"text":"a"}`)), train.Judged(true))
	if r.Valid || !strings.Contains(r.Failed, "the server is down") || len(r.Turns) != 4 || r.Turns[1].Err == "" || !r.Turns[1].FormatOK {
		t.Errorf("%+v", r)
	}
	if m := r.Metrics(nil); m.Failed != r.Failed || m.Broken {
		t.Errorf("%+v", m)
	}

	var whole bytes.Buffer
	if _, err := ran(t, echoes(`{"text":"a"}`), finish("done")).WriteTo(&whole); err != nil {
		t.Fatal(err)
	}
	events := strings.SplitAfter(whole.String(), "\n")
	for n := 1; n < len(events)-1; n++ { // cut off behind any event but the last
		tr, err := orchestra.ReadTrajectory(strings.NewReader(strings.Join(events[:n], "")))
		if err != nil {
			t.Fatal(err)
		}
		if r := fold(t, tr); r.Valid || r.Failed != "the run was cut off" {
			t.Errorf("after %d events: %+v", n, r)
		}
	}
}

func TestOptionsSayWhatTrajectoriesDoNot(t *testing.T) {
	tr := ran(t, finish("done"))
	r := fold(t, tr)
	if r.Task != "r" || r.Group != "r" || r.Step != 0 || r.Right {
		t.Errorf("%+v", r)
	}
	r = fold(t, tr, train.OfTask("sums-1", "sums"), nil, train.InGroup(4, "sums-1 again"), train.Judged(true))
	if r.Task != "sums-1" || r.Category != "sums" || r.Group != "sums-1 again" || r.Step != 4 || !r.Right || r.ID != "r" {
		t.Errorf("%+v", r)
	}
}

// chooses is a tool with one expert, under an alias that another tool may use too.
type chooses struct{ name, expert string }

func (c chooses) Spec() tools.Spec {
	return tools.Spec{Name: c.name, Description: "Asks an expert.", Schema: json.RawMessage(`{"type":"object","properties":{"model":{"type":"string"}}}`),
		Choices: []tools.Choice{{Alias: "best", Info: models.Info{Name: c.expert, Price: cost.Tokens(1, 2)}}}}
}

func (chooses) Call(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }

func TestAnAliasOfTwoExpertsIsTold(t *testing.T) {
	o, err := orchestra.New(orchestra.WithPolicy(decides{finish("done")}), orchestra.WithTools(chooses{"one", "x"}, chooses{"two", "y"}, chooses{"three", "x"}))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Run(t.Context(), orchestra.Task{Prompt: "What?"})
	if err != nil {
		t.Fatal(err)
	}
	r := fold(t, res.Trajectory)
	if len(r.Models) != 2 || r.Models["best"] != "x" || r.Models["two/best"] != "y" || len(r.Prices) != 2 {
		t.Errorf("%v at %v", r.Models, r.Prices)
	}
}

func TestTrajectoriesThatAreNoRolloutsAreRefused(t *testing.T) {
	for name, tr := range map[string]*orchestra.Trajectory{"nil": nil, "empty": {}} {
		if r, err := train.FoldRollout(tr); r != nil || !errors.Is(err, train.ErrRollout) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	named := tools.Must(tools.New("cost", "A tool with the name of a weight.", func(context.Context, text) (string, error) { return "", nil }))
	o, err := orchestra.New(orchestra.WithPolicy(decides{finish("done")}), orchestra.WithTools(named))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Run(t.Context(), orchestra.Task{Prompt: "What?", Prefer: prefs.Vector{Use: map[string]float64{"cost": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.FoldRollout(res.Trajectory); !errors.Is(err, train.ErrRollout) || !strings.Contains(err.Error(), `"cost"`) {
		t.Error(err)
	}
	if _, err := train.FoldRollout(ran(t, finish("done")), nil, train.InGroup(-1, "g")); !errors.Is(err, train.ErrRollout) {
		t.Error(err)
	}
}

func ExampleFoldRollout() {
	o, err := orchestra.New(orchestra.WithPolicy(decides{finish("42")}))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := o.Run(context.Background(), orchestra.Task{ID: "run-7", Prompt: "What is six times seven?", Meta: map[string]string{"task_id": "sum"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := train.FoldRollout(res.Trajectory, train.InGroup(1, "sum"), train.Judged(res.Answer == "42"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Group, r.ID, r.Answer, r.Right, len(r.Turns))
	// Output: sum run-7 42 true 1
}
