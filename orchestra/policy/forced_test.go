package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

var schemaInfo = models.Info{Name: "orchestrator-8b", Raw: true, Schema: true, Price: cost.Tokens(0.1, 0.1), Context: 40_960, MaxOutput: 8000}

const (
	rambles    = "<think>\nI should search with search-3.\n</think>\n\n"
	brokenCall = "<tool_call>search!</tool_call>"
	searchJSON = `{"name": "search", "arguments": {"model": "search-3"}}`
)

// forcedDecide asks a model of that script once.
func forcedDecide(t *testing.T, ctx context.Context, s *State, m *modeltest.Model, opts ...TrainedOption) (Decision, error) {
	t.Helper()
	p, err := Trained(m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Decide(ctx, s)
}

func TestForcedWhenNothingIsCalled(t *testing.T) {
	for _, c := range []struct {
		name, out, thought string
		finish             models.Finish
	}{
		{"thinks and stops", rambles, "I should search with search-3.", ""},
		{"empty", "", "", ""},
		{"prose", "Let me search for it.", "Let me search for it.", ""},
		{"thinking that is cut off", "<think>\nI should", "I should", models.FinishLength},
		{"control tokens in the thinking", "<think>\n<|im_start|>system x\n</think>\n\n", "< |im_start|>system x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := modeltest.Say(c.out)
			first.Finish = c.finish
			m := modeltest.New(schemaInfo, first, modeltest.Say(searchJSON))
			d, err := forcedDecide(t, metered(t), paperState(), m)
			if err != nil || !d.Forced || len(d.Calls) != 1 || d.Calls[0].Tool != "search" || string(d.Calls[0].Args) != `{"model": "search-3"}` || d.Finish != nil {
				t.Fatalf("%+v: %v", d, err)
			}
			m.AssertDone(t)
			one, two := m.Requests()[0], m.Requests()[1]
			if want := one.Prompt + "<think>\n" + c.thought + "\n</think>\n\n<tool_call>\n"; two.Prompt != want {
				t.Errorf("prompt ends in %q", strings.TrimPrefix(two.Prompt, one.Prompt))
			}
			if len(one.Schema) != 0 || len(two.Schema) == 0 || two.MaxOutput != forcedOutput || one.MaxOutput != 8000 || d.Sample.Prompt != two.Prompt {
				t.Errorf("%d and %d tokens, schema %s", one.MaxOutput, two.MaxOutput, two.Schema)
			}
		})
	}
}

// A call that cannot be read is asked for again in the ordinary way, once.
func TestForcedWhenMalformedTwice(t *testing.T) {
	m := modeltest.New(schemaInfo, modeltest.Say(brokenCall))
	s := paperState()
	d, err := forcedDecide(t, metered(t), s, m)
	if !errors.Is(err, ErrMalformed) || d.Forced {
		t.Fatalf("%+v: %v", d, err)
	}
	m.AssertDone(t)
	s.Turn, s.Turns = 2, []Turn{{N: 1, Decision: d}}
	m = modeltest.New(schemaInfo, modeltest.Say(rambles+brokenCall), modeltest.Say(searchJSON+"\n</tool_call>"))
	d, err = forcedDecide(t, metered(t), s, m)
	if err != nil || !d.Forced || len(d.Calls) != 1 || len(d.Malformed) != 1 || d.Reasoning != "I should search with search-3." {
		t.Fatalf("%+v: %v", d, err)
	}
	m.AssertDone(t)
	s.Turns = append(s.Turns, Turn{N: 2, Decision: d})
	if d, err = forcedDecide(t, metered(t), s, modeltest.New(schemaInfo, modeltest.Say(brokenCall))); err == nil || d.Forced {
		t.Errorf("a slip after a usable decision was forced: %+v", d)
	}
}

