package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// contextForm is how what was gathered is written into a prompt. Caps are in
// estimated tokens.
type contextForm struct {
	doc     int    // characters of one document
	after   string // what stands behind each document
	code    string // heading of the code runs
	codeCap int    // of the code runs
	cap     int    // of the whole
}

// resultCap is the cap on results of ordinary tools, which the paper does not
// have.
const resultCap = 8000

// context writes the documents, the code runs and, where there are any, the
// other tools' results. What is too long loses its beginning: the newest and
// best stand at the end, as in the released evaluation, which appends each
// search's documents from worst to best.
func (f contextForm) context(s *State) string {
	var docs strings.Builder
	n := 0
	for _, d := range oldestFirst(s.Work) {
		n++
		docs.WriteString("Doc " + strconv.Itoa(n) + ": " + head(d.Text, f.doc) + f.after + "\n\n")
	}
	var runs strings.Builder
	for _, r := range s.Work.Runs() {
		language, output := r.Language, r.Output
		if language == "" {
			language = "python"
		}
		if r.Err != "" {
			output += "\n" + r.Err
		}
		runs.WriteString("```" + language + "\n" + r.Code + "\n```\n\n```output\n" + output + "\n```\n\n")
	}
	text := docs.String()
	if code := tail(runs.String(), f.codeCap); code != "" {
		if !strings.HasPrefix(code, "```") {
			code = "```\n" + code
		}
		text += f.code + code
	}
	if said := tail(results(s.Turns), min(resultCap, f.cap)); said != "" {
		text += "\nTool results:\n" + said
	}
	text = tail(text, f.cap)
	if docs.Len() > 0 {
		text = "Documents:\n" + text
	}
	return text
}

func oldestFirst(w tools.Workspace) []tools.Document {
	var docs []tools.Document
	for _, d := range w.Documents() {
		docs = append(docs, d)
	}
	slices.Reverse(docs)
	return docs
}

// results lists what ordinary tools said, and what went wrong in the last turn
// that had calls.
func results(turns []Turn) string {
	var b strings.Builder
	last := len(turns) - 1
	for last > 0 && len(turns[last].Done) == 0 { // a useless output changed nothing
		last--
	}
	for i, t := range turns {
		for _, o := range t.Done {
			r := o.Result
			call := o.Call.Tool + "(" + arguments(o.Call.Args) + ")"
			switch {
			case o.Err != nil && i == last:
				fmt.Fprintf(&b, "%s failed: %s: %v\n\n", call, o.Err.Kind, o.Err.Err)
			case o.Err == nil && r.Text != "" && len(r.Documents) == 0 && len(r.Runs) == 0 && len(r.Attempts) == 0:
				fmt.Fprintf(&b, "%s: %s\n\n", call, head(r.Text, 4000))
			}
		}
	}
	return b.String()
}

// arguments writes arguments in one line, short.
func arguments(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		b.Reset()
		b.Write(raw)
	}
	return head(b.String(), 400)
}

// head is the first n characters of s.
func head(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// tail is the end of s, of about that many tokens.
func tail(s string, tokens int) string {
	left := 4 * tokens
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if left -= quarters(r); left < 0 {
			return s[i:]
		}
		i -= size
	}
	return s
}

// estimate is about how many tokens s has, rounded up.
func estimate(s string) int {
	n := 0
	for _, r := range s {
		n += quarters(r)
	}
	return (n + 3) / 4
}

// quarters is a character's usual share of a token of Qwen's tokenizer, in
// quarters: it makes one token of each digit, words of letters, and short
// pieces of everything else. Bytes/4 would admit three times the cap of
// numbers.
func quarters(r rune) int {
	switch {
	case r >= '0' && r <= '9', r >= 0x2e80:
		return 4
	case r == ' ' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return 1
	}
	return 2
}
