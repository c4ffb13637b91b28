package ollama

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func call(id, name, args string) models.ToolCall {
	return models.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// heard joins the deltas of a stream.
type heard struct{ text, reasoning strings.Builder }

func (h *heard) add(d models.Delta) {
	h.text.WriteString(d.Text)
	h.reasoning.WriteString(d.Reasoning)
}

const end = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}` + "\n"

// chat is a line of /api/chat.
func chat(content string) string {
	b, _ := json.Marshal(content)
	return `{"model":"m","created_at":"2026-12-02T05:48:30.5Z","message":{"role":"assistant","content":` + string(b) + `},"done":false}` + "\n"
}

func TestResponses(t *testing.T) {
	usage := func(in, out int64) cost.Usage { return cost.Usage{Input: in, Output: out, Requests: 1, Known: true} }
	known := usage(20, 3)
	for _, tt := range []struct {
		name, body string
		r          models.Request
		want       models.Response
	}{
		{"raw", file(t, "raw.ndjson"), models.Request{Prompt: "x"}, models.Response{Text: "plain answer one", Finish: "stop", Model: "raw", Usage: usage(2, 4)}},
		{"raw call", file(t, "raw_call.ndjson"), models.Request{Prompt: "x"}, models.Response{Text: "<think>\nneed search\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"capitalof France\", \"model\": \"search-1\"}}\n</tool_call>", Finish: "stop", Model: "raw", Usage: usage(2, 7)}},
		{"reasoning", file(t, "chat_thinking.ndjson"), models.Request{Messages: hello, Tools: tools}, models.Response{Text: "answer two", Reasoning: "reasoning two\n", Finish: "stop", Model: "t", Usage: usage(20, 6)}},
		{"calls", file(t, "chat_calls.ndjson"), models.Request{Messages: hello, Tools: tools}, models.Response{Calls: []models.ToolCall{call("call_sns6oa3u", "search", `{"query":"a4"}`), call("call_3970qbh4", "calc", `{"expr":"1+4"}`)}, Finish: "calls", Model: "p", Usage: usage(20, 5)}},
		{"calls without ids or indexes, arguments as they are", `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"a","arguments":{"n":9007199254740993,"b":1.50}}},{"function":{"name":"a","arguments":{}}}]},"done":false}` + "\n" + end, models.Request{Messages: hello, Tools: tools},
			models.Response{Calls: []models.ToolCall{call("", "a", `{"n":9007199254740993,"b":1.50}`), call("", "a", `{}`)}, Finish: "calls", Model: "m", Usage: known}},
		{"a call in the last line, and text", chat("Let me see.") + strings.Replace(end, `"content":""`, `"content":"","tool_calls":[{"id":"c","function":{"name":"a","arguments":"{\"x\":1}"}}]`, 1), models.Request{Messages: hello, Tools: tools},
			models.Response{Text: "Let me see.", Calls: []models.ToolCall{call("c", "a", `{"x":1}`)}, Finish: "calls", Model: "m", Usage: known}},
		{"a call that is sent twice", strings.Repeat(`{"message":{"content":"","tool_calls":[{"id":"c","function":{"name":"a","arguments":{}}}]},"done":false}`+"\n", 2) + end, models.Request{Messages: hello, Tools: tools},
			models.Response{Calls: []models.ToolCall{call("c", "a", `{}`)}, Finish: "calls", Model: "m", Usage: known}},
		{"length", chat("cut of") + strings.Replace(end, "stop", "length", 1), models.Request{Messages: hello}, models.Response{Text: "cut of", Finish: "length", Model: "m", Usage: known}},
		{"length in mid-reasoning", `{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}` + "\n" + strings.Replace(end, "stop", "length", 1), models.Request{Messages: hello}, models.Response{Reasoning: "hm", Finish: "length", Model: "m", Usage: known}},
		{"no reason", chat("x") + strings.Replace(end, `,"done_reason":"stop"`, "", 1), models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: known}},
		{"another reason", chat("x") + strings.Replace(end, "stop", "tired", 1), models.Request{Messages: hello}, models.Response{Text: "x", Finish: "tired", Model: "m", Usage: known}},
		{"no counts", chat("x") + `{"done":true}` + "\n", models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: cost.Usage{Requests: 1}}},
		{"no count of a cached prompt", chat("x") + `{"done":true,"eval_count":3}` + "\n", models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: cost.Usage{Requests: 1}}},
		{"cached tokens", chat("x") + strings.Replace(end, `"eval_count"`, `"prompt_eval_cached_count":16,"eval_count"`, 1), models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: cost.Usage{Input: 20, CacheRead: 16, Output: 3, Requests: 1, Known: true}}},
		{"more cached than there are", chat("x") + strings.Replace(end, `"eval_count"`, `"prompt_eval_cached_count":99,"eval_count"`, 1), models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: cost.Usage{Input: 20, CacheRead: 20, Output: 3, Requests: 1, Known: true}}},
		{"mad counts", chat("x") + `{"done":true,"prompt_eval_count":-5,"eval_count":1e99}` + "\n", models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: cost.Usage{Requests: 1}}},
		{"fields of other types and names", "\r\n \n" + `{"model":7,"created_at":0,"new":{"a":[1]},"message":{"role":null,"content":"x","thinking":null,"tool_calls":null},"done":false,"error":null}` + "\r\n" + end, models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "7", Usage: known}},
		{"no line end, and something after the end", chat("x") + end + "nonsense", models.Request{Messages: hello}, models.Response{Text: "x", Finish: "stop", Model: "m", Usage: known}},
		{"one body", strings.TrimSpace(strings.Replace(end, `"content":""`, `"content":"all"`, 1)), models.Request{Messages: hello}, models.Response{Text: "all", Finish: "stop", Model: "m", Usage: known}},
		{"schema", chat(" {\"a\": 26}\n") + end, models.Request{Messages: hello, Schema: json.RawMessage(`{"type":"object"}`)}, models.Response{Text: " {\"a\": 26}\n", Finish: "stop", Model: "m", Usage: known}},
		{"schema, cut by the cap", chat(`{"a": `) + strings.Replace(end, "stop", "length", 1), models.Request{Messages: hello, Schema: json.RawMessage(`{"type":"object"}`)}, models.Response{Text: `{"a": `, Finish: "length", Model: "m", Usage: known}},
		{"log probabilities", `{"response":"a","done":false,"logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]}]}` + "\n" + strings.Replace(end, `"done":true`, `"done":true,"logprobs":[{"token":"b","logprob":-2}]`, 1), models.Request{Prompt: "x", Tokens: true},
			models.Response{Text: "a", Finish: "stop", Model: "m", Usage: known, Sample: &models.Sample{Prompt: "x", Logprobs: []float32{-0.5, -2}}}},
		{"log probabilities that nobody asked for", `{"response":"a","done":false,"logprobs":[{"logprob":-0.5}]}` + "\n" + end, models.Request{Prompt: "x"}, models.Response{Text: "a", Finish: "stop", Model: "m", Usage: known}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				m := serve(t, Config{Info: models.Info{Tools: true}}, warm(t, say(200, tt.body)))
				var h heard
				if stream {
					tt.r.OnDelta = h.add
				}
				got, err := m.Generate(t.Context(), &tt.r)
				if err != nil {
					t.Fatal(err)
				}
				if got.Usage.Wall <= 0 {
					t.Errorf("took %v", got.Usage.Wall)
				}
				got.Usage.Wall = 0
				if !reflect.DeepEqual(*got, tt.want) {
					t.Errorf("\n got %+v\nwant %+v", *got, tt.want)
				}
				if stream && (h.text.String() != tt.want.Text || h.reasoning.String() != tt.want.Reasoning) {
					t.Errorf("heard %q, %q", h.text.String(), h.reasoning.String())
				}
			})
		}
	}
}

