package ollama

import "unicode/utf8"

// fast reads a line with a piece of text and nothing else to know, in the form
// that servers write, and false for all other lines:
//
//	{"model":"…","created_at":"…","response":"…","done":false}
//	{"model":"…","created_at":"…","message":{"role":"assistant","content":"…","thinking":"…"},"done":false}
func (l *line) fast(b []byte) bool {
	c := cursor{b: b}
	if !c.is(`{"model":"`) {
		return false
	}
	var ok bool
	if l.model, ok = c.text(l.model); !ok {
		return false
	}
	if c.is(`,"created_at":"`) && !c.skip() {
		return false
	}
	switch {
	case c.is(`,"response":"`):
		if l.text, ok = c.text(l.text); !ok {
			return false
		}
		if c.is(`,"thinking":"`) {
			if l.thinking, ok = c.text(l.thinking); !ok {
				return false
			}
		}
	case c.is(`,"message":{"role":"assistant","content":"`):
		if l.text, ok = c.text(l.text); !ok {
			return false
		}
		if c.is(`,"thinking":"`) {
			if l.thinking, ok = c.text(l.thinking); !ok {
				return false
			}
		}
		if !c.is(`}`) {
			return false
		}
	}
	return c.is(`,"done":false}`) && c.at == len(b)
}

// cursor reads JSON that has a certain form.
type cursor struct {
	b  []byte
	at int
}

// is passes s if it is next.
func (c *cursor) is(s string) bool {
	if len(c.b)-c.at < len(s) || string(c.b[c.at:c.at+len(s)]) != s {
		return false
	}
	c.at += len(s)
	return true
}

// skip passes the rest of a string without escapes.
func (c *cursor) skip() bool {
	for ; c.at < len(c.b); c.at++ {
		switch ch := c.b[c.at]; {
		case ch == '"':
			c.at++
			return true
		case ch == '\\' || ch < ' ':
			return false
		}
	}
	return false
}

// text appends the rest of a string to dst; false where encoding/json has to
// judge.
func (c *cursor) text(dst []byte) ([]byte, bool) {
	ascii, from := true, len(dst)
	for c.at < len(c.b) {
		start := c.at
		for c.at < len(c.b) {
			ch := c.b[c.at]
			if ch == '"' || ch == '\\' || ch < ' ' {
				break
			}
			ascii = ascii && ch < utf8.RuneSelf
			c.at++
		}
		dst = append(dst, c.b[start:c.at]...)
		if c.at == len(c.b) || c.b[c.at] < ' ' {
			return dst, false
		}
		c.at++
		if c.b[c.at-1] == '"' {
			return dst, ascii || utf8.Valid(dst[from:])
		}
		var ok bool
		if dst, ok = c.escape(dst); !ok {
			return dst, false
		}
	}
	return dst, false
}

// escape appends what an escape stands for, after its backslash. Surrogates are
// left to encoding/json.
func (c *cursor) escape(dst []byte) ([]byte, bool) {
	if c.at == len(c.b) {
		return dst, false
	}
	ch := c.b[c.at]
	c.at++
	switch ch {
	case '"', '\\', '/':
		return append(dst, ch), true
	case 'n':
		return append(dst, '\n'), true
	case 't':
		return append(dst, '\t'), true
	case 'r':
		return append(dst, '\r'), true
	case 'u':
		if len(c.b)-c.at < 4 {
			return dst, false
		}
		r, ok := rune(0), true
		for _, h := range c.b[c.at : c.at+4] {
			switch {
			case '0' <= h && h <= '9':
				r = r<<4 | rune(h-'0')
			case 'a' <= h|0x20 && h|0x20 <= 'f':
				r = r<<4 | rune(h|0x20-'a'+10)
			default:
				ok = false
			}
		}
		c.at += 4
		return utf8.AppendRune(dst, r), ok && utf8.ValidRune(r)
	}
	return dst, false
}
