package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// New makes a Tool of a Go function. In is a struct (struct{} for no
// arguments); its JSON schema comes from its fields and their tags:
//
//	json      the name; omitempty or omitzero makes a field optional, as a pointer does
//	desc      what the field means, for the model
//	validate  rules of go-playground/validator, put into the schema where it has a word for them
//	default   what a missing field gets: the text of a string, else JSON
//
// Arguments are read tolerantly (malformed JSON is repaired, "3" is taken for
// 3), checked against schema and rules, and only then passed to fn; else Call
// returns an *ArgumentsError whose text is written for the model. Arguments
// that were cut off are never passed on. A default inside an object applies if
// that object is given.
//
// An Out that is a string becomes Result.Text, and anything else is encoded as
// JSON into Text and Data; both are added to the workspace, as an attempt if
// the tool has the effect Answers, else as a document. A Result stays as it is
// and says itself what it adds. fn must be safe for
// concurrent use. Errors of New are *SpecError.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	spec := Spec{Name: name, Description: description}
	for _, o := range opts {
		if o != nil {
			o.apply(&spec)
		}
	}
	if fn == nil {
		return nil, &SpecError{Tool: name, Field: "fn", Fix: "is nil; pass the function that does the work"}
	}
	switch k := reflect.TypeFor[Out]().Kind(); k {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return nil, &SpecError{Tool: name, Field: "Out", Fix: fmt.Sprintf("a %s cannot be shown to a model; return a string, a Result or something that encodes as JSON", k)}
	}
	a, err := newArguments(name, reflect.TypeFor[In]())
	if err != nil {
		return nil, err
	}
	spec.Schema = a.schema
	if err := Check(spec); err != nil {
		return nil, err
	}
	return &typed[In, Out]{spec: spec, args: a, fn: fn}, nil
}

// Must returns t and panics if err is not nil. It is for tools that are
// declared at package level.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// Option changes the Spec of a tool made by New or Text.
type Option interface{ apply(*Spec) }

type option func(*Spec)

func (o option) apply(s *Spec) { o(s) }

// WithEffects sets Spec.Effects: what the tool promises.
func WithEffects(e Effects) Option { return option(func(s *Spec) { s.Effects = e }) }

// WithFee sets Spec.Fee: what each call costs.
func WithFee(a cost.Amount) Option { return option(func(s *Spec) { s.Fee = a }) }

// WithMaxSpend sets Spec.MaxSpend: what metered models may spend in one call.
func WithMaxSpend(a cost.Amount) Option { return option(func(s *Spec) { s.MaxSpend = a }) }

// WithTimeout sets Spec.Timeout: the most time that one call gets.
func WithTimeout(d time.Duration) Option { return option(func(s *Spec) { s.Timeout = d }) }

// WithLatency sets Spec.Latency: the typical time of a call.
func WithLatency(d time.Duration) Option { return option(func(s *Spec) { s.Latency = d }) }

// WithSources sets Spec.Sources: further names that preferences may address.
func WithSources(names ...string) Option {
	return option(func(s *Spec) { s.Sources = append([]string(nil), names...) })
}

// WithPropose sets Spec.Propose: complete arguments, best first, for policies
// that cannot write them.
func WithPropose(f func(Call) []json.RawMessage) Option {
	return option(func(s *Spec) { s.Propose = f })
}

type typed[In, Out any] struct {
	spec Spec
	args *arguments
	fn   func(context.Context, In) (Out, error)
}

// Spec describes the tool.
func (t *typed[In, Out]) Spec() Spec { return t.spec }

// Call does the work.
func (t *typed[In, Out]) Call(ctx context.Context, c Call) (Result, error) {
	in := new(In)
	if err := t.args.decode(c.Args, in); err != nil {
		return Result{}, err
	}
	out, err := t.fn(ctx, *in)
	if err != nil {
		return Result{}, err
	}
	switch out := any(out).(type) {
	case string:
		return t.gathered(c, Result{Text: out}), nil
	case Result:
		return out, nil
	}
	data, err := encode(out)
	if err != nil {
		return Result{}, fmt.Errorf("tools: result of %s: %w", t.spec.Name, err)
	}
	return t.gathered(c, Result{Text: string(data), Data: data}), nil
}

// gathered puts what the function returned into the workspace, where experts
// see it too: as an attempt if the tool gives answers, else as a document.
func (t *typed[In, Out]) gathered(c Call, r Result) Result {
	switch {
	case r.Text == "":
	case t.spec.Effects&Answers != 0:
		r.Attempts = []Attempt{{By: t.spec.Name, Text: r.Text}}
	default:
		r.Documents = []Document{{ID: c.ID, Title: t.spec.Name + " " + string(c.Args), Text: r.Text, Source: t.spec.Name}}
	}
	return r
}

// encode is json.Marshal without escapes for HTML, which models would copy.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Check reports, as a *SpecError, why a tool with this Spec cannot be offered,
// or nil. The orchestrator checks every tool with it.
func Check(s Spec) error {
	bad := func(field, fix string) error { return &SpecError{Tool: s.Name, Field: field, Fix: fix} }
	if !validName(s.Name) {
		return bad("Name", "must be 1 to 64 letters, digits, _ or -")
	}
	if len(bytes.TrimSpace(s.Schema)) > 0 {
		var top map[string]json.RawMessage
		if json.Unmarshal(s.Schema, &top) != nil || top == nil {
			return bad("Schema", "is not a JSON object; write a JSON schema, or leave it empty for a tool without arguments")
		}
		var kind string
		if json.Unmarshal(top["type"], &kind) != nil || kind != "object" {
			return bad("Schema", `must say "type":"object": arguments are always an object`)
		}
	}
	for _, m := range []struct {
		field  string
		amount cost.Amount
	}{{"Fee", s.Fee}, {"MaxSpend", s.MaxSpend}} {
		if !m.amount.Valid() {
			return bad(m.field, "is cost.Invalid: it came from NaN, an infinity or an overflow")
		}
		if m.amount < 0 {
			return bad(m.field, "is negative; 0 means none")
		}
	}
	if s.Timeout < 0 {
		return bad("Timeout", "is negative; 0 means the run's own")
	}
	if s.Latency < 0 {
		return bad("Latency", "is negative; 0 means unknown")
	}
	for i, n := range s.Sources {
		if n == "" {
			return bad(fmt.Sprintf("Sources[%d]", i), "is empty; preferences address sources by name")
		}
	}
	seen := map[string]bool{}
	for i, c := range s.Choices {
		field := fmt.Sprintf("Choices[%d].Alias", i)
		if c.Alias == "" {
			return bad(field, "is empty; policies choose by alias")
		}
		if seen[c.Alias] {
			return bad(field, fmt.Sprintf("%q is used twice; policies choose by alias", c.Alias))
		}
		seen[c.Alias] = true
	}
	return nil
}

func validName(s string) bool {
	for i := range len(s) {
		if !nameChar(s[i]) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 64
}

func nameChar(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// arguments reads the arguments of one tool. It is immutable.
type arguments struct {
	schema json.RawMessage
	root   *node
	rules  *validator.Validate // nil: no field has any
	tool   string
}
