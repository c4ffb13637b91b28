package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func offer(tool string, e tools.Effects, usd float64) policy.Offer {
	return policy.Offer{Tool: tool, Effects: e, Args: json.RawMessage("{}"), Names: []string{tool},
		Estimate: cost.Estimate{Mean: cost.Spend{USD: cost.Dollars(usd)}, Priced: true}}
}

func expertOffer(alias string, usd, skill float64) policy.Offer {
	o := offer("answer", tools.Answers|tools.ReadOnly, usd)
	o.Choice, o.Args, o.Names = alias, json.RawMessage(`{"model":"`+alias+`"}`), []string{"answer", alias}
	if skill > 0 {
		o.Skill = models.Skill{Score: skill, Tasks: 50}
	}
	return o
}

func state(offers ...policy.Offer) *policy.State {
	var specs []tools.Spec
	for _, o := range offers {
		i := slices.IndexFunc(specs, func(t tools.Spec) bool { return t.Name == o.Tool })
		if i < 0 {
			i = len(specs)
			specs = append(specs, tools.Spec{Name: o.Tool, Description: described[o.Tool], Effects: o.Effects})
		}
		if o.Choice != "" {
			specs[i].Choices = append(specs[i].Choices, tools.Choice{Alias: o.Choice, Info: models.Info{Name: o.Choice, Skill: o.Skill, Price: cost.Tokens(1, o.Estimate.Mean.USD.Dollars()*1000)}})
		}
	}
	return &policy.State{Tools: specs, Turn: 1, Prompt: "What is the default timeout of the client?", Prefer: prefs.Default(), Offers: offers,
		Left: cost.Spend{USD: cost.Dollars(0.1), Turns: 20, Time: time.Minute}, Limit: cost.Spend{USD: cost.Dollars(0.1)}}
}

// described are the tools of the states.
var described = map[string]string{"quux": "Search the documentation for passages that fit a query.", "find": "Search the documentation for passages that fit a query.", "exact": "Evaluates arithmetic exactly.", "answer": "Give the final answer to the problem."}

func with(s *policy.State, r tools.Result) *policy.State { s.Work = s.Work.With(r); return s }

func chosen(t *testing.T, p policy.Policy, s *policy.State) string {
	t.Helper()
	d, err := p.Decide(context.Background(), s)
	switch {
	case errors.Is(err, policy.ErrNothingLeft):
		return "nothing"
	case err != nil:
		t.Fatal(err)
	case d.Finish != nil:
		return "finish " + d.Finish.Attempt
	}
	if d.Reasoning == "" {
		t.Error("no reason is given")
	}
	return d.Calls[0].Tool + string(d.Calls[0].Args)
}

func TestEmbeddedDecisions(t *testing.T) {
	search := offer("find", tools.ReadOnly|tools.Idempotent, 0)
	exact := offer("exact", tools.ReadOnly|tools.Answers, 0)
	cheap, dear := expertOffer("a-1", 0.001, 0), expertOffer("a-2", 0.05, 0)
	docs := tools.Result{Documents: []tools.Document{{ID: "d", Text: "x"}}}
	attempt := func(c float64) tools.Result {
		return tools.Result{Attempts: []tools.Attempt{{Text: "x", Confidence: c}}}
	}
	ask := func(prompt string, s *policy.State) *policy.State { s.Prompt = prompt; return s }
	prefer := func(v prefs.Vector, s *policy.State) *policy.State { s.Prefer = v; return s }
	good := expertOffer("a-3", 0.05, 0.9)
	for _, c := range []struct {
		name  string
		state *policy.State
		want  string
	}{
		{"gather first", state(search, cheap), "find{}"},
		{"what computes it exactly comes before gathering", ask("What is 12 * 7?", state(search, exact, cheap)), "exact{}"},
		{"with documents, what answers without a model comes first", with(state(search, cheap, exact), docs), "exact{}"},
		{"with documents, ask the cheaper of equals", with(state(dear, cheap), docs), `answer{"model":"a-1"}`},
		{"a measured skill is worth its price", with(state(search, cheap, good), docs), `answer{"model":"a-3"}`},
		{"not to a miser", prefer(prefs.Vector{Accuracy: 0.1, Cost: 1}, with(state(search, cheap, good), docs)), `answer{"model":"a-1"}`},
		{"a preference weighs", prefer(prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"a-2": 1}}, with(state(cheap, expertOffer("a-2", 0.003, 0)), docs)), `answer{"model":"a-2"}`},
		{"a preference weighs beside tools", prefer(prefs.Vector{Accuracy: 1, Cost: 0.5, Use: map[string]float64{"a-2": 1}}, with(state(search, cheap, dear), docs)), `answer{"model":"a-2"}`},
		{"sure enough: finish", with(with(state(search, cheap), docs), attempt(0.95)), "finish attempt-1"},
		{"doubtful: ask a model", with(with(state(search, cheap), docs), attempt(0.2)), `answer{"model":"a-1"}`},
		{"doubtful, nothing else: finish", with(state(), attempt(0.3)), "finish attempt-1"},
		{"nothing at all", state(), "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := chosen(t, policy.Embedded(), c.state); got != c.want {
				t.Errorf("chose %s, want %s", got, c.want)
			}
		})
	}
}

// The weight file decides, not the code: other weights, other behaviour. And no
// name of a tool does, if it says nothing: what counts is what the words say.
func TestWeightsDecide(t *testing.T) {
	search, cheap := offer("find", tools.ReadOnly, 0), expertOffer("a-1", 0.001, 0)
	file, err := os.ReadFile("weights.json")
	if err != nil {
		t.Fatal(err)
	}
	var w map[string]any
	if err := json.Unmarshal(file, &w); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(w["features"].([]any), any("serves"))
	w["layers"].([]any)[0].(map[string]any)["weights"].([]any)[0].([]any)[at] = -20
	changed, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	other, err := policy.Learned(policy.WithGeneral(bytes.NewReader(changed)))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := chosen(t, policy.Embedded(), state(search, cheap)), chosen(t, other, state(search, cheap)); a != "find{}" || b != `answer{"model":"a-1"}` {
		t.Errorf("%s, and with other weights %s", a, b)
	}
	renamed := search
	renamed.Tool, renamed.Names = "quux", []string{"quux"}
	if got := chosen(t, policy.Embedded(), state(renamed, cheap)); got != "quux{}" {
		t.Errorf("a name made a difference: %s", got)
	}
}

func TestBadWeights(t *testing.T) {
	file, err := os.ReadFile("weights.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"not JSON":         {`"schema"`, `schema`},
		"another version":  {"policy/2", "policy/3"},
		"other features":   {`"call", "finish"`, `"finish", "call"`},
		"too few features": {`"call", `, ``},
		"too few weights":  {"    [", "    [0, "},
		"no layers":        {`"bias": [`, `"bias": [0, `},
		"not finite":       {"    [", "    [1e39, "},
		"an unknown field": {`"about"`, `"bout"`},
	} {
		changed := bytes.Replace(file, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, file) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := policy.Learned(policy.WithGeneral(bytes.NewReader(changed))); !errors.Is(err, policy.ErrWeights) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzWeights(f *testing.F) {
	file, err := os.ReadFile("weights.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(file))
	f.Add(`{"layers":[{"weights":[[]],"bias":[0]}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		p, err := policy.Learned(policy.WithGeneral(strings.NewReader(s)))
		if err != nil {
			if !errors.Is(err, policy.ErrWeights) {
				t.Fatal(err)
			}
			return
		}
		chosen(t, p, state(offer("x", 0, 0.1)))
	})
}
