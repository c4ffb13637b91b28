package jsonfix

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Every sample is something that models write.
var samples = []struct{ name, in, want string }{
	{"trailing comma", `{"a": 1, "b": [1, 2,],}`, `{"a":1,"b":[1,2]}`},
	{"single quotes", `{'a': 'x', 'b': 'it"s'}`, `{"a":"x","b":"it\"s"}`},
	{"backticks", "{`a`: `x`}", `{"a":"x"}`},
	{"raw newline", "{\"code\": \"line 1\nline 2\"}", `{"code":"line 1\nline 2"}`},
	{"raw tab", "{\"code\": \"if x:\n\ty\"}", `{"code":"if x:\n\ty"}`},
	{"control character", "{\"a\": \"x\x01y\", }", `{"a":"x\u0001y"}`},
	{"Python literals", `{'a': True, 'b': False, 'c': None}`, `{"a":true,"b":false,"c":null}`},
	{"fence", "```json\n{\"a\": 1}\n```", `{"a":1}`},
	{"fence, repaired", "```json\n{\"a\": 1,}\n```\nDone.", `{"a":1}`},
	{"fence inside a string", "{\"a\": \"```go\nx\n```\",}", "{\"a\":\"```go\\nx\\n```\"}"},
	{"prose around", `Sure! Here you go: {"a": 1} Hope it helps {smile}.`, `{"a":1}`},
	{"prose with braces", `With {curly} and [square] ones: {"a": 1}`, `{"a":1}`},
	{"prose with an array", `The list: [1, 2]`, `[1,2]`},
	{"array of objects in prose", `Calls: [{"a": 1}, {"b": 2}]`, `[{"a":1},{"b":2}]`},
	{"tags", `<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`, `{"name":"f","arguments":{"a":1}}`},
	{"reasoning", `<think>maybe {"a": 0}</think>{"a": 1}`, `{"a":1}`},
	{"bare keys", `{city: "Bergen", max_results: 3}`, `{"city":"Bergen","max_results":3}`},
	{"bare values", `{"city": New York, "url": https://x.org/a, "n": 3}`, `{"city":"New York","url":"https://x.org/a","n":3}`},
	{"one brace too many", `{"a": {"b": 1}}}`, `{"a":{"b":1}}`},
	{"closed too early", `{"a": 1}, "b": 2}`, `{"a":1,"b":2}`},
	{"brace missing in an array", `[{"a": 1, {"b": 2}]`, `[{"a":1},{"b":2}]`},
	{"brace missing at its end", `{"l": [{"a": 1], "b": 2}`, `{"l":[{"a":1}],"b":2}`},
	{"bracket for a brace", `{"a": 1]`, `{"a":1}`},
	{"bracket missing", `{"a": [1, 2}`, `{"a":[1,2]}`},
	{"line comment", "{\"a\": 1, // one\n # two\n\"b\": 2}", `{"a":1,"b":2}`},
	{"block comment", `{"a": /* one */ 1}`, `{"a":1}`},
	{"escaped inside", `{\"a\": \"x \\\"y\\\"\"}`, `{"a":"x \"y\""}`},
	{"unknown escape", `{"re": "\d+\.\w", "p": "C:\Users"}`, `{"re":"\\d+\\.\\w","p":"C:\\Users"}`},
	{"escaped apostrophe", `{"a": "it\'s"}`, `{"a":"it's"}`},
	{"unicode escapes", `{"a": "\u00e9\ud83d\ude00\ud83d",}`, `{"a":"é😀�"}`},
	{"inner quotes", `{"text": "He said "hi" and left", "n": 1}`, `{"text":"He said \"hi\" and left","n":1}`},
	{"inner quotes and comma", `{"text": "say "yes", then go"}`, `{"text":"say \"yes\", then go"}`},
	{"code with quotes", `{"code": "print("a")", "n": 1}`, `{"code":"print(\"a\")","n":1}`},
	{"smart quotes", `{“a”: “x”, ‘b’: ‘y’}`, `{"a":"x","b":"y"}`},
	{"triple quotes", "{\"code\": \"\"\"print(\"x\")\ny\"\"\"}", `{"code":"print(\"x\")\ny"}`},
	{"fenced value", "{\"code\": ```print(\"x\")```}", `{"code":"print(\"x\")"}`},
	{"concatenation", `{"a": "x" + "y"}`, `{"a":"xy"}`},
	{"NaN", `{"a": NaN, "b": -Infinity, "c": undefined}`, `{"a":null,"b":null,"c":null}`},
	{"numbers", `{"a": +1, "b": .5, "c": -.5, "d": 2., "e": 1_000, "f": 007}`, `{"a":1,"b":0.5,"c":-0.5,"d":2,"e":1000,"f":"007"}`},
	{"digits are kept", `{a: 9007199254740993, b: 1.50, c: 1e400}`, `{"a":9007199254740993,"b":1.50,"c":1e400}`},
	{"tuple", `{"a": (1, 2), "b": (3)}`, `{"a":[1,2],"b":3}`},
	{"no value", `{"a": , "b": 2, "c"}`, `{"a":null,"b":2,"c":null}`},
	{"no comma", "{\"a\": 1 \"b\": \"x\" \"c\": true\n\"d\": 2}", `{"a":1,"b":"x","c":true,"d":2}`},
	{"no colon", `{"a" "x", "b" {"c": 1}}`, `{"a":"x","b":{"c":1}}`},
	{"arrows", `{"a" => 1, b = "x"; c: 3}`, `{"a":1,"b":"x","c":3}`},
	{"two objects", `{"a": 1}{"b": 2}`, `{"a":1}`},
	{"empty object first", `{}{"a": 1}`, `{"a":1}`},
	{"equal keys", `{"a": 1, "b": 2, "a": 3,}`, `{"a":3,"b":2}`},
	{"order", `{z: 1, a: 2, m: 3}`, `{"z":1,"a":2,"m":3}`},
	{"not UTF-8", "{\"a\": \"x\xff\",}", `{"a":"x�"}`},
	{"byte order mark", "\ufeff{'a': 1}", `{"a":1}`},
	{"strange space", "{\u00a0'a':\u30001}", `{"a":1}`},
}

