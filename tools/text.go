package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
)

// Text makes a Tool of one that takes and returns text, such as the tools of
// langchaingo. Its argument is {"input": string}; a plain string in its place
// is accepted too. Characters that a Spec.Name cannot have become _ in the
// name. Errors that t returns as text cannot be told from results. t must be safe
// for concurrent use. Errors are *SpecError.
func Text(t interface {
	Name() string
	Description() string
	Call(context.Context, string) (string, error)
}, opts ...Option) (Tool, error) {
	if v := reflect.ValueOf(t); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &SpecError{Field: "t", Fix: "is nil; pass a tool"}
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && nameChar(byte(r)) {
			return r
		}
		return '_'
	}, t.Name()), "_")
	inner, err := New(name, t.Description(), func(ctx context.Context, in textIn) (string, error) {
		return t.Call(ctx, in.Input)
	}, opts...)
	if err != nil {
		return nil, err
	}
	return textTool{inner}, nil
}

type textIn struct {
	Input string `json:"input" desc:"what to give to the tool"`
}

type textTool struct{ Tool }

// Call does the work.
func (t textTool) Call(ctx context.Context, c Call) (Result, error) {
	if text, ok := plainText(bytes.TrimSpace(c.Args)); ok {
		var err error
		if c.Args, err = encode(textIn{Input: text}); err != nil {
			return Result{}, err
		}
	}
	return t.Tool.Call(ctx, c)
}

// plainText returns the input if raw is not, and was not meant to be, an
// object that holds it.
func plainText(raw json.RawMessage) (string, bool) {
	switch {
	case len(raw) == 0, string(raw) == "null", raw[0] == '{', bytes.HasPrefix(raw, []byte("```json")):
		return "", false
	case raw[0] != '"':
		return string(raw), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil && !strings.HasPrefix(strings.TrimSpace(s), "{")
}
