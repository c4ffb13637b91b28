package cost_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func day(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err) // a mistake in the test's own table
	}
	return t
}

func TestDefaultCatalog(t *testing.T) {
	c := cost.DefaultCatalog()
	if s := c.Source(); s.Name != "pydantic/genai-prices" || s.Commit != "47df840a" || s.Date.IsZero() {
		t.Errorf("source %+v", s)
	}
	if c != cost.DefaultCatalog() {
		t.Error("it is read twice")
	}
	u := cost.Usage{Input: 1e6, Output: 1e6, Requests: 1, Known: true}
	for _, x := range []struct{ provider, model, at, want string }{
		{"openai", "o3", "2025-06-09 12:00", "50"}, // before the price fell
		{"openai", "o3", "2025-06-10 00:00", "10"},
		{"openai", "gpt-5.6-terra", "2026-07-29 23:59", "27.5"}, // a tier as well
		{"openai", "gpt-5.6-terra", "2026-07-30 00:00", "22"},
		{"deepseek", "deepseek-chat", "2026-01-01 00:29", "0.685"}, // by time of day
		{"deepseek", "deepseek-chat", "2026-01-01 00:30", "1.37"},
		{"deepseek", "deepseek-chat", "2026-01-01 16:30", "0.685"},
		{"anthropic", "claude-sonnet-4-5-20250929", "2026-01-01 00:00", "28.5"}, // a pattern, above the tier
		{"google", "claude-opus-4-5", "2026-01-01 00:00", "30"},                 // of a provider whose models it resells
		{"azure", "gpt-4o", "2026-01-01 00:00", "12.5"},
		{"groq", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "2026-01-01 00:00", "0.45"}, // whatever the case
		{"perplexity", "sonar", "2026-01-01 00:00", "2.012"},                              // per request
	} {
		p, ok := c.Lookup(x.provider, x.model, day(x.at))
		if got, _, err := p.Of(u); !ok || err != nil || got != usd(x.want) {
			t.Errorf("%s %s at %s: %v %v %v, want %s", x.provider, x.model, x.at, got, ok, err, x.want)
		}
	}
}

