package cost_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// After an update, what ran before it is priced as it was.
func TestUpdateKeepsOldPrices(t *testing.T) {
	first, second, third := day("2026-02-01 00:00"), day("2026-03-01 06:00"), day("2026-04-01 00:00")
	c := load(t, `{"id":"m","match":["^m-"],"price":{"input":"1","output":"1"}},{"id":"gone","price":{"input":"1","output":"1"}},{"id":"same","prices":[{"price":{"input":"5"}},{"from":"2026-01-05","price":{"input":"6"}}]}`)
	same := `{"id":"same","prices":[{"price":{"input":"5"}},{"from":"2026-01-05","price":{"input":"6"}}]}`
	saved := ""
	all := func(cost.Change) bool { return true }
	for _, u := range []struct {
		at   time.Time
		list string
	}{
		{first, `{"id":"m","match":["^m-","=other"],"price":{"input":"2","output":"1"}},{"id":"new","price":{"input":"9"}},` + same},
		{second, `{"id":"m","match":["^m-"],"prices":[{"price":{"input":"2","output":"1"}},{"from":"2026-05-01","price":{"input":"3","output":"1"}}]},` + same},
		{third, `{"id":"m","match":["^m-"],"prices":[{"price":{"input":"2","output":"1"}},{"from":"2026-05-01","price":{"input":"3","output":"1"}}]},` + same},
	} {
		next, err := c.Update(load(t, u.list), u.at, all)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer // and through a file
		if err := next.Save(&b); err != nil {
			t.Fatal(err)
		}
		if u.at.Equal(third) {
			if b.String() != saved {
				t.Errorf("an update that changes nothing made of\n%s\n%s", saved, &b)
			}
		}
		saved = b.String()
		if c, err = cost.Load(&b); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct{ model, at, want string }{
		{"m-1", "2026-01-31 23:59", "1"}, {"m-1", "2026-02-01 00:00", "2"}, {"m-1", "2026-04-30 23:59", "2"}, {"m-1", "2026-05-01 00:00", "3"},
		{"gone", "2026-01-31 23:59", "1"}, {"gone", "2026-02-01 00:00", ""},
		{"new", "2026-01-01 00:00", "9"}, {"new", "2026-03-01 07:00", ""},
		{"same", "2026-01-01 00:00", "5"}, {"same", "2026-06-01 00:00", "6"},
	} {
		p, ok := c.Lookup("p", x.model, day(x.at))
		if in, _ := p.Input.Amount(); ok != (x.want != "") || ok && in != usd(x.want) {
			t.Errorf("%s at %s: %v %v, want %q", x.model, x.at, in, ok, x.want)
		}
	}
}

func TestUpdateGuards(t *testing.T) {
	const m = `{"id":"m","price":{"input":"2","cache_read":"0.2","output":"8","over":{"above":100,"price":{"input":"4","output":"12"}},"batch":{"input":"1","output":"4"},"priority":{"input":"4","output":"16"}}}`
	for _, x := range []struct {
		name, from, to string
		want           []string // provider, model, rate, why
	}{
		{"the same", m, m, nil},
		{"a little dearer", m, strings.ReplaceAll(m, `"output":"8"`, `"output":"80"`), nil},
		{"a little cheaper", m, strings.ReplaceAll(m, `"output":"8"`, `"output":"0.8"`), nil},
		{"eleven times", m, strings.ReplaceAll(m, `"output":"8"`, `"output":"88"`), []string{"Output jumped"}},
		{"an eleventh", m, strings.ReplaceAll(m, `"output":"8"`, `"output":"0.7"`), []string{"Output jumped"}},
		{"free", m, strings.ReplaceAll(m, `"output":"8"`, `"output":"0"`), []string{"Output became free"}},
		{"no cache any more", m, strings.ReplaceAll(m, `"cache_read":"0.2",`, ``), []string{"CacheRead vanished"}},
		{"a tier that jumps", m, strings.ReplaceAll(m, `"input":"4","output":"12"`, `"input":"4","output":"125"`), []string{"Over.Output jumped"}},
		{"no tier", m, strings.ReplaceAll(m, `"over":{"above":100,"price":{"input":"4","output":"12"}},`, ``), []string{"Over vanished"}},
		{"no batch", m, strings.ReplaceAll(m, `"batch":{"input":"1","output":"4"},`, ``), []string{"Batch vanished"}},
		{"batch at the ordinary price", m, strings.ReplaceAll(m, `"batch":{"input":"1"`, `"batch":{"input":"2"`), []string{"Batch.Input is no discount any more"}},
		{"no model", m, `{"id":"n","price":{"input":"1"}}`, []string{" vanished"}},
		{"no provider", m, ``, []string{" vanished"}},
		{"one of several versions", m, strings.TrimSuffix(strings.Replace(m, `"price":`, `"prices":[{"price":`, 1), "}") + `},{"from":"2030-01-01","price":{"input":"200","cache_read":"0.2","output":"8","over":{"above":100,"price":{"input":"4","output":"12"}},"batch":{"input":"1","output":"4"},"priority":{"input":"4","output":"16"}}}]}`, []string{"Input jumped"}},
		{"free stays free, and may get a price", `{"id":"m","price":{"input":"0"}}`, `{"id":"m","price":{"input":"5"}}`, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			old := load(t, x.from)
			next := load(t, x.to)
			if x.to == "" {
				next = &cost.Catalog{}
			}
			got, err := old.Update(next, day("2026-06-01 00:00"), nil)
			var doubts *cost.ChangesError
			var why []string
			if errors.As(err, &doubts) {
				for _, c := range doubts.Changes {
					if c.Provider != "p" || c.Model != "m" || !strings.Contains(c.String(), `p "m"`) {
						t.Errorf("%+v", c)
					}
					why = append(why, c.Rate+" "+c.Why)
				}
				if got != nil || !strings.Contains(err.Error(), doubts.Changes[0].String()) {
					t.Error(got, err)
				}
			}
			if !slices.Equal(why, x.want) || (err == nil) != (x.want == nil) {
				t.Errorf("%q (%v), want %q", why, err, x.want)
			}
			asked := 0
			if _, err := old.Update(next, day("2026-06-01 00:00"), func(cost.Change) bool { asked++; return true }); err != nil || asked != len(x.want) {
				t.Errorf("accepted %d: %v", asked, err)
			}
		})
	}
}

