package qwen3

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func known(name string) bool { return name == "search" || name == "calc" }

// describe writes a Parsed in one line, for tables.
func describe(p Parsed) string {
	var b strings.Builder
	for _, c := range p.Calls {
		fmt.Fprintf(&b, "%s%s ", c.Name, c.Args)
	}
	for _, m := range p.Malformed {
		fmt.Fprintf(&b, "bad:%q ", m)
	}
	if p.Truncated {
		b.WriteString("truncated ")
	}
	if p.Reasoning != "" {
		fmt.Fprintf(&b, "think:%q ", p.Reasoning)
	}
	if p.Text != "" {
		fmt.Fprintf(&b, "text:%q ", p.Text)
	}
	return strings.TrimSpace(b.String())
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "plain answer one", `text:"plain answer one"`},
		{"think, answer", "<think>\nreasoning two\n</think>\n\nanswer two", `think:"reasoning two" text:"answer two"`},
		{"think, call", "<think>\nneed search\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"capital of France\", \"model\": \"search-1\"}}\n</tool_call>",
			`search{"query": "capital of France", "model": "search-1"} think:"need search"`},
		{"two calls", "<tool_call>\n{\"name\":\"search\",\"arguments\":{\"query\":\"a4\"}}\n</tool_call>\n<tool_call>\n{\"name\":\"calc\",\"arguments\":{\"expr\":\"1+4\"}}\n</tool_call>\n",
			`search{"query":"a4"} calc{"expr":"1+4"}`},
		{"unknown tool", "<tool_call>\n{\"name\": \"not_a_tool\", \"arguments\": {\"x\":5}}\n</tool_call> ", `not_a_tool{"x":5}`},
		{"string never ends", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"broken6\n</tool_call>\n\n",
			`bad:"{\"name\": \"search\", \"arguments\": {\"query\": \"broken6" truncated`},
		{"truncated", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"trunc7", `bad:"{\"name\": \"search\", \"arguments\": {\"query\": \"trunc7" truncated`},
		{"truncated in a key", "<tool_call>\n{\"name\": \"search\", \"argum", `bad:"{\"name\": \"search\", \"argum" truncated`},
		{"truncated after the tag", "ok <tool_call>\n", `bad:"<tool_call>" truncated text:"ok"`},
		{"second truncated", "<tool_call>{\"name\": \"calc\"}</tool_call><tool_call>{\"name\": \"search\", ", `calc{} bad:"{\"name\": \"search\"," truncated`},
		{"call inside, answer after", "<think>\nI will call inside8\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"in8\"}}\n</tool_call>\n</think>\n\nafter8",
			`think:"I will call inside8\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"in8\"}}\n</tool_call>" text:"after8"`},
		{"call inside, call after", "<think><tool_call>{\"name\": \"search\"}</tool_call></think><tool_call>{\"name\": \"calc\"}</tool_call>",
			`calc{} think:"<tool_call>{\"name\": \"search\"}</tool_call>"`},
		{"call inside, nothing after", "<think>go <tool_call>{\"name\": \"search\"}</tool_call>\n</think>\n\n", `search{} think:"go"`},
		{"call inside, thinking never ends", "<think>go <tool_call>{\"name\": \"search\"}</tool_call>\n", `search{} think:"go"`},
		{"call inside, truncated call after", "<think><tool_call>{\"name\": \"search\"}</tool_call></think><tool_call>{\"name",
			`bad:"{\"name" truncated think:"<tool_call>{\"name\": \"search\"}</tool_call>"`},
		{"tag in thoughts", "<think>I use <tool_call> now, {yes}.</think><tool_call>{\"name\": \"calc\"}</tool_call>", `calc{} think:"I use <tool_call> now, {yes}."`},
		{"half a call in thoughts", "<think>so <tool_call>{\"name\": \"sea</think><tool_call>{\"name\": \"calc\"}</tool_call>", `calc{} think:"so <tool_call>{\"name\": \"sea"`},
		{"text around", "Let me look ten.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"ten\"}}\n</tool_call>\nAnd trailing text ten",
			`search{"query": "ten"} text:"Let me look ten.\n\nAnd trailing text ten"`},
		{"arguments as a string", "<tool_call>\n{\"name\": \"search\", \"arguments\": \"{\\\"query\\\": \\\"str11\\\"}\"}\n</tool_call>\n  ", `search{"query": "str11"}`},
		{"arguments as prose", "<tool_call>{\"name\": \"search\", \"arguments\": \"str11\"}</tool_call>", `bad:"{\"name\": \"search\", \"arguments\": \"str11\"}"`},
		{"arguments as a cut string", "<tool_call>{\"name\": \"search\", \"arguments\": \"{\\\"query\\\": \\\"a\"}</tool_call>", `bad:"{\"name\": \"search\", \"arguments\": \"{\\\"query\\\": \\\"a\"}"`},
		{"arguments empty", "<tool_call>{\"name\": \"search\", \"arguments\": \"\"}</tool_call>", `search{}`},
		{"numbers, order", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"t12\", \"i\": 9007199254740993, \"f\": 1.50, \"b\": true, \"n\": null, \"o\": {\"z\": 1, \"a\": [1,2]}, \"e\": 1e3}}\n</tool_call>   ",
			`search{"query": "t12", "i": 9007199254740993, "f": 1.50, "b": true, "n": null, "o": {"z": 1, "a": [1,2]}, "e": 1e3}`},
		{"emoji", "emo13 \xf0\x9f\x98\x80tail13", `text:"emo13 😀tail13"`},
		{"half an emoji", "emo13 \xf0\x9f\x98<tool_call>{\"name\": \"a\xff\"}</tool_call>", "a\uFFFD{} text:\"emo13 \uFFFD\""},
		{"empty", "", ""},
		{"stray close", "stray fifteen\n</think>\n\nvisible15", `think:"stray fifteen" text:"visible15"`},
		{"stray close, call", "hm\n</think>\n\n<tool_call>{\"name\": \"calc\"}</tool_call>", `calc{} think:"hm"`},
		{"second close", "<think>a</think>b</think>c", `think:"a" text:"bc"`},
		{"bare", "{\"name\": \"search\", \"arguments\": {\"query\": \"bare16\"}}", `search{"query": "bare16"}`},
		{"bare, unknown", "{\"name\": \"Ann\", \"arguments\": {\"query\": \"bare16\"}}", `text:"{\"name\": \"Ann\", \"arguments\": {\"query\": \"bare16\"}}"`},
		{"bare, no arguments", "{\"name\": \"search\"}", `text:"{\"name\": \"search\"}"`},
		{"bare, truncated", "{\"name\": \"search\", \"arguments\": {\"query\": \"ba", `bad:"{\"name\": \"search\", \"arguments\": {\"query\": \"ba" truncated`},
		{"in prose", "I would call {\"name\": \"search\", \"arguments\": {}}", `text:"I would call {\"name\": \"search\", \"arguments\": {}}"`},
		{"before prose", "{\"name\": \"search\", \"arguments\": {}} would do.", `text:"{\"name\": \"search\", \"arguments\": {}} would do."`},
		{"two bare ones", "{\"name\": \"search\", \"arguments\": {}} {\"name\": \"calc\", \"arguments\": {}}", `search{} calc{}`},
		{"bare, broken", "{'name': 'search', 'arguments': {'a': 1,}}", `search{"a":1}`},
		{"bare, then half a one", "{\"name\": \"search\", \"arguments\": {}} {\"na", `text:"{\"name\": \"search\", \"arguments\": {}} {\"na"`},
		{"answer tag", "<think>\nenough17\n</think>\n\n<answer>Paris17</answer>", `think:"enough17" text:"<answer>Paris17</answer>"`},
		{"only thinking", "<think>\nonly thinking18\n</think>\n\n ", `think:"only thinking18"`},
		{"missing arguments", "<tool_call>\n{\"name\": \"search\"}\n</tool_call>\n19", `search{} text:"19"`},
		{"name holds a name", "<tool_call>\n{\"name\": \"search_web\", \"arguments\": {\"query\": \"use calc20\"}}\n</tool_call>20", `search_web{"query": "use calc20"} text:"20"`},
		{"unclosed thinking", "<think>\nunclosed thinking21 forever", `truncated think:"unclosed thinking21 forever"`},
		{"escapes", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"esc \\\"q\\\" {brace} [b] \\\\ \\n new 22\"}}\n</tool_call>22",
			`search{"query": "esc \"q\" {brace} [b] \\ \n new 22"} text:"22"`},
		{"fence", "```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"fence23\"}}\n```", `search{"query": "fence23"}`},
		{"fence in a block", "<tool_call>\n```json\n{\"name\": \"search\"}\n```\n</tool_call>", `search{}`},
		{"single quotes", "<tool_call>\n{'name': 'search', 'arguments': {'query': 'py24'}}\n</tool_call>24", `search{"query":"py24"} text:"24"`},
		{"other JSON", "<think>\nth27\n</think>\n\n{\"a\": 27} ", `think:"th27" text:"{\"a\": 27}"`},
		{"unquoted value", "<think>\nth28 a28 b28 \n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": broken28\n</tool_call>",
			`bad:"{\"name\": \"search\", \"arguments\": {\"query\": broken28" truncated think:"th28 a28 b28"`},
		{"raw newline", "<tool_call>{\"name\": \"calc\", \"arguments\": {\"code\": \"a\nb\"}}</tool_call>", `calc{"code":"a\nb"}`},
		{"brackets too many", "<tool_call>{\"name\": \"calc\", \"arguments\": {}}]}\n</tool_call>x", `calc{} text:"x"`},
		{"never closed", "<tool_call>\n{\"name\": \"calc\", \"arguments\": {}}", `calc{}`},
		{"never closed, text", "<tool_call>\n{\"name\": \"calc\", \"arguments\": {}}\nDone.", `calc{} text:"Done."`},
		{"opened twice", "<tool_call>\n<tool_call>\n{\"name\": \"calc\"}\n</tool_call>", `calc{} text:"<tool_call>"`},
		{"parameters", "<tool_call>{\"name\": \"calc\", \"parameters\": {\"a\": 1}}</tool_call>", `calc{"a": 1}`},
		{"arguments first", "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"calc\"}</tool_call>", `calc{"a": 1}`},
		{"two objects", "<tool_call>{\"name\": \"calc\"}\n{\"name\": \"search\"}</tool_call>", `calc{} search{}`},
		{"second object broken", "<tool_call>{\"name\": \"calc\"}\n{\"name\": </tool_call>", `calc{} bad:"{\"name\":" truncated`},
		{"array", "<tool_call>[{\"name\": \"calc\"}, {\"name\": \"search\"}]</tool_call>", `calc{} search{}`},
		{"wrong shapes", "<tool_call>{\"name\": 5}</tool_call><tool_call>{\"Name\": \"x\"}</tool_call><tool_call>[]</tool_call><tool_call>{\"name\": \"a\", \"arguments\": [1]}</tool_call><tool_call>words</tool_call><tool_call></tool_call>",
			`bad:"{\"name\": 5}" bad:"{\"Name\": \"x\"}" bad:"[]" bad:"{\"name\": \"a\", \"arguments\": [1]}" bad:"words" bad:"<tool_call>"`},
		{"tags in a string", "<tool_call>{\"name\": \"calc\", \"arguments\": {\"a\": \"</tool_call> <think> </think> <tool_call>{\"}}</tool_call>", `calc{"a": "</tool_call> <think> </think> <tool_call>{"}`},
		{"end of turn", "<tool_call>{\"name\": \"calc\"}</tool_call><|im_end|>\n<|im_start|>user\n<tool_call>{\"name\": \"search\"}</tool_call>", `calc{}`},
		{"XML", "<tool_call>\n<function=calc>\n<parameter=a>\n1 + \"2\"\n</parameter>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>", `calc{"a": "1 + \"2\"", "n": 12}`},
		{"XML without a block", "go <function=search><parameter=query>a </parameter> b</parameter></function> on", `search{"query": "a </parameter> b"} text:"go  on"`},
		{"XML without a block, unknown", "std::<function=x></function>", `text:"std::<function=x></function>"`},
		{"XML cut", "<tool_call>\n<function=calc>\n<parameter=a>\n1 + {\"name\": \"calc\"}", `bad:"<function=calc>\n<parameter=a>\n1 + {\"name\": \"calc\"}" truncated`},
		{"XML in prose", "<function= is a tag", `text:"<function= is a tag"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(Parse(c.in, known)); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParseWithoutKnown(t *testing.T) {
	if p := Parse(`{"name": "search", "arguments": {}}`, nil); len(p.Calls) != 0 || p.Text == "" {
		t.Errorf("%+v", p)
	}
}

func TestParseTooManyCalls(t *testing.T) {
	one := "<tool_call>{\"name\": \"calc\"}</tool_call>"
	for name, in := range map[string]string{
		"blocks":                strings.Repeat(one, 2*MaxCalls),
		"objects":               "<tool_call>" + strings.Repeat(`{"name": "calc"}`, 2*MaxCalls) + "</tool_call>",
		"around thinking":       strings.Repeat(one, MaxCalls) + "<think>" + one + "</think>" + strings.Repeat(one, MaxCalls),
		"inside thinking":       "<think>" + strings.Repeat(one, 2*MaxCalls),
		"thoughts do not count": "<think>" + strings.Repeat(one, 2*MaxCalls) + "</think>" + strings.Repeat(one, MaxCalls+1),
	} {
		p := Parse(in, known)
		if len(p.Calls) != MaxCalls || len(p.Malformed) == 0 {
			t.Errorf("%s: %d calls, %d malformed", name, len(p.Calls), len(p.Malformed))
		}
	}
}

// What is quadratic takes minutes here.
func TestParseIsLinear(t *testing.T) {
	const n = 1 << 19
	for _, part := range []string{
		"<tool_call>", "<tool_call>{", "<tool_call>{\"name\": \"a", "<tool_call>[", "<think>", "</think>", "<think></think>", "<tool_call>{}</tool_call>",
		"<function=calc>", "<function=x>", "<function=x><parameter=a>", "<function=calc><parameter=a>", "<function=calc><parameter=a></parameter>", "<tool_call><function=calc><parameter=a></parameter> ",
		"</tool_call>", "{\"name\":", "[", "<", "</think><tool_call>{\"", "```", "<tool_call>\"",
	} {
		start := time.Now()
		Parse(strings.Repeat(part, n/len(part)), known)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q: %s", part, took)
		}
	}
}
