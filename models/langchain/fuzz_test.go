package langchain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Whatever an error says, its class is sound and its text fit for people.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{"API returned unexpected status code: 429: slow down", "503 Service Unavailable", "googleapi: Error 400: x", "status 999", "context length", "é\x00\xff"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, streamed bool) {
		err := errors.New(s)
		e := classify(err, streamed)
		if e.Status != 0 && (e.Status < 400 || e.Status > 599) || !errors.Is(&e, err) {
			t.Errorf("%+v", e)
		}
		if e.Retryable && errors.Is(&e, models.ErrContextOverflow) {
			t.Error("the same prompt is no shorter the next time")
		}
		text := readable(err)
		if !utf8.ValidString(text) || len(text) > 2060 || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%q", text)
		}
	})
}

// Whatever a model wrote, a history holds a JSON object, and one that is no
// object is kept in it.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":1}`, " {} ", "[1]", `"x"`, `{"a`, "null", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var o map[string]any
		if err := json.Unmarshal([]byte(arguments(json.RawMessage(s))), &o); err != nil || o == nil {
			t.Fatalf("%q: %v", s, err)
		}
		var in map[string]any
		if json.Unmarshal([]byte(s), &in) != nil && strings.Trim(s, " \t\r\n") != "" && utf8.ValidString(s) && o["invalid_json"] != s {
			t.Errorf("%q became %v", s, o)
		}
	})
}

// Whatever a provider returns, it becomes a response whose parts agree.
func FuzzRead(f *testing.F) {
	f.Add(`[{"Content":"a","StopReason":"stop","GenerationInfo":{"PromptTokens":1,"CompletionTokens":2}}]`, true)
	f.Add(`[null,{"ToolCalls":[{"id":""},{"function":{"name":"f","arguments":"{"}}]},{"FuncCall":{}}]`, false)
	f.Fuzz(func(t *testing.T, s string, blocks bool) {
		var choices []*llms.ContentChoice
		if json.Unmarshal([]byte(s), &choices) != nil {
			return
		}
		c := &client{traits: traits{blocks: blocks}}
		out, stop := c.read(&llms.ContentResponse{Choices: choices}, 1)
		for _, call := range out.Calls {
			if call.ID == "" {
				t.Errorf("a call without an id: %+v", out.Calls)
			}
		}
		if f := finish(stop, out, 5); f == "" {
			t.Error("no reason to stop")
		}
		if u := out.Usage; u.Known != (u.Input > 0 && u.Output > 0) || u.Input < 0 || u.CacheRead+u.CacheWrite > u.Input || u.Reasoning > u.Output {
			t.Errorf("%+v", u)
		}
	})
}

func TestProviderOf(t *testing.T) {
	for path, want := range map[string]string{
		"github.com/tmc/langchaingo/llms/openai":          "openai",
		"github.com/tmc/langchaingo/llms/googleai/vertex": "googleai",
		"github.com/tmc/langchaingo/llms/googleai/palm":   "palm",
		"github.com/tmc/langchaingo/llms/mistral":         "mistral",
		"github.com/tmc/langchaingo/llms":                 "",
		"github.com/tmc/langchaingo/llmsopenai":           "",
		"example.com/openai":                              "",
		"":                                                "",
	} {
		if got := providerOf(path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}
