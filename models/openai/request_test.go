package openai

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func mustNew(t *testing.T, model string, c Config) *client {
	t.Helper()
	m, err := New(model, c)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*client)
}

var (
	local = Config{BaseURL: "http://localhost:8000/v1"}
	raw   = Config{BaseURL: "http://localhost:8000/v1/", Info: models.Info{Raw: true, Schema: true}}
	hello = []models.Message{{Role: models.User, Text: "Hi"}}
)

func extra(pairs ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return out
}

func TestBody(t *testing.T) {
	lookup := models.ToolDef{Name: "lookup", Description: "Finds <things>", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}`)}
	for _, tt := range []struct {
		name     string
		c        Config
		r        models.Request
		endpoint string
		want     string
	}{
		{"least", local, models.Request{Messages: hello}, "chat/completions",
			`{"messages":[{"role":"user","content":"Hi"}],"model":"m"}`},
		{"all knobs", local, models.Request{Messages: hello, MaxOutput: 64, Temperature: new(0.0), TopP: new(0.9), TopK: new(20), Seed: new(int64(7)), Stop: []string{"\n\n"}, Think: new(false)}, "chat/completions",
			`{"chat_template_kwargs":{"enable_thinking":false},"max_tokens":64,"messages":[{"role":"user","content":"Hi"}],"model":"m","seed":7,"stop":["\n\n"],"temperature":0,"top_k":20,"top_p":0.9}`},
		{"OpenAI's own cap, no unknown fields", Config{}, models.Request{Messages: hello, MaxOutput: 64, Tokens: true}, "chat/completions",
			`{"logprobs":true,"max_completion_tokens":64,"messages":[{"role":"user","content":"Hi"}],"model":"m"}`},
		{"another cap", Config{BaseURL: "http://x/v1", MaxTokensField: "max_new_tokens"}, models.Request{Messages: hello, MaxOutput: 64}, "chat/completions",
			`{"max_new_tokens":64,"messages":[{"role":"user","content":"Hi"}],"model":"m"}`},
		{"streamed, with tokens", local, models.Request{Messages: hello, Tokens: true, OnDelta: func(models.Delta) {}}, "chat/completions",
			`{"logprobs":true,"messages":[{"role":"user","content":"Hi"}],"model":"m","return_token_ids":true,"stream":true,"stream_options":{"include_usage":true}}`},
		{"raw", raw, models.Request{Prompt: "<|im_start|>", MaxOutput: 9, Tokens: true, Think: new(true), Stop: []string{"<|im_end|>"}}, "completions",
			`{"logprobs":1,"max_tokens":9,"model":"m","prompt":"<|im_start|>","return_token_ids":true,"stop":["<|im_end|>"]}`},
		{"raw with a schema", raw, models.Request{Prompt: "x", Schema: json.RawMessage(`true`)}, "completions",
			`{"model":"m","prompt":"x","response_format":{"json_schema":{"name":"output","schema":true},"type":"json_schema"}}`},
		{"tools and their history", local, models.Request{
			Messages: []models.Message{
				{Role: models.System, Text: "Be brief"},
				{Role: models.User, Text: "?"},
				{Role: models.Assistant, Reasoning: "not sent back", Calls: []models.ToolCall{
					{ID: "a", Name: "lookup", Args: json.RawMessage(`{"z": "<b>"}`)},
					{ID: "b", Name: "now"},
					{ID: "c", Name: "lookup", Args: json.RawMessage(`{"z": "cut`)},
				}},
				{Role: models.ToolRole, CallID: "a", Text: "found"},
				{Role: models.ToolRole, CallID: "b"},
				{Role: models.Assistant, Text: "Done"},
			},
			Tools: []models.ToolDef{lookup, {Name: "now"}},
		}, "chat/completions",
			`{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"?"},` +
				`{"role":"assistant","content":null,"tool_calls":[` +
				`{"id":"a","type":"function","function":{"name":"lookup","arguments":"{\"z\": \"<b>\"}"}},` +
				`{"id":"b","type":"function","function":{"name":"now","arguments":"{}"}},` +
				`{"id":"c","type":"function","function":{"name":"lookup","arguments":"{\"invalid_json\":\"{\\\"z\\\": \\\"cut\"}"}}]},` +
				`{"role":"tool","content":"found","tool_call_id":"a"},{"role":"tool","content":"","tool_call_id":"b"},{"role":"assistant","content":"Done"}],` +
				`"model":"m","tool_choice":"auto","tools":[` +
				`{"type":"function","function":{"name":"lookup","description":"Finds <things>","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}}},` +
				`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}]}`},
		{"a strict schema", local, models.Request{Messages: hello, Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["b","a"],"additionalProperties":false}`)}, "chat/completions",
			`{"messages":[{"role":"user","content":"Hi"}],"model":"m","response_format":{"json_schema":{"name":"output","schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["b","a"],"additionalProperties":false},"strict":true},"type":"json_schema"}}`},
		{"extra fields", Config{BaseURL: "http://x/v1", Extra: extra("reasoning_effort", `"low"`, "temperature", "1", "tool_choice", `"required"`, "chat_template_kwargs", `{"a":[1]}`)},
			models.Request{Messages: hello, Temperature: new(0.5), Think: new(true)}, "chat/completions",
			`{"chat_template_kwargs":{"a":[1],"enable_thinking":true},"messages":[{"role":"user","content":"Hi"}],"model":"m","reasoning_effort":"low","temperature":0.5}`},
		{"extra tool choice", Config{BaseURL: "http://x/v1", Extra: extra("tool_choice", `"required"`)}, models.Request{Messages: hello, Tools: []models.ToolDef{{Name: "now"}}}, "chat/completions",
			`{"messages":[{"role":"user","content":"Hi"}],"model":"m","tool_choice":"required","tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}]}`},
		{"invalid UTF-8", local, models.Request{
			Messages: []models.Message{{Role: models.User, Text: "a\xffb"}},
			Tools:    []models.ToolDef{{Name: "f", Schema: json.RawMessage("{\"title\":\"\xfe\"}")}},
		}, "chat/completions",
			`{"messages":[{"role":"user","content":"a\ufffdb"}],"model":"m","tool_choice":"auto","tools":[{"type":"function","function":{"name":"f","parameters":{"title":"` + "\uFFFD" + `"}}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mustNew(t, "m", tt.c)
			if err := m.check(&tt.r); err != nil {
				t.Fatal(err)
			}
			endpoint, body, err := m.body(&tt.r)
			if err != nil || endpoint != tt.endpoint || string(body) != tt.want {
				t.Errorf("%v\ngot  %s %s\nwant %s %s", err, endpoint, body, tt.endpoint, tt.want)
			}
			if !json.Valid(body) || !utf8.Valid(body) {
				t.Error("the body is not JSON in UTF-8")
			}
		})
	}
}

func TestInvalidRequests(t *testing.T) {
	chat, rawOnly := mustNew(t, "m", local), mustNew(t, "m", Config{Info: models.Info{Raw: true}})
	for _, tt := range []struct {
		name string
		m    *client
		r    *models.Request
		say  string
	}{
		{"nil", chat, nil, "empty"},
		{"empty", chat, &models.Request{}, "empty"},
		{"both", rawOnly, &models.Request{Messages: hello, Prompt: "x"}, "both"},
		{"prompt for a chat", chat, &models.Request{Prompt: "x"}, "Config.Info.Raw"},
		{"prompt and tools", rawOnly, &models.Request{Prompt: "x", Tools: []models.ToolDef{{Name: "f"}}}, "beside Prompt"},
		{"no tools", rawOnly, &models.Request{Messages: hello, Tools: []models.ToolDef{{Name: "f"}}}, "takes no tools"},
		{"no schema", rawOnly, &models.Request{Prompt: "x", Schema: json.RawMessage(`{}`)}, "obeys no schema"},
		{"broken schema", chat, &models.Request{Messages: hello, Schema: json.RawMessage(`{`)}, "not JSON"},
		{"broken tool schema", chat, &models.Request{Messages: hello, Tools: []models.ToolDef{{Name: "f", Schema: json.RawMessage(`{`)}}}, "not JSON"},
		{"nameless tool", chat, &models.Request{Messages: hello, Tools: []models.ToolDef{{}}}, "no name"},
		{"role", chat, &models.Request{Messages: []models.Message{{Role: "boss"}}}, `"boss"`},
		{"result of no call", chat, &models.Request{Messages: []models.Message{{Role: models.ToolRole}}}, "CallID"},
		{"negative cap", chat, &models.Request{Messages: hello, MaxOutput: -1}, "MaxOutput"},
		{"not a number", chat, &models.Request{Messages: hello, Temperature: new(math.NaN())}, "NaN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.m.Generate(t.Context(), tt.r)
			var e *models.Error
			if !errors.As(err, &e) || !errors.Is(err, models.ErrInvalidRequest) || e.Sent || e.Retryable || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %+v: %v, want one that says %q", e, err, tt.say)
			}
		})
	}
}

func TestStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                               true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                         true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:                             true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"array","items":{"const":1}}}}`:   true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                                            false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`:                                                         false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                      false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                         false,
		`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"],"additionalProperties":false}`:                                           false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{}}}}},"required":["a"],"additionalProperties":false}`:          false,
		`{"type":"object","properties":{"a":{"type":"array","items":true}},"required":["a"],"additionalProperties":false}`:                                             false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"object","properties":{"a":1}}}}`: false,
		`{"anyOf":[]}`:      false,
		`{"type":"string"}`: false,
		`true`:              false,
		`{`:                 false,
	} {
		if got := strict(json.RawMessage(schema)); got != want {
			t.Errorf("%s: got %v", schema, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		model string
		c     Config
		field string
	}{
		{"", Config{}, "model"},
		{"m", Config{BaseURL: "localhost:11434/v1"}, "BaseURL"},
		{"m", Config{BaseURL: "ftp://x/v1"}, "BaseURL"},
		{"m", Config{BaseURL: "http:///v1"}, "BaseURL"},
		{"m", Config{BaseURL: "http://x/\x01"}, "BaseURL"},
		{"m", Config{BaseURL: "http://x/v1/chat/completions/"}, "BaseURL"},
		{"m", Config{Key: "sk-1\n"}, "Key"},
		{"m", Config{Header: map[string][]string{"X-A": {"a\r\nB: c"}}}, "Header"},
		{"m", Config{Extra: extra("stream", "true")}, "Extra"},
		{"m", Config{Extra: extra("n", "3")}, "Extra"},
		{"m", Config{Extra: extra("max_new_tokens", "3"), MaxTokensField: "max_new_tokens"}, "Extra"},
		{"m", Config{Extra: extra("reasoning_effort", "low")}, "Extra"},
		{"m", Config{MaxTokensField: "n"}, "MaxTokensField"},
		{"m", Config{Info: models.Info{Context: -1}}, "Info"},
		{"m", Config{Info: models.Info{Price: cost.Tokens(-1, 0)}}, "Info.Price"},
	} {
		_, err := New(tt.model, tt.c)
		var e *ConfigError
		if !errors.As(err, &e) || e.Field != tt.field || e.Fix == "" {
			t.Errorf("%q %+v: got %v, want one about %s", tt.model, tt.c, err, tt.field)
		}
	}
	info := mustNew(t, "m", Config{BaseURL: "https://api.together.xyz/v1"}).Info()
	if info.Name != "m" || info.Provider != "together" || !info.Tools || !info.Schema || info.Price.Known() {
		t.Errorf("got %+v", info)
	}
	if info := mustNew(t, "m", Config{Info: models.Info{Name: "n", Provider: "p", Raw: true}}).Info(); info.Name != "n" || info.Provider != "p" || info.Tools || info.Schema {
		t.Errorf("got %+v", info)
	}
}
