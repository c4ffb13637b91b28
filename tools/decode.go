package tools

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
)

// decode reads raw into in, a pointer to a zero In. Errors are *ArgumentsError.
func (a *arguments) decode(raw json.RawMessage, in any) error {
	text, err := a.read(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, in); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return problem(fmt.Sprintf("%s: a %s cannot be used here", wrong.Field, wrong.Value))
		}
		return problem(err.Error())
	}
	return problem(a.broken(in)...)
}

// read returns the arguments as JSON that fits the schema, defaults included.
func (a *arguments) read(raw json.RawMessage) ([]byte, error) {
	if len(raw) > jsonfix.MaxBytes {
		return nil, problem(fmt.Sprintf("are larger than %d bytes; send less", jsonfix.MaxBytes))
	}
	text := bytes.TrimSpace(raw)
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	if text[0] == '{' && json.Valid(text) { // what good models write
		sc := scan{b: text}
		if sc.value(a.root); !sc.failed {
			return sc.withPresets(), nil
		}
	}
	v, err := a.tolerant(string(text))
	if err != nil {
		return nil, err
	}
	text, err = encode(v)
	if err != nil {
		return nil, problem("cannot be read: " + err.Error())
	}
	sc := scan{b: text, report: true}
	sc.value(a.root)
	return sc.withPresets(), problem(sc.problems...)
}

// scan holds valid JSON against a node, without decoding it. Without report it
// stops at the first problem.
type scan struct {
	b        []byte
	i        int
	report   bool
	failed   bool
	path     []string // with report only
	problems []string
	presets  []presets
}

// presets are the defaults that are missing in an object.
type presets struct {
	at     int // of its closing brace
	first  bool
	node   *node
	fields set
}

// bad notes a problem of the value at path.
func (s *scan) bad(format string, a ...any) {
	s.failed = true
	if s.more() {
		text := fmt.Sprintf(format, a...)
		if len(s.path) > 0 {
			text = strings.TrimPrefix(strings.Join(s.path, ""), ".") + ": " + text
		}
		s.problems = append(s.problems, text)
	}
}

// more reports whether further problems are noted: a text of maxProblem bytes
// has no room for many.
func (s *scan) more() bool { return s.report && len(s.problems) < 20 }

func (s *scan) stop() bool { return s.failed && !s.report }

func (s *scan) push(before, name, after string) {
	if s.report {
		s.path = append(s.path, before+name+after)
	}
}

func (s *scan) pop() {
	if s.report {
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *scan) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

// next skips space and b, and reports whether b was there.
func (s *scan) next(b byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == b {
		s.i++
		return true
	}
	return false
}

// value checks one value and goes behind it.
func (s *scan) value(n *node) {
	s.space()
	c := s.b[s.i]
	number := c == '-' || c >= '0' && c <= '9'
	switch {
	case n.kind == anyKind:
		s.skip()
	case n.kind == objectKind && c == '{':
		s.object(n)
	case n.kind == dictKind && c == '{':
		s.dict(n)
	case n.kind == arrayKind && c == '[':
		s.array(n)
	case n.kind == stringKind && c == '"':
		s.text(n)
	case n.kind == integerKind && number, n.kind == numberKind && number:
		s.number(n)
	case n.kind == boolKind && (c == 't' || c == 'f'):
		s.skip()
	default:
		if s.failed = true; s.report {
			s.bad("must be %s, not %s", n.kind, kindAt(c))
		}
		s.skip()
	}
}

// skip goes behind any value.
func (s *scan) skip() {
	for depth := 0; s.i < len(s.b); {
		switch s.b[s.i] {
		case '"':
			s.str()
		case '{', '[':
			s.i++
			if depth++; depth > jsonfix.MaxDepth {
				s.failed = true // the tolerant reader says why
			}
		case '}', ']':
			s.i++
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			s.i++
		default:
			s.scalar()
		}
		if depth == 0 {
			return
		}
	}
}

// scalar reads a number or a literal.
func (s *scan) scalar() []byte {
	from := s.i
	for s.i < len(s.b) && strings.IndexByte(",:]} \t\r\n", s.b[s.i]) < 0 {
		s.i++
	}
	return s.b[from:s.i]
}

// str reads a string and returns what is between the quotes.
func (s *scan) str() (inside []byte, escaped bool) {
	s.i++
	from := s.i
	for ; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			escaped = true
			s.i++
		}
	}
	s.i++
	return s.b[from : s.i-1], escaped
}

func unquote(inside []byte) []byte {
	var text string
	_ = json.Unmarshal(append(append([]byte{'"'}, inside...), '"'), &text) // is valid
	return []byte(text)
}

