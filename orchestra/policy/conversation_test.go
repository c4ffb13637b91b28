package policy

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	chatInfo = models.Info{Name: "chat", Tools: true, Price: cost.Tokens(0.1, 0.4)}
	rawInfo  = models.Info{Name: "qwen3-8b", Raw: true, Price: cost.Free()}
)

// chatState is the first turn of a chat that goes on.
func chatState() *State {
	expert := func(alias, name string, in, out float64, latency time.Duration) tools.Choice {
		return tools.Choice{Alias: alias, Info: models.Info{Name: name, Price: cost.Tokens(in, out), Latency: latency}}
	}
	best := expert("answer-2", "big", 1.25, 10, 96*time.Second)
	best.Info.Skill = models.Skill{About: "best at law", Score: 0.71, Tasks: 50}
	return &State{Run: "run-1", Turn: 1, Seed: 7, Prompt: "And how hot is that in °C?", Prefer: prefs.Vector{Accuracy: 1, Cost: 0.9, Use: map[string]float64{"big": 1}},
		Limit: cost.Spend{USD: cost.Dollars(0.05)}, Left: cost.Spend{USD: cost.Dollars(0.05), Turns: 20},
		Messages: []models.Message{
			{Role: models.System, Text: "You are a metallurgist."},
			{Role: models.User, Text: "At how many kelvin does tin boil?"},
			{Role: models.Assistant, Reasoning: "I look it up.", Calls: []models.ToolCall{{ID: "call-1", Name: "search", Args: json.RawMessage(`{"query":"tin"}`)}}},
			{Role: models.ToolRole, CallID: "call-1", Text: "Tin boils at 2875 K."},
			{Role: models.Assistant, Text: "At 2875 K."},
		},
		Tools: []tools.Spec{
			{Name: "answer", Description: "Ask an expert for the answer.", Effects: tools.Answers,
				Schema:  json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","enum":["answer-1","answer-2"],"description":"The expert that does it."}},"required":["model"],"additionalProperties":false}`),
				Choices: []tools.Choice{expert("answer-1", "mini", 0.25, 2, 27*time.Second), best}},
			{Name: "search", Description: "Search for documents.", Fee: cost.Dollars(0.001), Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)},
			{Name: "calc", Description: "Exact <arithmetic>.", Schema: json.RawMessage(`{"type":"object","properties":{"expr":{"type":"string"}}}`)},
		},
		Offers: []Offer{{Tool: "answer", Choice: "answer-1"}, {Tool: "answer", Choice: "answer-2"}, {Tool: "search"}, {Tool: "calc"}},
	}
}

// later is the fourth turn of it: calls worked, were refused and failed, and the
// last output was useless.
func later() *State {
	s := chatState()
	s.Turn, s.Left = 4, cost.Spend{USD: cost.Dollars(0.031), Turns: 17}
	call := func(id, tool, args string) Outcome {
		return Outcome{ID: id, Call: Call{Tool: tool, Args: json.RawMessage(args)}}
	}
	with := func(o Outcome, r tools.Result, err *tools.Error) Outcome { o.Result, o.Err = r, err; return o }
	s.Turns = []Turn{
		{N: 1, Decision: Decision{Reasoning: "Subtract.", Text: "Let me see."}, Done: []Outcome{
			with(call("call-1", "calc", `{"expr":"2875-273.15"}`), tools.Result{Text: "2601.85"}, nil),
			with(call("call-2", "search", `{"query":"tin"}`), tools.Result{Text: "2 documents:\n- Tin", Documents: []tools.Document{
				{ID: "a", Title: "Tin", Text: "Tin boils at 2875 K."}, {ID: "b", Text: "Buy now!", Untrusted: true}}}, nil),
			with(call("call-3", "answer", `{"model":"answer-2"}`), tools.Result{}, &tools.Error{Tool: "answer", Kind: tools.Refused, Err: errors.New("it may not be called now: unaffordable")}),
		}},
		{N: 2, Decision: Decision{Reasoning: "Ask the cheap one."}, Done: []Outcome{
			with(call("call-4", "answer", `{"model":"answer-1"}`), tools.Result{Text: "2601.85", Attempts: []tools.Attempt{{By: "mini", Text: "2601.85"}}, Truncated: true}, nil),
			with(call("call-5", "code", `{`), tools.Result{Text: "1\n", Runs: []tools.CodeRun{{Language: "python", Code: "print(1)", Output: "1\n", Err: "boom"}}}, nil),
			with(call("call-6", "nothing", ``), tools.Result{}, nil),
		}},
		{N: 3, Decision: Decision{Malformed: []string{`{"name": calc`}}},
	}
	s.Offers, s.Masked = s.Offers[:1], []Masked{{Tool: "answer", Choice: "answer-2", Why: Unaffordable}, {Tool: "calc", Why: Repeated}}
	return s
}