// What looks like success to others.
func TestNoEmptySuccess(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	for _, tt := range []struct {
		name, body string
		r          models.Request
		is         []error
		retry      bool
		partial    string // text and reasoning; "-" = none
		say        string
	}{
		{"the server stops a loop", file(t, "loop.ndjson"), models.Request{Prompt: "x"}, []error{models.ErrTruncated, errLoop}, true, "begin9 " + strings.Repeat("loop9 ", 31), "raise Temperature"},
		{"the same of blanks", chat("a") + strings.Repeat(chat("\n"), 31), models.Request{Messages: hello}, []error{models.ErrTruncated, errLoop}, true, "a" + strings.Repeat("\n", 31), ""},
		{"the server stops without a reason", chat("a") + strings.Repeat(chat("b"), 29), models.Request{Messages: hello}, []error{models.ErrTruncated}, true, "a" + strings.Repeat("b", 29), ""},
		{"nothing at all", "", models.Request{Prompt: "x"}, []error{models.ErrTruncated}, true, "-", ""},
		{"done is false", strings.Replace(strings.TrimSpace(end), "true", "false", 1), models.Request{Messages: hello}, []error{models.ErrTruncated}, true, "", ""},
		{"the model ended at once", file(t, "raw_empty.ndjson"), models.Request{Prompt: "x"}, []error{models.ErrMalformed, ErrEmpty}, true, "", "prompt's end"},
		{"only blanks", chat("\n \n") + end, models.Request{Messages: hello}, []error{models.ErrMalformed, ErrEmpty}, true, "\n \n", ""},
		{"a call was dropped", file(t, "chat_dropped.ndjson"), models.Request{Messages: hello, Tools: tools}, []error{models.ErrMalformed, ErrEmpty}, true, "", "3 tokens were written and dropped"},
		{"a call was cut by the cap and dropped", strings.Replace(end, "stop", "length", 1), models.Request{Messages: hello, Tools: tools}, []error{models.ErrMalformed, ErrEmpty}, false, "", "raise MaxOutput"},
		{"the answer went into reasoning", file(t, "chat_only_thinking.ndjson"), models.Request{Messages: hello}, []error{models.ErrMalformed, ErrEmpty}, true, "plain answer one", "Think false"},
		{"a call was left in the text", file(t, "chat_unread.ndjson"), models.Request{Messages: hello, Tools: tools}, []error{models.ErrMalformed, errUnread}, true, "<tool_call>\n{\"name\": \"not_a_tool\", \"arguments\": {\"x\":5}}\n</tool_call> {\"name\": \"not_a_tool\", \"arguments\": {\"x\":", "Request.Prompt"},
		{"a call as XML", chat("<function=search>") + end, models.Request{Messages: hello, Tools: tools}, []error{models.ErrMalformed, errUnread}, true, "<function=search>", ""},
		{"a call could not be parsed", file(t, "chat_misread.ndjson"), models.Request{Messages: hello, Tools: tools}, []error{models.ErrMalformed, errCall}, true, "th28 a28 b28", "invalid character 'b'"},
		{"an error under another key", chat("x") + `{"error parsing tool call":{"message":"raw='{' err=unexpected end"}}` + "\n", models.Request{Messages: hello}, []error{models.ErrTruncated, errReported}, true, "x", "raw='{'"},
		{"an error beside content", `{"message":{"content":"x"},"done":true,"error":"boom"}` + "\n", models.Request{Messages: hello}, []error{errReported}, true, "", "boom"},
		{"an error object", `{"error":{"code":1,"message":"boom"}}` + "\n", models.Request{Messages: hello}, []error{errReported}, true, "", "boom"},
		{"a line of nothing that is known", chat("x") + `{"status":"pondering"}` + "\n" + end, models.Request{Messages: hello}, []error{models.ErrTruncated, errReported}, true, "x", "pondering"},
		{"the runner died", chat("x") + `{"error":"an error was encountered while running the model: unexpected EOF"}` + "\n", models.Request{Messages: hello}, []error{models.ErrTruncated, errRunner}, true, "x", "starts another"},
		{"the schema was ignored", chat("Sure! {}") + end, models.Request{Messages: hello, Schema: schema}, []error{models.ErrMalformed, errNoJSON}, true, "Sure! {}", "Think false"},
		{"the server only loaded", loaded, models.Request{Prompt: "x"}, []error{models.ErrMalformed, errLoaded}, true, "", ""},
		{"the prompt was cut", chat("x") + strings.Replace(end, `"prompt_eval_count":20`, `"prompt_eval_count":8192`, 1), models.Request{Messages: hello}, []error{models.ErrContextOverflow}, false, "x", "8192 tokens of 8192: it was cut"},
		{"not JSON", "{\"response\":\n", models.Request{Prompt: "x"}, []error{models.ErrMalformed, errNoObject}, true, "-", ""},
		{"another JSON", "[1]\n", models.Request{Prompt: "x"}, []error{models.ErrMalformed, errNoObject}, true, "-", "[1]"},
		{"null", "null\n", models.Request{Prompt: "x"}, []error{models.ErrMalformed, errNoObject}, true, "-", ""},
		{"text that is not text", chat("a") + `{"message":{"content":["x"]},"done":false}` + "\n", models.Request{Messages: hello}, []error{models.ErrMalformed, errLine}, true, "a", "message"},
		{"done that is not", chat("a") + `{"done":"yes"}` + "\n", models.Request{Messages: hello}, []error{models.ErrMalformed, errLine}, true, "a", "done"},
		{"calls that are not", `{"message":{"content":"","tool_calls":"x"},"done":false}` + "\n", models.Request{Messages: hello}, []error{models.ErrMalformed, errLine}, true, "-", ""},
		{"calls without end", strings.Repeat(`{"message":{"tool_calls":[`+strings.Repeat(`{"function":{"name":"a"}},`, 99)+`{"function":{"name":"a"}}]}}`+"\n", 11) + end, models.Request{Messages: hello}, []error{models.ErrMalformed, errManyCalls}, true, "", ""},
		{"another site", "<!DOCTYPE html>\n<html></html>\n", models.Request{Prompt: "x"}, []error{models.ErrMalformed}, false, "-", "is BaseURL right?"},
		{"a page that is not ours", "Ollama is running", models.Request{Prompt: "x"}, []error{models.ErrMalformed}, false, "-", "is BaseURL right?"},
		{"a sentence", "go away", models.Request{Prompt: "x"}, []error{models.ErrMalformed}, true, "-", "go away"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{Info: models.Info{Tools: true}}, warm(t, say(200, tt.body)))
			got, err := m.Generate(t.Context(), &tt.r)
			e := typed(t, err)
			for _, is := range tt.is {
				if !errors.Is(err, is) {
					t.Errorf("is not %q: %v", is, err)
				}
			}
			if got != nil || !e.Sent || e.Retryable != tt.retry || e.Status != 0 || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %+v, %+v\n%v", got, e, err)
			}
			partial := "-"
			if e.Partial != nil {
				partial = e.Partial.Text + e.Partial.Reasoning
			}
			if partial != tt.partial {
				t.Errorf("partial %q, want %q", partial, tt.partial)
			}
		})
	}
}
