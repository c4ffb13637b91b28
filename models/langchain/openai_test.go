package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

const openaiReply = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],
	"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}`

// All that a request may hold arrives at an OpenAI server, and nothing that
// nobody asked for.
func TestOpenAIRequestOnTheWire(t *testing.T) {
	s := serve(t, say(200, openaiReply))
	m := mustNew(t, s.openai(t), langchain.Config{})
	if info := m.Info(); info.Provider != "openai" || !info.Tools || info.Schema || info.Raw {
		t.Errorf("%+v", info)
	}
	got, err := m.Generate(t.Context(), &models.Request{
		Messages: turn, Tools: []models.ToolDef{addTool, {Name: "now"}}, MaxOutput: 77, Temperature: ptr(0.0), Seed: ptr(int64(7)), Stop: []string{"###"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := cost.Usage{Input: 9, Output: 4, CacheRead: 5, Reasoning: 2, Requests: 1, Known: true, Wall: got.Usage.Wall}
	if got.Text != "Hi." || got.Finish != models.FinishStop || got.Usage != want || got.Usage.Wall <= 0 {
		t.Errorf("%+v", got)
	}
	body := s.body(t)
	messages := encode(t, body["messages"])
	if want := `[{"content":"Be brief.","role":"system"},{"content":"Be right.","role":"system"},{"content":"2+3 and 2*3?","role":"user"},` +
		`{"content":"I compute.","role":"assistant","tool_calls":[` +
		`{"function":{"arguments":"{\"b\":3,\"a\":2}","name":"add"},"id":"c1","type":"function"},` +
		`{"function":{"arguments":"{\"invalid_json\":\"{\\\"b\\\":3\"}","name":"mul"},"id":"c2","type":"function"}]},` +
		`{"content":"5","role":"tool","tool_call_id":"c1"},{"content":"bad arguments","role":"tool","tool_call_id":"c2"}]`; messages != want {
		t.Errorf("messages: %s", messages)
	}
	if !strings.Contains(s.raw[0], `"parameters":`+string(addTool.Schema)) || !strings.Contains(s.raw[0], `"parameters":{"type":"object","properties":{}}`) {
		t.Errorf("the keys of a schema are not in order: %s", s.raw[0])
	}
	delete(body, "messages")
	delete(body, "tools")
	if got := encode(t, body); got != `{"max_completion_tokens":77,"model":"gpt-x","seed":7,"stop":["###"],"temperature":0}` {
		t.Errorf("body: %s", got)
	}
}

func TestTemperatureThatIsUnset(t *testing.T) {
	for name, c := range map[string]struct {
		mk     func(*server, testing.TB) llms.Model
		reply  string
		config langchain.Config
		want   any
	}{
		"openai":        {(*server).openai, openaiReply, langchain.Config{}, 1.0},
		"anthropic":     {(*server).anthropic, anthropicReply, langchain.Config{}, 1.0},
		"as configured": {(*server).openai, openaiReply, langchain.Config{Temperature: ptr(0.0)}, 0.0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, say(200, c.reply))
			if _, err := mustNew(t, c.mk(s, t), c.config).Generate(t.Context(), &models.Request{Messages: hello}); err != nil {
				t.Fatal(err)
			}
			if got := s.body(t)["temperature"]; got != c.want {
				t.Errorf("sent %v", got)
			}
		})
	}
}

func TestOptionsOfConfigAreSent(t *testing.T) {
	s := serve(t, say(200, openaiReply))
	m := mustNew(t, s.openai(t), langchain.Config{Options: []llms.CallOption{nil, openai.WithLegacyMaxTokensField(), llms.WithFrequencyPenalty(0.5)}})
	if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, MaxOutput: 5}); err != nil {
		t.Fatal(err)
	}
	if b := s.body(t); b["max_tokens"] != 5.0 || b["max_completion_tokens"] != nil || b["frequency_penalty"] != 0.5 {
		t.Errorf("sent %v", b)
	}
}

func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

func delta(text, finish string) string {
	if finish == "" {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, text)
	}
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":%q}]}`, text, finish)
}