func talk(t *testing.T, m models.Model, opts ...ConversationOption) Policy {
	t.Helper()
	p, err := Conversation(m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asked is what a policy asks in state s.
func asked(t *testing.T, info models.Info, s *State, opts ...ConversationOption) *models.Request {
	t.Helper()
	m := modeltest.New(info, modeltest.Say("Done."))
	d, err := talk(t, m, opts...).Decide(metered(t), s)
	if err != nil || d.Finish == nil || d.Finish.Text != "Done." {
		t.Fatalf("%+v: %v", d, err)
	}
	return m.Requests()[0]
}

// written is a request in a form to read and to compare.
func written(r *models.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at most %d tokens", r.MaxOutput)
	if r.Temperature != nil {
		fmt.Fprintf(&b, ", temperature %v", *r.Temperature)
	}
	b.WriteString("\n" + r.Prompt)
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "\n--- %s %s\n", m.Role, m.CallID)
		if m.Reasoning != "" {
			fmt.Fprintf(&b, "(%s)\n", m.Reasoning)
		}
		b.WriteString(m.Text + "\n")
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "%s: %s %s\n", c.ID, c.Name, c.Args)
		}
	}
	for _, d := range r.Tools {
		fmt.Fprintf(&b, "\n--- the tool %s: %s\n%s\n", d.Name, d.Description, d.Schema)
	}
	return b.String()
}

func TestConversationGoldens(t *testing.T) {
	experts := WithCallExpert(modeltest.New(models.Info{Name: "gpt-5", Tools: true, Price: cost.Tokens(1.25, 10), Latency: 40 * time.Second}))
	bare := &State{Turn: 1, Prompt: "Hello", Left: cost.Spend{USD: cost.MaxAmount}, Limit: cost.Spend{USD: cost.MaxAmount}}
	last := later()
	last.Left.Turns = 1
	for _, c := range []struct {
		name string
		got  *models.Request
	}{
		{"first", asked(t, chatInfo, chatState())},
		{"later", asked(t, chatInfo, later(), experts)},
		{"last turn", asked(t, chatInfo, last)},
		{"bare", asked(t, chatInfo, bare)},
		{"raw first", asked(t, rawInfo, chatState())},
		{"raw later", asked(t, rawInfo, later(), experts)},
		{"raw without thinking", asked(t, rawInfo, chatState(), WithoutThinking())},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join("testdata", "conversation", strings.ReplaceAll(c.name, " ", "_")+".golden")
			got := written(c.got)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; got\n%s", file, got)
			}
		})
	}
}

// What a server has cached stays good: from turn to turn all stays as it was up
// to the newest message, whatever may be called.
func TestConversationPrefixStays(t *testing.T) {
	s, next := chatState(), chatState()
	next.Turn, next.Left, next.Offers = 2, cost.Spend{USD: cost.Dollars(0.04), Turns: 19}, next.Offers[:1]
	next.Masked = []Masked{{Tool: "search", Why: Repeated}, {Tool: "answer", Choice: "answer-2", Why: Unaffordable}}
	next.Turns = later().Turns[:1]
	a, b := asked(t, chatInfo, s), asked(t, chatInfo, next)
	if !slices.EqualFunc(a.Tools, b.Tools, func(x, y models.ToolDef) bool {
		return x.Name == y.Name && x.Description == y.Description && string(x.Schema) == string(y.Schema)
	}) {
		t.Error("the tools changed")
	}
	if got := written(&models.Request{Messages: b.Messages[:len(a.Messages)]}); got != written(&models.Request{Messages: a.Messages}) {
		t.Errorf("the messages changed: %s", got)
	}
	x, y := asked(t, rawInfo, s), asked(t, rawInfo, next)
	if !strings.HasPrefix(y.Prompt, x.Prompt) {
		t.Errorf("%q does not begin with %q", y.Prompt, x.Prompt)
	}
}