// A caller reads a newer list from a file or an address of its own, and looks at
// what it would change before it takes it over.
func ExampleCatalog_Update() {
	const prices = `{"schema":"toolorchestra.prices/1","source":{"date":"2026-01-01"},"providers":[{"id":"acme","models":[{"id":"m1","price":{"input":"%s","output":"8"}}]}]}`
	c, err := cost.Load(strings.NewReader(fmt.Sprintf(prices, "2")))
	if err != nil {
		fmt.Println(err)
		return
	}
	newer, err := cost.Load(strings.NewReader(fmt.Sprintf(prices, "0.1"))) // or an http.Response's Body
	if err != nil {
		fmt.Println(err)
		return
	}
	since := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	_, err = c.Update(newer, since, nil)
	fmt.Println(err)
	c, err = c.Update(newer, since, func(ch cost.Change) bool { return ch.Rate == "Input" })
	if err != nil {
		fmt.Println(err)
		return
	}
	before, _ := c.Lookup("acme", "m1", since.Add(-time.Second))
	after, _ := c.Lookup("acme", "m1", since)
	old, _ := before.Input.Amount()
	now, _ := after.Input.Amount()
	fmt.Println(old, now)
	// Output:
	// cost: the new price list was not taken over for 1 doubtful changes; acme "m1" Input jumped ($2 to $0.1): check them, and let Update's accept return true for those that are meant
	// $2 $0.1
}

func ExampleCatalog_Lookup() {
	at := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	p, ok := cost.DefaultCatalog().Lookup("anthropic", "claude-opus-4-5-20251101", at)
	usd, basis, err := p.Of(cost.Usage{Input: 1000, CacheRead: 900, Output: 200, Known: true})
	fmt.Println(ok, usd, basis, err)

	_, ok = cost.DefaultCatalog().Lookup("anthropic", "opus", at)
	fmt.Println(ok)
	// Output:
	// true $0.00595 measured <nil>
	// false
}

func ExampleExtract() {
	u, err := cost.Extract(cost.Anthropic, []byte(`{"content":[],"usage":{"input_tokens":100,"cache_read_input_tokens":900,"output_tokens":200}}`))
	fmt.Println(u.Input, u.CacheRead, u.Output, u.Known, err)
	// Output: 1000 900 200 true <nil>
}

// A list that is updated every day stays a file that Load reads for years:
// what an update leaves as it was is in it once.
func TestDailyUpdatesStaySmall(t *testing.T) {
	days := 60
	if testing.Short() {
		days = 10
	}
	plain := func() *cost.Catalog {
		var b bytes.Buffer
		if err := cost.DefaultCatalog().Save(&b); err != nil {
			t.Fatal(err)
		}
		old := `"id":"gpt-5-mini"`
		if !strings.Contains(b.String(), old) {
			t.Fatal("the list has no gpt-5-mini to change")
		}
		c, err := cost.Load(strings.NewReader(strings.Replace(b.String(), old, `"id":"gpt-5-mini-renamed"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, lists := cost.DefaultCatalog(), [...]*cost.Catalog{plain(), cost.DefaultCatalog()}
	size := func() int {
		var b bytes.Buffer
		if err := c.Save(&b); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	before, at := size(), day("2026-06-01 00:00")
	for i := range days {
		var err error
		if c, err = c.Update(lists[i%2], at.AddDate(0, 0, i), func(cost.Change) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	grown := (size() - before) / days
	t.Logf("an update adds %d bytes to a file of %d", grown, before)
	if grown > 8_000 {
		t.Error("16 MiB would be full within years")
	}
	same, err := c.Update(c, at.AddDate(2, 0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := size()
	if c = same; size() != n {
		t.Error("an update without changes adds to the file")
	}
}
