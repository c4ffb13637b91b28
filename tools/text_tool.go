package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// AsText is the inverse of Text: it makes of t a tool that takes and returns
// text, which langchaingo takes as one of its own. Errors are *SpecError. It is
// safe for concurrent use, as t is.
func AsText(t Tool) (*TextTool, error) {
	if v := reflect.ValueOf(t); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &SpecError{Field: "t", Fix: "is nil; pass a tool"}
	}
	spec := t.Spec()
	if err := Check(spec); err != nil {
		return nil, err
	}
	x := &TextTool{tool: t, name: spec.Name, description: spec.Description}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(bytes.TrimSpace(spec.Schema)) > 0 {
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			return nil, &SpecError{Tool: spec.Name, Field: "Schema", Fix: "has properties that are no object, or a required that is no list: " + err.Error()}
		}
	}
	x.bare = len(schema.Properties) == 0
	if len(schema.Required) == 1 && isString(schema.Properties[schema.Required[0]]) {
		x.field = schema.Required[0]
	}
	if x.bare || x.field != "" && len(schema.Properties) == 1 {
		return x, nil
	}
	// There is nowhere else to say what the arguments are.
	var b bytes.Buffer
	if err := json.Compact(&b, spec.Schema); err != nil {
		return nil, &SpecError{Tool: spec.Name, Field: "Schema", Fix: "is not JSON"}
	}
	x.description = strings.TrimSpace(x.description + "\nThe input is a JSON object with this schema: " + b.String())
	return x, nil
}

func isString(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"` // a name, or a list of them
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "string"
}

// TextTool is a Tool that takes and returns text. AsText makes it.
type TextTool struct {
	tool              Tool
	name, description string
	field             string // the only required argument, if it is a string
	bare              bool   // the tool has no arguments
}

// Name is that of the tool.
func (t *TextTool) Name() string { return t.name }

// Description says what the tool does and, if it takes more than one string,
// the schema of its arguments.
func (t *TextTool) Description() string { return t.description }

// Call calls the tool with an empty workspace and returns the text of its
// result. The input is a JSON object of the arguments or, for a tool with one
// required argument that is a string, that string. Arguments that the tool does
// not take are its result, since they are for whoever wrote them to mend;
// langchaingo's agents end on an error. Every other error is returned, as it is.
//
// Models that the tool asks charge the meter in ctx (cost.NewContext), of which
// nothing is reserved beforehand. Spec.Fee is not charged, and Spec.Timeout and
// MaxSpend do not bound the call: outside a run, that is for the caller to do.
func (t *TextTool) Call(ctx context.Context, input string) (string, error) {
	r, err := t.tool.Call(ctx, Call{Tool: t.name, Args: t.arguments(input)})
	if err != nil {
		if bad, ok := errors.AsType[*ArgumentsError](err); ok && !IsFatal(err) {
			return bad.Error(), nil
		}
		return "", err
	}
	return r.Text, nil
}

// arguments makes arguments of an input. An object is meant as arguments unless
// the tool wants a string and the object lacks it.
func (t *TextTool) arguments(input string) json.RawMessage {
	var object map[string]json.RawMessage
	isObject := json.Unmarshal([]byte(input), &object) == nil && object != nil
	_, holds := object[t.field]
	switch {
	case isObject && (t.field == "" || holds):
		return json.RawMessage(input)
	case t.field != "":
		if args, err := encode(map[string]string{t.field: input}); err == nil {
			return args
		}
	case t.bare:
		return json.RawMessage("{}")
	}
	return json.RawMessage(input) // for the tool to read or to refuse
}