func TestConversationHidesWhatIsForbidden(t *testing.T) {
	s := chatState()
	s.Prefer = prefs.Vector{Never: []string{"mini", "search", "gpt-5"}}
	s.Masked = []Masked{{Tool: "answer", Choice: "answer-1", Why: Forbidden}, {Tool: "search", Why: Forbidden}}
	x := modeltest.New(models.Info{Name: "gpt-5", Tools: true, Price: cost.Free()})
	r := asked(t, chatInfo, s, WithCallExpert(x))
	if len(r.Tools) != 2 || r.Tools[0].Name != "answer" || !strings.Contains(string(r.Tools[0].Schema), `"enum":["answer-2"]`) || r.Tools[1].Name != "calc" {
		t.Errorf("tools %+v", r.Tools)
	}
	if text := written(r); strings.Contains(text, "answer-1") || strings.Contains(text, "expert-1") || strings.Contains(r.Messages[0].Text, "search |") {
		t.Errorf("what is forbidden is shown: %s", text)
	}
	s.Masked = append(s.Masked, Masked{Tool: "answer", Choice: "answer-2", Why: Forbidden})
	if r := asked(t, chatInfo, s); len(r.Tools) != 1 {
		t.Errorf("tools %+v", r.Tools)
	}
}

func TestConversationDecisions(t *testing.T) {
	call := func(id, name, args string) models.ToolCall {
		return models.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
	}
	tagged := "<tool_call>\n{\"name\": \"calc\", \"arguments\": {\"expr\": \"1\"}}\n</tool_call>"
	for _, c := range []struct {
		name      string
		info      models.Info
		step      modeltest.Step
		calls     []string
		text      string // beside calls
		finish    string
		reasoning string
		malformed int
		truncated bool
	}{
		{name: "an answer", info: chatInfo, step: modeltest.Step{Text: " 42. \n", Reasoning: "easy"}, finish: "42.", reasoning: "easy"},
		{name: "calls with text", info: chatInfo, step: modeltest.Step{Text: "Let me see.", Reasoning: "hm", Calls: []models.ToolCall{call("x", "calc", `{"expr":"1"}`), call("", "nope", `{`)}},
			calls: []string{`x calc {"expr":"1"}`, ` nope {`}, text: "Let me see.", reasoning: "hm"},
		{name: "a call in the text", info: chatInfo, step: modeltest.Say("Look: " + tagged), calls: []string{` calc {"expr": "1"}`}, text: "Look:"},
		{name: "thinking in the text", info: chatInfo, step: modeltest.Step{Text: "<think>\nhm\n</think>\n\n42", Reasoning: "so"}, finish: "42", reasoning: "so\n\nhm"},
		{name: "thinking in the text of a call", info: chatInfo, step: modeltest.Step{Text: "<think>hm</think>", Calls: []models.ToolCall{call("x", "calc", `{}`)}}, calls: []string{"x calc {}"}, reasoning: "hm"},
		{name: "a bare call", info: chatInfo, step: modeltest.Say("```json\n{\"name\": \"calc\", \"arguments\": {}}\n```"), calls: []string{" calc {}"}},
		{name: "an answer about markup", info: chatInfo, step: modeltest.Say("Write <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call> and <|im_end|>."), finish: "Write <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call> and <|im_end|>."},
		{name: "a nameless call beside another", info: chatInfo, step: modeltest.CallTools(call("x", "", `{}`), call("y", "calc", "")), calls: []string{"y calc "}, malformed: 1},
		{name: "a call that is cut off beside another", info: chatInfo, step: modeltest.Step{Finish: models.FinishLength, Calls: []models.ToolCall{call("x", "calc", `{}`), call("y", "calc", "")}}, calls: []string{"x calc {}"}, malformed: 1},
		{name: "an answer that is cut off", info: chatInfo, step: modeltest.Step{Text: "42 and", Finish: models.FinishLength}, finish: "42 and", truncated: true},
		{name: "raw answer", info: rawInfo, step: modeltest.Say("<think>\neasy\n</think>\n\n42"), finish: "42", reasoning: "easy"},
		{name: "raw calls", info: rawInfo, step: modeltest.Say("<think>hm</think>Look:" + tagged + tagged), calls: []string{` calc {"expr": "1"}`, ` calc {"expr": "1"}`}, text: "Look:", reasoning: "hm"},
		{name: "raw, parsed by the server", info: rawInfo, step: modeltest.Step{Reasoning: "hm", Calls: []models.ToolCall{call("x", "calc", "{}")}}, calls: []string{"x calc {}"}, reasoning: "hm"},
		{name: "raw, one call broken", info: rawInfo, step: modeltest.Say(tagged + brokenCall), calls: []string{` calc {"expr": "1"}`}, malformed: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := talk(t, modeltest.New(c.info, c.step)).Decide(metered(t), chatState())
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, c := range d.Calls {
				calls = append(calls, c.ID+" "+c.Tool+" "+string(c.Args))
			}
			if !slices.Equal(calls, c.calls) || d.Text != c.text || d.Reasoning != c.reasoning || len(d.Malformed) != c.malformed || d.By != "" || d.Forced {
				t.Errorf("calls %q, decision %+v", calls, d)
			}
			if c.finish == "" && d.Finish != nil || c.finish != "" && (d.Finish == nil || *d.Finish != Finish{Text: c.finish, Truncated: c.truncated}) {
				t.Errorf("finish %+v", d.Finish)
			}
			if (d.Sample == nil) != c.info.Tools {
				t.Errorf("sample %+v", d.Sample)
			}
		})
	}
}

