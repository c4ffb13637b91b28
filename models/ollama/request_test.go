package ollama

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
)

func ptr[T any](v T) *T { return &v }

// sent returns the endpoint and body of a request, and of the load before it.
func sent(t *testing.T, c Config, r *models.Request) (path string, body, load map[string]any) {
	t.Helper()
	m := serve(t, c, func(w http.ResponseWriter, q *http.Request) {
		isALoad := isLoad(t, q)
		b, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		if q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s", q.Method, q.Header)
		}
		into := &body
		if isALoad {
			into = &load
		} else {
			path = q.URL.Path
		}
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.UseNumber()
		if err := dec.Decode(into); err != nil {
			t.Error(err)
		}
		if isALoad {
			_, _ = io.WriteString(w, loaded)
			return
		}
		_, _ = io.WriteString(w, chat("{}")+end)
	})
	if _, err := m.Generate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return path, body, load
}

// without removes fields that package api always writes.
func without(body map[string]any, names ...string) map[string]any {
	for _, n := range names {
		delete(body, n)
	}
	return body
}

func want(t *testing.T, got any, js string) {
	t.Helper()
	var w any
	dec := json.NewDecoder(strings.NewReader(js))
	dec.UseNumber()
	if err := dec.Decode(&w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, w) {
		b, _ := json.Marshal(got)
		t.Errorf("\n got %s\nwant %s", b, js)
	}
}

func TestRawBody(t *testing.T) {
	path, body, load := sent(t, Config{Context: 4096, Options: map[string]any{"num_thread": 1, "temperature": 0.1, "top_p": 0.9}, KeepAlive: -1, Info: models.Info{MaxOutput: 300}}, &models.Request{
		Prompt: "<|im_start|>a \xff", Schema: json.RawMessage(`{"z": 1, "a": 2}`), Temperature: ptr(0.5), TopK: ptr(20), Seed: ptr(int64(7)), Stop: []string{"x"}, Tokens: true,
	})
	if path != "/api/generate" {
		t.Errorf("asked %s", path)
	}
	want(t, any(without(body, "suffix", "system", "template")), `{"model":"m","prompt":"<|im_start|>a \ufffd","raw":true,"stream":true,"think":false,"truncate":false,"shift":false,
		"format":{"z":1,"a":2},"keep_alive":-1,"logprobs":true,"options":{"num_ctx":4096,"num_thread":1,"num_predict":300,"temperature":0.5,"top_p":0.9,"top_k":20,"seed":7,"stop":["x"]}}`)
	// A load has the same options of the runner, or it would be for nothing.
	want(t, any(without(load, "suffix", "system", "template")), `{"model":"m","prompt":"","raw":true,"stream":false,"keep_alive":-1,"options":{"num_ctx":4096,"num_thread":1,"temperature":0.1,"top_p":0.9}}`)
}

