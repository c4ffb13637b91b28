package qwen3

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// FuzzParse takes its input as an output, and as the choices of a generator
// whose calls must come out again, all of them and nothing else.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "plain", "<think>\na\n</think>\n\nb", "<think>a", "a</think>b", "```json\n{\"name\": \"calc\", \"arguments\": {}}\n```",
		"<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"a\"}}\n</tool_call>",
		"<tool_call>{'name': 'calc', 'arguments': {'a': 'b'", "<tool_call>{\"name\": \"calc\"}\n{\"name\": \"search\"}]</tool_call> x",
		"<think><tool_call>{\"name\": \"calc\"}</tool_call></think>", "<tool_call><function=calc><parameter=a>1</parameter></function></tool_call>",
		"<tool_call>{\"name\": \"calc\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call><|im_end|>",
		"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f",
		"\x02\x05\x03\x09\x01\x0c\x07\x06\x08\x02\x04\x0b\x05\x01\x09\x0d\x03\x0e\x02\x0a\x0f\x01\x08\x04\x07\x06\x02\x05\x0c\x09\x03\x0b",
		strings.Repeat("\x03\x07\x0b\x05\x0d\x02\x0e\x09", 12), strings.Repeat("\xff\x81\x13\x27\x05\x49", 30),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := Parse(string(data), known)
		for _, c := range p.Calls {
			var o map[string]json.RawMessage
			if c.Name == "" || json.Unmarshal(c.Args, &o) != nil || o == nil || !utf8.Valid(c.Args) || !utf8.ValidString(c.Name) {
				t.Errorf("call %q %q of %q", c.Name, c.Args, data)
			}
		}
		if len(p.Calls) > MaxCalls || !utf8.ValidString(p.Text) || !utf8.ValidString(p.Reasoning) {
			t.Errorf("%+v of %q", p, data)
		}
		if len(p.Calls) > 0 && !bytes.ContainsAny(data, "{") && !bytes.Contains(data, []byte(functionOpen)) {
			t.Errorf("a call of nothing: %+v of %q", p, data)
		}
		g := generator{data: data}
		out, want := g.output()
		got := Parse(out, known)
		if !same(got.Calls, want) || len(got.Malformed) > 0 || got.Truncated {
			t.Errorf("\noutput %q\ngot    %s\nwant   %s", out, describe(got), describe(Parsed{Calls: want}))
		}
	})
}

func same(a, b []models.ToolCall) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || string(a[i].Args) != string(b[i].Args) {
			return false
		}
	}
	return true
}

// generator makes outputs of which it knows the calls. Its data decides; when
// it is used up, all choices are the first.
type generator struct{ data []byte }

func (g *generator) pick(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	v := int(g.data[0])
	g.data = g.data[1:]
	return v % n
}

func (g *generator) of(choices ...string) string { return choices[g.pick(len(choices))] }

// value is any JSON, full of what could be mistaken for markup.
func (g *generator) value(depth int) string {
	switch k := g.pick(6); {
	case k == 0:
		return g.of("0", "-1.50", "9007199254740993", "1e3", "true", "null", `""`)
	case k == 1 && depth > 0:
		return "[" + g.value(depth-1) + g.of(",", ", ", "\n,") + g.value(depth-1) + "]"
	case k == 2 && depth > 0:
		return g.object(depth - 1)
	}
	return g.str()
}

func (g *generator) str() string {
	var b strings.Builder
	for range g.pick(5) {
		b.WriteString(g.of("a", "</tool_call>", "<tool_call>", "<think>", "</think>", "{", "}", "[", "]", `\"`, `\\`, `\n`, "'", "é🧪", "<function=calc>", "```", `\u003c`, `{\"name\": \"calc\"}`, ",", ":", "//"))
	}
	return `"` + b.String() + `"`
}

func (g *generator) object(depth int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range g.pick(4) {
		if i > 0 {
			b.WriteString(g.of(", ", ",", " ,\n"))
		}
		fmt.Fprintf(&b, `"%c":%s%s`, 'z'-rune(i), g.of("", " "), g.value(depth))
	}
	b.WriteByte('}')
	return b.String()
}

// call is one call and the JSON that makes it.
func (g *generator) call() (models.ToolCall, string) {
	c := models.ToolCall{Name: g.of("search", "calc", "other-tool", "x_1", "é")}
	s := g.of("", " ", "\n")
	switch g.pick(5) {
	case 0:
		c.Args = json.RawMessage("{}")
		return c, `{"name":` + s + `"` + c.Name + `"}`
	case 1: // arguments as a string
		c.Args = json.RawMessage(g.object(2))
		quoted, _ := json.Marshal(string(c.Args))
		return c, `{"name": "` + c.Name + `", "arguments": ` + string(quoted) + `}`
	case 2:
		c.Args = json.RawMessage(g.object(2))
		return c, `{"arguments":` + s + string(c.Args) + `,` + s + `"name": "` + c.Name + `"}`
	case 3:
		c.Args = json.RawMessage(g.object(2))
		return c, `{"name": "` + c.Name + `", "parameters":` + s + string(c.Args) + `}`
	}
	c.Args = json.RawMessage(g.object(3))
	return c, `{"name": "` + c.Name + `", "arguments": ` + string(c.Args) + s + `}`
}

func (g *generator) prose() string {
	var b strings.Builder
	for range g.pick(4) {
		b.WriteString(g.of("\n", " ", "word", "a < b", `{"name": "calc"}`, "{", "}", "é", "<answer>", "<|x|>", "\"", "\\", "```\n", "[1]", "<thin", "</tool_call>"))
	}
	return b.String()
}

func (g *generator) output() (string, []models.ToolCall) {
	var b strings.Builder
	var calls []models.ToolCall
	blocks := func(n int) {
		for range n {
			b.WriteString(g.prose())
			c, body := g.call()
			calls = append(calls, c)
			b.WriteString("<tool_call>" + g.of("\n", "", " ") + body)
			for range g.pick(3) / 2 {
				c, body := g.call()
				calls = append(calls, c)
				b.WriteString(g.of("\n", "", " ") + body)
			}
			b.WriteString(g.of("\n", "", "]", "}\n") + "</tool_call>")
		}
	}
	n := 1 + g.pick(4)
	switch g.pick(5) {
	case 0:
		blocks(n)
	case 1: // thoughts, some of them calls
		b.WriteString(g.of("<think>\n", "\n<think>", "thought ") + g.prose())
		_, body := g.call()
		b.WriteString(g.of("", "<tool_call>"+body+"</tool_call>", "<tool_call> is how", "<tool_call>{\"name\": \"calc\", ") + g.prose() + "</think>")
		blocks(n)
	case 2: // thinking that is never closed
		b.WriteString("<think>" + g.prose())
		blocks(n)
	case 3: // nothing after thinking
		b.WriteString(g.of("<think>", ""))
		blocks(n)
		b.WriteString(g.prose() + "</think>" + g.of("", "\n\n"))
		return b.String(), calls
	case 4: // no calls: prose that ends like prose
		return g.of("", "<think>a</think>") + g.prose() + "word", nil
	}
	b.WriteString(g.prose())
	return b.String(), calls
}
