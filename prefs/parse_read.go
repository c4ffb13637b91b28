package prefs

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

var knownWords = sync.OnceValue(newVocabulary)

// reader reads one text.
type reader struct {
	text   string
	words  []raw
	vocab  *vocabulary
	full   map[string][]string // known names by what normal makes of them
	family map[string][]string // known names by words that are a part of them
	groups [][]string
	wishes map[string]*wish
	said   [aspects][]saying
	bad    []Part
}

// wish is what is said of a name, and where.
type wish struct {
	use, never, fine *span
	weight           float64
}

// saying is what is said of an aspect.
type saying struct {
	span
	weight     float64
	most, sole bool
}

func newReader(text string, names []string, groups [][]string) *reader {
	r := &reader{text: text, words: expand(split(text)), vocab: knownWords(), full: map[string][]string{}, family: map[string][]string{}, wishes: map[string]*wish{}}
	known := slices.Compact(slices.Sorted(slices.Values(names)))
	for _, n := range known {
		add(r.full, normal(n), n)
		parts := letters(n)
		for i := range parts {
			for j := i + 1; j <= len(parts) && parts[j-1] != ""; j++ {
				if f := strings.Join(parts[i:j], ""); len(f) >= 3 && !(j == i+1 && generic(f)) {
					add(r.family, f, n)
				}
			}
		}
	}
	for _, g := range groups {
		g = slices.DeleteFunc(slices.Clone(g), func(n string) bool { return !slices.Contains(known, n) })
		r.groups = append(r.groups, g)
	}
	if len(groups) == 0 {
		r.groups = [][]string{known}
	}
	return r
}

func add(m map[string][]string, key, name string) {
	if key != "" && !slices.Contains(m[key], name) {
		m[key] = append(m[key], name)
	}
}

// letters are the words of a name; one that holds a digit is "", since a version
// stands for itself only.
func letters(name string) []string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	for i, p := range parts {
		if d := strings.IndexFunc(p, unicode.IsDigit); d > 0 { // llama3 is a llama
			parts[i] = p[:d]
		} else if d == 0 {
			parts[i] = ""
		}
	}
	return parts
}

// generic reports whether a word says too little to stand for the names that it
// is a part of: "prefer local models" is not about local_search.
func generic(w string) bool {
	return slices.Contains(genericWords, w)
}

var genericWords = strings.Fields("local open small large big tiny mini nano micro pro flash turbo max plus ultra high low new old free remote public private instruct chat text base fast lite medium deep preview latest exp model tool the and for not all any")

// sentences cuts the words at the ends of sentences.
func (r *reader) sentences() [][]raw {
	var out [][]raw
	start := 0
	for i := 0; i <= len(r.words); i++ {
		if i == len(r.words) || r.words[i].low == "" && r.words[i].mark == 0 {
			if i > start {
				out = append(out, r.words[start:i])
			}
			start = i + 1
		}
	}
	return out
}

// maxNameWords bounds the words that a name is written as.
const maxNameWords = 12

// reading says when a name that is also a word of the grammar, such as answer or
// fast, is a name.
type reading uint8

const (
	allNames        reading = iota
	namesInPlace            // after a word that names follow, or in a list of names
	namesAfterVerbs         // after a word that names follow
	noNames
)

// isName decides it for the word after ts. "Be fast" is never about a name.
func (how reading) isName(ts []token, before string) bool {
	last := func(i int) class {
		if i > len(ts) {
			return 0
		}
		return ts[len(ts)-i].class
	}
	follows := strings.IndexByte("!zxuplonev", byte(last(1))) >= 0
	switch {
	case before == "be" || how == noNames:
		return false
	case how == namesInPlace:
		return follows || strings.IndexByte(",&|", byte(last(1))) >= 0 && last(2) == cName
	case how == namesAfterVerbs:
		return follows
	}
	return true
}

// tokens reads words.
func (r *reader) tokens(ws []raw, how reading) []token {
	var ts []token
	lead := -1 // where small words began that no token has yet
	for i := 0; i < len(ws); {
		w := ws[i]
		if w.low == "" {
			ts = append(ts, token{span: w.span, meaning: meaning{class: w.mark}, around: w.span})
			lead = -1
			i++
			continue
		}
		before := ""
		if i > 0 {
			before = ws[i-1].low
		}
		t, n := r.token(ws[i:], how.isName(ts, before))
		t.span = span{w.from, ws[i+n-1].to}
		t.around = t.span
		if lead >= 0 {
			t.around.from = lead
		}
		i += n
		switch last := len(ts) - 1; {
		case t.class == cAdverb && last > 0 && strings.IndexByte(separates, byte(ts[last].class)) >= 0 && ts[last-1].class == cName:
			// tidy looks at what follows
		case t.class == cFiller, t.class == cAdverb && !(last >= 0 && (ts[last].class == cNot || ts[last].class == cNone)):
			if last >= 0 && strings.IndexByte(separates, byte(ts[last].class)) < 0 {
				ts[last].around.to = t.to
			} else if lead < 0 {
				lead = t.from
			}
			continue
		case t.class == cName && last >= 0 && ts[last].class == cName && t.absent+ts[last].absent != "" && ts[last].to < t.from:
			ts[last].to, ts[last].around.to = t.to, t.to
			ts[last].absent, ts[last].names = r.text[ts[last].from:t.to], nil // "gpt-5 turbo" is no gpt-5
			continue
		}
		lead = -1
		ts = append(ts, t)
	}
	return r.tidy(ts, ws)
}

