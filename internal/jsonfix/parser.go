package jsonfix

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser reads one value of s from i on. It never goes back, and looks ahead
// by at most window bytes.
type parser struct {
	s        string
	i        int
	cut      bool // s ended inside the value
	steps    int  // bytes looked at, more or less
	brackets int  // open arrays: only then may a bracket end an object
	braces   int  // open objects: only then may a brace end an array
	parens   int  // open tuples: only then may a parenthesis end a string
}

const window = 256

func (p *parser) eof() bool {
	p.steps++
	return p.i >= len(p.s)
}

// end reports whether the value cannot go on: at the end of the text, or of
// the fence around it.
func (p *parser) end() bool { return p.eof() || strings.HasPrefix(p.s[p.i:], "```") }

// gap skips space and comments.
func (p *parser) gap() {
	for !p.eof() {
		rest := p.s[p.i:]
		switch c := rest[0]; {
		case c == '#' || strings.HasPrefix(rest, "//"):
			p.skipTo("\n")
		case strings.HasPrefix(rest, "/*"):
			p.i += 2
			p.skipTo("*/")
		case c < utf8.RuneSelf && strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			p.i++
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return
			}
			p.i += n
		default:
			return
		}
	}
}

// skipTo goes behind the next mark.
func (p *parser) skipTo(mark string) {
	n := strings.Index(p.s[p.i:], mark)
	if n < 0 {
		n = len(p.s) - p.i
	} else {
		n += len(mark)
	}
	p.i += n
	p.steps += n
}

// value reads a value at nesting depth d. Unless it stops at a closing
// character or a comma, it takes at least one byte.
func (p *parser) value(d int) (any, error) {
	p.gap()
	if p.eof() {
		p.cut = true
		return lit("null"), nil
	}
	switch c := p.s[p.i]; c {
	case '{', '[', '(':
		if d > MaxDepth {
			return nil, ErrTooDeep
		}
		if c == '{' {
			return p.object(d)
		}
		return p.array(d)
	}
	if q := p.quote(); q != "" {
		var b strings.Builder
		p.str(&b, q)
		for !p.cut { // "a" + "b"
			at := p.i
			p.gap()
			if p.eof() || p.s[p.i] != '+' {
				p.i = at
				break
			}
			p.i++
			p.gap()
			if q = p.quote(); q == "" {
				break
			}
			p.str(&b, q)
		}
		return b.String(), nil
	}
	return p.bare(), nil
}

func (p *parser) object(d int) (any, error) {
	p.i++
	p.braces++
	defer func() { p.braces-- }()
	o := &object{}
	for {
		for p.gap(); !p.eof() && (p.s[p.i] == ',' || p.s[p.i] == ';'); p.gap() {
			p.i++
		}
		if p.end() {
			p.cut = true
			return o, nil
		}
		switch c := p.s[p.i]; {
		case c == '}':
			p.i++
			if d == 1 && p.goesOn() {
				continue
			}
			return o, nil
		case c == ']' && p.brackets > 0, c == ')' && p.parens > 0, c == '{' && p.brackets > 0: // the closing brace is missing
			return o, nil
		case c == ']' || c == ')': // written for the brace
			p.i++
			return o, nil
		}
		key, ok := p.key()
		if !ok {
			continue
		}
		p.gap()
		if p.end() {
			p.cut = true // a key without its value says nothing
			return o, nil
		}
		colon := p.s[p.i] == ':' || p.s[p.i] == '='
		if colon {
			if p.i++; strings.HasPrefix(p.s[p.i:], ">") {
				p.i++
			}
			p.gap()
		}
		switch {
		case p.eof():
			p.cut = true
			return o, nil
		case strings.IndexByte(",;}])", p.s[p.i]) >= 0:
			o.set(key, lit("null"))
		case colon, strings.IndexByte("{[(", p.s[p.i]) >= 0, quoteAt(p.s[p.i:]) != "":
			v, err := p.value(d + 1)
			if err != nil {
				return nil, err
			}
			o.set(key, v)
		default:
			o.set(key, lit("null"))
		}
	}
}