func TestRepair(t *testing.T) {
	for _, c := range samples {
		t.Run(c.name, func(t *testing.T) {
			v, err := Read(c.in)
			if err != nil || string(v.JSON) != c.want || !v.Repaired || v.Truncated {
				t.Errorf("Read(%q)\n = %s, repaired %t, truncated %t, %v\nwant %s", c.in, v.JSON, v.Repaired, v.Truncated, err, c.want)
			}
		})
	}
}

func TestValidIsKept(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `null`, `3`, `"x"`, `{"a": 9007199254740993, "b":1.50 , "a":2}`, `"{\"a\": 1}"`, "{\"a\":\"\xff\"}", `{"x":"\frac"}`,
	} {
		v, err := Read(" \n" + in + "\t")
		if err != nil || string(v.JSON) != in || v.Repaired || v.Truncated {
			t.Errorf("Read(%q) = %s, %+v, %v", in, v.JSON, v, err)
		}
	}
}

func TestTruncated(t *testing.T) {
	for in, want := range map[string]string{
		`{`:                         `{}`,
		`{"a`:                       `{}`,
		`{"a"`:                      `{}`,
		`{"a":`:                     `{}`,
		`{"a": 12`:                  `{"a":12}`,
		`{"a": "x`:                  `{"a":"x"}`,
		`{"a": "x"`:                 `{"a":"x"}`,
		`{"a": "x\`:                 `{"a":"x"}`,
		`{"a": "x", "b": {"c": [1`:  `{"a":"x","b":{"c":[1]}}`,
		`{"code": "f() { return }`:  `{"code":"f() { return }"}`,
		"```json\n{\"a\": 1\n```":   `{"a":1}`,
		"```json\n{\"a\": \"x\n```": "{\"a\":\"x\\n```\"}",
		`{'a': """x`:                `{"a":"\"\"x"}`,
		`{\"a\": \"x`:               `{"a":"x"}`,
		`Here: {"a": [`:             `{"a":[]}`,
		`{"a": 1 /* `:               `{"a":1}`,
	} {
		v, err := Read(in)
		if err != nil || !v.Truncated || !v.Repaired || string(v.JSON) != want {
			t.Errorf("Read(%q) = %s, truncated %t, %v; want %s", in, v.JSON, v.Truncated, err, want)
		}
	}
}

func TestNoValue(t *testing.T) {
	for _, in := range []string{"", " ", "hello", "hello [world]", "a {b} c", "}", "```\n```"} {
		if v, err := Read(in); !errors.Is(err, ErrNoValue) {
			t.Errorf("Read(%q) = %s, %v", in, v.JSON, err)
		}
	}
}

func TestLimits(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{a:`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct {
		in   string
		want error
	}{
		{nest(MaxDepth), nil},
		{nest(MaxDepth + 1), ErrTooDeep},
		{objects(MaxDepth), nil},
		{objects(MaxDepth + 1), ErrTooDeep},
		{strings.Repeat("[", 50_000), ErrTooDeep},
		{strings.Repeat("{a:", 50_000), ErrTooDeep},
		{`{"a": "` + strings.Repeat("[", 500) + `"}`, nil},
		{`"` + strings.Repeat("x", MaxBytes) + `"`, ErrTooLarge},
	} {
		if _, err := Read(c.in); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
			t.Errorf("%.20s… (%d bytes): %v, want %v", c.in, len(c.in), err, c.want)
		}
	}
}

// The parser takes at most a fixed number of steps a byte, whatever the text.
func TestLinear(t *testing.T) {
	units := []string{
		`"`, `'`, `{`, `[`, `{a:`, `"a" `, `"a","`, `{"a":"b`, `{}`, `{} [`, `\"`, `\`, `/*`, `//`, `#`, `x"`, `1"`, `"""`, `'''`, "```",
		`“`, `" + "`, `,`, `: `, `"":`, `" `, ` `, `(`, `),`, `}`, `{"`, `"x", `, `é"`, `1_`, `"a":1}, `, `\u0041`, `[{`, `{ `, `"x" + `, `a:1,`, `"\u0061`,
	}
	for _, prefix := range []string{"", `{"a": `, `{"a": "`, `[`, `{"`, "x "} {
		for _, u := range units {
			for _, n := range []int{200, 20_000} {
				in := prefix + strings.Repeat(u, n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, steps, _ := read(in)
				runtime.ReadMemStats(&after)
				// Copies are no steps, but allocate.
				if got := after.TotalAlloc - before.TotalAlloc; got > uint64(500*len(in)+1<<16) {
					t.Errorf("%q + %d × %q: %d bytes allocated for %d", prefix, n, u, got, len(in))
				}
				if limit := 2 * (window + 8) * len(in); steps > limit {
					t.Errorf("%q + %d × %q: %d steps for %d bytes", prefix, n, u, steps, len(in))
				}
			}
		}
	}
}

func TestSmallIsAllocatedOnce(t *testing.T) {
	in := `{"query": "go", "n": 3}`
	if n := testing.AllocsPerRun(100, func() { _, _ = Read(in) }); n > 2 {
		t.Errorf("%v allocations for valid JSON", n)
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range samples {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, steps, err := read(s)
		if limit := 2*(window+8)*len(s) + 100; steps > limit {
			t.Fatalf("%d steps for %d bytes", steps, len(s))
		}
		if err != nil {
			return
		}
		if !json.Valid(v.JSON) {
			t.Fatalf("not JSON: %s", v.JSON)
		}
		if again, err := Read(string(v.JSON)); err != nil || again.Repaired || !bytes.Equal(again.JSON, v.JSON) {
			t.Fatalf("not stable: %s then %s, %v", v.JSON, again.JSON, err)
		}
		if json.Valid([]byte(s)) {
			var a, b any
			if json.Unmarshal([]byte(s), &a) == nil && json.Unmarshal(v.JSON, &b) == nil && !reflect.DeepEqual(a, b) {
				t.Fatalf("valid JSON changed: %s to %s", s, v.JSON)
			}
		}
	})
}

// FuzzPrefix cuts valid JSON: it is always noticed.
func FuzzPrefix(f *testing.F) {
	for _, s := range []string{
		`{"code": "if (x) { print(\"a\"}) }", "n": [1, 2, {"b": null}]}`, `[{"a": "x, y"}, "b", -1.5e3, true]`, "{\"a\": \"```\\n\", \"\": {}}",
		`{"a": "\u00e9, \"b\": 1}"}`, `[["[{"], "{}{\"a\": 1}"]`,
	} {
		for i := range len(s) {
			f.Add(s, uint(i))
		}
	}
	f.Fuzz(func(t *testing.T, s string, n uint) {
		s = strings.TrimSpace(s)
		if !json.Valid([]byte(s)) || s[0] != '{' && s[0] != '[' {
			return
		}
		cut := s[:n%uint(len(s))]
		if v, err := Read(cut); err == nil && !v.Truncated {
			t.Fatalf("%q, cut from %q, was read as %s", cut, s, v.JSON)
		}
	})
}

func BenchmarkRepair(b *testing.B) {
	in := "```json\n{'query': 'go', \"n\": 3,}\n```"
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Read(in)
	}
}
