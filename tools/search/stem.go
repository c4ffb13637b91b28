package search

import "strings"

// stem takes the usual English endings off a lower-case word, so that compare,
// compares, compared and comparing are one term. It only has to do the same to
// documents and to questions; what it returns need not be a word.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies"), strings.HasSuffix(w, "ied"):
		if len(w) > 4 {
			w = w[:len(w)-3] + "y"
		}
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
	case strings.HasSuffix(w, "s"):
		w = w[:len(w)-1]
	}
	for _, end := range [...]string{"ing", "ed", "ly"} {
		if rest, ok := strings.CutSuffix(w, end); ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") {
			w = rest
			if n := len(w); end != "ly" && n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1] // stopped, stopping
			}
			break
		}
	}
	if rest, ok := strings.CutSuffix(w, "ion"); ok && len(rest) >= 4 && (rest[len(rest)-1] == 't' || rest[len(rest)-1] == 's') {
		w = rest // encryption, compression
	}
	if rest, ok := strings.CutSuffix(w, "e"); ok && len(rest) >= 3 {
		w = rest
	}
	return w
}
