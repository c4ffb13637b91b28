package prefs_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// What cannot be said by a Vector, or may mean two things, is never passed over:
// the part is quoted, and the rest counts.
func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  V
		parts []string
	}{
		{"write me a poem about the sea", V{}, []string{"write me a poem about the sea"}},
		{"cheap, in the style of Hemingway, never gpt-5", V{Accuracy: 1, Cost: 1, Latency: .2, Never: []string{"gpt-5"}}, []string{"in the style of Hemingway"}},
		{"avoid o3 unless nothing else works, prefer local search", V{}, []string{"avoid o3 unless nothing else works, prefer local search"}},
		{"If it is hard, use gpt-5. Be quick.", weights(1, .5, 1), []string{"If it is hard, use gpt-5"}},
		{"use gpt-5 for maths", V{}, []string{"use gpt-5 for maths"}},
		{"I'd rather not use gpt-5", V{}, []string{"I'd rather not use gpt-5"}},
		{"try to avoid o3", V{}, []string{"try to avoid o3"}},
		{"I don't like gpt-5", V{}, []string{"I don't like gpt-5"}},
		{"don't always use gpt-5", V{}, []string{"don't always use gpt-5"}},
		{"you don't have to use gpt-5", V{}, []string{"you don't have to use gpt-5"}},
		{"don't use gpt-5 too much", V{}, []string{"don't use gpt-5 too much"}},
		{"don't use gpt-5 first", V{}, []string{"don't use gpt-5 first"}},
		{"don't prefer o3 over gpt-5", V{}, []string{"don't prefer o3 over gpt-5"}},
		{"o3 isn't forbidden", V{}, []string{"o3 isn't forbidden"}},
		{"it was too slow", V{}, []string{"it was too slow"}},
		{"cost isn't all that matters", V{}, []string{"cost isn't all that matters"}},
		{"no cheap models", V{}, []string{"no cheap models"}},
		{"not without gpt-5", V{}, []string{"not without gpt-5"}},
		{"never avoid o3", V{}, []string{"never avoid o3"}},
		{"don't only use gpt-5", V{}, []string{"don't only use gpt-5"}},
		{"not only cheap", V{}, []string{"not only cheap"}},
		{"local search", V{}, []string{"local search"}},
		{"never gpt-5. o3.", V{Never: []string{"gpt-5"}}, []string{"o3"}},
		{"no gpt-5, o3 instead", V{Never: []string{"gpt-5"}}, []string{"o3 instead"}},
		{"never gpt-5, local search please", V{Never: []string{"gpt-5"}}, []string{"local search please"}},
		{"never gpt-5 but o3", V{Never: []string{"gpt-5"}}, []string{"o3"}},
		{"accuracy and cost doesn't matter", V{}, []string{"accuracy and cost doesn't matter"}},
		{"cheap is fine", V{}, []string{"cheap is fine"}},
		{"prefer expensive models", V{}, []string{"prefer expensive models"}},
		{"don't use cheap models", V{}, []string{"don't use cheap models"}},
		{"prefer local models", V{}, []string{"prefer local models"}},
		{"use gpt-5 as little as possible", V{}, []string{"use gpt-5 as little as possible"}},
		{"no budget", V{}, []string{"no budget"}},
		{"at most 10 cents, please be quick", weights(1, .5, 1), []string{"at most 10 cents"}},
		{"cost doesn't matter, accuracy is irrelevant. I can wait!", V{}, []string{"cost doesn't matter, accuracy is irrelevant. I can wait!"}},
		{"I hate gpt-5", V{}, []string{"I hate gpt-5"}},
		{"sei billig", V{}, []string{"sei billig"}},
	} {
		v, err := prefs.Parse(c.text, parseNames)
		var pe *prefs.ParseError
		if !errors.As(err, &pe) || !errors.Is(err, prefs.ErrNotUnderstood) {
			t.Errorf("%q: %+v, %v", c.text, v, err)
			continue
		}
		var parts []string
		for _, p := range pe.Parts {
			parts = append(parts, p.Text)
		}
		if !same(v, c.want) || !slices.Equal(parts, c.parts) {
			t.Errorf("%q:\n got %+v, %q\nwant %+v, %q", c.text, v, parts, c.want, c.parts)
		}
	}
}

