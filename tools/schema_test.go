package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type place struct {
	City string `json:"city" validate:"required" desc:"name of the city"`
	Zip  string `json:"zip,omitempty" default:"0000"`
}

type base struct {
	Trace string `json:"trace,omitempty"`
}

// many has fields of all kinds that tools take.
type many struct {
	Query string            `json:"query" validate:"required,min=2,max=400" desc:"the query"`
	Depth string            `json:"depth,omitempty" validate:"omitempty,oneof=basic 'very advanced'" default:"basic"`
	Max   int               `json:"max_results,omitempty" validate:"omitempty,gte=1,lte=20" default:"5"`
	Email *string           `json:"email" validate:"omitempty,email"`
	Tags  []string          `json:"tags,omitempty" validate:"max=3,dive,min=1,max=20"`
	Deep  bool              `json:"deep,omitempty"`
	Big   int64             `json:"big,omitempty"`
	Small uint8             `json:"small,omitempty"`
	Ratio float64           `json:"ratio,omitempty" validate:"omitempty,gt=0,lt=1"`
	Level int               `json:"level,omitempty" validate:"omitempty,oneof=1 2 3"`
	When  time.Time         `json:"when,omitzero"`
	Blob  []byte            `json:"blob,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	Any   any               `json:"any,omitempty"`
	Exact json.Number       `json:"exact,omitempty"`
	Addr  netip.Addr        `json:"addr,omitzero"`
	Meta  map[string]string `json:"meta,omitempty" validate:"max=2,dive,keys,max=10,endkeys,max=10"`
	Place *place            `json:"place"`
	Stops []place           `json:"stops,omitempty" validate:"max=2,dive"`
	Pair  [2]int            `json:"pair,omitzero"`
	base
	Plain string `json:",omitempty" desc:"has no JSON name"`
	Skip  func() `json:"-"`
}

func newMany(t testing.TB, fn func(many) error) Tool {
	t.Helper()
	tool, err := New("many", "Takes everything.", func(_ context.Context, in many) (string, error) { return "", fn(in) })
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestSchemaGolden(t *testing.T) {
	got := newMany(t, func(many) error { return nil }).Spec().Schema
	var b bytes.Buffer
	if err := json.Indent(&b, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", "many.schema.json")
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the schema is not that of %s (run with -update if it should be):\n%s", file, b.Bytes())
	}
	for range 20 {
		if again := newMany(t, func(many) error { return nil }).Spec().Schema; !bytes.Equal(again, got) {
			t.Fatalf("the schema is not always the same:\n%s\n%s", again, got)
		}
	}
}

func TestSchemaOfNothing(t *testing.T) {
	tool := Must(New("now", "", func(context.Context, struct{}) (string, error) { return "noon", nil }))
	if got := string(tool.Spec().Schema); got != `{"type":"object","additionalProperties":false}` {
		t.Error(got)
	}
	if r, err := tool.Call(context.Background(), Call{}); err != nil || r.Text != "noon" {
		t.Error(r, err)
	}
}

type (
	loop     struct{ Next *loop }
	loopList struct{ Kids []loopList }
	named    struct {
		place `json:"place"`
	}
	embedded struct{ *base }
	methods  interface{ M() }
	Ring     struct{ *Ring }
	ringed   struct{ *Ring }
	Place    struct {
		Town string `json:"town"`
	}
)

// make1 makes a tool with one argument type.
func make1[In any]() error {
	_, err := New("t", "", func(context.Context, In) (string, error) { return "", nil })
	return err
}

func TestBadTypes(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		field string
		fix   string
	}{
		"string":             {make1[string](), "In", "struct"},
		"pointer":            {make1[*place](), "In", "struct"},
		"map":                {make1[map[string]string](), "In", "struct"},
		"time":               {make1[time.Time](), "In", "struct"},
		"interface":          {make1[any](), "In", "struct"},
		"chan":               {make1[struct{ A struct{ C chan int } }](), "A.C", "json:\"-\""},
		"func":               {make1[struct{ F []func() }](), "F[]", "json:\"-\""},
		"complex":            {make1[struct{ C complex128 }](), "C", "JSON"},
		"recursive":          {make1[loop](), "Next", "contains itself"},
		"recursive list":     {make1[loopList](), "Kids[]", "contains itself"},
		"recursive embedded": {make1[ringed](), "Ring.Ring", "contains itself"},
		"map keys":           {make1[struct{ M map[int]string }](), "M", "not strings"},
		"duration":           {make1[struct{ D *time.Duration }](), "D", "seconds"},
		"duration in map":    {make1[struct{ D map[string]time.Duration }](), "D{}", "seconds"},
		"methods":            {make1[struct{ I methods }](), "I", "has methods"},
		"embedded, named":    {make1[named](), "place", "embedded"},
		"embedded, ptr":      {make1[embedded](), "base", "embedded"},
		"string option": {make1[struct {
			N int `json:"n,string"`
		}](), "n", "not supported"},
		"jsonschema tag": {make1[struct {
			N int `json:"n" jsonschema:"minimum=3"`
		}](), "In", "has no schema"},
		"unknown rule": {make1[struct {
			N int `json:"n" validate:"min=1,nosuchrule"`
		}](), "", "nosuchrule"},
		"unknown rule in a list": {make1[struct {
			L []struct {
				N string `json:"n" validate:"omitempty,nosuchrule"`
			} `json:"l"`
		}](), "", "nosuchrule"},
		"bad parameter": {make1[struct {
			S string `json:"s" validate:"omitempty,email,min=abc"`
		}](), "s", "abc"},
		"bad parameter of elements": {make1[struct {
			S []string `json:"s" validate:"max=2,dive,min=abc"`
		}](), "s", "abc"},
		"dive into nothing": {make1[struct {
			S string `json:"s" validate:"dive,min=1"`
		}](), "s", "dive"},
		"default of wrong type": {make1[struct {
			N int `json:"n" default:"x"`
		}](), "n", "default"},
		"default against schema": {make1[struct {
			N int `json:"n" validate:"max=3" default:"4"`
		}](), "n", "at most 3"},
		"default against rules": {make1[struct {
			S string `json:"s" validate:"email" default:"x"`
		}](), "s", "default"},
		"default null": {make1[struct {
			S []string `json:"s" default:"null"`
		}](), "s", "default"},
	} {
		var bad *SpecError
		if !errors.As(c.err, &bad) {
			t.Errorf("%s: %v is no *SpecError", name, c.err)
			continue
		}
		if bad.Tool != "t" || c.field != "" && bad.Field != c.field || !strings.Contains(bad.Fix, c.fix) {
			t.Errorf("%s: %+v, want field %q and %q", name, bad, c.field, c.fix)
		}
	}
}

func TestGoodTypes(t *testing.T) {
	for name, err := range map[string]error{
		"shadowed": make1[struct {
			base
			Trace string `json:"trace"`
		}](),
		"twice": make1[struct{ A, B place }](),
		"other fields": make1[struct {
			A string `json:"a" validate:"required_without=B"`
			B string `json:"b" validate:"required_without=A,omitempty,nefield=A"`
			C string `json:"c" validate:"required_if=A x,excluded_unless=B y,eqcsfield=A,required_with_all=A B"`
			D int    `json:"d" validate:"skip_unless=A x,gtfield=E"`
			E int    `json:"e" validate:"ltefield=D"`
			P place  `json:"p" validate:"structonly"`
		}](),
		"embedded pointer": make1[struct{ *Place }](),
		"unexported": make1[struct {
			A string
			c chan int
		}](),
		"alternatives": make1[struct {
			A string `json:"a" validate:"email|url"`
		}](),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
