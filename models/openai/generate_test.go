package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// serve returns a model behind a server on the loopback.
func serve(t testing.TB, c Config, h http.HandlerFunc) models.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c.BaseURL = srv.URL + "/v1"
	m, err := New("m", c)
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTP == nil {
		t.Cleanup(m.(*client).http.CloseIdleConnections)
	}
	return m
}

// say answers with a body, whose type follows from whether it looks like a stream.
func say(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasPrefix(body, "{"):
			w.Header().Set("Content-Type", "application/json")
		case strings.HasPrefix(body, "<"):
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		case strings.Contains(body, "data:"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// heard joins the deltas of a stream.
type heard struct{ text, reasoning strings.Builder }

func (h *heard) add(d models.Delta) {
	h.text.WriteString(d.Text)
	h.reasoning.WriteString(d.Reasoning)
}

func call(id, name, args string) models.ToolCall {
	return models.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func chunk(s string) string { return "data: " + s + "\n\n" }

const done = "data: [DONE]\n\n"

func TestResponses(t *testing.T) {
	usd := func(s string) *cost.Amount {
		a, err := cost.ParseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	const in1out1 = `"usage":{"prompt_tokens":1,"completion_tokens":1}`
	known := cost.Usage{Input: 1, Output: 1, Known: true}
	plain := func(message string) string {
		return `{"model":"x","choices":[{"message":` + message + `,"finish_reason":"stop"}],` + in1out1 + `}`
	}
	for _, tt := range []struct {
		name   string
		body   string
		stream bool
		raw    bool // with a Prompt, and for tokens
		want   models.Response
	}{
		{"OpenAI", file(t, "openai_chat.json"), false, false, models.Response{
			Text: "The capital of France is Paris.", Finish: models.FinishStop, Model: "gpt-5-mini-2025-08-07",
			Usage: cost.Usage{Input: 2006, CacheRead: 1920, Output: 300, Reasoning: 192, Known: true}}},
		{"OpenAI, a plain body where a stream was asked for", file(t, "openai_chat.json"), true, false, models.Response{
			Text: "The capital of France is Paris.", Finish: models.FinishStop, Model: "gpt-5-mini-2025-08-07",
			Usage: cost.Usage{Input: 2006, CacheRead: 1920, Output: 300, Reasoning: 192, Known: true}}},
		{"OpenAI, refusal", file(t, "openai_refusal.json"), false, false, models.Response{
			Text: "I cannot help with that.", Finish: models.FinishFilter, Model: "gpt-5-mini", Usage: cost.Usage{Input: 20, Output: 7, Known: true}}},
		{"OpenAI, tools in a stream", file(t, "openai_tools.sse"), true, false, models.Response{
			Text: "Let me look, für Sie.", Finish: models.FinishCalls, Model: "gpt-5-mini-2025-08-07",
			Calls: []models.ToolCall{call("call_a1", "search", `{"query":"Paris {x}"}`), call("call_a2", "calculator", `{"expression":"2*3"}`)},
			Usage: cost.Usage{Input: 182, Output: 61, Known: true}}},
		{"a stream where a plain body was asked for", file(t, "openrouter.sse"), false, false, models.Response{
			Text: "Yes.", Reasoning: "Hm.", Finish: models.FinishStop, Model: "qwen/qwen3-32b",
			Usage: cost.Usage{Input: 194, CacheRead: 64, Output: 12, Reasoning: 5, Known: true, USD: usd("0.000095")}}},
		{"vLLM, reasoning and tokens", file(t, "vllm_reasoning.sse"), true, true, models.Response{
			Text: "42", Reasoning: "Six times seven is 42.", Finish: models.FinishStop, Model: "nvidia/Nemotron-Orchestrator-8B",
			Usage:  cost.Usage{Input: 3, Output: 3, Known: true},
			Sample: &models.Sample{Prompt: "p", PromptIDs: []int32{151644, 872, 198}, OutputIDs: []int32{41460, 374, 2983}, Logprobs: []float32{-0.25, -0.5, -0.125}}}},
		{"vLLM, raw", file(t, "vllm_completion.json"), false, true, models.Response{
			Text: "<tool_call>\n", Finish: models.FinishLength, Model: "nvidia/Nemotron-Orchestrator-8B",
			Usage:  cost.Usage{Input: 2, Output: 2, Known: true},
			Sample: &models.Sample{Prompt: "p", PromptIDs: []int32{9707, 11}, OutputIDs: []int32{151657, 198}, Logprobs: []float32{-0.5, -0.25}}}},
		{"Ollama, calls that share an index", file(t, "ollama_tools.sse"), true, false, models.Response{
			Finish: models.FinishCalls, Model: "qwen3:8b",
			Calls: []models.ToolCall{call("call_x1", "search", `{"query":"a"}`), call("call_x2", "search", `{"query":"b"}`)},
			Usage: cost.Usage{Input: 180, Output: 40, Known: true}}},
		{"llama-server", file(t, "llamaserver.sse"), true, false, models.Response{
			Text: "Good day", Finish: models.FinishLength, Model: "orchestrator-8b-q4_k_m.gguf", Usage: cost.Usage{Input: 14, Output: 2, Known: true}}},
		{"OpenRouter", file(t, "openrouter.sse"), true, false, models.Response{
			Text: "Yes.", Reasoning: "Hm.", Finish: models.FinishStop, Model: "qwen/qwen3-32b",
			Usage: cost.Usage{Input: 194, CacheRead: 64, Output: 12, Reasoning: 5, Known: true, USD: usd("0.000095")}}},

		{"no [DONE], but a reason", chunk(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`), true, false,
			models.Response{Text: "a", Finish: models.FinishStop}},
		{"no reason, but [DONE]", chunk(`{"choices":[{"delta":{"content":"a"}}]}`) + done, true, false,
			models.Response{Text: "a", Finish: models.FinishStop}},
		{"nothing but an end", chunk(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`) + done, true, false,
			models.Response{Finish: models.FinishStop}},
		{"raw stream", chunk(`{"choices":[{"text":"a"}]}`) + chunk(`{"choices":[{"text":"b","finish_reason":"stop"}]}`) + done, true, true,
			models.Response{Text: "ab", Finish: models.FinishStop}},
		{"a whole message in a stream", chunk(`{"choices":[{"message":{"content":"a","tool_calls":[{"id":"x","function":{"name":"f"}}]},"finish_reason":"stop"}]}`) + done, true, false,
			models.Response{Text: "a", Calls: []models.ToolCall{{ID: "x", Name: "f"}}, Finish: models.FinishCalls}},
		{"a refusal in a stream", chunk(`{"choices":[{"delta":{"refusal":"No"}}]}`) + chunk(`{"choices":[{"delta":{"refusal":"."},"finish_reason":"stop"}]}`) + done, true, false,
			models.Response{Text: "No.", Finish: models.FinishFilter}},
		{"a legacy call in a stream", chunk(`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}]}`) + chunk(`{"choices":[{"delta":{"function_call":{"arguments":"}"}},"finish_reason":"function_call"}]}`) + done, true, false,
			models.Response{Calls: []models.ToolCall{call("", "f", "{}")}, Finish: models.FinishCalls}},
		{"more choices than asked for", chunk(`{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"}}]}`) + done, true, false,
			models.Response{Text: "a", Finish: models.FinishStop}},
		{"more whole choices", `{"choices":[{"index":1,"text":"a","finish_reason":"stop"},{"index":0,"text":"b"}]}`, false, true,
			models.Response{Text: "a", Finish: models.FinishStop}},
		{"null content", plain(`{"content":null,"tool_calls":null,"function_call":null}`), false, false, models.Response{Finish: models.FinishStop, Model: "x", Usage: known}},
		{"parts", plain(`{"content":["a",{"type":"text","text":"b"},{"type":"image_url"},{"type":"thinking","thinking":[{"type":"text","text":"r"}]}]}`), false, false,
			models.Response{Text: "ab", Reasoning: "r", Finish: models.FinishStop, Model: "x", Usage: known}},
		{"reasoning", plain(`{"content":"a","reasoning":"r"}`), false, false, models.Response{Text: "a", Reasoning: "r", Finish: models.FinishStop, Model: "x", Usage: known}},
		{"whole calls", plain(`{"tool_calls":[{"id":"x","index":0,"function":{"name":"f","arguments":{"a":"<"}}},{"id":"x","index":0,"function":{"name":"f","arguments":"{\"a\":"}}]}`), false, false,
			models.Response{Calls: []models.ToolCall{call("x", "f", `{"a":"<"}`), call("x", "f", `{"a":`)}, Finish: models.FinishCalls, Model: "x", Usage: known}},
		{"a legacy call", plain(`{"content":null,"function_call":{"name":"f","arguments":"{}"}}`), false, false,
			models.Response{Calls: []models.ToolCall{call("", "f", "{}")}, Finish: models.FinishCalls, Model: "x", Usage: known}},
		{"no reason", `{"choices":[{"message":{"content":"a"},"finish_reason":null}]}`, false, false, models.Response{Text: "a", Finish: models.FinishStop}},
		{"filter", `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}`, false, false, models.Response{Finish: models.FinishFilter}},
		{"a context that is full", `{"choices":[{"message":{"content":"x"},"finish_reason":"model_length"}]}`, false, false, models.Response{Text: "x", Finish: models.FinishLength}},
		{"another reason", `{"choices":[{"message":{"content":"a"},"finish_reason":"repetition"}]}`, false, false, models.Response{Text: "a", Finish: "repetition"}},
		{"white space to keep the connection", "\n\n   \n" + plain(`{"content":"a"}`), false, false, models.Response{Text: "a", Finish: models.FinishStop, Model: "x", Usage: known}},
		{"not quite UTF-8", plain("{\"content\":\"a\xff\"}"), false, false, models.Response{Text: "a\uFFFD", Finish: models.FinishStop, Model: "x", Usage: known}},
		{"an error that is none", `{"error":null,"choices":[{"message":{"content":"a"}}]}`, false, false, models.Response{Text: "a", Finish: models.FinishStop}},
		{"logprobs that do not fit", `{"choices":[{"text":"a","token_ids":[1,2],"logprobs":{"token_logprobs":[-1]}}]}`, false, true,
			models.Response{Text: "a", Finish: models.FinishStop, Sample: &models.Sample{Prompt: "p", OutputIDs: []int32{1, 2}}}},
		{"token ids of another kind", `{"choices":[{"text":"a","token_ids":["1"],"logprobs":7}]}`, false, true, models.Response{Text: "a", Finish: models.FinishStop}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{Info: models.Info{Raw: tt.raw}}, say(200, tt.body))
			r := models.Request{Messages: hello}
			if tt.raw {
				r = models.Request{Prompt: "p", Tokens: true}
			}
			var h heard
			if tt.stream {
				r.OnDelta = h.add
			}
			got, err := m.Generate(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			if tt.stream && (h.text.String() != got.Text || h.reasoning.String() != got.Reasoning) {
				t.Errorf("heard %q and %q", h.text.String(), h.reasoning.String())
			}
			if got.Usage.Wall <= 0 {
				t.Error("no wall time")
			}
			got.Usage.Wall, tt.want.Usage.Requests = 0, 1
			if !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("\ngot  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts []string // as they arrive
		want  cost.Usage
		usd   string
	}{
		{"missing", []string{``, `null`}, cost.Usage{}, ""},
		{"nothing said", []string{`{}`, `{"total_tokens":9}`, `[]`, `"x"`}, cost.Usage{}, ""},
		{"zeros are said", []string{`{"prompt_tokens":0,"completion_tokens":0}`}, cost.Usage{Known: true}, ""},
		{"replaced, not added", []string{`{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}`, `{"prompt_tokens":10,"completion_tokens":16,"prompt_tokens_details":{"cached_tokens":1}}`}, cost.Usage{Input: 10, CacheRead: 1, Output: 16, Known: true}, ""},
		{"a cache seen late", []string{`{"prompt_tokens":8834}`, `{"prompt_tokens":8849,"prompt_tokens_details":{"cached_tokens":8831},"completion_tokens":1}`}, cost.Usage{Input: 8849, CacheRead: 8831, Output: 1, Known: true}, ""},
		{"empty after full", []string{`{"prompt_tokens":10,"completion_tokens":5}`, `{}`, `null`, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, `{"prompt_tokens":null}`}, cost.Usage{Input: 10, Output: 5, Known: true}, ""},
		{"in two parts", []string{`{"prompt_tokens":10}`, `{"completion_tokens":5}`}, cost.Usage{Input: 10, Output: 5, Known: true}, ""},
		{"DeepSeek", []string{`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`}, cost.Usage{Input: 100, CacheRead: 64, Output: 5, Known: true}, ""},
		{"negative and absurd", []string{`{"prompt_tokens":-5,"completion_tokens":1e30,"completion_tokens_details":{"reasoning_tokens":-1e30}}`}, cost.Usage{Input: -5, Output: 1<<63 - 1, Reasoning: -1 << 63}, ""},
		{"other types", []string{`{"prompt_tokens":12.0,"completion_tokens":"7","prompt_tokens_details":7}`}, cost.Usage{Input: 12, Output: 7, Known: true}, ""},
		{"words for numbers", []string{`{"prompt_tokens":"many","completion_tokens":{}}`}, cost.Usage{}, ""},
		{"a cost on its own, later", []string{`{"prompt_tokens":1,"completion_tokens":1}`, `{"cost":0.5}`}, cost.Usage{Input: 1, Output: 1, Known: true}, "0.5"},
		{"a cost as written", []string{`{"prompt_tokens":1,"completion_tokens":1,"cost":0.00014125}`}, cost.Usage{Input: 1, Output: 1, Known: true}, "0.00014125"},
		{"a cost with an exponent", []string{`{"cost":1.5e-7}`}, cost.Usage{}, "0.00000015"},
		{"a cost of nothing", []string{`{"cost":0}`}, cost.Usage{}, "0"},
		{"a negative cost", []string{`{"cost":-1}`}, cost.Usage{}, "-1"},
		{"a cost that is no number", []string{`{"cost":{"total":1}}`, `{"cost":"x"}`, `{"cost":1e300}`}, cost.Usage{}, ""},
		{"own key: fee and upstream", []string{`{"cost":0.001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.02}}`}, cost.Usage{}, "0.021"},
		{"no own key", []string{`{"cost":0.02,"is_byok":false,"cost_details":{"upstream_inference_cost":0.02}}`}, cost.Usage{}, "0.02"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tally := cost.Tally{Flavor: cost.Chat}
			for _, p := range tt.parts {
				tally.Counts(json.RawMessage(p))
			}
			got := tally.Usage()
			usd := ""
			if got.USD != nil {
				b, _ := got.USD.MarshalText()
				usd, got.USD = string(b), nil
			}
			if got != tt.want || usd != tt.usd {
				t.Errorf("got %+v and %q, want %+v and %q", got, usd, tt.want, tt.usd)
			}
		})
	}
}

func TestRequestOnTheWire(t *testing.T) {
	type seen struct {
		*http.Request
		body string
	}
	requests := make(chan seen, 2)
	m := serve(t, Config{Key: "sk-1", Header: http.Header{"x-title": {"t"}, "User-Agent": {"mine"}}}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		requests <- seen{r, string(b)}
		say(200, file(t, "openai_chat.json"))(w, r)
	})
	for range 2 { // the second on the same connection
		if _, err := m.Generate(t.Context(), &models.Request{Messages: hello}); err != nil {
			t.Fatal(err)
		}
	}
	got := <-requests
	h := got.Header
	if got.Method != "POST" || got.URL.Path != "/v1/chat/completions" || h.Get("Authorization") != "Bearer sk-1" || h.Get("X-Title") != "t" ||
		h.Get("User-Agent") != "mine" || h.Get("Content-Type") != "application/json" || !json.Valid([]byte(got.body)) {
		t.Errorf("got %s %s %v %s", got.Method, got.URL, h, got.body)
	}
	// A query of the base stays where it belongs.
	c := mustNew(t, "m", Config{BaseURL: "https://x.example/openai/v1/?api-version=2"})
	if u := c.base.JoinPath("chat/completions").String(); u != "https://x.example/openai/v1/chat/completions?api-version=2" {
		t.Errorf("got %s", u)
	}
}

// A connection is used again after a stream.
func TestConnectionReuse(t *testing.T) {
	const calls = 5
	from := make(chan string, calls)
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		say(200, file(t, "openrouter.sse"))(w, r)
		w.(http.Flusher).Flush()
	})
	peers := map[string]bool{}
	for range calls {
		if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(models.Delta) {}}); err != nil {
			t.Fatal(err)
		}
		peers[<-from] = true
	}
	if len(peers) != 1 {
		t.Errorf("%d connections for %d calls", len(peers), calls)
	}
	// For that, the end of the body must have been read, even if it comes after
	// [DONE].
	ended := false
	m = overReader(t, func() io.Reader {
		return io.MultiReader(strings.NewReader(file(t, "openrouter.sse")), atEnd(func() { ended = true }))
	})
	if _, err := m.Generate(t.Context(), &models.Request{Messages: hello}); err != nil || !ended {
		t.Errorf("%v, end read: %v", err, ended)
	}
}

// atEnd is called when the end is read.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }
