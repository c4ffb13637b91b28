// Package jsonfix reads the JSON that language models write: fenced, wrapped
// in prose, single-quoted, with comments, raw newlines or Python's literals,
// or cut off. It takes linear time and never guesses silently: what was changed
// and what was cut off is reported.
package jsonfix

import (
	"encoding/json"
	"errors"
	"strings"
)

// Limits of Read.
const (
	MaxBytes = 1 << 20 // of the text
	MaxDepth = 128     // of nested objects and arrays
)

var (
	// ErrNoValue means that the text holds no object, no array and no other JSON.
	ErrNoValue = errors.New("no JSON value in the text")
	// ErrTooDeep means more than MaxDepth nested objects and arrays.
	ErrTooDeep = errors.New("JSON is nested too deeply")
	// ErrTooLarge means a text of more than MaxBytes.
	ErrTooLarge = errors.New("text is too large")
)

// Value is what Read found.
type Value struct {
	JSON      json.RawMessage // always valid JSON
	Repaired  bool            // JSON is not the text as it was written
	Truncated bool            // the text ended inside the value: what it was going to say is unknown
}

// Read finds the JSON value in s. Valid JSON comes back as it is, without the
// space around it. Otherwise the first object (or array) in s is read
// tolerantly: keys keep their order, of equal keys the last counts, numbers
// keep their digits. Read is safe for concurrent use.
func Read(s string) (Value, error) {
	v, _, err := read(s)
	return v, err
}

// read also counts the steps taken, which tests hold against the length of s.
func read(s string) (Value, int, error) {
	if len(s) > MaxBytes {
		return Value{}, 0, ErrTooLarge
	}
	s = strings.TrimSpace(strings.TrimPrefix(s, "\ufeff"))
	if json.Valid([]byte(s)) {
		if depth(s) > MaxDepth {
			return Value{}, len(s), ErrTooDeep
		}
		return Value{JSON: json.RawMessage(s)}, len(s), nil
	}
	if strings.HasPrefix(s, "<think>") {
		if _, after, ok := strings.Cut(s, "</think>"); ok {
			s = after
		}
	}
	at := start(s)
	if at < 0 {
		return Value{}, len(s), ErrNoValue
	}
	s = s[at:]
	if q := strings.IndexByte(s, '"'); q > 0 && s[q-1] == '\\' {
		s = unescape(s) // {\"a\": 1}: the inside of a JSON string without its quotes
	}
	p := &parser{s: s}
	v, err := p.value(1)
	// Streams that were glued together begin with an empty object.
	for err == nil && empty(v) && !p.cut {
		next := start(s[p.i:])
		if next < 0 || s[p.i+next] != '{' {
			break
		}
		p.i += next
		p.steps += next
		v, err = p.value(1)
	}
	if err != nil {
		return Value{}, p.steps, err
	}
	return Value{JSON: appendValue(nil, v), Repaired: true, Truncated: p.cut}, p.steps, nil
}

func empty(v any) bool {
	o, ok := v.(*object)
	return ok && len(o.members) == 0
}

// depth is the deepest nesting of s, which is valid JSON.
func depth(s string) (deepest int) {
	now, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// start finds where the value begins: at the first brace that is followed by
// what may be a key. A bracket before it only counts at the start of the text
// or if it holds that object, since prose has brackets too.
func start(s string) int {
	bracket := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			if !opensObject(s[i+1:]) {
				continue
			}
			if bracket == 0 || bracket > 0 && strings.TrimSpace(s[bracket+1:i]) == "" {
				return bracket
			}
			return i
		case '[':
			if (bracket < 0 || bracket > 0 && holdsObject(s[i+1:])) && opensArray(s[i+1:]) {
				bracket = i
			}
		}
	}
	if bracket < 0 && s != "" && (s[0] == '{' || s[0] == '[') {
		return 0
	}
	return bracket
}

const space = " \t\r\n"

func holdsObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, space), "{")
}

// opensObject reports whether s can be what follows an opening brace.
func opensObject(s string) bool {
	s = strings.TrimLeft(s, space)
	if s == "" || strings.IndexByte(`}"'/#\,`, s[0]) >= 0 || quoteAt(s) != "" {
		return true
	}
	n := wordLen(s)
	s = strings.TrimLeft(s[n:], space)
	return n > 0 && (s == "" || s[0] == ':' || s[0] == '=')
}

// opensArray reports whether s can be what follows an opening bracket.
func opensArray(s string) bool {
	s = strings.TrimLeft(s, space)
	if s == "" || strings.IndexByte(`]{["'-.(/#\`, s[0]) >= 0 || digit(s[0]) || quoteAt(s) != "" {
		return true
	}
	n := wordLen(s)
	if n == len(s) && n <= len("undefined") {
		return true
	}
	_, ok := literal(s[:n])
	return ok && n > 0
}

// wordLen is the length of the identifier that s starts with.
func wordLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] == '$' || s[n] == '-' || s[n] >= 0x80 || letter(s[n]) || digit(s[n])) {
		n++
	}
	return n
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
