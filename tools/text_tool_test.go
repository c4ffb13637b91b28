package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/tooltest"
)

// stringTool is what langchaingo calls a tool.
type stringTool interface {
	Name() string
	Description() string
	Call(context.Context, string) (string, error)
}

func asText(t *testing.T, tool tools.Tool, err error) stringTool {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := tools.AsText(tool)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// echo returns its arguments.
func echo[In any](t *testing.T) stringTool {
	t.Helper()
	tool, err := tools.New("echo", "Echoes.", func(_ context.Context, in In) (string, error) {
		b, err := json.Marshal(in)
		return string(b), err
	})
	return asText(t, tool, err)
}

func TestAsTextReadsItsInput(t *testing.T) {
	type one struct {
		Query string `json:"query"`
		Limit int    `json:"limit,omitempty"`
	}
	type two struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type list struct {
		Names []string `json:"names"`
	}
	for _, c := range []struct {
		tool        stringTool
		input, want string
	}{
		{echo[one](t), `tin`, `{"query":"tin"}`},
		{echo[one](t), ``, `{"query":""}`},
		{echo[one](t), ` "tin" & <lead>` + "\n", `{"query":" \"tin\" \u0026 \u003clead\u003e\n"}`},
		{echo[one](t), `{"query":"tin","limit":3}`, `{"query":"tin","limit":3}`},
		{echo[one](t), ` {"query":"tin"} `, `{"query":"tin"}`},
		{echo[one](t), `{"a":1}`, `{"query":"{\"a\":1}"}`},
		{echo[one](t), `{"query":"tin`, `{"query":"{\"query\":\"tin"}`},
		{echo[one](t), `null`, `{"query":"null"}`},
		{echo[two](t), `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{echo[two](t), `{'a': 1, 'b': "2"}`, `{"a":1,"b":2}`},
		{echo[list](t), `{"names":["x"]}`, `{"names":["x"]}`},
		{echo[struct{}](t), `None`, `{}`},
		{echo[struct{}](t), ``, `{}`},
	} {
		got, err := c.tool.Call(t.Context(), c.input)
		if err != nil || got != c.want {
			t.Errorf("%q: %q, %v", c.input, got, err)
		}
	}
	for _, input := range []string{`{"a":1}`, `{"a":1,"b`, `what?`, ``} {
		got, err := echo[two](t).Call(t.Context(), input)
		if err != nil || !strings.HasPrefix(got, "tools: arguments: ") {
			t.Errorf("%q: %q, %v", input, got, err)
		}
	}
}

func TestAsTextDescribesTheArguments(t *testing.T) {
	type one struct {
		Query string `json:"query"`
	}
	type more struct {
		Query string `json:"query"`
		Limit int    `json:"limit,omitempty"`
	}
	if d := echo[one](t).Description(); d != "Echoes." {
		t.Errorf("%q", d)
	}
	if d := echo[struct{}](t).Description(); d != "Echoes." {
		t.Errorf("%q", d)
	}
	if d := echo[more](t).Description(); !strings.HasPrefix(d, "Echoes.\nThe input is a JSON object with this schema: {") || !strings.Contains(d, `"limit":{"type":"integer"`) {
		t.Errorf("%q", d)
	}
}

func TestAsTextErrors(t *testing.T) {
	plain, stop := errors.New("no such city"), errors.New("stop")
	tool := func(err error) (tools.Tool, error) {
		return tools.New("weather", "Weather.", func(context.Context, struct{}) (string, error) { return "", err })
	}
	for _, want := range []error{plain, tools.Fatal(stop), tools.Fatal(&tools.ArgumentsError{Problem: "x"}), context.Canceled} {
		made, err := tool(want)
		got, err := asText(t, made, err).Call(t.Context(), "")
		if got != "" || err != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// bad has a schema that cannot be read.
type bad struct{ schema string }

func (b bad) Spec() tools.Spec {
	return tools.Spec{Name: "bad", Schema: json.RawMessage(b.schema)}
}

func (bad) Call(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }

func TestAsTextRefuses(t *testing.T) {
	var none *bad
	for name, tool := range map[string]tools.Tool{
		"nil": nil, "nil pointer": none, "schema": bad{`[]`}, "properties": bad{`{"type":"object","properties":[]}`}, "required": bad{`{"type":"object","required":"x"}`},
	} {
		got, err := tools.AsText(tool)
		var spec *tools.SpecError
		if got != nil || !errors.As(err, &spec) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Schemas may be booleans, and types lists: such arguments come as an object.
func TestAsTextReadsEverySchema(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"x":true},"required":["x"]}`, `{"type":"object","properties":{"x":{"type":["string","null"]}},"required":["x"]}`,
		`{"type":"object","properties":{"x":{"type":"string"}},"required":["y"]}`, `{"type":"object","properties":{"x":{"type":"string"}}}`,
	} {
		got, err := tools.AsText(bad{schema})
		if err != nil || got.Description() != "The input is a JSON object with this schema: "+schema {
			t.Errorf("%s: %v, %v", schema, got, err)
		}
	}
}

// There and back it is a tool as good as before, and so is one of langchaingo's.
func TestTextToolsConform(t *testing.T) {
	tooltest.Conform(t, func(t *testing.T) tools.Tool {
		tool, err := tools.Text(asText(t, tools.Calculator(), nil))
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}, json.RawMessage(`{"input":"6*7"}`))
}

// A tool of this SDK is one for langchaingo's agents, which know only text.
func ExampleAsText() {
	t, err := tools.AsText(tools.Calculator())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, input := range []string{"6*7", `{"expression":"2^10"}`} {
		text, err := t.Call(context.Background(), input)
		fmt.Println(text, err)
	}
	// Output:
	// 6 * 7 = 42 <nil>
	// 2 ^ 10 = 1024 <nil>
}
