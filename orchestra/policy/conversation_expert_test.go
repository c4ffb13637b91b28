package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

var expertInfo = models.Info{Name: "gpt-5", Tools: true, Price: cost.Tokens(1.25, 10)}

const toExpert = `{"expert": "expert-1"}`

// The expert's calls or answer take the place of the turn.
func TestCallExpertTakesTheTurn(t *testing.T) {
	calc := models.ToolCall{ID: "e1", Name: "calc", Args: json.RawMessage(`{}`)}
	raw := models.Info{Name: "coder", Raw: true, Price: cost.Free()}
	tagged := "<think>\nsimple\n</think>\n\n<tool_call>\n{\"name\": \"call_expert\", \"arguments\": " + toExpert + "}\n</tool_call>"
	for _, c := range []struct {
		name   string
		info   models.Info
		own    modeltest.Step
		expert *modeltest.Model
		calls  int
		finish string
	}{
		{"an answer", chatInfo, modeltest.CallTool("call_expert", toExpert), modeltest.New(expertInfo, modeltest.Say("42")), 0, "42"},
		{"calls", chatInfo, modeltest.CallTool("call_expert", toExpert), modeltest.New(expertInfo, modeltest.CallTools(calc, calc)), 2, ""},
		{"beside other calls", chatInfo, modeltest.CallTools(calc, models.ToolCall{Name: "call_expert", Args: json.RawMessage(toExpert)}), modeltest.New(expertInfo, modeltest.Say("42")), 0, "42"},
		{"a raw expert", chatInfo, modeltest.CallTool("call_expert", toExpert), modeltest.New(raw, modeltest.Say("<think>hm</think>\n\n42")), 0, "42"},
		{"of a raw policy", rawInfo, modeltest.Say(tagged), modeltest.New(expertInfo, modeltest.Say("42")), 0, "42"},
		{"the arguments as Python", chatInfo, modeltest.CallTool("call_expert", "{'expert': 'expert-1'}"), modeltest.New(expertInfo, modeltest.Say("42")), 0, "42"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := modeltest.New(c.info, c.own)
			s := later()
			d, err := talk(t, m, WithCallExpert(c.expert)).Decide(metered(t), s)
			if err != nil || len(d.Calls) != c.calls || d.By != c.expert.Info().Name {
				t.Fatalf("%+v: %v", d, err)
			}
			if c.finish == "" && d.Finish != nil || c.finish != "" && (d.Finish == nil || d.Finish.Text != c.finish) {
				t.Errorf("finish %+v", d.Finish)
			}
			if c.info.Raw && (d.Reasoning != "simple" || d.Sample.Prompt != m.Requests()[0].Prompt) {
				t.Errorf("reasoning %q", d.Reasoning)
			}
			m.AssertDone(t)
			c.expert.AssertDone(t)
			r := c.expert.Requests()[0]
			text := written(r)
			for _, want := range []string{"You are a metallurgist.", "And how hot is that", "2601.85", "calc"} {
				if !strings.Contains(text, want) {
					t.Errorf("the expert does not see %q", want)
				}
			}
			if strings.Contains(text, "call_expert") || strings.Contains(text, "cost money") || strings.Contains(text, "Left:") {
				t.Errorf("the expert sees what is the policy's: %s", text)
			}
			if r.Tokens || r.MaxOutput != 8000 {
				t.Errorf("the expert is asked with the policy's options: %+v", r)
			}
		})
	}
}