func TestConversationUselessOutput(t *testing.T) {
	half := modeltest.Step{Finish: models.FinishLength, Calls: []models.ToolCall{{ID: "x", Name: "calc", Args: json.RawMessage(`{"expr":"1`)}}}
	for _, c := range []struct {
		name      string
		info      models.Info
		step      modeltest.Step
		malformed int
		truncated bool
	}{
		{"empty", chatInfo, modeltest.Say(""), 0, false},
		{"only white space", chatInfo, modeltest.Say(" \n"), 0, false},
		{"only thinking", chatInfo, modeltest.Step{Reasoning: "so"}, 0, false},
		{"a nameless call", chatInfo, modeltest.CallTool("", "{}"), 1, false},
		{"a call that is cut off", chatInfo, half, 1, true},
		{"withheld", chatInfo, modeltest.Step{Text: "I c", Finish: models.FinishFilter}, 0, false},
		{"a broken call in the text", chatInfo, modeltest.Say(brokenCall), 1, false},
		{"raw empty", rawInfo, modeltest.Say(""), 0, false},
		{"raw only thinking", rawInfo, modeltest.Say("<think>so</think>"), 0, false},
		{"raw cut thinking", rawInfo, modeltest.Step{Text: "<think>so", Finish: models.FinishLength}, 0, true},
		{"raw text and cut thinking", rawInfo, modeltest.Say("42? <think>so"), 0, true},
		{"raw cut call", rawInfo, modeltest.Say(`x <tool_call>{"name": "calc", "argu`), 1, true},
		{"raw broken call", rawInfo, modeltest.Say("x" + brokenCall), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := talk(t, modeltest.New(c.info, c.step)).Decide(metered(t), chatState())
			var out *OutputError
			if !errors.Is(err, ErrMalformed) || !errors.As(err, &out) {
				t.Fatalf("%+v: %v", d, err)
			}
			if len(d.Malformed) != c.malformed || len(out.Malformed) != c.malformed || out.Truncated != c.truncated || len(d.Calls) > 0 || d.Finish != nil {
				t.Errorf("%+v: %+v", d, out)
			}
		})
	}
}

