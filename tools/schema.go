package tools

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"
	js "github.com/google/jsonschema-go/jsonschema"
)

// node is the schema of one value, ready for checking.
type node struct {
	kind     kind
	schema   *js.Schema // keywords
	bits     int        // of a number; 0 = any
	unsigned bool
	enum     []string       // as JSON literals without quotes
	pattern  *regexp.Regexp // of a string
	elem     *node          // of an array or a dict
	fields   []field        // of an object
	byName   map[string]int
	byPlain  map[string]int // by plain(name); -1 = more than one
	must     set            // fields that are required
	preset   set            // fields with a default
}

type kind uint8

const (
	anyKind kind = iota
	objectKind
	dictKind // an object with keys of the model's choice
	arrayKind
	stringKind
	integerKind
	numberKind
	boolKind
)

type field struct {
	name      string
	node      *node
	omitEmpty bool   // the rules accept the zero value as "not given"
	preset    []byte // "name":default
}

// set is a set of fields.
type set [4]uint64

const maxFields = len(set{}) * 64

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *set) minus(o set) (d set) {
	for i := range s {
		d[i] = s[i] &^ o[i]
	}
	return d
}

// builder makes the nodes of one tool.
type builder struct {
	tool   string
	over   map[reflect.Type]*js.Schema // types that encode themselves
	rules  *validator.Validate
	hasAny bool // a validate tag
}

func newArguments(tool string, t reflect.Type) (*arguments, error) {
	b := &builder{tool: tool, over: map[reflect.Type]*js.Schema{}, rules: newRules()}
	if t.Kind() != reflect.Struct || special(t) != nil {
		return nil, b.bad("In", "is %s; take a struct with one field for each argument, or struct{} for none", t)
	}
	if err := b.survey(t, "", nil); err != nil {
		return nil, err
	}
	s, err := js.ForType(t, &js.ForOptions{TypeSchemas: b.over})
	if err != nil {
		return nil, b.bad("In", "has no schema: %v", err)
	}
	root, err := b.node(t, s, "")
	if err != nil {
		return nil, err
	}
	a := &arguments{root: root, tool: tool}
	if b.hasAny {
		a.rules = b.rules
	}
	if a.schema, err = encode(s); err != nil {
		return nil, b.bad("In", "has no schema: %v", err)
	}
	return a, nil
}

func (b *builder) bad(field, format string, a ...any) error {
	return &SpecError{Tool: b.tool, Field: field, Fix: fmt.Sprintf(format, a...)}
}

// special returns the schema of a type that does not encode as its kind, or nil.
func special(t reflect.Type) *js.Schema {
	p := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &js.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.Number]():
		return &js.Schema{Type: "number"}
	case t.Kind() == reflect.Interface:
		return nil
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &js.Schema{}
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &js.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && special(t.Elem()) == nil:
		return &js.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

// survey finds what has no schema, with its path, and the special types.
func (b *builder) survey(t reflect.Type, path string, above []reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(above, t) {
		return b.bad(path, "%s contains itself, which a schema for models cannot say; take json.RawMessage and decode it in the tool", t)
	}
	above = append(above, t)
	if s := special(t); s != nil {
		b.over[t] = s
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return b.surveyStruct(t, path, above)
	case reflect.Slice, reflect.Array:
		return b.survey(t.Elem(), path+"[]", above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return b.bad(path, "%s has keys that are not strings; use a map[string]…", t)
		}
		return b.survey(t.Elem(), path+"{}", above)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return b.bad(path, "%s has methods, so JSON cannot be read into it; use a struct or any", t)
		}
	case reflect.Int64:
		if t == reflect.TypeFor[time.Duration]() {
			return b.bad(path, "time.Duration would be asked for in nanoseconds; use a string and time.ParseDuration, or a number of seconds")
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return b.bad(path, "%s has no JSON; leave it out with json:\"-\"", t)
	}
	return nil
}

func (b *builder) surveyStruct(t reflect.Type, path string, above []reflect.Type) error {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, ok := jsonName(f)
		at := join(path, name)
		if f.Anonymous {
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			if tag := f.Tag.Get("json"); tag != "" || e.Kind() != reflect.Struct || special(e) != nil || e != f.Type && !f.IsExported() {
				return b.bad(join(path, f.Name), "is embedded in a way that schemas and JSON read differently; give the field a name")
			}
			if err := b.survey(e, join(path, f.Name), above); err != nil {
				return err
			}
			continue
		}
		if !ok {
			continue
		}
		switch {
		case names[name]:
			return b.bad(at, "two fields have this JSON name")
		case slices.Contains(opts, "string"):
			return b.bad(at, "the json option \"string\" is not supported; numbers in strings are accepted anyway")
		}
		names[name] = true
		if len(names) > maxFields {
			return b.bad(path, "%s has more than %d fields; no model can fill them", t, maxFields)
		}
		if err := b.survey(f.Type, at, above); err != nil {
			return err
		}
	}
	return nil
}

