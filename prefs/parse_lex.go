package prefs

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a piece of the text.
type span struct{ from, to int }

// raw is one word of the text as written, or a separator.
type raw struct {
	span
	low  string // in small letters, without an apostrophe; "" = a separator
	mark class  // of a separator: cComma, or 0 for the end of a sentence
}

// token is what the rules see: a word or phrase, or names.
type token struct {
	span
	meaning
	names  []string // known names of N
	absent string   // N that is no known name: as written
	around span     // with the small words dropped before and after it
}

// trimmed are quotation marks and the like around words.
const trimmed = "\"'`*_“”‘’«»<>"

// split cuts the text into words and separators. Marks within a word stay: names
// hold dots, colons and slashes.
func split(text string) []raw {
	var ws []raw
	stars := 0 // runs of them: emphasis begins with an odd one
	mark := func(from, to int, c class) { ws = append(ws, raw{span: span{from, to}, mark: c}) }
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == '\n':
			mark(i, i+n, 0)
		case c == '*':
			for n < len(text)-i && text[i+n] == '*' {
				n++
			}
			stars++
		case unicode.IsSpace(c), c == ':', strings.ContainsRune(trimmed, c):
		case strings.ContainsRune(".;!?…。", c):
			mark(i, i+n, 0)
		case strings.ContainsRune(",()[]{}|–—", c), c == '-' && dash(text[i+n:]):
			mark(i, i+n, cComma)
		default:
			end := i + wordEnd(text[i:])
			if end == i {
				end = i + n
			}
			if stars%2 == 0 && strings.HasPrefix(strings.TrimLeft(text[end:], ".:-_/"), "*") { // "gpt-5-*" is no name
				end += strings.IndexByte(text[end:], '*') + 1
			}
			w := raw{span: span{i, end}, low: strings.ToLower(strings.ReplaceAll(text[i:end], "’", "'"))}
			if w.low == "&" {
				w.low = "and"
			}
			ws = append(ws, w)
			n = end - i
			if (w.low == "e.g" || w.low == "i.e") && strings.HasPrefix(text[end:], ".") {
				n++
			}
		}
		i += n
	}
	return ws
}

// dash reports whether a hyphen before rest stands alone.
func dash(rest string) bool { return rest == "" || rest[0] == ' ' || rest[0] == '-' }

// wordEnd is the length of the word at the start of s: up to white space or a
// mark that no name holds, without the marks at its end.
func wordEnd(s string) int {
	end := strings.IndexFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || strings.ContainsRune(",;!?()[]{}|–—…。\"`“”«»<>*", c)
	})
	if end < 0 {
		end = len(s)
	}
	return len(strings.TrimRight(s[:end], ".:-'’‘_/"))
}

// expand undoes contractions: "don't" is two words at one place.
func expand(ws []raw) []raw {
	var out []raw
	for _, w := range ws {
		whole, rest := w.low, ""
		switch {
		case whole == "cannot" || whole == "can't" || whole == "cant":
			whole, rest = "can", "not"
		case whole == "won't" || whole == "wont":
			whole, rest = "will", "not"
		case whole == "dont" || whole == "doesnt" || whole == "isnt" || whole == "neednt" || whole == "shouldnt" || whole == "mustnt":
			whole, rest = strings.TrimSuffix(whole, "nt"), "not"
		case strings.HasSuffix(whole, "n't"):
			whole, rest = strings.TrimSuffix(whole, "n't"), "not"
		default:
			if before, after, ok := strings.Cut(whole, "'"); ok && slices.Contains([]string{"d", "s", "m", "re", "ve", "ll"}, after) {
				whole, rest = before, map[string]string{"d": "would", "ll": "will"}[after]
			}
		}
		if w.low == "" || w.low == whole {
			out = append(out, w)
			continue
		}
		first, second := w, w
		first.low, second.low = whole, rest
		out = append(out, first)
		if rest != "" {
			out = append(out, second)
		}
	}
	return out
}
