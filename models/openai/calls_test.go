package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// show writes calls as id:name:args.
func show(j *joiner) string {
	var out []string
	for _, c := range j.list() {
		out = append(out, fmt.Sprintf("%s:%s:%s", c.ID, c.Name, c.Args))
	}
	return strings.Join(out, " ; ")
}

func TestJoiner(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunks []string // arrays of tool_calls
		want   string
	}{
		{"pieces", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`,
			`[{"index":0,"function":{"arguments":"{\"x\""}}]`,
			`[{"index":0,"function":{"arguments":":1}"}}]`,
		}, `a:f:{"x":1}`},
		{"interleaved", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"b","function":{"name":"g","arguments":"["}}]`,
			`[{"index":1,"function":{"arguments":"]"}}]`,
			`[{"index":0,"function":{"arguments":"}"}}]`,
		}, `a:f:{} ; b:g:[]`},
		{"sparse indexes, out of order", []string{
			`[{"index":7,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":2,"id":"b","function":{"name":"g","arguments":"{"}}]`,
			`[{"index":2,"function":{"arguments":"}"}}]`,
		}, `a:f:{} ; b:g:{}`},
		{"no index", []string{
			`[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`,
			`[{"function":{"arguments":"1}"}}]`,
			`[{"id":"b","function":{"name":"g","arguments":"{}"}}]`,
		}, `a:f:{"x":1} ; b:g:{}`},
		{"index -1", []string{
			`[{"index":-1,"id":"a","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":-1,"function":{"arguments":"}"}}]`,
			`[{"index":-1,"id":"b","function":{"name":"g","arguments":"{}"}}]`,
		}, `a:f:{} ; b:g:{}`},
		{"all indexes 0", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":0,"id":"b","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"function":{"arguments":"}"}}]`,
		}, `a:f:{} ; b:f:{}`},
		{"all indexes 0, interleaved by id", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}]`,
			`[{"index":0,"id":"a","function":{"arguments":"}"}}]`,
			`[{"index":0,"id":"b","function":{"arguments":" }"}}]`,
		}, `a:f:{} ; b:g:{ }`},
		{"name and id in each delta", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]`,
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"y\":1}"}}]`,
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]`,
		}, `a:f:{"x":{"y":1}}`},
		{"a type that is repeated", []string{
			`[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"type":"function","function":{"arguments":"}"}}]`,
		}, `a:f:{}`},
		{"the id comes later", []string{
			`[{"index":0,"function":{"name":"f","arguments":"{"}}]`,
			`[{"index":0,"id":"a","function":{"arguments":"}"}}]`,
		}, `a:f:{}`},
		{"no ids, no indexes, whole", []string{
			`[{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":2}"}}]`,
			`[{"function":{"name":"f","arguments":"{\"x\":3}"}}]`,
		}, `:f:{"x":1} ; :f:{"x":2} ; :f:{"x":3}`},
		{"no ids, indexes 0, another name", []string{
			`[{"index":0,"function":{"name":"f"}}]`,
			`[{"index":0,"function":{"name":"g"}}]`,
		}, `:f: ; :g:`},
		{"one id at two indexes stays two calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
		}, `a:f:{} ; a:f:{}`},
		{"one id at two indexes, interleaved", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"a","function":{"name":"f","arguments":"{ "}}]`,
			`[{"index":0,"id":"a","function":{"arguments":"}"}},{"index":1,"id":"a","function":{"arguments":"}"}}]`,
		}, `a:f:{} ; a:f:{ }`},
		{"one id repeated stays two calls", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`,
		}, `a:f:{} ; a:f:{}`},
		{"a valid prefix is not the end", []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}]`,
			`[{"index":0,"function":{"arguments":"2"}}]`,
		}, `a:f:12`},
		{"an object as arguments", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": [1]}}}]`}, `a:f:{"x": [1]}`},
		{"null and odd types", []string{
			`[{"index":"0","id":5,"function":{"name":"f","arguments":null}}]`,
			`[{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}},{}]`,
		}, `5:f:{}`},
		{"broken arguments as written", []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\": tru"}}]`}, `a:f:{"x": tru`},
		{"an empty list", []string{`[]`, `null`}, ``},
		{"a huge index", []string{`[{"index":9e99,"function":{"name":"f"}}]`, `[{"index":-9e99,"function":{"name":"g"}}]`}, `:f: ; :g:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j joiner
			for _, c := range tt.chunks {
				var in []callIn
				if err := json.Unmarshal([]byte(c), &in); err != nil {
					t.Fatal(err)
				}
				j.add(in)
			}
			if got := show(&j); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// No list of deltas makes the joiner panic or lose what was written.
func FuzzJoiner(f *testing.F) {
	f.Add(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":-1,"function":{"arguments":"}"}}]`, 2)
	f.Add(`[{"id":"a"},{"function":{"name":"f","arguments":{"a":1}}}]`, 1)
	f.Fuzz(func(t *testing.T, chunk string, times int) {
		var in []callIn
		if json.Unmarshal([]byte(chunk), &in) != nil {
			return
		}
		var j joiner
		want := 0
		for range min(max(times, 0), 4) {
			j.add(in)
			for _, c := range in {
				want += len(argumentText(c.Function.Arguments))
			}
		}
		got := 0
		for _, c := range j.list() {
			got += len(c.Args)
		}
		if got != want {
			t.Errorf("%d bytes of arguments in, %d out", want, got)
		}
	})
}
