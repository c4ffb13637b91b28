package jsonfix

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoteAt returns the characters that close the string which s opens, or "".
func quoteAt(s string) string {
	r, _ := utf8.DecodeRuneInString(s)
	switch r {
	case '"':
		return `"`
	case '\'':
		return "'"
	case '`':
		return "`"
	case '“', '”', '„':
		return "”“"
	case '‘', '’', '‚':
		return "’‘"
	}
	return ""
}

// quote is quoteAt at p, which also knows triple quotes where they are closed.
func (p *parser) quote() string {
	rest := p.s[p.i:]
	q := quoteAt(rest)
	if len(q) == 1 && len(rest) > 3 && rest[1] == q[0] && rest[2] == q[0] {
		// Linear: what is found is read, and where nothing is found no further
		// triple quote can follow.
		n := strings.Index(rest[3:], rest[:3])
		if n >= 0 {
			p.steps += n
			return rest[:3]
		}
		p.steps += len(rest)
	}
	return q
}

// str reads a string that q closes into b.
func (p *parser) str(b *strings.Builder, q string) {
	triple := len(q) == 3 && q[0] == q[1]
	if triple {
		p.i += 3
	} else {
		_, n := utf8.DecodeRuneInString(p.s[p.i:])
		p.i += n
	}
	for !p.eof() {
		r, n := utf8.DecodeRuneInString(p.s[p.i:])
		switch {
		case r == '\\':
			p.escape(b)
			continue
		case triple:
			if strings.HasPrefix(p.s[p.i:], q) {
				p.i += 3
				return
			}
		case strings.ContainsRune(q, r) && p.closes(p.i+n):
			p.i += n
			return
		}
		b.WriteString(p.s[p.i : p.i+n])
		p.i += n
	}
	p.cut = true
}

func (p *parser) ahead(j int) string {
	w := p.s[j:min(len(p.s), j+window)]
	p.steps += len(w)
	return w
}

// closes reports whether the quote before j ends its string, by what follows:
// models forget to escape quotes inside.
func (p *parser) closes(j int) bool {
	rest := strings.TrimLeft(p.ahead(j), space)
	if rest == "" {
		return true
	}
	switch rest[0] {
	case ')':
		return p.parens > 0
	case '}', ']', '#', ';':
		return true
	case '+':
		return quoteAt(strings.TrimLeft(rest[1:], space)) != ""
	case '/':
		return strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*")
	case ',':
		next := strings.TrimLeft(rest[1:], space)
		if next == "" || strings.IndexByte("}])[{(-+.#0123456789", next[0]) >= 0 || quoteAt(next) != "" ||
			strings.HasPrefix(next, "//") || strings.HasPrefix(next, "/*") {
			return true
		}
		// A word: a bare key or value, or the sentence going on.
		after := strings.TrimLeft(next[wordLen(next):], " \t")
		return after == "" || strings.IndexByte(":,]}\n\r", after[0]) >= 0
	case '`':
		return strings.HasPrefix(rest, "```")
	}
	return keyAhead(rest)
}

// keyAhead reports whether s starts with a quoted key and its colon.
func keyAhead(s string) bool {
	q := quoteAt(s)
	if q == "" {
		return false
	}
	line, _, _ := strings.Cut(s, "\n")
	_, n := utf8.DecodeRuneInString(line)
	i := strings.IndexAny(line[n:], q)
	if i < 0 {
		return false
	}
	line = line[n+i:]
	_, n = utf8.DecodeRuneInString(line)
	return strings.HasPrefix(strings.TrimLeft(line[n:], " \t"), ":")
}

// escape reads the escape at p into b. One that JSON doesn't know keeps its
// backslash: "\d" is meant as a regular expression.
func (p *parser) escape(b *strings.Builder) {
	p.i++
	if p.eof() {
		return
	}
	c := p.s[p.i]
	if k := strings.IndexByte(`"\/'bfnrt`, c); k >= 0 {
		b.WriteByte("\"\\/'\b\f\n\r\t"[k])
		p.i++
		return
	}
	if c == 'u' {
		if s, n := unicodeEscape(p.s[p.i-1:]); n > 0 {
			b.WriteString(s)
			p.i += n - 1
			return
		}
	}
	b.WriteByte('\\')
}

// unicodeEscape reads \uXXXX, or two that are one character, and returns how
// many bytes it took.
func unicodeEscape(s string) (string, int) {
	for _, n := range []int{12, 6} {
		if len(s) < n || n == 12 && s[6:8] != `\u` {
			continue
		}
		if hi, err := strconv.ParseUint(s[2:6], 16, 16); err != nil || n == 12 && (hi < 0xd800 || hi > 0xdbff) {
			continue
		}
		var out string
		if json.Unmarshal([]byte(`"`+s[:n]+`"`), &out) == nil {
			return out, n
		}
	}
	return "", 0
}

// unescape takes one level of escapes from s.
func unescape(s string) string {
	p := &parser{s: s}
	var b strings.Builder
	for !p.eof() {
		if s[p.i] == '\\' {
			p.escape(&b)
			continue
		}
		b.WriteByte(s[p.i])
		p.i++
	}
	return b.String()
}