const streamUsage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}`

func TestOpenAIStream(t *testing.T) {
	s := serve(t, sse(`{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}`, delta("Hel", ""), delta("lo", ""), delta("", "stop"), streamUsage, "[DONE]"))
	m := mustNew(t, s.openai(t), langchain.Config{})
	var text, reasoning []string
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(d models.Delta) {
		if d.Text != "" {
			text = append(text, d.Text)
		}
		if d.Reasoning != "" {
			reasoning = append(reasoning, d.Reasoning)
		}
	}})
	if err != nil || got.Text != "Hello" || got.Reasoning != "Hm." || got.Finish != models.FinishStop || !got.Usage.Known {
		t.Errorf("%+v, %v", got, err)
	}
	if fmt.Sprint(text, reasoning) != "[Hel lo] [Hm.]" {
		t.Errorf("streamed %q, %q", text, reasoning)
	}
	if b := s.body(t); b["stream"] != true {
		t.Errorf("sent %v", b)
	}
}

// What langchaingo's reader of streams takes for success.
func TestOpenAIStreamsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		events  []string
		is      error
		retry   bool
		partial string
	}{
		"cut before the end":      {[]string{delta("Hel", "")}, models.ErrTruncated, true, "Hel"},
		"an error event":          {[]string{`{"error":{"message":"overloaded"}}`}, models.ErrMalformed, true, ""},
		"an error after text":     {[]string{delta("Hel", ""), `{"error":{"message":"overloaded"}}`}, models.ErrTruncated, true, "Hel"},
		"nothing":                 {nil, models.ErrMalformed, true, ""},
		"an empty answer":         {[]string{delta("", "stop"), "[DONE]"}, models.ErrMalformed, true, ""},
		"a line over 64 KiB":      {[]string{delta("Hel", ""), delta(strings.Repeat("x", 70000), "stop")}, models.ErrMalformed, false, "Hel"},
		"a legacy function call":  {[]string{`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`, "[DONE]"}, models.ErrMalformed, false, `{"name":"f","arguments":"{}"}`},
		"the server gave up":      {[]string{delta("Hel", "error"), "[DONE]"}, models.ErrTruncated, true, "Hel"},
		"nothing that is a reply": {[]string{"hello", "[DONE]"}, models.ErrMalformed, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, sse(c.events...))
			got, err := mustNew(t, s.openai(t), langchain.Config{}).Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(models.Delta) {}})
			e := typed(t, got, err)
			if !errors.Is(err, c.is) || e.Retryable != c.retry || !e.Sent {
				t.Errorf("%v: %+v", err, e)
			}
			if (e.Partial == nil) != (c.partial == "") || e.Partial != nil && e.Partial.Text != c.partial {
				t.Errorf("partial %+v", e.Partial)
			}
		})
	}
}

// A stream of calls would be garbled, so it is not asked for.
func TestOpenAIWithToolsIsNotStreamed(t *testing.T) {
	s := serve(t, say(200, `{"choices":[{"message":{"content":"Let me see.","tool_calls":[
		{"id":"a","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},{"type":"function","function":{"name":"add","arguments":""}}]},"finish_reason":"stop"}]}`))
	var deltas []models.Delta
	r := &models.Request{Messages: turn, Tools: []models.ToolDef{addTool}, OnDelta: func(d models.Delta) { deltas = append(deltas, d) }}
	got, err := mustNew(t, s.openai(t), langchain.Config{}).Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.body(t); b["stream"] != nil {
		t.Errorf("sent %v", b)
	}
	if fmt.Sprint(deltas) != "[{Let me see.  false}]" || got.Finish != models.FinishCalls || got.Usage.Known {
		t.Errorf("%v %+v", deltas, got)
	}
	if c := got.Calls; len(c) != 2 || c[0].ID != "a" || string(c[0].Args) != `{"a":1}` || c[1].ID != "call_4" || c[1].Args != nil {
		t.Errorf("calls %+v", c)
	}
}

func TestOpenAIWithToolsIsStreamedIfVouchedFor(t *testing.T) {
	s := serve(t, sse(delta("Hel", ""), delta("lo", "stop"), "[DONE]"))
	deltas := 0
	m := mustNew(t, s.openai(t), langchain.Config{Honours: langchain.Streams})
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello, Tools: []models.ToolDef{addTool}, OnDelta: func(models.Delta) { deltas++ }})
	if err != nil || got.Text != "Hello" || deltas != 2 || s.body(t)["stream"] != true {
		t.Errorf("%+v, %v in %d deltas", got, err, deltas)
	}
}

func TestOpenAIFailures(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		is     error
		want   int
		retry  bool
		say    string
	}{
		"rate":            {429, `{"error":{"message":"Rate limit reached"}}`, nil, 429, true, "Rate limit reached"},
		"rate of tokens":  {429, `{"error":{"message":"Too many tokens a minute for this context window"}}`, nil, 429, true, ""},
		"quota":           {429, `{"error":{"message":"You exceeded your current quota."}}`, nil, 429, false, "quota"},
		"overflow":        {400, `{"error":{"message":"This model's maximum context length is 8 tokens."}}`, models.ErrContextOverflow, 400, false, ""},
		"parameter":       {400, `{"error":{"message":"Unknown parameter: 'foo'."}}`, nil, 400, false, "'foo'"},
		"key":             {401, `{"error":{"message":"Incorrect key"}}`, nil, 401, false, ""},
		"server":          {503, `busy`, nil, 503, true, "503"},
		"not implemented": {501, ``, nil, 501, false, ""},
		"empty body":      {200, ``, models.ErrTruncated, 0, true, ""},
		"cut body":        {200, `{"choices":[{"message":{"content":"a`, models.ErrTruncated, 0, true, ""},
		"not JSON":        {200, `<html>`, models.ErrMalformed, 0, true, ""},
		"another type":    {200, `{"choices":7}`, models.ErrMalformed, 0, true, ""},
		"no choice":       {200, `{"choices":[]}`, models.ErrMalformed, 0, true, ""},
		"error with 200":  {200, `{"error":{"message":"it broke"}}`, models.ErrMalformed, 0, true, ""},
		"empty answer":    {200, `{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, models.ErrMalformed, 0, true, ""},
		"no function":     {200, `{"choices":[{"message":{"content":""},"finish_reason":"function_call"}]}`, models.ErrMalformed, 0, false, "panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, say(c.status, c.body))
			got, err := mustNew(t, s.openai(t), langchain.Config{}).Generate(t.Context(), &models.Request{Messages: hello})
			e := typed(t, got, err)
			if c.is != nil && !errors.Is(err, c.is) || e.Status != c.want || e.Retryable != c.retry || !e.Sent || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

func TestOpenAIOddReplies(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		text   string
		finish models.Finish
	}{
		"no finish_reason":      {`{"choices":[{"message":{"content":"a"}}]}`, "a", models.FinishStop},
		"alternatives":          {`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},{"message":{"content":"b"},"finish_reason":"stop"}]}`, "a", models.FinishStop},
		"cut at the cap":        {`{"choices":[{"message":{"content":"a"},"finish_reason":"length"}]}`, "a", models.FinishLength},
		"all cap for reasoning": {`{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`, "", models.FinishLength},
		"withheld":              {`{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}`, "", models.FinishFilter},
		"another reason":        {`{"choices":[{"message":{"content":"a"},"finish_reason":"weather"}]}`, "a", "weather"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, say(200, c.body))
			got, err := mustNew(t, s.openai(t), langchain.Config{}).Generate(t.Context(), &models.Request{Messages: hello})
			if err != nil || got.Text != c.text || got.Finish != c.finish || got.Usage.Known {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Nothing reached a server: nothing can have been billed.
func TestNotSent(t *testing.T) {
	s := serve(t, say(200, openaiReply))
	llm := s.openai(t)
	s.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	m := mustNew(t, llm, langchain.Config{})
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello})
	if e := typed(t, got, err); e.Sent || !e.Retryable {
		t.Errorf("nobody listens: %v: %+v", err, e)
	}
	got, err = m.Generate(over, &models.Request{Messages: hello})
	if e := typed(t, got, err); e.Sent || e.Retryable || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v: %+v", err, e)
	}
}

// A cancelled stream is never a success, however langchaingo returns it, and
// keeps what it had brought.
func TestCancelInMidStream(t *testing.T) {
	for range 20 {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+delta("Hel", "")+"\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		got, err := mustNew(t, s.openai(t), langchain.Config{}).Generate(ctx, &models.Request{Messages: hello, OnDelta: func(models.Delta) { cancel() }})
		e := typed(t, got, err)
		if !errors.Is(err, context.Canceled) || !e.Sent || e.Partial == nil || e.Partial.Text != "Hel" {
			t.Errorf("%v: %+v", err, e)
		}
	}
}
