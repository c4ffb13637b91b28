package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentences cuts a text into its sentences, in order, without the space around
// them. Sentences end at ". ", "! " and "? " unless a lower-case letter follows
// or the point belongs to an abbreviation, and at empty lines.
func sentences(text string) []string {
	var out []string
	from := 0
	cut := func(to int) {
		if s := strings.TrimSpace(text[from:to]); s != "" {
			out = append(out, s)
		}
		from = to
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			rest := strings.TrimLeft(text[i+1:], " \t\r")
			if strings.HasPrefix(rest, "\n") {
				cut(i)
			}
		case '.', '!', '?':
			if text[i] == '.' && abbreviated(text[from:i]) {
				continue
			}
			end := i + 1
			for end < len(text) && strings.IndexByte(`)"'`, text[end]) >= 0 {
				end++
			}
			rest := strings.TrimLeft(text[end:], " \t\r\n")
			next, _ := utf8.DecodeRuneInString(rest)
			if len(rest) < len(text)-end && !unicode.IsLower(next) {
				cut(end)
			}
		default:
			if strings.HasPrefix(text[i:], "。") {
				cut(i + len("。"))
			}
		}
	}
	cut(len(text))
	return out
}

// abbreviated reports whether a point after text ends an abbreviation: a single
// letter, or a word that has a point in it (e.g., i.e.).
func abbreviated(text string) bool {
	text = text[max(0, len(text)-8):] // all abbreviations are shorter
	word := text[strings.LastIndexAny(text, " \t\n(")+1:]
	letters := 0
	for _, r := range word {
		if r == '.' {
			return letters > 0 && utf8.RuneCountInString(word) <= 5
		}
		letters++
	}
	return letters == 1 && !unicode.IsDigit(rune(word[0]))
}
