package prefs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

func FuzzParse(f *testing.F) {
	for _, s := range sentences {
		f.Add(s.text, "gpt-5")
	}
	f.Add("never \xff, use a\x00b — (e.g. \"x\")", "a\x00b")
	f.Add("If in doubt, prefer ’s. Never use n't, 'd.", "and")
	f.Fuzz(func(t *testing.T, text, name string) {
		names := append([]string{name}, parseNames...)
		v, err := prefs.Parse(text, names)
		if bad := v.Validate(names); bad != nil {
			t.Fatal(bad)
		}
		for _, n := range v.Never {
			if v.Use[n] > 0 {
				t.Fatalf("%q is wanted and ruled out", n)
			}
		}
		again, _ := prefs.Parse(text, names)
		if !same(v, again) {
			t.Fatal("not deterministic")
		}
		if err == nil {
			return
		}
		var pe *prefs.ParseError
		if !errors.As(err, &pe) || len(pe.Parts) == 0 {
			t.Fatal(err)
		}
		if len(text) > 8<<10 {
			return
		}
		for _, p := range pe.Parts {
			if p.Err == nil || !strings.HasPrefix(text[p.Offset:], p.Text) {
				t.Fatalf("%+v", p)
			}
		}
	})
}