func TestForcedNever(t *testing.T) {
	without := func(change func(*models.Info)) models.Info {
		in := schemaInfo
		change(&in)
		return in
	}
	none := paperState()
	none.Offers = nil
	for _, c := range []struct {
		name  string
		info  models.Info
		state *State
		out   string
		opts  []TrainedOption
	}{
		{"no schema", without(func(i *models.Info) { i.Schema = false }), paperState(), rambles, nil},
		{"the option", schemaInfo, paperState(), rambles, []TrainedOption{WithoutForcing()}},
		{"nothing is offered", schemaInfo, none, rambles, nil},
		{"a call", schemaInfo, paperState(), "<tool_call>" + searchJSON + "</tool_call>", nil},
		{"an unknown tool", schemaInfo, paperState(), `<tool_call>{"name": "nope"}</tool_call>`, nil},
		{"free text", schemaInfo, paperState(), "2875 K", []TrainedOption{WithFreeText()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := modeltest.New(c.info, modeltest.Say(c.out))
			if d, err := forcedDecide(t, metered(t), c.state, m, c.opts...); d.Forced || err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%+v: %v", d, err)
			}
			m.AssertDone(t)
		})
	}
}

// Servers may ignore the grammar, refuse it, or fill the cap with white space.
func TestForcedOutputIsNotTrusted(t *testing.T) {
	spaces := modeltest.Step{Text: "{\"name\": \"search\"," + strings.Repeat("\n", 9000)}
	for _, c := range []struct {
		name string
		step modeltest.Step
		want string // in the error; "" = a call
	}{
		{"prose", modeltest.Say("Let me think again."), "Let me think again"},
		{"nothing", modeltest.Say(""), "no usable call"},
		{"an unknown tool", modeltest.Say(`{"name": "rm", "arguments": {}}`), `\"rm\"`},
		{"endless white space", spaces, "cut off"},
		{"white space after the call", modeltest.Step{Text: searchJSON + strings.Repeat("\n", 9000)}, ""},
		{"with tags of its own", modeltest.Say("<tool_call>\n" + searchJSON + "\n</tool_call>"), ""},
		{"as reasoning", modeltest.Step{Reasoning: searchJSON}, ""},
		{"parsed by the server", modeltest.CallTool("search", `{"model": "search-3"}`), ""},
		{"two calls", modeltest.Say(searchJSON + searchJSON), ""},
		{"the schema is refused", modeltest.Step{Status: 400, Err: errors.New("invalid grammar")}, "invalid grammar"},
		{"a cut stream", modeltest.Cut(searchJSON, 20), "ended early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := modeltest.New(schemaInfo, modeltest.Say(rambles), c.step)
			d, err := forcedDecide(t, metered(t), paperState(), m)
			m.AssertDone(t)
			if !d.Forced || d.Reasoning == "" {
				t.Errorf("decision %+v", d)
			}
			var out *OutputError
			switch {
			case c.want == "":
				if err != nil || len(d.Calls) != 1 || d.Calls[0].Tool != "search" {
					t.Errorf("%+v: %v", d, err)
				}
			case !errors.As(err, &out) || !errors.Is(err, ErrMalformed) || out.Forced == nil || len(d.Calls) > 0:
				t.Errorf("%+v: %v", d, err)
			case !strings.Contains(err.Error(), c.want) || d.Sample.Prompt != m.Requests()[0].Prompt:
				t.Errorf("error %v", err)
			}
		})
	}
}