// Nothing that the policy or the expert writes ends the run by itself.
func TestCallExpertThatFails(t *testing.T) {
	tiny := expertInfo
	tiny.Context, tiny.MaxOutput = 300, 100
	for _, c := range []struct {
		name   string
		args   string
		expert *modeltest.Model
		said   string // the next turn hears it
	}{
		{"nobody", `{"expert": "expert-7"}`, modeltest.New(expertInfo), "one of expert-1"},
		{"no arguments", ``, modeltest.New(expertInfo), "one of expert-1"},
		{"half of them", `{"expert": "expert-1`, modeltest.New(expertInfo), "one of expert-1"},
		{"not a string", `{"expert": 1}`, modeltest.New(expertInfo), "one of expert-1"},
		{"too small a context", toExpert, modeltest.New(tiny), "context of 300 tokens"},
		{"a server that says so", toExpert, modeltest.New(expertInfo, modeltest.Fail(models.ErrContextOverflow)), "exceeds the context"},
		{"no price", toExpert, modeltest.New(models.Info{Name: "gpt-5", Tools: true}), "rice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := later()
			p := talk(t, modeltest.New(chatInfo, modeltest.CallTool("call_expert", c.args), modeltest.Say("Done.")), WithCallExpert(c.expert))
			d, err := p.Decide(metered(t), s)
			var out *OutputError
			if !errors.As(err, &out) || !errors.Is(err, ErrMalformed) || len(d.Calls) > 0 || d.Finish != nil || len(d.Malformed) != 1 || !strings.Contains(d.Malformed[0], c.said) {
				t.Fatalf("%+v: %v", d, err)
			}
			c.expert.AssertDone(t)
			s.Turns = append(s.Turns, Turn{N: 4, Decision: d})
			r := asked(t, chatInfo, s)
			if last := r.Messages[len(r.Messages)-1].Text; !strings.Contains(last, "call_expert") || !strings.Contains(last, c.said) {
				t.Errorf("the next turn hears %q", last)
			}
		})
	}
	boom := modeltest.New(expertInfo, modeltest.Step{Status: 500}, modeltest.Say(""))
	m := modeltest.New(chatInfo, modeltest.Forever(modeltest.CallTool("call_expert", toExpert)))
	p := talk(t, m, WithCallExpert(boom))
	var failed *models.Error
	if _, err := p.Decide(metered(t), chatState()); !errors.As(err, &failed) || failed.Model != "gpt-5" {
		t.Errorf("error %v", err)
	}
	if d, err := p.Decide(metered(t), chatState()); !errors.Is(err, ErrMalformed) || d.By != "gpt-5" {
		t.Errorf("an empty turn of an expert: %+v: %v", d, err)
	}
}

// An expert cannot hand its turn over.
func TestCallExpertOnce(t *testing.T) {
	x := modeltest.New(expertInfo, modeltest.CallTool("call_expert", toExpert))
	d, err := talk(t, modeltest.New(chatInfo, modeltest.CallTool("call_expert", toExpert)), WithCallExpert(x)).Decide(metered(t), chatState())
	if err != nil || len(d.Calls) != 1 || d.Calls[0].Tool != "call_expert" {
		t.Errorf("%+v: %v", d, err)
	}
	x.AssertDone(t)
	s := chatState()
	s.Prefer = prefs.Vector{Never: []string{"gpt-5"}}
	m := modeltest.New(chatInfo, modeltest.CallTool("call_expert", toExpert))
	if d, err = talk(t, m, WithCallExpert(x)).Decide(metered(t), s); err != nil || len(d.Calls) != 1 || d.By != "" {
		t.Errorf("a forbidden expert: %+v: %v", d, err)
	}
}

func TestCallExpertWithinTheBudget(t *testing.T) {
	x := modeltest.New(expertInfo, modeltest.Say("42"))
	p := talk(t, modeltest.New(chatInfo, modeltest.CallTool("call_expert", toExpert)), WithCallExpert(x))
	s := chatState()
	alone := talk(t, modeltest.New(chatInfo)).Info().Estimate(s)
	e := p.Info().Estimate(s)
	// The tool and its price make the prompt longer, but the Floor is of one call.
	if e.Floor.USD > 2*alone.Floor.USD || e.Worst.USD < alone.Worst.USD+models.Estimate(x, &models.Request{Prompt: "x", MaxOutput: 8000}).Worst.USD || !e.Priced {
		t.Errorf("estimate %+v, without experts %+v", e, alone)
	}
	meter, err := cost.NewMeter("run", cost.Budget{USD: cost.Max(2 * e.Floor.USD)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Decide(cost.NewContext(context.Background(), meter), s)
	if !errors.Is(err, ErrMalformed) || errors.Is(err, cost.ErrExceeded) || len(d.Malformed) != 1 || !strings.Contains(d.Malformed[0], "budget exceeded") {
		t.Errorf("%+v: %v", d, err)
	}
	if len(x.Requests()) > 0 {
		t.Error("the expert was asked")
	}
	s.Left.USD = e.Floor.USD
	r := asked(t, chatInfo, s, WithCallExpert(x))
	if last := r.Messages[len(r.Messages)-1].Text; !strings.Contains(last, "call_expert with expert-1 (unaffordable)") {
		t.Errorf("it is not told what is unaffordable: %q", last)
	}
}

func TestCallExpertStream(t *testing.T) {
	var said []models.Delta
	s := chatState()
	s.OnDelta = func(d models.Delta) { said = append(said, d) }
	own := modeltest.CallTool("call_expert", toExpert)
	own.Text = "Hm."
	_, err := talk(t, modeltest.New(chatInfo, own), WithCallExpert(modeltest.New(expertInfo, modeltest.Say("42")))).Decide(metered(t), s)
	want := []models.Delta{{Text: "Hm."}, {Restart: true}, {Text: "42"}}
	if err != nil || len(said) != len(want) || said[0] != want[0] || said[1] != want[1] || said[2] != want[2] {
		t.Errorf("streamed %+v: %v", said, err)
	}
}
