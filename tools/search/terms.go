package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// longest is where terms are cut: what is longer is data, not a word.
const longest = 64

// scan calls yield for each run of letters and digits in text, in its original
// case and without accents, until yield returns false. Scripts that write no
// spaces between words yield each character.
func scan(text string, yield func(run string) bool) {
	if !ascii(text) {
		text = norm.NFKD.String(strings.ToValidUTF8(text, " "))
	}
	start := -1 // of the run; -1 = between two
	var marked []byte
	end := func(i int) bool {
		if start < 0 {
			return true
		}
		run := text[start:i]
		if marked != nil {
			run = string(append(marked, run...))
		}
		start, marked = -1, nil
		if len(run) > longest {
			run = strings.ToValidUTF8(run[:longest], "")
		}
		return run == "" || yield(run)
	}
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf:
			if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
				if start < 0 {
					start = i
				}
			} else if !end(i) {
				return
			}
		case unicode.Is(unicode.Mn, r): // an accent: drop it
			if start >= 0 {
				marked = append(marked, text[start:i]...)
				start = i + utf8.RuneLen(r)
			}
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			if !end(i) || !yield(string(r)) {
				return
			}
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if start < 0 {
				start = i
			}
		case !end(i):
			return
		}
	}
	end(len(text))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// term is the form of a run in which it is indexed and looked up.
func term(run string) string { return stem(strings.ToLower(run)) }

// split calls yield for the words that a name is made of: Max, Open and Files in
// MaxOpenFiles, XML and Parser in XMLParser, utf and 8 in utf8. A run of one
// word has no parts.
func split(run string, yield func(part string)) {
	const (
		other = iota
		lower
		upper
		digit
	)
	kind := func(c byte) int {
		switch {
		case 'a' <= c && c <= 'z':
			return lower
		case 'A' <= c && c <= 'Z':
			return upper
		case '0' <= c && c <= '9':
			return digit
		}
		return other
	}
	from := 0
	for i := 1; i < len(run); i++ {
		a, b := kind(run[i-1]), kind(run[i])
		cut := a != b && a != other && b != other && !(a == upper && b == lower)
		if a == upper && b == upper && i+1 < len(run) && kind(run[i+1]) == lower {
			cut = true // the P of XMLParser begins a word
		}
		if cut {
			yield(run[from:i])
			from = i
		}
	}
	if from > 0 {
		yield(run[from:])
	}
}

// joined makes what SQLite indexes: the terms of a text, and the parts of the
// names in it.
func joined(text string) (terms, parts string) {
	var t, p strings.Builder
	add := func(b *strings.Builder, run string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(term(run))
	}
	scan(text, func(run string) bool {
		add(&t, run)
		split(run, func(part string) { add(&p, part) })
		return true
	})
	return t.String(), p.String()
}
