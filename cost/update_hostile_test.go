package cost_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func providers(t testing.TB, all string) *cost.Catalog {
	t.Helper()
	c, err := cost.Load(strings.NewReader(`{"schema":"toolorchestra.prices/1","source":{},"providers":[` + all + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func inputAt(c *cost.Catalog, provider, model string, at time.Time) string {
	p, ok := c.Lookup(provider, model, at)
	if !ok {
		return "unpriced"
	}
	a, _ := p.Input.Amount()
	return a.String()
}

// A name that gets an entry of its own costs, before the update, what the entry
// said that it matched then.
func TestUpdateKeepsThePricesOfMatchedNames(t *testing.T) {
	since := day("2026-06-01 00:00")
	for _, x := range []struct{ name, from, to, provider, model string }{
		{"from a pattern", `{"id":"p","models":[{"id":"m","match":["^m-"],"price":{"input":"5"}}]}`,
			`{"id":"p","models":[{"id":"m-mini","price":{"input":"1"}},{"id":"m","match":["^m-"],"price":{"input":"5"}}]}`, "p", "m-mini"},
		{"from the provider that is resold", `{"id":"p","models":[{"id":"m-mini","price":{"input":"5"}}]},{"id":"r","fallback":["p"],"models":[]}`,
			`{"id":"p","models":[{"id":"m-mini","price":{"input":"5"}}]},{"id":"r","fallback":["p"],"models":[{"id":"m-mini","price":{"input":"1"}}]}`, "r", "m-mini"},
	} {
		c, err := providers(t, x.from).Update(providers(t, x.to), since, nil)
		if err != nil {
			t.Fatal(x.name, err)
		}
		if before, after := inputAt(c, x.provider, x.model, since.Add(-1)), inputAt(c, x.provider, x.model, since); before != "$5" || after != "$1" {
			t.Errorf("%s: %s before and %s after", x.name, before, after)
		}
	}
}

// A jump is one, by whatever way a name comes to its new price.
func TestUpdateGuardsWhatNamesCost(t *testing.T) {
	const m = `{"id":"p","models":[{"id":"m","match":["^m-"],"price":{"input":"5","output":"5"}}]}`
	const q = `{"id":"q","models":[{"id":"x","price":{"input":"100","output":"100"}}]},{"id":"r","models":[{"id":"x","price":{"input":"1","output":"1"}}]},`
	for _, x := range []struct{ name, from, to, want string }{
		{"an entry of its own", m, `{"id":"p","models":[{"id":"m-mini","price":{"input":"0","output":"5"}},` + m[len(`{"id":"p","models":[`):], `p "m-mini" Input became free`},
		{"an entry before it that matches all", m, `{"id":"p","models":[{"id":"all","match":["~.*"],"price":{"input":"0","output":"5"}},` + m[len(`{"id":"p","models":[`):], `p "m-" Input became free`},
		{"a pattern that is gone", m, strings.Replace(m, `"^m-"`, `"^n-"`, 1), `p "m-" vanished`},
		{"another provider that is resold", q + `{"id":"s","fallback":["r"],"models":[]}`, q + `{"id":"s","fallback":["q"],"models":[]}`, `s "x" Input jumped`},
		{"nobody that is resold", q + `{"id":"s","fallback":["r"],"models":[]}`, q + `{"id":"s","models":[]}`, `s "x" vanished`},
		{"a new tier", m, strings.Replace(m, `"output":"5"`, `"output":"5","over":{"above":1,"price":{"input":"500","output":"5"}}`, 1), `p "m" Over.Input jumped`},
		{"a tier that is free", m, strings.Replace(m, `"output":"5"`, `"output":"5","over":{"above":1,"price":{"input":"0","output":"5"}}`, 1), `p "m" Over.Input became free`},
		{"new batch prices", m, strings.Replace(m, `"output":"5"`, `"output":"5","batch":{"input":"500","output":"5"}`, 1), `p "m" Batch.Input jumped`},
		{"new batch prices, for nothing", m, strings.Replace(m, `"output":"5"`, `"output":"5","batch":{"input":"0","output":"0"}`, 1), `p "m" Batch.Input became free`},
		{"a tier that begins earlier", strings.Replace(m, `"output":"5"`, `"output":"5","over":{"above":200000,"price":{"input":"60","output":"5"}}`, 1),
			strings.Replace(m, `"output":"5"`, `"output":"5","over":{"above":1,"price":{"input":"60","output":"5"}}`, 1), `p "m" Over.Input jumped`},
	} {
		_, err := providers(t, x.from).Update(providers(t, x.to), day("2026-06-01 00:00"), nil)
		var doubts *cost.ChangesError
		if !errors.As(err, &doubts) || !slices.ContainsFunc(doubts.Changes, func(c cost.Change) bool { return strings.HasPrefix(c.String(), x.want) }) {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
	}
}

// An ordinary update asks nothing.
func TestUpdateAsksNothingOfOrdinaryChanges(t *testing.T) {
	const was = `{"id":"p","models":[{"id":"m","match":["^m-"],"price":{"input":"5","cache_read":"0.5","output":"5"}}]}`
	for name, is := range map[string]string{
		"a new tier":    strings.Replace(was, `"output":"5"`, `"output":"5","over":{"above":200000,"price":{"input":"10","cache_read":"1","output":"9"}}`, 1),
		"a batch price": strings.Replace(was, `"output":"5"`, `"output":"5","batch":{"input":"2.5","output":"2.5"}`, 1),
		"priority":      strings.Replace(was, `"output":"5"`, `"output":"5","priority":{"input":"10","output":"10"}`, 1),
		"another model": strings.Replace(was, `]}`, `,{"id":"m-x","price":{"input":"4","cache_read":"0.4","output":"5"}}]}`, 1),
	} {
		if _, err := providers(t, was).Update(providers(t, is), day("2026-06-01 00:00"), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := cost.DefaultCatalog()
	if _, err := c.Update(c, day("2026-06-01 00:00"), nil); err != nil {
		t.Error(err)
	}
}

// What genai-prices charges for and a Price cannot state is unpriced: it does not
// cost what the next entry does whose pattern it matches as well.
func TestGenAIEntryThatCannotBeStatedIsUnpriced(t *testing.T) {
	for name, prices := range map[string]string{
		"another unit":       `{"input_mtok":1,"phases_of_the_moon":1}`,
		"another constraint": `[{"constraint":{"weekday":"monday"},"prices":{"input_mtok":1}}]`,
	} {
		c, err := cost.Load(strings.NewReader(fmt.Sprintf(`[{"id":"p","models":[
			{"id":"m-audio","match":{"starts_with":"m-audio"},"prices":%s},
			{"id":"m","match":{"starts_with":"m"},"prices":{"input_mtok":1}}]}]`, prices)))
		if err != nil {
			t.Fatal(name, err)
		}
		for _, model := range []string{"m-audio", "m-audio-1"} {
			if got := inputAt(c, "p", model, day("2026-06-01 00:00")); got != "unpriced" {
				t.Errorf("%s: %s costs %s", name, model, got)
			}
		}
	}
}

// What follows the list in its file is not of the list, and a sign that the file
// is broken.
func TestLoadRefusesWhatFollowsTheList(t *testing.T) {
	for _, tail := range []string{`x`, `{}`, `{"schema":"toolorchestra.prices/1","source":{},"providers":[]}`} {
		var bad *cost.CatalogError
		if _, err := cost.Load(strings.NewReader(`{"schema":"toolorchestra.prices/1","source":{},"providers":[]}` + tail)); !errors.As(err, &bad) {
			t.Errorf("%s: %v", tail, err)
		}
	}
}