func (s *scan) object(n *node) {
	s.i++
	var seen set
	count := 0
	for ; !s.next('}'); s.next(',') {
		s.space()
		key, escaped := s.str()
		if escaped {
			key = unquote(key)
		}
		s.next(':')
		i, ok := n.byName[string(key)]
		switch {
		case !ok && s.more():
			s.bad("unknown key %q; known: %s", clip(string(key)), n.known())
		case !ok, seen.has(i): // of equal keys the last counts: the tolerant reader sees to it
			s.failed = true
		}
		if s.stop() {
			return
		}
		if count++; !ok {
			s.space()
			s.skip()
			continue
		}
		seen.add(i)
		s.push(".", n.fields[i].name, "")
		s.value(n.fields[i].node)
		s.pop()
		if s.stop() {
			return
		}
	}
	if missing := n.must.minus(seen); missing != (set{}) {
		s.failed = true
		for i, f := range n.fields {
			if s.report && missing.has(i) {
				s.push(".", f.name, "")
				s.bad("is required")
				s.pop()
			}
		}
	}
	if absent := n.preset.minus(seen); absent != (set{}) {
		s.presets = append(s.presets, presets{at: s.i - 1, first: count == 0, node: n, fields: absent})
	}
}

func (s *scan) dict(n *node) {
	s.i++
	count := 0
	for ; !s.next('}') && !s.stop(); s.next(',') {
		s.space()
		key, _ := s.str()
		s.next(':')
		s.push("[", clip(string(key)), "]")
		s.value(n.elem)
		s.pop()
		count++
	}
	s.between(count, n.schema.MinProperties, n.schema.MaxProperties, "keys")
}

func (s *scan) array(n *node) {
	s.i++
	count := 0
	for ; !s.next(']') && !s.stop(); s.next(',') {
		if s.report {
			s.push("[", strconv.Itoa(count), "]")
		}
		s.value(n.elem)
		s.pop()
		count++
	}
	s.between(count, n.schema.MinItems, n.schema.MaxItems, "items")
}

func (s *scan) between(n int, low, high *int, unit string) {
	if low != nil && n < *low {
		s.bad("must have at least %d %s", *low, unit)
	}
	if high != nil && n > *high {
		s.bad("must have at most %d %s", *high, unit)
	}
}

func (s *scan) text(n *node) {
	inside, escaped := s.str()
	k := n.schema
	if k.MinLength == nil && k.MaxLength == nil && n.enum == nil && n.pattern == nil && k.Format != "date-time" && k.ContentEncoding == "" {
		return
	}
	if escaped {
		inside = unquote(inside)
	}
	if k.MinLength != nil || k.MaxLength != nil {
		s.between(utf8.RuneCount(inside), k.MinLength, k.MaxLength, "characters")
	}
	if n.enum != nil && !n.listed(inside) {
		s.bad("must be one of %q", n.enum)
	}
	if n.pattern != nil && !n.pattern.Match(inside) {
		s.bad("must match %s", k.Pattern)
	}
	if k.Format == "date-time" && new(time.Time).UnmarshalText(inside) != nil {
		s.bad("must be a time such as 2006-01-02T15:04:05Z")
	}
	if k.ContentEncoding != "" {
		if _, err := base64.StdEncoding.DecodeString(string(inside)); err != nil {
			s.bad("must be base64")
		}
	}
}

func (s *scan) number(n *node) {
	lit := s.scalar()
	var err error
	switch {
	case n.kind == numberKind && n.bits == 0: // keeps its digits
	case n.kind == numberKind:
		_, err = strconv.ParseFloat(string(lit), n.bits)
	case n.unsigned:
		_, err = strconv.ParseUint(string(lit), 10, n.bits)
	default:
		_, err = strconv.ParseInt(string(lit), 10, n.bits)
	}
	if err != nil {
		switch {
		case errors.Is(err, strconv.ErrRange):
			s.bad("is out of range")
		case n.unsigned && lit[0] == '-':
			s.bad("must not be negative")
		default:
			s.bad("must be an integer")
		}
		return
	}
	if n.enum != nil && !n.listed(lit) {
		s.bad("must be one of %s", strings.Join(n.enum, ", "))
	}
	k := n.schema
	if k.Minimum == nil && k.Maximum == nil && k.ExclusiveMinimum == nil && k.ExclusiveMaximum == nil {
		return
	}
	f, _ := strconv.ParseFloat(string(lit), 64) // out of range is ±Inf
	switch {
	case k.Minimum != nil && f < *k.Minimum:
		s.bad("must be at least %v", *k.Minimum)
	case k.Maximum != nil && f > *k.Maximum:
		s.bad("must be at most %v", *k.Maximum)
	case k.ExclusiveMinimum != nil && f <= *k.ExclusiveMinimum:
		s.bad("must be more than %v", *k.ExclusiveMinimum)
	case k.ExclusiveMaximum != nil && f >= *k.ExclusiveMaximum:
		s.bad("must be less than %v", *k.ExclusiveMaximum)
	}
}

// withPresets returns the scanned text with the defaults put in.
func (s *scan) withPresets() []byte {
	if len(s.presets) == 0 {
		return s.b
	}
	var out []byte
	from := 0
	for _, p := range s.presets { // ordered by place, since inner objects close first
		out = append(out, s.b[from:p.at]...)
		from = p.at
		for i, f := range p.node.fields {
			if !p.fields.has(i) {
				continue
			}
			if !p.first {
				out = append(out, ',')
			}
			p.first = false
			out = append(out, f.preset...)
		}
	}
	return append(out, s.b[from:]...)
}