func TestConversationRequest(t *testing.T) {
	r := asked(t, chatInfo, chatState())
	if r.Temperature != nil || r.TopP != nil || r.TopK != nil || r.Seed != nil || r.Think != nil || r.Tokens || r.MaxOutput != 8000 || r.Affinity != "run-1" || r.Prompt != "" {
		t.Errorf("%+v", r)
	}
	r = asked(t, chatInfo, chatState(), WithSampling(0, 0.9, 5), WithMaxOutput(100), WithTokens(), WithoutThinking())
	if *r.Temperature != 0 || *r.TopP != 0.9 || *r.TopK != 5 || r.MaxOutput != 100 || !r.Tokens || *r.Think {
		t.Errorf("%+v", r)
	}
	r = asked(t, rawInfo, chatState())
	if *r.Temperature != 0.6 || *r.TopP != 0.95 || *r.TopK != 20 || r.Seed == nil || len(r.Messages)+len(r.Tools) > 0 {
		t.Errorf("%+v", r)
	}
	small := rawInfo
	small.Context, small.MaxOutput = 9000, 4000
	if r = asked(t, small, chatState(), WithoutThinking()); *r.Temperature != 0.7 || *r.TopP != 0.8 || r.MaxOutput != 3000 {
		t.Errorf("%+v", r)
	}
	if r = asked(t, rawInfo, chatState(), WithSampling(1, 0, 0)); *r.Temperature != 1 || r.TopP != nil {
		t.Errorf("%+v", r)
	}
	var said strings.Builder
	s := chatState()
	s.OnDelta = func(d models.Delta) { said.WriteString(d.Text) }
	if asked(t, chatInfo, s); said.String() != "Done." {
		t.Errorf("streamed %q", said.String())
	}
}

func TestConversationSample(t *testing.T) {
	m := &says{info: chatInfo, resp: models.Response{Text: "Done.", Sample: &models.Sample{PromptIDs: []int32{1}, OutputIDs: []int32{2}}}}
	d, err := talk(t, m, WithTokens()).Decide(metered(t), chatState())
	if err != nil || !slices.Equal(d.Sample.OutputIDs, []int32{2}) || !slices.Equal(d.Sample.PromptIDs, []int32{1}) {
		t.Errorf("%+v: %v", d.Sample, err)
	}
	m.info = rawInfo
	if d, err = talk(t, m).Decide(metered(t), chatState()); err != nil || d.Sample.Prompt != m.got.Prompt || len(d.Sample.OutputIDs) != 1 {
		t.Errorf("%+v: %v", d.Sample, err)
	}
}

func TestConversationRefuses(t *testing.T) {
	dumb := modeltest.New(models.Info{Name: "dumb"})
	good := modeltest.New(chatInfo)
	for name, make := range map[string]func() (Policy, error){
		"nil":            func() (Policy, error) { return Conversation(nil) },
		"no tools":       func() (Policy, error) { return Conversation(dumb) },
		"a dumb expert":  func() (Policy, error) { return Conversation(good, WithCallExpert(dumb)) },
		"no expert":      func() (Policy, error) { return Conversation(good, WithCallExpert(good, nil)) },
		"no temperature": func() (Policy, error) { return Conversation(good, WithSampling(math.NaN(), 0, 0)) },
		"no output":      func() (Policy, error) { return Conversation(good, nil, WithMaxOutput(-1)) },
	} {
		var bad *ConversationError
		if _, err := make(); !errors.As(err, &bad) || bad.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		change func(*State)
		is     error
	}{
		"two tools with a name":   {func(s *State) { s.Tools[1].Name = "calc" }, tools.ErrDuplicate},
		"a tool called like ours": {func(s *State) { s.Tools[1].Name = "call_expert" }, tools.ErrDuplicate},
		"an unknown role":         {func(s *State) { s.Messages[1].Role = "developer" }, models.ErrInvalidRequest},
	} {
		s := chatState()
		c.change(s)
		var bad *ConversationError
		if _, err := talk(t, good, WithCallExpert(good)).Decide(metered(t), s); !errors.As(err, &bad) || !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(good.Requests()); n > 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestConversationModelError(t *testing.T) {
	boom := modeltest.New(rawInfo, modeltest.Fail(models.ErrTruncated))
	if d, err := talk(t, boom).Decide(metered(t), chatState()); !errors.Is(err, models.ErrTruncated) || d.Sample == nil {
		t.Errorf("%+v: %v", d, err)
	}
	if _, err := talk(t, boom).Decide(context.Background(), chatState()); !errors.Is(err, cost.ErrNoMeter) {
		t.Errorf("without a meter: %v", err)
	}
}