func TestChatBody(t *testing.T) {
	path, body, _ := sent(t, Config{KeepAlive: 90 * time.Second, Info: models.Info{Tools: true}}, &models.Request{
		MaxOutput: 5,
		Think:     ptr(true),
		Tools:     []models.ToolDef{{Name: "search", Description: "find <|im_end|>", Schema: json.RawMessage(`{"type":"object","properties":{"q":true}}`)}, {Name: "calc"}},
		Messages: []models.Message{
			{Role: models.System, Text: "be good"},
			{Role: models.User, Text: "<|im_end|>"},
			{Role: models.Assistant, Text: "let me", Reasoning: "hm", Calls: []models.ToolCall{call("c1", "search", `"{\"q\":9007199254740993}"`), call("c2", "calc", `{bad`)}},
			{Role: models.ToolRole, CallID: "c2", Text: "two"},
			{Role: models.ToolRole, CallID: "c1", Text: "</tool_response>"},
			{Role: models.Assistant, Calls: []models.ToolCall{call("", "calc", ``), call("", "search", `{}`)}},
			{Role: models.ToolRole, Text: "1"},
			{Role: models.ToolRole, Text: "2"},
			{Role: models.ToolRole, CallID: "lost", Text: "3"},
		},
	})
	if path != "/api/chat" {
		t.Errorf("asked %s", path)
	}
	want(t, any(body), `{"model":"m","stream":true,"think":true,"truncate":false,"shift":false,"keep_alive":"1m30s","options":{"num_ctx":8192,"num_predict":5},
		"tools":[{"type":"function","function":{"name":"search","description":"find < |im_end|>","parameters":{"type":"object","properties":{"q":{}}}}},
			{"type":"function","function":{"name":"calc","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"system","content":"be good"},{"role":"user","content":"< |im_end|>"},
			{"role":"assistant","content":"let me","thinking":"hm","tool_calls":[{"id":"c1","function":{"index":0,"name":"search","arguments":{"q":9007199254740993}}},{"id":"c2","function":{"index":1,"name":"calc","arguments":{"invalid_json":"{bad"}}}]},
			{"role":"tool","content":"two","tool_name":"calc","tool_call_id":"c2"},{"role":"tool","content":"< /tool_response>","tool_name":"search","tool_call_id":"c1"},
			{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"calc","arguments":{}}},{"function":{"index":1,"name":"search","arguments":{}}}]},
			{"role":"tool","content":"1","tool_name":"calc"},{"role":"tool","content":"2","tool_name":"search"},{"role":"tool","content":"3","tool_call_id":"lost"}]}`)
}

func TestThinkAndSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	for _, tt := range []struct {
		r    models.Request
		want any
	}{
		{models.Request{}, nil},
		{models.Request{Think: ptr(false)}, false},
		{models.Request{Think: ptr(true), Schema: schema}, true},
		{models.Request{Schema: schema}, false}, // or it would be ignored
	} {
		tt.r.Messages = hello
		if _, body, _ := sent(t, Config{}, &tt.r); body["think"] != tt.want {
			t.Errorf("think is %v, want %v", body["think"], tt.want)
		}
	}
}

// The options of the runner never change, so it is never loaded anew.
func TestConstantOptions(t *testing.T) {
	opts := map[string]any{"num_thread": 2}
	c := Config{Options: opts, Info: models.Info{Context: 512}}
	for _, r := range []models.Request{{Prompt: "x"}, {Messages: hello, MaxOutput: 9, Temperature: ptr(1.0)}, {Prompt: strings.Repeat("x", 10000)}} {
		_, body, load := sent(t, c, &r)
		for _, b := range []map[string]any{body, load} {
			if o := b["options"].(map[string]any); o["num_ctx"] != json.Number("512") || o["num_thread"] != json.Number("2") {
				t.Errorf("options %v", o)
			}
		}
	}
	if len(opts) != 1 {
		t.Errorf("the caller's map became %v", opts)
	}
}

// What cannot be meant is refused before anything is sent.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    *models.Request
		say  string
	}{
		{"nil", nil, "set Messages"},
		{"tools beside a prompt", &models.Request{Prompt: "x", Tools: tools}, "write them into it"},
		{"tools of a model without", &models.Request{Messages: hello, Tools: tools}, "Config.Info.Tools"},
		{"schema", &models.Request{Prompt: "x", Schema: json.RawMessage(`{`)}, "Schema is not JSON"},
		{"role", &models.Request{Messages: []models.Message{{Role: "boss"}}}, `"boss"`},
		{"not a number", &models.Request{Prompt: "x", Temperature: ptr(math.NaN())}, "NaN"},
	} {
		m := serve(t, Config{}, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: was sent", tt.name) })
		_, err := m.Generate(t.Context(), tt.r)
		if e := typed(t, err); !errors.Is(err, models.ErrInvalidRequest) || e.Sent || e.Retryable || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
	m := serve(t, Config{Info: models.Info{Tools: true}}, func(http.ResponseWriter, *http.Request) { t.Error("was sent") })
	for _, tool := range []models.ToolDef{{}, {Name: "a", Schema: json.RawMessage(`true`)}, {Name: "a", Schema: json.RawMessage(`{`)}} {
		if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, Tools: []models.ToolDef{tool}}); !errors.Is(err, models.ErrInvalidRequest) {
			t.Errorf("%+v: %v", tool, err)
		}
	}
}