// Every price of the embedded list is one that Save writes and Load reads back as
// it was.
func TestSaveAndLoad(t *testing.T) {
	var a, b bytes.Buffer
	if err := cost.DefaultCatalog().Save(&a); err != nil {
		t.Fatal(err)
	}
	again, err := cost.Load(bytes.NewReader(a.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Save(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) || a.Len() < 100_000 {
		t.Errorf("%d and %d bytes, %v", a.Len(), b.Len(), err)
	}
	if err := again.Save(failing{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

type failing struct{}

var errFull = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestPatterns(t *testing.T) {
	c := load(t, `
		{"id":"Exact-1","price":{"input":"1","output":"1"}},
		{"id":"b","match":["=equal","^Start-","$-end","*-mid-","~^re-[0-9]+$"],"price":{"input":"2","output":"2"}},
		{"id":"c","match":["^start-late"],"price":{"input":"3","output":"3"}}`)
	for model, want := range map[string]string{
		"Exact-1": "1", "exact-1": "", "xExact-1": "",
		"b": "2", "equal": "2", "EQUAL": "2", "equals": "", "start-x": "2", "START-X": "2", "restart-x": "", "x-end": "2", "x-end-x": "",
		"a-mid-z": "2", "re-12": "2", "re-": "", "re-12x": "",
		"start-late-1": "2", // the first that matches
		"c":            "3", "": "",
	} {
		p, ok := c.Lookup("p", model, time.Now())
		if in, _ := p.Input.Amount(); ok != (want != "") || ok && in != usd(want) {
			t.Errorf("%q: %v %v, want %q", model, in, ok, want)
		}
	}
}

func TestDates(t *testing.T) {
	c := load(t, `{"id":"m","prices":[
		{"price":{"input":"1","output":"1"}},
		{"from":"2026-02-01","price":{"input":"2","output":"2"}},
		{"from":"2026-03-01T08:30:00Z","daily":"22:00-06:00","price":{"input":"3","output":"3"}}]},
		{"id":"new","prices":[{"from":"2026-02-01","price":{"input":"4","output":"4"}}]}`)
	for _, x := range []struct {
		model, at, want string
	}{
		{"m", "2026-01-31 23:59", "1"}, {"m", "2026-02-01 00:00", "2"}, {"m", "2026-02-28 23:00", "2"}, {"m", "2026-03-01 05:00", "2"},
		{"m", "2026-03-01 12:00", "2"}, {"m", "2026-03-01 22:00", "3"}, {"m", "2026-03-02 05:59", "3"}, {"m", "2026-03-02 06:00", "2"},
		{"new", "2026-01-31 23:59", ""}, {"new", "2026-02-01 00:00", "4"},
	} {
		p, ok := c.Lookup("p", x.model, day(x.at).In(time.FixedZone("", 5*3600)))
		if in, _ := p.Input.Amount(); ok != (x.want != "") || ok && in != usd(x.want) {
			t.Errorf("%s at %s: %v %v, want %q", x.model, x.at, in, ok, x.want)
		}
	}
}

func TestWith(t *testing.T) {
	base := load(t, `{"id":"m","match":["^m-"],"price":{"input":"1","output":"1"}}`)
	mine, err := base.With("p", "m-1", cost.Tokens(7, 7))
	if err != nil {
		t.Fatal(err)
	}
	if mine, err = mine.With("my-box", "qwen3", cost.Price{GPUHour: cost.Per(2.5)}); err != nil {
		t.Fatal(err)
	}
	if mine, err = mine.With("p", "m-2", cost.Price{}); err != nil {
		t.Fatal(err)
	}
	if mine, err = mine.Update(load(t, `{"id":"m","match":["^m-"],"price":{"input":"2","output":"1"}}`), time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Hour)
	for _, x := range []struct {
		provider, model string
		want            cost.Price
	}{{"p", "m-1", cost.Tokens(7, 7)}, {"p", "m", cost.Tokens(2, 1)}, {"p", "m-2", cost.Price{}}, {"my-box", "qwen3", cost.Price{GPUHour: cost.Per(2.5)}}} {
		if p, ok := mine.Lookup(x.provider, x.model, at); p != x.want || ok != x.want.Known() {
			t.Errorf("%s %s: %+v %v", x.provider, x.model, p, ok)
		}
	}
	if p, _ := base.Lookup("p", "m-1", at); p != cost.Tokens(1, 1) {
		t.Error("With changed its receiver", p)
	}
	var invalid *cost.InvalidError
	if _, err := base.With("p", "m", cost.Tokens(-1, 1)); !errors.As(err, &invalid) {
		t.Error(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	ok := `{"id":"m","price":{"input":"1","output":"1"}}`
	for name, in := range map[string]string{
		"nothing":                  ``,
		"no JSON":                  `prices`,
		"cut":                      list(ok)[:80],
		"another schema":           `{"schema":"toolorchestra.prices/2","providers":[]}`,
		"no schema":                `{"providers":[]}`,
		"a field of another name":  list(`{"id":"m","price":{"inptu":"1"}}`),
		"a model twice":            list(ok + "," + ok),
		"a model without a name":   list(`{"price":{"input":"1"}}`),
		"no model":                 list(`null`),
		"no provider":              `{"schema":"toolorchestra.prices/1","providers":[null]}`,
		"a provider twice":         `{"schema":"toolorchestra.prices/1","providers":[{"id":"p","models":[]},{"id":"p","models":[]}]}`,
		"a date":                   `{"schema":"toolorchestra.prices/1","source":{"date":"May"},"providers":[]}`,
		"no price":                 list(`{"id":"m"}`),
		"a negative rate":          list(`{"id":"m","price":{"input":"-1"}}`),
		"a rate that is no number": list(`{"id":"m","price":{"input":"cheap"}}`),
		"a rate per token":         list(`{"id":"m","price":{"input":"0.000001"}}`),
		"a rate in cents of cents": list(`{"id":"m","price":{"input":"25000"}}`),
		"a tier per token":         list(`{"id":"m","price":{"input":"1","over":{"above":10,"price":{"input":"0.000001"}}}}`),
		"a service per token":      list(`{"id":"m","price":{"input":"1","flex":{"input":"0.000001"}}}`),
		"a tier at nothing":        list(`{"id":"m","price":{"input":"1","over":{"above":0,"price":{"input":"1"}}}}`),
		"tiers that fall":          list(`{"id":"m","price":{"input":"1","over":{"above":9,"price":{"input":"1","over":{"above":8,"price":{"input":"1"}}}}}}`),
		"a service in a service":   list(`{"id":"m","price":{"input":"1","flex":{"input":"1","batch":{"input":"1"}}}}`),
		"a service in a tier":      list(`{"id":"m","price":{"input":"1","over":{"above":9,"price":{"input":"1","flex":{"input":"1"}}}}}`),
		"a pattern without a kind": list(`{"id":"m","match":["gpt"],"price":{"input":"1"}}`),
		"an empty pattern":         list(`{"id":"m","match":["*"],"price":{"input":"1"}}`),
		"a pattern that is none":   list(`{"id":"m","match":["~("],"price":{"input":"1"}}`),
		"a day that is none":       list(`{"id":"m","prices":[{"from":"2026-13-01","price":{"input":"1"}}]}`),
		"times that are none":      list(`{"id":"m","prices":[{"daily":"late","price":{"input":"1"}}]}`),
		"another list":             `[1]`,
		"too long":                 `{"schema":"` + strings.Repeat("x", 16<<20) + `"}`,
		"nine tiers":               list(`{"id":"m","price":` + tiers(9) + `}`),
	} {
		c, err := cost.Load(strings.NewReader(in))
		var bad *cost.CatalogError
		if !errors.As(err, &bad) || bad.Fix == "" || !strings.HasSuffix(err.Error(), bad.Fix) || c != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cost.Load(strings.NewReader(list(`{"id":"m","price":` + tiers(8) + `}`))); err != nil {
		t.Error("eight tiers:", err)
	}
	if _, err := cost.Load(iotest.ErrReader(errFull)); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// tiers is a price with n tiers.
func tiers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"input":"1","over":{"above":%d,"price":`, i+1)
	}
	return b.String() + `{"input":"1"}` + strings.Repeat("}}", n)
}

// The data file of the source, as its maintainers publish it.
func TestLoadGenAI(t *testing.T) {
	c, err := cost.Load(strings.NewReader(`[{"id":"p","name":"P","fallback_model_providers":["q"],"models":[
		{"id":"a","match":{"or":[{"equals":"a"},{"starts_with":"a-"},{"or":[{"ends_with":"-z"},{"contains":"-mid-"},{"regex":"^re\\d$"}]}]},"context_window":10,
			"prices":{"input_mtok":{"base":1.5,"tiers":[{"start":200,"price":3},{"start":100,"price":2}]},"cache_read_mtok":{"base":0.5,"tiers":[{"start":200,"price":1}]},"output_mtok":8,"web_searches_kcount":10}},
		{"id":"b","match":{"equals":"b"},"prices":[{"prices":{"input_mtok":1}},{"constraint":{"start_date":"2026-02-01"},"prices":{"input_mtok":2e0}},{"constraint":{"start_time":"00:30:00Z","end_time":"16:30:00Z"},"prices":{"input_mtok":3}}]},
		{"id":"odd unit","match":{"equals":"odd unit"},"prices":{"pages_kcount":1}},
		{"id":"odd match","match":{"and":[{"contains":"odd"},{"contains":"match"}]},"prices":{"input_mtok":1}},
		{"id":"odd hours","match":{"equals":"odd hours"},"prices":[{"constraint":{"start_time":"00:30:15Z","end_time":"16:30:00Z"},"prices":{"input_mtok":1}}]},
		{"id":"odd rate","match":{"equals":"odd rate"},"prices":{"input_mtok":"much"}},
		{"id":"odd prices","match":{"equals":"odd prices"},"prices":7}
	]},{"id":"q","models":[{"id":"other","match":{"equals":"other"},"prices":{"input_mtok":1,"output_mtok":1}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		model, at string
		usage     cost.Usage
		want      string // "" = unpriced
	}{
		{"a-1", "2026-01-01 00:00", cost.Usage{Input: 100}, "0.00015"},
		{"1-z", "2026-01-01 00:00", cost.Usage{Input: 200}, "0.0004"},
		{"1-mid-1", "2026-01-01 00:00", cost.Usage{Input: 201, CacheRead: 1}, "0.000601"},
		{"re1", "2026-01-01 00:00", cost.Usage{Output: 10, Searches: 2}, "0.02008"},
		{"b", "2026-01-01 20:00", cost.Usage{Input: 1e6}, "1"},
		{"b", "2026-02-01 20:00", cost.Usage{Input: 1e6}, "2"},
		{"b", "2026-02-01 12:00", cost.Usage{Input: 1e6}, "3"},
		{"other", "2026-01-01 00:00", cost.Usage{Input: 1e6}, "1"},
		{"odd unit", "2026-01-01 00:00", cost.Usage{}, ""}, {"odd match", "2026-01-01 00:00", cost.Usage{}, ""}, {"odd hours", "2026-01-01 00:00", cost.Usage{}, ""},
		{"odd rate", "2026-01-01 00:00", cost.Usage{}, ""}, {"odd prices", "2026-01-01 00:00", cost.Usage{}, ""},
	} {
		p, ok := c.Lookup("p", x.model, day(x.at))
		if got, _, err := p.Of(x.usage); ok != (x.want != "") || ok && (got != usd(x.want) || err != nil) {
			t.Errorf("%s at %s: %v %v %v, want %q", x.model, x.at, got, ok, err, x.want)
		}
	}
	if c.Source() != (cost.Source{}) || c.From(cost.Source{Name: "x"}).Source().Name != "x" {
		t.Error("sources")
	}
}

func TestCatalogIsSafeForConcurrentUse(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if _, ok := cost.ListPrice("anthropic", "claude-opus-4-5-20251101"); !ok {
					t.Error("not found")
				}
			}
		})
	}
	all.Wait()
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(list(`{"id":"m","match":["^m-","~^x$"],"prices":[{"price":{"input":"1","output":"1"}},{"from":"2026-02-01","daily":"22:00-06:00","price":{"input":"2","over":{"above":5,"price":{"input":"3"}},"flex":{"input":"1"}}}]}`)))
	f.Add([]byte(`[{"id":"p","models":[{"id":"a","match":{"or":[{"equals":"a"},{"starts_with":"a-"}]},"prices":{"input_mtok":{"base":1.5,"tiers":[{"start":200,"price":3}]},"output_mtok":8}}]}]`))
	f.Add([]byte(`{"schema":"toolorchestra.prices/1","providers":[{"id":"p","fallback":["p","q"],"models":[]}]}`))
	f.Add([]byte(`{"schema":"toolorchestra.prices/1","providers":[{"id":"p","models":[{"id":"m-1","price":{"input":"1"}}]},{"id":"q","models":[]}],"earlier":[{"until":"2026-03-01","providers":[{"id":"q","same":true},{"id":"p","models":[{"id":"m-1"},{"id":"n","match":["^m"],"price":{"input":"2"}}]}]}]}`))
	at := time.Date(2026, 2, 1, 23, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := cost.Load(bytes.NewReader(b))
		if err != nil {
			var bad *cost.CatalogError
			if !errors.As(err, &bad) || c != nil {
				t.Fatalf("%v", err)
			}
			return
		}
		// What is loaded can be used, saved, and loaded again to the same.
		if p, ok := c.Lookup("p", "m-1", at); ok {
			if got, _, _ := p.Of(cost.Usage{Input: 100, Output: 100, Known: true}); got < 0 || got > p.Bound(100, 100, 0, 0) {
				t.Fatalf("%v, beyond the bound of %v", got, p.Bound(100, 100, 0, 0))
			}
		}
		var first, second bytes.Buffer
		if err := c.Save(&first); err != nil {
			t.Fatal(err)
		}
		again, err := cost.Load(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v of %s", err, first.Bytes())
		}
		if err := again.Save(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%s\nis then\n%s", first.Bytes(), second.Bytes())
		}
		if same, err := c.Update(again, at, nil); err != nil || same == nil {
			t.Fatalf("an update to the same is refused: %v", err)
		}
	})
}

// BenchmarkLoad is what the first lookup costs.
func BenchmarkLoad(b *testing.B) {
	var w bytes.Buffer
	if err := cost.DefaultCatalog().Save(&w); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := cost.Load(bytes.NewReader(w.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c, at := cost.DefaultCatalog(), time.Now()
	for b.Loop() {
		if _, ok := c.Lookup("anthropic", "claude-sonnet-4-5-20250929", at); !ok {
			b.Fatal("not found")
		}
	}
}
