package tools

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
)

// tolerant reads arguments that do not fit as they are: it repairs the JSON,
// takes off what is wrapped around the arguments, and bends values to the types
// of the schema where their meaning is plain. Whether the result fits is for
// scan to say.
func (a *arguments) tolerant(text string) (any, error) {
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	for range 3 { // deeper wrapping is no accident
		inner, ok := a.inside(v)
		if !ok {
			break
		}
		if s, ok := inner.(string); ok {
			if inner, err = parse(s); err != nil {
				return nil, err
			}
		}
		v = inner
	}
	c := coercer{}
	v = c.value(a.root, v)
	if c.truncated {
		return nil, truncated()
	}
	return v, nil
}

// parse reads JSON or something like it; numbers keep their digits.
func parse(text string) (any, error) {
	r, err := jsonfix.Read(text)
	switch {
	case errors.Is(err, jsonfix.ErrNoValue):
		return nil, problem("are not JSON; send one JSON object")
	case err != nil:
		return nil, problem("cannot be read: " + strings.TrimPrefix(err.Error(), "jsonfix: "))
	case r.Truncated:
		return nil, truncated()
	}
	d := json.NewDecoder(strings.NewReader(string(r.JSON)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, problem("cannot be read: " + err.Error())
	}
	return v, nil
}

// maxProblem bounds the text of an ArgumentsError: it is read by a model, and
// paid for.
const maxProblem = 600

// problem makes one error of what is wrong, or nil of nothing.
func problem(all ...string) error {
	if len(all) == 0 {
		return nil
	}
	text := strings.ToValidUTF8(strings.Join(all, "; "), "\uFFFD")
	if len(text) > maxProblem {
		end := maxProblem - len("…")
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return &ArgumentsError{Problem: text}
}

func truncated() error {
	return &ArgumentsError{Problem: "are cut off, so the tool was not run; send them again, complete and shorter", Truncated: true}
}

// inside returns what v is wrapped around: {"arguments": {…}}, also with the
// tool's name beside it, or a string that holds an object.
func (a *arguments) inside(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, strings.HasPrefix(strings.TrimSpace(v), "{")
	case map[string]any:
		key := ""
		for k, e := range v {
			if _, mine := a.root.byName[k]; mine {
				return nil, false
			}
			switch k {
			case "arguments", "args", "parameters", "input":
				if key != "" {
					return nil, false
				}
				key = k
			case "name", "tool", "function":
				if e != a.tool {
					return nil, false
				}
			default:
				return nil, false
			}
		}
		switch inner := v[key].(type) {
		case map[string]any:
			return inner, true
		case string:
			return inner, strings.HasPrefix(strings.TrimSpace(inner), "{")
		}
	}
	return nil, false
}

// coercer bends values to a schema.
type coercer struct{ truncated bool }

func (c *coercer) value(n *node, v any) any {
	switch n.kind {
	case objectKind, dictKind:
		if s, ok := v.(string); ok {
			if m, ok := c.nested(s, '{', '}').(map[string]any); ok {
				v = m
			}
		}
		if m, ok := v.(map[string]any); ok {
			c.object(n, m)
		}
	case arrayKind:
		list, ok := v.([]any)
		if s, isText := v.(string); isText {
			list, ok = c.nested(s, '[', ']').([]any)
		}
		if !ok {
			if v == nil {
				return nil
			}
			list = []any{v}
		}
		for i := range list {
			list[i] = c.value(n.elem, list[i])
		}
		return list
	case integerKind:
		if l, ok := number(v); ok {
			return json.Number(integral(l))
		}
	case numberKind:
		if l, ok := number(v); ok {
			return json.Number(l)
		}
	case boolKind:
		var word string
		switch v := v.(type) {
		case string:
			word = strings.ToLower(strings.TrimSpace(v))
		case json.Number:
			word = string(v)
		}
		switch word {
		case "true", "yes", "1":
			return true
		case "false", "no", "0":
			return false
		}
	case stringKind:
		switch v := v.(type) {
		case json.Number:
			return string(v)
		case bool:
			return strconv.FormatBool(v)
		}
	}
	return v
}

// nested reads a string that holds an object or an array, or returns nil.
// A text that only begins with a bracket is no array.
func (c *coercer) nested(s string, open, end byte) any {
	s = strings.TrimSpace(s)
	if len(s) == 0 || s[0] != open {
		return nil
	}
	if open == '[' && s[len(s)-1] != end && !strings.HasPrefix(s, `["`) && !strings.HasPrefix(s, "[{") {
		return nil
	}
	v, err := parse(s)
	var cut *ArgumentsError
	if errors.As(err, &cut) && cut.Truncated {
		c.truncated = true
	}
	return v
}

func (c *coercer) object(n *node, m map[string]any) {
	if n.kind == dictKind {
		for k, v := range m {
			m[k] = c.value(n.elem, v)
		}
		return
	}
	n.rename(m)
	for i, f := range n.fields {
		v, ok := m[f.name]
		if !ok {
			continue
		}
		v = c.value(f.node, v)
		m[f.name] = v
		if !n.must.has(i) && f.absent(v) {
			delete(m, f.name)
		}
	}
}

// absent reports whether v is how models say that they leave an optional field
// out: null, "" for something that is no text, or a zero that the rules let
// pass by omitempty but that breaks the schema.
func (f *field) absent(v any) bool {
	switch {
	case f.node.kind == anyKind:
		return false
	case v == nil:
		return true
	case v == "" && f.node.kind != stringKind:
		return true
	}
	return f.omitEmpty && (v == "" || v == json.Number("0")) && !f.node.accepts(v)
}

func (n *node) accepts(v any) bool {
	text, err := encode(v)
	sc := scan{b: text}
	if err == nil {
		sc.value(n)
	}
	return err == nil && !sc.failed
}

// rename maps keys that differ from a field only in case and punctuation, where
// there is no doubt.
func (n *node) rename(m map[string]any) {
	meant := map[string][]string{} // field: keys
	for k := range m {
		if _, ok := n.byName[k]; ok {
			continue
		}
		if i, ok := n.byPlain[plain(k)]; ok && i >= 0 {
			name := n.fields[i].name
			meant[name] = append(meant[name], k)
		}
	}
	for name, keys := range meant {
		if _, taken := m[name]; !taken && len(keys) == 1 {
			m[name] = m[keys[0]]
			delete(m, keys[0])
		}
	}
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// number returns v as a JSON number, if it is one or a string that holds one.
func number(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case string:
		s := strings.TrimPrefix(strings.TrimSpace(v), "+")
		return s, s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
	}
	return "", false
}

// integral writes 3.0 and 3e2 as integers. What a float64 cannot hold exactly
// stays as it is.
func integral(l string) string {
	if !strings.ContainsAny(l, ".eE") {
		return l
	}
	f, err := strconv.ParseFloat(l, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return l
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func (n *node) known() string {
	if len(n.fields) == 0 {
		return "none"
	}
	var names []string
	for _, f := range n.fields {
		names = append(names, f.name)
	}
	return clip(strings.Join(names, ", "))
}

// clip keeps texts in messages short.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (n *node) listed(text []byte) bool {
	return slices.Contains(n.enum, string(text))
}

// String names the kind for models.
func (k kind) String() string {
	return [...]string{"anything", "an object", "an object", "an array", "a string", "an integer", "a number", "true or false"}[k]
}

// kindAt names the kind of JSON that starts with c.
func kindAt(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