// With the money for one call only, the forced try is left out and the loop
// hears what the first one was.
func TestForcedWithinTheBudget(t *testing.T) {
	m := modeltest.New(schemaInfo, modeltest.Lying(modeltest.Say(rambles), cost.Usage{Input: 2000, Output: 8000, Requests: 1}), modeltest.Say(searchJSON))
	p, err := Trained(m)
	if err != nil {
		t.Fatal(err)
	}
	e := p.Info().Estimate(paperState())
	plain, _ := Trained(m, WithoutForcing())
	one := plain.Info().Estimate(paperState())
	if e.Floor != one.Floor || e.Mean != one.Mean || e.Worst.USD <= one.Worst.USD || e.Worst.Tokens <= one.Worst.Tokens {
		t.Errorf("estimate %+v, of one call %+v", e, one)
	}
	for _, c := range []struct {
		limit cost.Amount
		rows  int
	}{{one.Worst.USD, 1}, {e.Worst.USD, 2}} {
		meter, err := cost.NewMeter("run", cost.Budget{USD: cost.Max(c.limit)})
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Decide(cost.NewContext(context.Background(), meter), paperState())
		rows := meter.Ledger()
		if len(rows) != c.rows || rows.Total().USD != meter.Spent().USD || meter.Spent().USD > c.limit {
			t.Errorf("%d rows, spent %v of %v", len(rows), meter.Spent().USD, c.limit)
		}
		var out *OutputError
		if c.rows == 1 {
			if !errors.As(err, &out) || !errors.Is(out.Forced, cost.ErrExceeded) || errors.Is(err, cost.ErrExceeded) || !d.Forced {
				t.Errorf("%+v: %v", d, err)
			}
			m = modeltest.New(schemaInfo, modeltest.Say(rambles), modeltest.Say(searchJSON))
			p, _ = Trained(m)
		} else if err != nil || len(d.Calls) != 1 {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestForcedWorstHolds(t *testing.T) {
	thought := strings.Repeat("tin 2875 K;\n", 3000) + "so"
	for _, n := range []models.Info{schemaInfo, {Name: "small", Raw: true, Schema: true, Price: cost.Tokens(1, 1), Context: 6000, MaxOutput: 2500}} {
		s := paperState()
		m := modeltest.New(n, modeltest.Step{Text: "<think>\n" + thought, DisobeyCap: true}, modeltest.Say(searchJSON))
		p, err := Trained(m)
		if err != nil {
			t.Fatal(err)
		}
		e := p.Info().Estimate(s)
		if d, err := p.Decide(metered(t), s); err != nil || !d.Forced {
			t.Fatalf("%+v: %v", d, err)
		}
		var sum cost.Spend
		for _, r := range m.Requests() {
			sum = sum.Add(models.Estimate(m, r).Worst)
		}
		if sum.USD > e.Worst.USD || sum.Tokens > e.Worst.Tokens {
			t.Errorf("%s: two calls may cost %v, estimated %v", n.Name, sum.USD, e.Worst.USD)
		}
		if r := m.Requests()[1]; estimate(r.Prompt)+r.MaxOutput > n.Context {
			t.Errorf("%s: %d tokens and %d of output in a context of %d", n.Name, estimate(r.Prompt), r.MaxOutput, n.Context)
		}
		if !strings.HasSuffix(m.Requests()[1].Prompt, thought[len(thought)-100:]+"\n</think>\n\n<tool_call>\n") {
			t.Errorf("%s: the end of the thinking is lost", n.Name)
		}
	}
}

func TestForcedCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(metered(t))
	m := modeltest.New(schemaInfo, modeltest.Say(rambles), modeltest.Step{Hang: true, Check: func(*models.Request) error { cancel(); return nil }})
	if _, err := forcedDecide(t, ctx, paperState(), m); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestForcedStream(t *testing.T) {
	var b strings.Builder
	s := paperState()
	s.OnDelta = func(d models.Delta) { b.WriteString(d.Text) }
	m := modeltest.New(schemaInfo, modeltest.Say(rambles), modeltest.Say(searchJSON))
	if _, err := forcedDecide(t, metered(t), s, m, WithoutThinking()); err != nil || b.String() != rambles+"\n<tool_call>\n"+searchJSON {
		t.Errorf("%q: %v", b.String(), err)
	}
	if one, two := m.Requests()[0].Prompt, m.Requests()[1].Prompt; two != one+"<tool_call>\n" {
		t.Errorf("the second prompt ends in %q", two[len(one):])
	}
}

func TestForcedAnswerEnds(t *testing.T) {
	m := modeltest.New(schemaInfo, modeltest.Say(rambles), modeltest.Say(`{"name": "answer", "arguments": {"model": "answer-1"}}`))
	d, err := forcedDecide(t, metered(t), paperState(), m, WithAllCalls())
	if err != nil || d.Finish == nil || len(d.Calls) != 1 {
		t.Errorf("%+v: %v", d, err)
	}
}

// The grammar holds what is offered, no more, in the order of registration.
func TestForcedSchema(t *testing.T) {
	s := paperState()
	s.Tools[2].Schema = json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","enum":["search-1","search-3"],"description":"who"}},"required":["model"],"additionalProperties":false}`)
	s.Tools = append(s.Tools,
		tools.Spec{Name: "plot", Schema: json.RawMessage(`{ "type": "object", "title": "T", "properties": {
			"z": {"type": ["string", "null"], "pattern": "^a", "minLength": 2, "description": "x"},
			"a": {"type": "array", "items": {"$ref": "#/$defs/p"}, "maxItems": 3},
			"m": {"oneOf": [{"type": "integer", "minimum": 1}, true], "anyOf": [{"type": "null"}]},
			"d": {"type": "object", "additionalProperties": {"type": "number"}}},
			"required": ["z", "a"], "additionalProperties": false, "$defs": {"p": {"type": "number"}} }`)},
		tools.Spec{Name: "ping"}, tools.Spec{Name: "hidden"})
	s.Offers = []Offer{{Tool: "ping"}, {Tool: "plot"}, {Tool: "search", Choice: "search-3"}}
	call := func(name, args string) string {
		return `{"type":"object","properties":{"name":{"const":"` + name + `"},"arguments":` + args + `},"required":["name","arguments"],"additionalProperties":false}`
	}
	want := `{"anyOf":[` + strings.Join([]string{
		call("search", `{"type":"object","properties":{"model":{"type":"string","enum":["search-3"]}},"required":["model"],"additionalProperties":false}`),
		call("plot", `{"type":"object","properties":{"z":{"type":["string","null"]},"a":{"type":"array","items":{}},"m":{"anyOf":[{"type":"integer"},{}]},"d":{"type":"object","additionalProperties":{"type":"number"}}},"required":["z","a"],"additionalProperties":false}`),
		call("ping", `{"type":"object"}`),
	}, ",") + `]}`
	if got := string(callSchema(s)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	first := callSchema(s)
	slices.Reverse(s.Offers)
	if string(callSchema(s)) != string(first) {
		t.Error("the order of offers changes the schema")
	}
}

func TestForcedSchemaIsNotDeep(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 100) + `{}` + strings.Repeat(`}`, 100)
	s := &State{Tools: []tools.Spec{{Name: "a", Schema: json.RawMessage(`{"properties":{"x":` + deep + `}}`)}}, Offers: []Offer{{Tool: "a"}}}
	if n := strings.Count(string(callSchema(s)), "items"); n != maxShape {
		t.Errorf("%d levels, want %d", n, maxShape)
	}
}

func TestSchemasOfExperts(t *testing.T) {
	for in, want := range map[string]string{
		``:                  `{"properties":{"model":{"enum":["a"]}}}`,
		`{"type":"object"}`: `{"type":"object","properties":{"model":{"enum":["a"]}}}`,
		`{"properties":{"q":{},"model":{"description":"d","enum":["a","b"],"type":"string"}},"required":["model"]}`: `{"properties":{"q":{},"model":{"description":"d","enum":["a"],"type":"string"}},"required":["model"]}`,
		`{"properties":7,"properties":8}`: `{"properties":{"model":{"enum":["a"]}}}`,
	} {
		if got := string(withAliases(json.RawMessage(in), []string{"a"})); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Whatever a schema says, the grammar is JSON and its arguments an object.
func FuzzCallSchema(f *testing.F) {
	for _, s := range []string{``, `{`, `true`, `{"type":"string"}`, `{"properties":{"model":{"enum":[1]}}}`, `{"type":"object","type":"object","properties":{"a":{"anyOf":[{},{"$ref":"#"}]}}}`,
		`{"properties":[],"items":{},"anyOf":{},"additionalProperties":null}`, strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		s := &State{Tools: []tools.Spec{{Name: "a", Schema: json.RawMessage(schema)}, {Name: "b", Schema: json.RawMessage(schema), Choices: []tools.Choice{{Alias: "b-1"}}}},
			Offers: []Offer{{Tool: "a"}, {Tool: "b", Choice: "b-1"}}}
		var got struct {
			AnyOf []struct {
				Properties struct {
					Name      struct{ Const string }
					Arguments struct{ Type string }
				}
			}
		}
		raw := callSchema(s)
		if err := json.Unmarshal(raw, &got); err != nil || len(got.AnyOf) != 2 || got.AnyOf[1].Properties.Name.Const != "b" {
			t.Fatalf("%s: %v", raw, err)
		}
		for _, c := range got.AnyOf {
			if c.Properties.Arguments.Type != "object" {
				t.Errorf("arguments may be no object: %s", raw)
			}
		}
	})
}
