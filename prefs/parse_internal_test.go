package prefs

import "testing"

// A phrase in two classes would mean what happens to be written last.
func TestNoPhraseIsListedTwice(t *testing.T) {
	if v := newVocabulary(); len(v.twice) > 0 || len(v.words) < 300 {
		t.Errorf("%d phrases; twice: %q", len(v.words), v.twice)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("cheap please, prefer local search, never gpt-5", []string{"answer", "search", "local_search", "gpt-5"}); err != nil {
			b.Fatal(err)
		}
	}
}