func TestUnknownNamesComeWithSuggestions(t *testing.T) {
	for _, c := range []struct{ text, field, name, near string }{
		{"never gpt5o", "Never", "gpt5o", "gpt-5"},
		{"never use gpt-6, please", "Never", "gpt-6", "gpt-5"},
		{"prefer lama", "Use", "lama", "llama-3.3-70b"},
		{"prefer mini", "Use", "mini", "gpt-5-mini"},
		{"only gtp-5", "Use", "gtp-5", "gpt-5"},
		{"cheap, and use locl search", "Use", "locl search", "local_search"},
		{"never gpt-5 turbo", "Never", "gpt-5 turbo", ""},
		{"never o3 or bard", "Never", "bard", ""},
		{"mistral is forbidden", "Never", "mistral", ""},
	} {
		v, err := prefs.Parse(c.text, parseNames)
		var unknown *prefs.UnknownNameError
		if !errors.As(err, &unknown) || unknown.Field != c.field || unknown.Name != c.name || (c.near == "") != (len(unknown.Near) == 0) || c.near != "" && unknown.Near[0] != c.near {
			t.Errorf("%q: %v", c.text, err)
		}
		if err := v.Validate(parseNames); err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if v, _ := prefs.Parse("never o3 or bard", parseNames); !v.Allows("gpt-5") || v.Allows("o3") {
		t.Errorf("the known name counts: %+v", v)
	}
	for _, text := range []string{"only gtp-5", "only o3 and gtp-5"} {
		if v, _ := prefs.Parse(text, parseNames); !v.IsZero() {
			t.Errorf("%q: a slip of the pen rules out the rest: %+v", text, v)
		}
	}
}

func TestContradictionsAreNamedAndTakeNoSide(t *testing.T) {
	for _, c := range []struct {
		text, name, first, second string
		want                      V
	}{
		{"prefer o3, never o3", "o3", "prefer o3", "never o3", V{}},
		{"Never o3. Anyway, o3 is fine.", "o3", "Never o3", "Anyway, o3 is fine", V{}},
		{"never gpt, use gpt-5-mini", "gpt-5-mini", "never gpt", "use gpt-5-mini", V{Never: []string{"gpt-5"}}},
		{"cheap, prefer o3, cost doesn't matter", "Cost", "cheap", "cost doesn't matter", V{Accuracy: 1, Cost: .5, Latency: .2, Use: use{"o3": 1}}},
		{"no hurry but ASAP", "Latency", "no hurry", "ASAP", weights(1, .5, .2)},
	} {
		v, err := prefs.Parse(c.text, parseNames)
		var against *prefs.ContradictionError
		if !errors.As(err, &against) || against.Name != c.name || !strings.HasSuffix(against.First, c.first) && !strings.HasSuffix(c.first, against.First) || against.Second == against.First || !strings.HasSuffix(c.second, against.Second) {
			t.Errorf("%q: %v", c.text, err)
		}
		if !same(v, c.want) {
			t.Errorf("%q: %+v, want %+v", c.text, v, c.want)
		}
	}
}

func TestPartsStandInTheOrderOfTheText(t *testing.T) {
	_, err := prefs.Parse("Never o3. Prefer o3. Write nicely. Use grok.", parseNames)
	var pe *prefs.ParseError
	if !errors.As(err, &pe) || len(pe.Parts) != 3 || pe.Parts[0].Text != "Prefer o3" || pe.Parts[1].Text != "Write nicely" || pe.Parts[2].Text != "grok" {
		t.Error(err)
	}
}

func TestOnlyRulesOutTheOthersOfItsKind(t *testing.T) {
	models := []string{"gpt-5", "gpt-5-mini", "o3", "not registered"}
	sources := []string{"local_search", "web_search"}
	for text, want := range map[string]V{
		"use only gpt-5":                 {Use: use{"gpt-5": 1}, Never: []string{"gpt-5-mini", "o3"}},
		"only local search and o3":       {Use: use{"local_search": 1, "o3": 1}, Never: []string{"gpt-5", "gpt-5-mini", "web_search"}},
		"nothing but gpt":                {Use: use{"gpt-5": 1, "gpt-5-mini": 1}, Never: []string{"o3"}},
		"stick to local search, only o3": {Use: use{"local_search": 1, "o3": 1}, Never: []string{"gpt-5", "gpt-5-mini", "web_search"}},
		"don't use anything but o3":      {Use: use{"o3": 1}, Never: []string{"gpt-5", "gpt-5-mini"}},
		"o3 only":                        {Use: use{"o3": 1}, Never: []string{"gpt-5", "gpt-5-mini"}},
		"use o3, nothing else":           {Use: use{"o3": 1}, Never: []string{"gpt-5", "gpt-5-mini"}},
		"nothing else, thanks":           {},
	} {
		v, err := prefs.Parse(text, parseNames, models, sources)
		if len(want.Use) == 0 {
			if err == nil {
				t.Errorf("%q: %+v", text, v)
			}
			continue
		}
		if err != nil || !same(v, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, v, err, want)
		}
		if err := v.Validate(parseNames); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Names that are words of the grammar are read as either, as the sentence needs.
func TestNamesThatAreWords(t *testing.T) {
	names := []string{"fast", "cheap", "never", "answer", "cost"}
	for text, want := range map[string]V{
		"be fast":                      weights(1, .5, 1),
		"don't be cheap":               weights(1, 0, .2),
		"never fast, cheap or cost":    {Never: []string{"fast", "cheap", "cost"}},
		"fast is forbidden":            {Never: []string{"fast"}},
		"prefer fast":                  {Use: use{"fast": 1}},
		"never cheap":                  {Never: []string{"cheap"}},
		"cost doesn't matter":          weights(1, 0, .2),
		"an accurate answer":           weights(1, .5, .2),
		"use answer, never use never":  {Use: use{"answer": 1}, Never: []string{"never"}},
		"Cheap please. Prefer answer.": {Accuracy: 1, Cost: 1, Latency: .2, Use: use{"answer": 1}},
	} {
		if v, err := prefs.Parse(text, names); err != nil || !same(v, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, v, err, want)
		}
	}
}

// Weights that Describe has a word for are read back exactly.
func TestDescribeIsReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	names := append([]string{"fast", "gpt-5.1", "meta/llama3:8b", "never", "A_b-C"}, parseNames...)
	levels := []float64{0, .2, .5, 1}
	for range 150 {
		var v V
		if rng.IntN(3) > 0 {
			v = weights(levels[rng.IntN(4)], levels[rng.IntN(4)], levels[rng.IntN(4)])
		}
		for _, n := range names {
			switch rng.IntN(6) {
			case 0:
				v.Never = append(v.Never, n)
			case 1, 2:
				if v.Use == nil {
					v.Use = use{}
				}
				v.Use[n] = []float64{.3, 1}[rng.IntN(2)]
			}
		}
		got, err := prefs.Parse(v.Describe(), names)
		if err != nil || !same(got.OrDefault(), v.OrDefault()) {
			t.Fatalf("%q:\n got %+v, %v\nwant %+v", v.Describe(), got, err, v)
		}
	}
}

func TestParseIsBoundedAndSafeForConcurrentUse(t *testing.T) {
	var pe *prefs.ParseError
	if _, err := prefs.Parse(strings.Repeat("cheap ", 5000), nil); !errors.As(err, &pe) || len(err.Error()) > 200 {
		t.Error(err)
	}
	if _, err := prefs.Parse("prefer o3", nil); !errors.As(err, &pe) {
		t.Error("a name is known to nobody")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if v, err := prefs.Parse("cheap, never gpt-5", parseNames); err != nil || v.Cost != 1 {
				t.Error(v, err)
			}
		})
	}
	wg.Wait()
}
