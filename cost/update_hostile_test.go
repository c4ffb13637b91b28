package cost_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// What ran before an update is priced as it was, by whatever pattern: one that the
// new list has dropped, moved to another entry, or put an entry before; and still
// so once the list was saved and read, and updated again. What was unpriced costs
// what came later.
func TestUpdateKeepsWhatPatternsMatched(t *testing.T) {
	first, second := day("2026-06-01 00:00"), day("2026-07-01 00:00")
	const m = `{"id":"p","models":[{"id":"m","match":["^m-"],"price":{"input":"5"}}]}`
	for _, x := range []struct{ name, from, to, want string }{
		{"dropped", m, `{"id":"p","models":[{"id":"m","price":{"input":"5"}}]}`, "$5 unpriced"},
		{"moved", m, `{"id":"p","models":[{"id":"m","price":{"input":"5"}},{"id":"n","match":["^m-"],"price":{"input":"7"}}]}`, "$5 $7"},
		{"an entry before it", m, `{"id":"p","models":[{"id":"n","match":["=m-x"],"price":{"input":"7"}},` + m[len(`{"id":"p","models":[`):], "$5 $7"},
		{"its entry vanished", m, `{"id":"p","models":[{"id":"n","match":["^m-"],"price":{"input":"7"}}]}`, "$5 $7"},
		{"to the provider that is resold", m + `,{"id":"q","models":[{"id":"m-x","price":{"input":"7"}}]}`, `{"id":"p","fallback":["q"],"models":[]},{"id":"q","models":[{"id":"m-x","price":{"input":"7"}}]}`, "$5 $7"},
		{"new, so there is no other price", `{"id":"p","models":[{"id":"m","price":{"input":"5"}}]}`, m, "$5 $5"},
		{"kept", m, m, "$5 $5"},
	} {
		t.Run(x.name, func(t *testing.T) {
			yes := func(cost.Change) bool { return true }
			c, err := providers(t, x.from).Update(providers(t, x.to), first, yes)
			if err != nil {
				t.Fatal(err)
			}
			again, err := c.Update(providers(t, m), second, yes) // back to where it was
			if err != nil {
				t.Fatal(err)
			}
			var file strings.Builder
			if err := again.Save(&file); err != nil {
				t.Fatal(err)
			}
			read, err := cost.Load(strings.NewReader(file.String()))
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]*cost.Catalog{"once": c, "twice": again, "read": read} {
				want := x.want
				if name != "once" {
					want = strings.Replace(want, "unpriced", "$5", 1)
				}
				if got := inputAt(c, "p", "m-x", first.Add(-1)) + " " + inputAt(c, "p", "m-x", first); got != want {
					t.Errorf("%s: %s, not %s", name, got, want)
				}
				if got := inputAt(c, "p", "m-x", second); name != "once" && got != "$5" {
					t.Errorf("%s: %s after the second update", name, got)
				}
			}
		})
	}
}

// Whatever an update changes, what had a price before costs that before.
func TestUpdateNeverChangesThePast(t *testing.T) {
	names := []string{"a", "a-x", "a-x-y", "b", "b-x", "B-x"}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list := func() *cost.Catalog {
			var all []string
			for _, id := range []string{"p", "q"} {
				fallback := ""
				if id == "p" && rng.IntN(2) == 0 {
					fallback = `"fallback":["q"],`
				}
				var models []string
				for _, m := range rng.Perm(5) {
					if rng.IntN(3) == 0 {
						continue
					}
					match := ""
					if k := rng.IntN(5); k > 0 {
						match = fmt.Sprintf(`"match":[%q],`, []string{"", "^a", "$x", "*-x", "=b-x"}[k])
					}
					models = append(models, fmt.Sprintf(`{"id":%q,%s"price":{"input":"%d"}}`, names[m], match, 1+rng.IntN(9)))
				}
				all = append(all, fmt.Sprintf(`{"id":%q,%s"models":[%s]}`, id, fallback, strings.Join(models, ",")))
			}
			return providers(t, strings.Join(all, ","))
		}
		c, at := list(), day("2026-06-01 00:00")
		past := map[string]string{}
		for range 4 {
			next, err := c.Update(list(), at, func(cost.Change) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if before := inputAt(c, "p", n, at.Add(-1)); before != "unpriced" {
					past[n+at.Add(-1).Format(" 2006-01-02T15:04:05.999999999Z")] = before
				}
			}
			for key, before := range past {
				n, when, _ := strings.Cut(key, " ")
				then, err := time.Parse(time.RFC3339Nano, when)
				if err != nil {
					t.Fatal(err)
				}
				if now := inputAt(next, "p", n, then); now != before {
					t.Fatalf("seed %d: %s cost %s at %v, and %s after the update of %v", seed, n, before, then, now, at)
				}
			}
			c, at = next, at.AddDate(0, 1, 0)
		}
	}
}

// An update may be of a time before an earlier one: it is compared with what held
// then.
func TestUpdateOfAnEarlierTime(t *testing.T) {
	const m = `{"id":"p","models":[{"id":"m","match":["^m-"],"price":{"input":"5"}},{"id":"n","price":{"input":"1"}}]}`
	none := `{"id":"p","models":[{"id":"n","price":{"input":"1"}}]}`
	yes := func(cost.Change) bool { return true }
	c, err := providers(t, m).Update(providers(t, none), day("2026-06-01 00:00"), yes)
	if err != nil {
		t.Fatal(err)
	}
	free := strings.Replace(m, `"input":"5"`, `"input":"0"`, 1)
	var e *cost.ChangesError
	if _, err := c.Update(providers(t, free), day("2026-05-01 00:00"), nil); !errors.As(err, &e) || !strings.Contains(err.Error(), `p "m" Input became free ($5 to $0)`) {
		t.Error(err)
	}
	d, err := c.Update(providers(t, free), day("2026-05-01 00:00"), yes)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := inputAt(d, "p", "m-x", day("2026-04-30 00:00")), inputAt(d, "p", "m-x", day("2026-05-01 00:00")); before != "$5" || after != "$0" {
		t.Errorf("%s before and %s after", before, after)
	}
}
