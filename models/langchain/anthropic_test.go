package langchain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

const anthropicReply = `{"type":"message","role":"assistant","content":[
	{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"I compute. "},
	{"type":"tool_use","id":"t1","name":"add","input":{"a":2}},{"type":"tool_use","id":"t2","name":"now","input":{}},{"type":"text","text":"Wait."}],
	"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":7,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}}`

func TestAnthropicOnTheWire(t *testing.T) {
	s := serve(t, say(200, anthropicReply))
	var deltas []models.Delta
	got, err := mustNew(t, s.anthropic(t), langchain.Config{Info: models.Info{MaxOutput: 900}}).Generate(t.Context(), &models.Request{
		Messages: turn, Tools: []models.ToolDef{addTool}, TopP: ptr(0.5), Stop: []string{"###"}, OnDelta: func(d models.Delta) { deltas = append(deltas, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	// Usage comes with every block, and is counted once.
	want := cost.Usage{Input: 130, Output: 7, CacheRead: 100, CacheWrite: 20, Requests: 1, Known: true, Wall: got.Usage.Wall}
	if got.Text != "I compute. Wait." || got.Reasoning != "Hm." || got.Finish != models.FinishCalls || got.Usage != want {
		t.Errorf("%+v", got)
	}
	if c := got.Calls; len(c) != 2 || c[0].ID != "t1" || string(c[0].Args) != `{"a":2}` || c[1].Name != "now" || string(c[1].Args) != `{}` {
		t.Errorf("calls %+v", c)
	}
	if len(deltas) != 1 || deltas[0] != (models.Delta{Text: got.Text, Reasoning: got.Reasoning}) {
		t.Errorf("streamed %v", deltas)
	}
	body := s.body(t)
	messages := encode(t, body["messages"])
	if want := `[{"content":[{"text":"2+3 and 2*3?","type":"text"}],"role":"user"},` +
		`{"content":[{"text":"I compute.","type":"text"}],"role":"assistant"},` +
		`{"content":[{"id":"c1","input":{"a":2,"b":3},"name":"add","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"id":"c2","input":{"invalid_json":"{\"b\":3"},"name":"mul","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"content":"5","tool_use_id":"c1","type":"tool_result"}],"role":"user"},` +
		`{"content":[{"content":"bad arguments","tool_use_id":"c2","type":"tool_result"}],"role":"user"}]`; messages != want {
		t.Errorf("messages: %s", messages)
	}
	if !strings.Contains(s.raw[0], `"input_schema":`+string(addTool.Schema)) {
		t.Errorf("the keys of a schema are not in order: %s", s.raw[0])
	}
	delete(body, "messages")
	delete(body, "tools")
	if got := encode(t, body); got != `{"max_tokens":900,"model":"claude-x","stop_sequences":["###"],"system":"Be brief.\n\nBe right.","temperature":1,"top_p":0.5}` {
		t.Errorf("body: %s", got)
	}
}

// The API wants a cap, and langchaingo would make one up.
func TestAnthropicCap(t *testing.T) {
	for name, c := range map[string]struct {
		info, asked int
		want        float64
	}{
		"asked":         {900, 50, 50},
		"of the model":  {900, 0, 900},
		"of no request": {0, 0, models.DefaultMaxOutput},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, say(200, anthropicReply))
			m := mustNew(t, s.anthropic(t), langchain.Config{Info: models.Info{MaxOutput: c.info}})
			if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, MaxOutput: c.asked}); err != nil {
				t.Fatal(err)
			}
			if got := s.body(t)["max_tokens"]; got != c.want {
				t.Errorf("sent %v", got)
			}
		})
	}
}

func TestAnthropicFailures(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		is     error
		retry  bool
	}{
		"rate":           {429, `{"error":{"type":"rate_limit_error","message":"slow down"}}`, nil, true},
		"overloaded":     {529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, nil, true},
		"overflow":       {400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, models.ErrContextOverflow, false},
		"no content":     {200, `{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, models.ErrMalformed, true},
		"no stop reason": {200, `{"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"output_tokens":1}}`, models.ErrTruncated, true},
		"cut":            {200, `{"content":[{"type":"text","text":"a`, models.ErrTruncated, true},
		"a new block":    {200, `{"content":[{"type":"hologram"}],"stop_reason":"end_turn"}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, say(c.status, c.body))
			got, err := mustNew(t, s.anthropic(t), langchain.Config{}).Generate(t.Context(), &models.Request{Messages: hello})
			e := typed(t, got, err)
			if c.is != nil && !errors.Is(err, c.is) || e.Retryable != c.retry || !e.Sent || c.status != 200 && e.Status != c.status {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

// A user may ask for langchaingo's own streams all the same.
func TestAnthropicStreamsIfVouchedFor(t *testing.T) {
	event := func(kind, rest string) string { return fmt.Sprintf(`{"type":%q%s}`, kind, rest) }
	events := []string{
		event("message_start", `,"message":{"usage":{"input_tokens":9}}`),
		event("content_block_start", `,"index":0,"content_block":{"type":"text"}`),
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"Hel"}`),
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"lo"}`),
		event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}`),
		event("message_stop", ""),
	}
	for name, n := range map[string]int{"whole": len(events), "cut": 4} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, sse(events[:n]...))
			var text []string
			m := mustNew(t, s.anthropic(t), langchain.Config{Honours: langchain.Streams})
			got, err := m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(d models.Delta) { text = append(text, d.Text) }})
			if fmt.Sprint(text) != "[Hel lo]" {
				t.Errorf("streamed %q", text)
			}
			if name == "whole" {
				if err != nil || got.Text != "Hello" || !got.Usage.Known || got.Finish != models.FinishStop {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if e := typed(t, got, err); !errors.Is(err, models.ErrTruncated) || e.Partial == nil || e.Partial.Text != "Hello" {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}
