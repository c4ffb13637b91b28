package tools

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func noop(context.Context, struct{}) (string, error) { return "", nil }

func TestNewSpec(t *testing.T) {
	names := []string{"web"}
	tool, err := New("t", "does it", noop, WithEffects(ReadOnly|Parallel), WithFee(1), WithMaxSpend(2),
		WithTimeout(time.Second), WithLatency(time.Minute), WithSources(names...), nil)
	if err != nil {
		t.Fatal(err)
	}
	names[0] = "changed"
	s := tool.Spec()
	if s.Name != "t" || s.Description != "does it" || s.Effects != ReadOnly|Parallel || s.Fee != 1 || s.MaxSpend != 2 ||
		s.Timeout != time.Second || s.Latency != time.Minute || len(s.Sources) != 1 || s.Sources[0] != "web" {
		t.Errorf("%+v", s)
	}
}

func TestBadSpecs(t *testing.T) {
	make := func(name string, opts ...Option) error {
		_, err := New(name, "", noop, opts...)
		return err
	}
	_, nilFn := New[struct{}, string]("t", "", nil)
	_, chanOut := New("t", "", func(context.Context, struct{}) (chan int, error) { return nil, nil })
	for _, c := range []struct {
		err   error
		field string
	}{
		{make(""), "Name"},
		{make("has space"), "Name"},
		{make("naïve"), "Name"},
		{make(strings.Repeat("x", 65)), "Name"},
		{make("t", WithFee(-1)), "Fee"},
		{make("t", WithFee(cost.Dollars(math.NaN()))), "Fee"},
		{make("t", WithMaxSpend(-1)), "MaxSpend"},
		{make("t", WithMaxSpend(cost.Invalid)), "MaxSpend"},
		{make("t", WithTimeout(-1)), "Timeout"},
		{make("t", WithLatency(-1)), "Latency"},
		{make("t", WithSources("a", "")), "Sources[1]"},
		{nilFn, "fn"},
		{chanOut, "Out"},
	} {
		var bad *SpecError
		if !errors.As(c.err, &bad) || bad.Field != c.field || bad.Fix == "" {
			t.Errorf("%v, want a *SpecError for %s", c.err, c.field)
		}
	}
	if err := make(strings.Repeat("x", 64)); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		spec  Spec
		field string // "" = valid
	}{
		{Spec{Name: "t"}, ""},
		{Spec{Name: "t", Schema: json.RawMessage(" ")}, ""},
		{Spec{Name: "t", Schema: json.RawMessage(`{"type":"object","properties":{"a":true},"$defs":{}}`)}, ""},
		{Spec{Name: "t", Choices: []Choice{{Alias: "a"}, {Alias: "b"}}}, ""},
		{Spec{Name: "t", Schema: json.RawMessage(`{`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`null`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`[]`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`{}`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`{"Type":"object"}`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`{"type":"string"}`)}, "Schema"},
		{Spec{Name: "t", Schema: json.RawMessage(`{"type":["object"]}`)}, "Schema"},
		{Spec{Name: "t", Choices: []Choice{{Alias: "a"}, {}}}, "Choices[1].Alias"},
		{Spec{Name: "t", Choices: []Choice{{Alias: "a"}, {Alias: "a"}}}, "Choices[1].Alias"},
		{Spec{Name: "t", Fee: cost.Invalid}, "Fee"},
		{Spec{}, "Name"},
	} {
		err := Check(c.spec)
		var bad *SpecError
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &bad) || bad.Field != c.field) {
			t.Errorf("Check(%+v) = %v, want %q", c.spec, err, c.field)
		}
	}
}

func TestMust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Must(New("bad name", "", noop))
}

func TestOutputs(t *testing.T) {
	type out struct {
		A string `json:"a"`
	}
	ctx := context.Background()
	call := func(tool Tool, err error) Result {
		t.Helper()
		r, err := Must(tool, err).Call(ctx, Call{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := call(New("t", "", func(context.Context, struct{}) (string, error) { return "<b>", nil })); r.Text != "<b>" || r.Data != nil {
		t.Errorf("%+v", r)
	}
	want := Result{Text: "x", Attempts: []Attempt{{Text: "y"}}}
	if r := call(New("t", "", func(context.Context, struct{}) (Result, error) { return want, nil })); r.Text != "x" || len(r.Attempts) != 1 || r.Data != nil {
		t.Errorf("%+v", r)
	}
	if r := call(New("t", "", func(context.Context, struct{}) (*out, error) { return &out{"<b>&"}, nil })); r.Text != `{"a":"<b>&"}` || string(r.Data) != r.Text {
		t.Errorf("%+v", r)
	}
	if r := call(New("t", "", func(context.Context, struct{}) ([]int, error) { return nil, nil })); r.Text != "null" {
		t.Errorf("%+v", r)
	}
	if _, err := Must(New("t", "", func(context.Context, struct{}) (any, error) { return math.Inf(1), nil })).Call(ctx, Call{}); err == nil {
		t.Error("infinity was encoded")
	}
	fail := errors.New("fail")
	r, err := Must(New("t", "", func(context.Context, struct{}) (string, error) { return "x", Fatal(fail) })).Call(ctx, Call{})
	if !errors.Is(err, fail) || !IsFatal(err) || r.Text != "" {
		t.Error(r, err)
	}
}

type key struct{}

func TestContextIsPassed(t *testing.T) {
	tool := Must(New("t", "", func(ctx context.Context, _ struct{}) (string, error) { return ctx.Value(key{}).(string), nil }))
	if r, err := tool.Call(context.WithValue(context.Background(), key{}, "v"), Call{}); err != nil || r.Text != "v" {
		t.Error(r, err)
	}
}

type query struct {
	Query string `json:"query" validate:"required,max=400"`
}

func BenchmarkTypedCall(b *testing.B) {
	tool := Must(New("t", "", func(_ context.Context, q query) (string, error) { return q.Query, nil }))
	for name, args := range map[string]string{
		"valid":    `{"query": "height of Galdhøpiggen"}`,
		"repaired": `{'query': 'height of Galdhøpiggen',}`,
		"refused":  `{"question": "height of Galdhøpiggen"}`,
	} {
		b.Run(name, func(b *testing.B) {
			c := Call{Args: json.RawMessage(args)}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = tool.Call(context.Background(), c)
			}
		})
	}
}

func TestFastPathIsCheap(t *testing.T) {
	tool := Must(New("t", "", func(_ context.Context, q query) (string, error) { return q.Query, nil }))
	c := Call{Args: json.RawMessage(`{"query": "height of Galdhøpiggen"}`)}
	n := testing.AllocsPerRun(200, func() {
		if _, err := tool.Call(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	})
	if n > 10 {
		t.Errorf("%v allocations", n)
	}
}
