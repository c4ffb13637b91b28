package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	js "github.com/google/jsonschema-go/jsonschema"
)

// read1 gives args to a tool that takes an In, and returns what arrives.
func read1[In any](t *testing.T, args string) (In, bool, error) {
	t.Helper()
	var got In
	called := false
	tool := Must(New("t", "", func(_ context.Context, in In) (string, error) { got, called = in, true; return "", nil }))
	_, err := tool.Call(context.Background(), Call{Args: json.RawMessage(args)})
	if called == (err != nil) {
		t.Errorf("%q: called %t, error %v", args, called, err)
	}
	return got, called, err
}

func TestArguments(t *testing.T) {
	type in struct {
		Query string            `json:"query" validate:"required"`
		Max   int               `json:"max_results,omitempty" validate:"omitempty,gte=1,lte=20" default:"5"`
		Deep  bool              `json:"deep,omitempty"`
		Tags  []string          `json:"tags,omitempty"`
		Nums  []int64           `json:"nums,omitempty"`
		Ratio float64           `json:"ratio,omitempty"`
		Place *place            `json:"place,omitempty"`
		Meta  map[string]string `json:"meta,omitempty"`
		Raw   json.RawMessage   `json:"raw,omitempty"`
		Blob  []byte            `json:"blob,omitempty"`
		When  time.Time         `json:"when,omitzero"`
		Mode  *string           `json:"mode,omitempty" validate:"omitempty,oneof=a b"`
	}
	with := func(f func(*in)) in {
		v := in{Query: "go", Max: 5}
		f(&v)
		return v
	}
	plain := with(func(*in) {})
	for name, c := range map[string]struct {
		args string
		want in
	}{
		"valid":                {`{"query": "go"}`, plain},
		"all given":            {`{"query":"go","max_results":3,"deep":true,"tags":["a"]}`, with(func(v *in) { v.Max, v.Deep, v.Tags = 3, true, []string{"a"} })},
		"escapes":              {`{"qu\u0065ry":"g\u006f"}`, plain},
		"equal keys":           {`{"query":"x","query":"go"}`, plain},
		"equal keys, nested":   {`{"query":"go","place":{"city":"a","zip":"1"},"place":{"city":"b"}}`, with(func(v *in) { v.Place = &place{"b", "0000"} })},
		"equal keys, merged":   {`{"query":"go","meta":{"a":"1"},"meta":{"b":"2"}}`, with(func(v *in) { v.Meta = map[string]string{"b": "2"} })},
		"repaired":             {"```json\n{'query': 'go',}\n```", plain},
		"with prose":           {`I call it with {"query": "go"}.`, plain},
		"arguments":            {`{"arguments": {"query": "go"}}`, plain},
		"args as text":         {`{"args": "{\"query\": \"go\"}"}`, plain},
		"parameters with name": {`{"name": "t", "parameters": {"query": "go"}}`, plain},
		"input in arguments":   {`{"arguments": {"input": {"query": "go"}}}`, plain},
		"a string":             {`"{\"query\": \"go\"}"`, plain},
		"a broken string":      {`"{'query': 'go'}"`, plain},
		"number as text":       {`{"query":"go","max_results":"3"}`, with(func(v *in) { v.Max = 3 })},
		"number as float":      {`{"query":"go","max_results":3.0}`, with(func(v *in) { v.Max = 3 })},
		"number with exponent": {`{"query":"go","max_results":1e1,"ratio":"1e-1"}`, with(func(v *in) { v.Max, v.Ratio = 10, 0.1 })},
		"true as text":         {`{"query":"go","deep":"True"}`, with(func(v *in) { v.Deep = true })},
		"list as text":         {`{"query":"go","tags":"[\"a\", \"b\"]"}`, with(func(v *in) { v.Tags = []string{"a", "b"} })},
		"scalar for a list":    {`{"query":"go","tags":"a","nums":7}`, with(func(v *in) { v.Tags, v.Nums = []string{"a"}, []int64{7} })},
		"bracketed text":       {`{"query":"go","tags":"[draft] a"}`, with(func(v *in) { v.Tags = []string{"[draft] a"} })},
		"object as text":       {`{"query":"go","place":"{\"city\": \"x\"}"}`, with(func(v *in) { v.Place = &place{"x", "0000"} })},
		"null":                 {`{"query":"go","place":null,"max_results":null,"tags":null,"mode":null,"meta":null,"when":null}`, plain},
		"empty for nothing":    {`{"query":"go","place":"","max_results":"","deep":"","mode":""}`, plain},
		"zero for nothing":     {`{"query":"go","max_results":0}`, plain},
		"number for a text":    {`{"query":"go","meta":{"a":1.50,"b":true}}`, with(func(v *in) { v.Meta = map[string]string{"a": "1.50", "b": "true"} })},
		"big numbers":          {`{"query":"go","nums":["9007199254740993", 9007199254740995]}`, with(func(v *in) { v.Nums = []int64{9007199254740993, 9007199254740995} })},
		"big numbers, raw":     {`{query:"go",raw:[9007199254740993,1.50]}`, with(func(v *in) { v.Raw = json.RawMessage(`[9007199254740993,1.50]`) })},
		"other spelling":       {`{"Query":"go","maxResults":3}`, with(func(v *in) { v.Max = 3 })},
		"defaults inside":      {`{"query":"go","place":{"city":"x"}}`, with(func(v *in) { v.Place = &place{"x", "0000"} })},
		"special types":        {`{"query":"go","blob":"aGk=","when":"2026-01-02T03:04:05Z"}`, with(func(v *in) { v.Blob, v.When = []byte("hi"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) })},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := read1[in](t, c.args)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s\n got %+v, %v\nwant %+v", c.args, got, err, c.want)
			}
		})
	}
}