// node walks the type and its schema together: it completes the schema and
// compiles it.
func (b *builder) node(t reflect.Type, s *js.Schema, path string) (*node, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if sp := special(t); sp != nil {
		*s = *sp
	} else if len(s.Types) == 2 { // ["null", x]: null is "not given", and some providers refuse lists
		s.Type, s.Types = s.Types[1], nil
	}
	n := &node{schema: s}
	var err error
	switch s.Type {
	case "string":
		n.kind = stringKind
	case "boolean":
		n.kind = boolKind
	case "number":
		n.kind = numberKind
		if t.Kind() != reflect.String {
			n.bits = t.Bits()
		}
	case "integer":
		n.kind, n.bits, n.unsigned = integerKind, t.Bits(), t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64
	case "array":
		n.kind = arrayKind
		n.elem, err = b.node(t.Elem(), s.Items, path+"[]")
	case "object":
		if t.Kind() == reflect.Map {
			n.kind = dictKind
			n.elem, err = b.node(t.Elem(), s.AdditionalProperties, path+"{}")
			break
		}
		n.kind = objectKind
		err = b.object(n, t, path)
	default:
		s.Description = "any JSON value" // an empty schema would be written as true
	}
	return n, err
}

func (b *builder) object(n *node, t reflect.Type, path string) error {
	n.byName, n.byPlain = map[string]int{}, map[string]int{}
	n.schema.Required = nil
	for _, f := range reflect.VisibleFields(t) {
		name, opts, ok := jsonName(f)
		if !ok || f.Anonymous {
			continue
		}
		p, at := n.schema.Properties[name], join(path, name)
		if p == nil {
			return b.bad(at, "has no schema")
		}
		child, err := b.node(f.Type, p, at)
		if err != nil {
			return err
		}
		if d := f.Tag.Get("desc"); d != "" {
			p.Description = d
		}
		tag := f.Tag.Get("validate")
		if err := b.checkTag(f, tag, at); err != nil {
			return err
		}
		rules := splitRules(tag)
		child.addRules(f.Type, rules)
		child.compile()

		i := len(n.fields)
		fd := field{name: name, node: child, omitEmpty: slices.Contains(rules, "omitempty")}
		if d, ok := f.Tag.Lookup("default"); ok {
			if fd.preset, err = b.preset(child, f, d, tag, at); err != nil {
				return err
			}
			n.preset.add(i)
		} else if slices.Contains(rules, "required") ||
			f.Type.Kind() != reflect.Pointer && !slices.Contains(opts, "omitempty") && !slices.Contains(opts, "omitzero") {
			n.must.add(i)
			n.schema.Required = append(n.schema.Required, name)
		}
		n.fields = append(n.fields, fd)
		n.byName[name] = i
		if _, twice := n.byPlain[plain(name)]; twice {
			i = -1
		}
		n.byPlain[plain(name)] = i
	}
	return b.checkStruct(t, path)
}

// preset reads the default of a field and holds it against the field's own
// schema and rules. It returns it as a member of a JSON object.
func (b *builder) preset(n *node, f reflect.StructField, text, tag, path string) ([]byte, error) {
	raw := []byte(text)
	if n.kind == stringKind {
		raw, _ = encode(text)
	}
	if !json.Valid(raw) {
		return nil, b.bad(path, "the default %q is not JSON", text)
	}
	sc := scan{b: raw, report: true}
	sc.value(n)
	v := reflect.New(f.Type)
	err := json.Unmarshal(raw, v.Interface())
	if err == nil && len(sc.problems) == 0 && tag != "" && tag != "-" {
		err = guard(func() error { return b.rules.Var(v.Elem().Interface(), tag) })
	}
	if len(sc.problems) > 0 {
		err = fmt.Errorf("%s", strings.TrimPrefix(sc.problems[0], ": "))
	}
	if err != nil {
		return nil, b.bad(path, "the default %q is not a valid value: %v", text, err)
	}
	n.schema.Default = raw
	key, _ := encode(strings.SplitN(f.Tag.Get("json"), ",", 2)[0])
	if string(key) == `""` {
		key, _ = encode(f.Name)
	}
	return append(append(key, ':'), raw...), nil
}

// jsonName returns what encoding/json calls the field, its options, and
// whether it is encoded at all.
func jsonName(f reflect.StructField) (string, []string, bool) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() {
		return f.Name, nil, false
	}
	parts := strings.Split(tag, ",")
	if parts[0] == "" {
		parts[0] = f.Name
	}
	return parts[0], parts[1:], true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