// token reads the name or phrase at the start of ws, and says of how many words
// it is. A word that may be both is a name if name is true.
func (r *reader) token(ws []raw, name bool) (token, int) {
	_, listed := r.vocab.words[ws[0].low]
	if names, n := lookup(r.full, ws); n > 1 || n == 1 && (name || !listed) {
		return token{meaning: meaning{class: cName}, names: names}, n
	}
	if article(ws[0].low) {
		return token{meaning: meaning{class: cFiller}}, 1
	}
	if m, n := r.phrase(ws); n > 0 {
		return token{meaning: m}, n
	}
	if ws[0].low == "internet" {
		ws = slices.Clone(ws)
		ws[0].low = "web"
	}
	if names, n := lookup(r.family, ws); n > 0 {
		return token{meaning: meaning{class: cName}, names: names}, n
	}
	return token{meaning: meaning{class: cName}, absent: r.text[ws[0].from:ws[0].to]}, 1
}

func article(w string) bool { return w == "the" || w == "a" || w == "an" }

// phrase finds the longest phrase of the grammar, passing over articles.
func (r *reader) phrase(ws []raw) (m meaning, n int) {
	var b strings.Builder
	for i, k := 0, 0; i < len(ws) && ws[i].low != "" && k < r.vocab.longest; i++ {
		if article(ws[i].low) {
			continue
		}
		if k++; k > 1 {
			b.WriteByte(' ')
		}
		b.WriteString(ws[i].low)
		if found, ok := r.vocab.words[b.String()]; ok {
			m, n = found, i+1
		}
	}
	return m, n
}

// lookup finds the longest run of words that is a key.
func lookup(m map[string][]string, ws []raw) (names []string, n int) {
	key := ""
	for i := 0; i < len(ws) && i < maxNameWords && ws[i].low != ""; i++ {
		key += normal(ws[i].low)
		if found := m[key]; len(found) > 0 {
			names, n = found, i+1
		}
	}
	return names, n
}

// tidy makes the tokens fit for the rules: commas that part nothing go, clauses
// that follow without a comma get one, and "to" between two wishes is "over".
func (r *reader) tidy(ts []token, ws []raw) []token {
	var out []token
	for i, t := range ts {
		last := class(0)
		if len(out) > 0 {
			last = out[len(out)-1].class
		}
		next := class(0)
		if i+1 < len(ts) {
			next = ts[i+1].class
		}
		after := i + 1
		for after < len(ts) && strings.IndexByte(separates, byte(ts[after].class)) >= 0 {
			after++
		}
		switch {
		case t.class == cAdverb && strings.IndexByte(separates, byte(last)) >= 0 && (after == len(ts) || ts[after].class != cName):
			if i+1 < len(ts) {
				ts[i+1].around.from = t.around.from
			}
			continue
		case t.class == cComma && (next == cSuchAs || last == 0 || last == cLittle && starts(out)):
			continue
		case t.class == cPlease && !(last == cName && listed(out)):
			continue
		case (t.class == cIgnore || t.class == cZero || t.class == cEven || t.class == cAtAll) && strings.ContainsRune("GBADm+-", rune(last)):
			out = append(out, between(t, cComma))
		case (last == cName || last == cUp || last == cDown || last == cGood) && (t.class == cName || t.class == cUp || t.class == cDown || t.class == cGood) && r.to(ws, out[len(out)-1].to, t.from):
			out = append(out, between(t, cOver))
		}
		out = append(out, t)
	}
	return out
}

// starts reports whether the last token of ts starts a clause.
func starts(ts []token) bool {
	return len(ts) == 1 || strings.IndexByte(separates, byte(ts[len(ts)-2].class)) >= 0
}

// between is a token that is not written, before t.
func between(t token, c class) token {
	at := span{t.from, t.from}
	return token{span: at, meaning: meaning{class: c}, around: at}
}

// listed reports whether the names at the end of ts go back beyond a comma.
func listed(ts []token) bool {
	for i := len(ts) - 1; i >= 0; i-- {
		switch ts[i].class {
		case cName, cAnd, cOr:
		default:
			return ts[i].class == cComma
		}
	}
	return false
}

// to reports whether there is a "to" between two places of the text.
func (r *reader) to(ws []raw, from, to int) bool {
	return slices.ContainsFunc(ws, func(w raw) bool { return w.low == "to" && w.from >= from && w.to <= to })
}