func TestArgumentsRefused(t *testing.T) {
	type in struct {
		Query string         `json:"query" validate:"required,max=10"`
		Max   int            `json:"max_results,omitempty" validate:"omitempty,gte=1,lte=20"`
		Small int8           `json:"small,omitempty"`
		Email string         `json:"email,omitempty" validate:"omitempty,email"`
		Mode  string         `json:"mode,omitempty" validate:"omitempty,oneof=a b"`
		Tags  []string       `json:"tags,omitempty" validate:"max=2,dive,max=3"`
		Place *place         `json:"place,omitempty"`
		When  time.Time      `json:"when,omitzero"`
		Blob  []byte         `json:"blob,omitempty"`
		Dict  map[string]int `json:"dict,omitempty"`
		Uns   uint           `json:"uns,omitempty"`
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{``, []string{"query: is required"}},
		{`null`, []string{"query: is required"}},
		{`{}`, []string{"query: is required"}},
		{`{"query": null}`, []string{"query: must be a string, not null"}},
		{`{"query": ""}`, []string{"query", "at least 1"}},
		{`hello`, []string{"not JSON"}},
		{`[1]`, []string{"must be an object, not an array"}},
		{`3`, []string{"must be an object, not a number"}},
		{`"x"`, []string{"must be an object, not a string"}},
		{`{"query": "go", "citi": 1}`, []string{`unknown key "citi"`, "known: query, max_results, small"}},
		{`{"query": "go", "Query": "no"}`, []string{`unknown key "Query"`}},
		{`{"QUERY": "go", "Query": "no"}`, []string{`unknown key "QUERY"`, `unknown key "Query"`, "query: is required"}},
		{`{"name": "other", "arguments": {"query": "go"}}`, []string{`unknown key "arguments"`}},
		{`{"query": "go", "max_results": 50, "mode": "x", "tags": ["a", "b", "long"]}`, []string{
			"max_results: must be at most 20", `mode: must be one of ["a" "b"]`, "tags[2]: must have at most 3 characters", "tags: must have at most 2 items"}},
		{`{"query": "go", "max_results": "many"}`, []string{"max_results: must be an integer, not a string"}},
		{`{"query": "go", "max_results": 2.5}`, []string{"max_results: must be an integer"}},
		{`{"query": "go", "dict": {"a": 9007199254740993.0}}`, []string{"dict[a]: must be an integer"}},
		{`{"query": "go", "max_results": 1e400}`, []string{"max_results: must be an integer"}},
		{`{"query": "go", "max_results": 99999999999999999999}`, []string{"max_results: is out of range"}},
		{`{"query": "go", "small": 128, "uns": -1}`, []string{"small: is out of range", "uns: must not be negative"}},
		{`{"query": "go", "email": "nope"}`, []string{"email: must be an email address"}},
		{`{"query": "go", "place": {"zip": 3, "town": "x"}}`, []string{"place.city: is required", `place: unknown key "town"; known: city, zip`}},
		{`{"query": "go", "when": "yesterday", "blob": "%"}`, []string{"when: must be a time such as 2006", "blob: must be base64"}},
		{`{"query": "go", "dict": {"a": "x"}}`, []string{"dict[a]: must be an integer, not a string"}},
		{`{"query": {"x": 1}}`, []string{"query: must be a string, not an object"}},
		{strings.Repeat("[", 1000), []string{"nested"}},
		{`{"query": "` + strings.Repeat("x", 1<<20) + `"}`, []string{"larger than"}},
	} {
		_, _, err := read1[in](t, c.args)
		var bad *ArgumentsError
		if !errors.As(err, &bad) || bad.Truncated {
			t.Errorf("%.80s: %v is no *ArgumentsError, or says that they are cut off", c.args, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(bad.Problem, w) {
				t.Errorf("%.80s: %q lacks %q", c.args, bad.Problem, w)
			}
		}
	}
}

func TestTruncatedArgumentsAreNotRun(t *testing.T) {
	type in struct {
		Code string   `json:"code"`
		Tags []string `json:"tags,omitempty"`
		At   *place   `json:"at,omitempty"`
	}
	for _, args := range []string{
		`{"code": "rm -r /tmp/x`, `{"code": "x"`, `{"code": "x",`, `{"code": "x", "tags": ["a`, `{`, "```json\n{\"code\": \"x\"\n```",
		`{"arguments": {"code": "x"}`, `{"arguments": "{\"code\": \"x"}`, `"{\"code\": \"x"`,
		`{"code": "x", "tags": "[\"a\", \"b"}`, `{"code": "x", "at": "{\"city\": \"x"}`,
	} {
		_, called, err := read1[in](t, args)
		var bad *ArgumentsError
		if called || !errors.As(err, &bad) || !bad.Truncated {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestProblemsAreShort(t *testing.T) {
	long := strings.Repeat("é", 5000)
	for _, args := range []string{
		`{"` + long + `": 1}`, `{"query": "` + long + `"}`, `{"a":1,"b":1,"c":1,"` + strings.Repeat(`x":1,"y`, 900) + `":1}`,
	} {
		_, _, err := read1[query](t, args)
		var bad *ArgumentsError
		if !errors.As(err, &bad) || len(bad.Problem) > maxProblem || !json.Valid([]byte(fmt.Sprintf("%q", bad.Problem))) {
			t.Errorf("%.40s: %v", args, err)
		}
	}
}

// A megabyte of nonsense is refused with about as much work as reading it.
func TestEndlessArguments(t *testing.T) {
	type in struct {
		A  string         `json:"a"`
		BC string         `json:"b_c,omitempty"`
		Bc string         `json:"bc,omitempty"` // b-c could mean either
		L  []int          `json:"l,omitempty"`
		D  map[string]int `json:"d,omitempty"`
	}
	var keys strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&keys, `"k%d": 1, `, i)
	}
	for _, args := range []string{
		`{` + keys.String() + `"a": "x"}`, `{"a": "x", "b-c": "y"}`, `{"a": "x", "l": [` + strings.Repeat(`"x", `, 100_000) + `1]}`,
		`{"a": "x", "d": {` + strings.ReplaceAll(keys.String(), ": 1", `: "x"`) + `"z": 1}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := read1[in](t, args)
		runtime.ReadMemStats(&after)
		var bad *ArgumentsError
		if !errors.As(err, &bad) || len(bad.Problem) > maxProblem {
			t.Errorf("%.40s: %v", args, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(200*len(args)+1<<20) {
			t.Errorf("%.40s: %d bytes allocated for %d", args, got, len(args))
		}
	}
}

func TestFewProblemsAreNoted(t *testing.T) {
	a, err := newArguments("t", reflect.TypeFor[query]())
	if err != nil {
		t.Fatal(err)
	}
	sc := scan{b: []byte(`{` + strings.Repeat(`"x":1,`, 1000) + `"y":1}`), report: true}
	if sc.value(a.root); len(sc.problems) != 20 || !sc.failed || sc.i != len(sc.b) {
		t.Errorf("%d problems, read to %d of %d", len(sc.problems), sc.i, len(sc.b))
	}
}

// Every rule that is broken is named at once, under the JSON names.
func TestRulesWithoutSchemaWords(t *testing.T) {
	type in struct {
		A string  `json:"a" validate:"startswith=x"`
		B string  `json:"b" validate:"nefield=A,email"`
		P []place `json:"p" validate:"unique=City,dive"`
	}
	_, _, err := read1[in](t, `{"a": "q", "b": "q", "p": [{"city": "x"}, {"city": "x"}]}`)
	if err == nil || err.Error() != `tools: arguments: a: breaks the rule "startswith=x"; b: breaks the rule "nefield=A"; p: must not hold one value twice` {
		t.Error(err)
	}
}

func TestManyFieldsAtOnce(t *testing.T) {
	var got many
	tool := newMany(t, func(in many) error { got = in; return nil })
	_, err := tool.Call(context.Background(), Call{Args: json.RawMessage(`{"query":"go","addr":"10.0.0.1","exact":1.50,"any":{"a":[1]},"raw":null,"pair":["1",2],"trace":"x","plain":"y","stops":{"city":"c"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Addr.String() != "10.0.0.1" || got.Exact != "1.50" || fmt.Sprint(got.Any) != "map[a:[1]]" || string(got.Raw) != "null" ||
		got.Pair != [2]int{1, 2} || got.Trace != "x" || got.Plain != "y" || len(got.Stops) != 1 || got.Stops[0].Zip != "0000" || got.Depth != "basic" {
		t.Errorf("%+v", got)
	}
	_, err = tool.Call(context.Background(), Call{Args: json.RawMessage(`{"query":"go","addr":"10.0.0.999"}`)})
	var bad *ArgumentsError
	if !errors.As(err, &bad) {
		t.Error(err)
	}
}

// FuzzArguments holds the reader against the two libraries that it spares in
// calls: what reaches the function passes the JSON schema (as
// google/jsonschema-go reads it) and the validate tags; and what is cut off
// never reaches it.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"query":"go"}`, `{"query":"go","depth":"very advanced","max_results":"20","email":"a@b.co","tags":"[\"a\"]","deep":"yes","big":9007199254740993}`,
		`{"query":"go","small":255,"ratio":0.5,"level":2,"when":"2026-01-02T03:04:05Z","blob":"aGk=","raw":{"a":1},"any":[null],"exact":1.50}`,
		`{"query":"go","addr":"::1","meta":{"a":"b"},"place":{"city":"x"},"stops":[{"city":"y","zip":"1"}],"pair":[1,2],"trace":"t","Plain":"p"}`,
		`{'QUERY': 'go',}`, `{"arguments":{"query":"go"}}`, `{"query":"go","query":"g"}`, `{"query":"g\ud800o","level":"1.0"}`, `{"query":"go","ratio":1e-400}`,
		`{"query":"go","place":{"city":"x"},"place":null}`, `{"query":"go","raw":1e999,"big":-0}`, `{"query": "go", "tags": ["a`, "{\"query\":\"\xff\xfe\"}",
	} {
		f.Add([]byte(s))
	}
	var got *many
	tool := newMany(f, func(in many) error { got = &in; return nil })
	a := tool.(*typed[many, string]).args
	var s js.Schema
	if err := json.Unmarshal(tool.Spec().Schema, &s); err != nil {
		f.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	rules := validator.New(validator.WithRequiredStructEnabled())
	f.Fuzz(func(t *testing.T, args []byte) {
		got = nil
		_, err := tool.Call(context.Background(), Call{Args: args})
		var bad *ArgumentsError
		if (err == nil) != (got != nil) || err != nil && !errors.As(err, &bad) {
			t.Fatalf("called %t, error %v", got != nil, err)
		}
		if err != nil {
			if len(bad.Problem) > maxProblem {
				t.Fatalf("%d bytes: %s", len(bad.Problem), bad.Problem)
			}
			return
		}
		if err := rules.Struct(*got); err != nil {
			t.Fatalf("passed on against the rules: %v", err)
		}
		text, err := a.read(args)
		if err != nil {
			t.Fatal(err)
		}
		// What was read is a fixed point, and cut anywhere it is refused.
		again, err := a.read(text)
		if err != nil || string(again) != string(text) {
			t.Fatalf("read as %s, then as %s, %v", text, again, err)
		}
		for _, end := range []int{len(text) - 1, len(text) / 2, 1} {
			got = nil
			_, err := tool.Call(context.Background(), Call{Args: text[:end]})
			if got != nil || !errors.As(err, &bad) || !bad.Truncated {
				t.Fatalf("cut to %s: %v", text[:end], err)
			}
		}
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil {
			return // numbers that a float64 cannot hold, in Raw
		}
		if err := schema.Validate(v); err != nil {
			t.Fatalf("%s passed on against the schema: %v", text, err)
		}
	})
}
