package arith

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	tEnd  kind = iota
	tNum       // val
	tName      // text
	tOp        // text: an operator, parenthesis or comma
	// Only from words:
	tOrdinal // val: "tenth", "10th"
	tWord    // text: what the phrase table calls it; see words.go
)

type token struct {
	kind     kind
	text     string
	val      *big.Rat
	pos, end int
}

// lexer cuts an expression into tokens.
type lexer struct {
	src   string
	pos   int
	words bool   // read questions: ordinals and money, and stop at nothing
	calls []bool // for each open parenthesis: it holds the arguments of a function
	toks  []token
}

// A name: foo, pkg.Foo or path/pkg.Foo.
var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w*)`)
})

// lex returns the tokens of src with a tEnd at the end. With prefix, what is no
// token ends the expression without an error.
func lex(src string, words, prefix bool) ([]token, error) {
	if len(src) > maxInput {
		if !prefix {
			return nil, syntax(0, "the expression is longer than %d bytes", maxInput)
		}
		src = src[:maxInput]
	}
	l := &lexer{src: src, words: words}
	for {
		l.pos += len(src[l.pos:]) - len(strings.TrimLeftFunc(src[l.pos:], unicode.IsSpace))
		if l.pos >= len(src) {
			break
		}
		if err := l.next(); err != nil {
			if !prefix {
				return nil, err
			}
			break
		}
	}
	return append(l.toks, token{kind: tEnd, pos: l.pos, end: l.pos}), nil
}

func (l *lexer) next() error {
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number()
	case c == '_', 'a' <= c|0x20 && c|0x20 <= 'z':
		m := namePattern().FindString(rest)
		l.emit(tName, m, len(m))
		return nil
	}
	for _, op := range [...]string{"**", "//", "<<", ">>"} {
		if strings.HasPrefix(rest, op) {
			if op == "**" {
				l.emit(tOp, "^", 2)
			} else {
				l.emit(tOp, op, 2)
			}
			return nil
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch r {
	case '(':
		n := len(l.toks)
		l.calls = append(l.calls, n > 0 && l.toks[n-1].kind == tName)
		l.emit(tOp, "(", size)
	case ')':
		if len(l.calls) > 0 {
			l.calls = l.calls[:len(l.calls)-1]
		}
		l.emit(tOp, ")", size)
	case '+', '-', '*', '/', '%', '^', '!', ',':
		l.emit(tOp, string(r), size)
	case '×', '·', '⋅', '∙':
		l.emit(tOp, "*", size)
	case '÷':
		l.emit(tOp, "/", size)
	case '−':
		l.emit(tOp, "-", size)
	case '²', '³', '√':
		l.emit(tOp, string(r), size)
	case 'π':
		l.emit(tName, "pi", size)
	default:
		if l.words && r == '$' && len(rest) > 1 && isDigit(rest[1]) {
			l.pos++
			return nil
		}
		return syntax(l.pos, "%q is not part of arithmetic", r)
	}
	return nil
}

func (l *lexer) emit(k kind, text string, size int) {
	l.toks = append(l.toks, token{kind: k, text: text, pos: l.pos, end: l.pos + size})
	l.pos += size
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

var (
	radixPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^0(?:[xX](?:_?[0-9a-fA-F])+|[bB](?:_?[01])+|[oO](?:_?[0-7])+)`)
	})
	decimalPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:\d(?:_?\d)*)?(?:\.\d(?:_?\d)*)?(?:[eE][+-]?\d+)?`)
	})
	groupedPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?`) })
	ordinalPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,4})(?:st|nd|rd|th)\b`) })
	exponentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[eE]([+-]?\d+)$`) })
)

// number reads a number. Text that goes straight on after it (2FA, 1.26.0, a
// comma and a digit after thousands separators) is an error.
func (l *lexer) number() error {
	rest := l.src[l.pos:]
	if l.words {
		if m := ordinalPattern().FindStringSubmatch(rest); m != nil {
			v, _ := new(big.Rat).SetString(m[1])
			l.toks = append(l.toks, token{kind: tOrdinal, text: v.RatString(), val: v, pos: l.pos, end: l.pos + len(m[0])})
			l.pos += len(m[0])
			return nil
		}
	}
	radix := true
	text := radixPattern().FindString(rest)
	if text == "" {
		radix = false
		if n := len(l.calls); n == 0 || !l.calls[n-1] {
			text = groupedPattern().FindString(rest)
		}
		if text == "" {
			text = decimalPattern().FindString(rest)
		}
	}
	after, _ := utf8.DecodeRuneInString(rest[len(text):])
	next := rest[len(text):]
	if after == '_' || unicode.IsLetter(after) && after != 'π' || unicode.IsDigit(after) ||
		len(next) > 1 && (after == '.' || after == ',' && strings.Contains(text, ",")) && isDigit(next[1]) {
		return syntax(l.pos, "%q is not a number; put an operator between a number and what follows it", clip(text+next))
	}
	clean := strings.NewReplacer("_", "", ",", "").Replace(text)
	if !radix && len(clean) > 1 && clean[0] == '0' && isDigit(clean[1]) {
		return syntax(l.pos, "a number with a leading 0 has two meanings; write 0o17 for octal and 17 for decimal")
	}
	if m := exponentPattern().FindStringSubmatch(clean); m != nil && !radix {
		if e, err := strconv.Atoi(m[1]); err != nil || max(e, -e) > maxBits/4 {
			return syntax(l.pos, "the exponent of %q is beyond ±%d", clip(clean), maxBits/4)
		}
	}
	var v big.Rat
	if radix {
		i, ok := new(big.Int).SetString(clean, 0)
		if !ok {
			return syntax(l.pos, "%q is not a number", clip(text))
		}
		v.SetInt(i)
	} else if _, ok := v.SetString(clean); !ok {
		return syntax(l.pos, "%q is not a number", clip(text))
	}
	l.toks = append(l.toks, token{kind: tNum, text: clean, val: &v, pos: l.pos, end: l.pos + len(text)})
	l.pos += len(text)
	return nil
}

func clip(s string) string {
	if len(s) > 20 {
		return strings.ToValidUTF8(s[:20], "") + "…"
	}
	return s
}