// key reads the key of a member. It always takes at least one byte.
func (p *parser) key() (string, bool) {
	if q := quoteAt(p.s[p.i:]); q != "" {
		_, n := utf8.DecodeRuneInString(p.s[p.i:])
		p.i += n
		var b strings.Builder
		for !p.eof() {
			r, n := utf8.DecodeRuneInString(p.s[p.i:])
			if r == '\\' {
				p.escape(&b)
				continue
			}
			if p.i += n; strings.ContainsRune(q, r) {
				return b.String(), true
			}
			b.WriteString(p.s[p.i-n : p.i])
		}
		p.cut = true
		return "", false
	}
	from := p.i
	for !p.eof() && strings.IndexByte(":=,{}[]\n", p.s[p.i]) < 0 {
		p.i++
	}
	if p.i == from { // a stray character
		p.i++
		return "", false
	}
	return strings.TrimSpace(p.s[from:p.i]), true
}

// goesOn reports whether the object that was just closed goes on nevertheless:
// {"a": 1}, "b": 2}.
func (p *parser) goesOn() bool {
	rest := strings.TrimLeft(p.ahead(p.i), space)
	return strings.HasPrefix(rest, ",") && keyAhead(strings.TrimLeft(rest[1:], space))
}

func (p *parser) array(d int) (any, error) {
	tuple, commas := p.s[p.i] == '(', 0
	if tuple {
		p.parens++
		defer func() { p.parens-- }()
	} else {
		p.brackets++
		defer func() { p.brackets-- }()
	}
	p.i++
	a := []any{}
	for {
		for p.gap(); !p.eof() && p.s[p.i] == ','; p.gap() {
			p.i++
			commas++
		}
		if p.end() {
			p.cut = true
			return a, nil
		}
		switch c := p.s[p.i]; {
		case c == ']' || c == ')':
			p.i++
			if tuple && len(a) == 1 && commas == 0 {
				return a[0], nil
			}
			return a, nil
		case c == '}' && p.braces > 0: // the closing bracket is missing
			return a, nil
		case c == '}':
			p.i++
			continue
		}
		at := p.i
		v, err := p.value(d + 1)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		if p.i == at {
			p.i++
		}
	}
}

// bare reads what has no quotes: a number, a literal, or words.
func (p *parser) bare() any {
	from, quoted := p.i, false
scan:
	for !p.eof() {
		rest := p.s[p.i:]
		switch c := rest[0]; {
		case strings.IndexByte(",}])\n", c) >= 0 && (c != ')' || p.parens > 0):
			break scan
		case strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "//") && (p.i == from || p.s[p.i-1] != ':'):
			break scan
		case !quoted && quoteAt(rest) != "": // a comma may be missing: 1 "next": 2
			quoted = true
			if _, ok := literal(strings.TrimSpace(p.s[from:p.i])); ok {
				break scan
			}
		}
		p.i++
	}
	w := strings.TrimSpace(p.s[from:p.i])
	if l, ok := literal(w); ok {
		return l
	}
	return w
}

// literal reads a number, true, false or null in any of the spellings that
// models use. What JSON cannot say, such as NaN, is null.
func literal(w string) (lit, bool) {
	switch w {
	case "true", "True", "TRUE":
		return "true", true
	case "false", "False", "FALSE":
		return "false", true
	case "null", "Null", "NULL", "None", "nil", "undefined", "NaN", "Infinity", "-Infinity", "+Infinity", "":
		return "null", true
	}
	n := strings.TrimPrefix(w, "+")
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	if n == "" || !digit(n[0]) && n[0] != '.' {
		return "", false
	}
	if n[0] == '.' {
		n = "0" + n
	}
	n = sign + strings.TrimSuffix(strings.ReplaceAll(n, "_", ""), ".")
	return lit(n), json.Valid([]byte(n))
}
