package tools

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

type echoTool struct{ name string }

func (e *echoTool) Name() string      { return e.name }
func (*echoTool) Description() string { return "says it again" }
func (*echoTool) Call(_ context.Context, s string) (string, error) {
	if s == "fail" {
		return "", errors.New("failed")
	}
	return s, nil
}

func TestText(t *testing.T) {
	tool, err := Text(&echoTool{"Duck Search!"}, WithEffects(ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	s := tool.Spec()
	if s.Name != "Duck_Search" || s.Description != "says it again" || s.Effects != ReadOnly ||
		string(s.Schema) != `{"type":"object","properties":{"input":{"type":"string","description":"what to give to the tool"}},"required":["input"],"additionalProperties":false}` {
		t.Errorf("%+v %s", s, s.Schema)
	}
	for args, want := range map[string]string{
		`{"input": "a b"}`:                    "a b",
		`{'input': 'a b'}`:                    "a b",
		"```json\n{\"input\": \"a b\"}\n```":  "a b",
		`"a b"`:                               "a b",
		`"{\"input\": \"a b\"}"`:              "a b",
		`a b`:                                 "a b",
		`2 * (3+4)`:                           "2 * (3+4)",
		`[1, 2]`:                              "[1, 2]",
		`3`:                                   "3",
		`say {"x": 1}`:                        `say {"x": 1}`,
		`{"input": 3}`:                        "3",
		`{"arguments": {"input": "a b"}}`:     "a b",
		`{"input": "{\"input\": \"inner\"}"}`: `{"input": "inner"}`,
	} {
		r, err := tool.Call(context.Background(), Call{Args: json.RawMessage(args)})
		if err != nil || r.Text != want {
			t.Errorf("%s: %q, %v; want %q", args, r.Text, err, want)
		}
	}
	for args, cut := range map[string]bool{``: false, `null`: false, `{}`: false, `{"q": "x"}`: false, `{"input": "x`: true} {
		_, err := tool.Call(context.Background(), Call{Args: json.RawMessage(args)})
		var bad *ArgumentsError
		if !errors.As(err, &bad) || bad.Truncated != cut {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := tool.Call(context.Background(), Call{Args: json.RawMessage(`fail`)}); err == nil || err.Error() != "failed" {
		t.Error(err)
	}
}

func TestTextRefuses(t *testing.T) {
	var none *echoTool
	for name, err := range map[string]error{
		"nil":         func() error { _, err := Text(nil); return err }(),
		"nil pointer": func() error { _, err := Text(none); return err }(),
		"no name":     func() error { _, err := Text(&echoTool{"…"}); return err }(),
		"option":      func() error { _, err := Text(&echoTool{"x"}, WithFee(-1)); return err }(),
	} {
		var bad *SpecError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
