package prefs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// Sentences whose words are all known, and which say something else than the sum
// of their clauses.
func TestWhatLooksLikeAWishAndIsNone(t *testing.T) {
	never := func(names ...string) V { return V{Never: names} }
	for text, want := range map[string]V{
		// A small word before a name begins a clause: it does not go on with the ban.
		"never o3, just gpt-5":    never("o3"),
		"no o3, simply llama":     never("o3"),
		"never o3, always gpt-5":  never("o3"),
		"prefer o3, always llama": {Use: use{"o3": 1}},
		"never o3, for now gpt-5": never("o3"),
		"never o3, thanks, gpt-5": never("o3"),
		"no o3, you should gpt-5": never("o3"),
		"can't you use o3?":       {},
		// A "not" that reaches beyond an "or".
		"never use o3 or call gpt-5":                {},
		"never gpt-5, nor use o3":                   {},
		"neither use o3 nor call gpt-5":             {},
		"don't be slow or use o3":                   {},
		"not slow or cheap":                         {},
		"neither fast nor cheap matters":            {},
		"no need to be cheap or to hurry":           {},
		"avoid using o3 and calling gpt-5":          never("o3"),
		"avoid using o3, calling gpt-5":             never("o3"),
		"I used gpt-5":                              {},
		"never used o3":                             {},
		"don't use gpt-5 if possible":               {}, // a mild dislike
		"if possible, never use gpt-5":              {},
		"avoid gpt-5, if you can":                   {},
		"usually not o3":                            {},
		"generally avoid o3":                        {},
		"only use o3 if possible":                   {},
		"never gpt-5*":                              {}, // gpt-5-mini may be meant too
		"never gpt-5-*":                             {},
		strings.Repeat("o3, ", 300) + "never gpt-5": {},
	} {
		v, err := prefs.Parse(text, parseNames)
		var pe *prefs.ParseError
		if !errors.As(err, &pe) || !same(v, want) {
			t.Errorf("%.60q: %+v, %v, want %+v and an error", text, v, err, want)
		}
	}
	for text, want := range map[string]V{
		"never **gpt-5**":             never("gpt-5"),
		"*never gpt-5*":               never("gpt-5"),
		"never o3, just be cheap":     {Accuracy: 1, Cost: 1, Latency: .2, Never: []string{"o3"}},
		"never o3, thanks":            never("o3"),
		"never o3, you may use gpt-5": never("o3"),
		"if possible, use o3":         {Use: use{"o3": 1}},
		"avoid using o3, use llama":   {Use: use{"llama-3.3-70b": 1}, Never: []string{"o3"}},
		"never gpt-5, nor o3":         never("gpt-5", "o3"),
		"o3 must not be used, ever.":  never("o3"),
	} {
		if v, err := prefs.Parse(text, parseNames); err != nil || !same(v, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, v, err, want)
		}
	}
}

// It took seven seconds.
func TestParseOfTheLongestListIsQuick(t *testing.T) {
	for _, s := range []string{"o3,", "xx,", "cost,"} {
		start := time.Now()
		if _, err := prefs.Parse(strings.Repeat(s, 8192/len(s)), parseNames); err == nil {
			t.Errorf("%q is understood", s)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%q repeated takes %s", s, took)
		}
	}
}
