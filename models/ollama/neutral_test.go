package ollama

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestNeutral(t *testing.T) {
	for in, want := range map[string]string{
		"plain [text] <b>bold</b> a < b | c > d":                "plain [text] <b>bold</b> a < b | c > d",
		"<|im_end|>\n<|im_start|>system":                        "< |im_end|>\n< |im_start|>system",
		"<think></think><tool_call></tool_call><tool_response>": "< think>< /think>< tool_call>< /tool_call>< tool_response>",
		"[INST] x [/INST][TOOL_CALLS]":                          "[ INST] x [ /INST][ TOOL_CALLS]",
		"<s></s><bos><eos><start_of_turn>user<end_of_turn>":     "< s>< /s>< bos>< eos>< start_of_turn>user< end_of_turn>",
		"<｜begin▁of▁sentence｜>":                                 "< ｜begin▁of▁sentence｜>",
		"<|" + strings.Repeat("x", 65) + "|>":                   "<|" + strings.Repeat("x", 65) + "|>",
		"<strong> <sup> <summary>":                              "<strong> <sup> <summary>",
	} {
		if got := neutral(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestParameters(t *testing.T) {
	const none = `{"type":"object","properties":{}}`
	for in, want := range map[string]string{
		"":                        none,
		"{}":                      none,
		`{ "properties" : null }`: `{"type":"object","properties":{},"properties":null}`,
		`{"type":"object","properties":{"b":{"type":"string"},"a":true,"c":false,"d":{"default":{"properties":{"x":true}},"enum":[true,"x"]}},"required":["b"],"additionalProperties":false}`: `{"type":"object","properties":{"b":{"type":"string"},"a":{},"c":{},"d":{"default":{"properties":{"x":true}},"enum":[true,"x"]}},"required":["b"],"additionalProperties":false}`,
		`{"type":"object","properties":{"properties":{"type":"object","properties":{"x":true}},"n":{"anyOf":[true,{"type":"null"}]}}}`:                                                        `{"type":"object","properties":{"properties":{"type":"object","properties":{"x":{}}},"n":{"anyOf":[{},{"type":"null"}]}}}`,
		`{"type":"object","description":"\u003c|im_end|>,}","properties":{"n":{"maximum":9007199254740993}}}`:                                                                                 `{"type":"object","description":"< |im_end|>,}","properties":{"n":{"maximum":9007199254740993}}}`,
		`{"required":["x"]}`: `{"type":"object","properties":{},"required":["x"]}`,
	} {
		if got := string(parameters(json.RawMessage(in))); got != want {
			t.Errorf("%s became\n%s, want\n%s", in, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		"": "{}", " ": "{}", "null": "{}",
		`{"b": 9007199254740993, "a": [null, true, 1.50]}`: `{"b":9007199254740993,"a":[null,true,1.50]}`,
		`"{\"q\": 1}"`:     `{"q":1}`,
		`{"q": "tru`:       `{"invalid_json":"{\"q\": \"tru"}`,
		`[1]`:              `{"invalid_json":"[1]"}`,
		`{"q":"</think>"}`: `{"q":"< /think>"}`,
	} {
		if got := string(arguments(json.RawMessage(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// A rewritten value is the same value but for its strings, and none of those
// holds a control token.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.50,{"b":null}],"c":"<|x|>","properties":{"x":true}}`))
	f.Add([]byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) {
			return
		}
		var was, is any
		if json.Unmarshal(in, &was) != nil {
			return // a number that is too large for a float64
		}
		out := rewrite(in, false)
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		if !strings.ContainsAny(string(in), `\<[`) && !reflect.DeepEqual(was, is) {
			t.Errorf("%s became %s", in, out)
		}
		if schema := rewrite(in, true); !json.Valid(schema) {
			t.Errorf("%s became %s", in, schema)
		}
		if s, ok := is.(string); ok && control.MatchString(s) {
			t.Errorf("%q is left in %s", control.FindString(s), out)
		}
	})
}
