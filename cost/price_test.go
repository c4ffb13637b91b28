package cost_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Prices of usages, with the table of rates in the test. The first rows are bugs
// that other meters had.
func TestPriceOf(t *testing.T) {
	usd := func(s string) cost.Amount {
		a, err := cost.ParseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	p := func(in, read, write, write1h, out float64) cost.Price {
		rate := func(f float64) cost.Rate {
			if f < 0 {
				return cost.Rate{}
			}
			return cost.Per(f)
		}
		return cost.Price{Input: rate(in), CacheRead: rate(read), CacheWrite: rate(write), CacheWrite1h: rate(write1h), Output: rate(out)}
	}
	said := usd("0.0123")
	reasoning := cost.Tokens(1, 10)
	reasoning.Reasoning = cost.Per(4)
	for _, c := range []struct {
		name  string
		price cost.Price
		usage cost.Usage
		want  string
		basis cost.Basis
		err   error
	}{
		{"cached input is part of input", p(2.5, 1.25, -1, -1, 10), cost.Usage{Input: 2006, CacheRead: 1920, Output: 300}, "0.005615", cost.Measured, nil},
		{"cache writes", p(3, 0.3, 3.75, -1, 15), cost.Usage{Input: 12_307, CacheWrite: 12_304, Output: 550}, "0.054399", cost.Measured, nil},
		{"nearly all is cached", p(1, 0.1, -1, -1, -1), cost.Usage{Input: 17_111, CacheRead: 17_102}, "0.0017192", cost.Measured, nil},
		{"fresh and cached", p(1.25, 0.125, -1, -1, 10), cost.Usage{Input: 51_232 + 1_188_096, CacheRead: 1_188_096, Output: 12_909}, "0.341642", cost.Measured, nil},
		{"cached, small", p(0.5, 0.05, -1, -1, 3), cost.Usage{Input: 20_212, CacheRead: 16_298, Output: 931}, "0.0055649", cost.Measured, nil},
		{"no cache rate: the input rate", p(2, -1, -1, -1, 8), cost.Usage{Input: 1000, CacheRead: 1000}, "0.002", cost.Measured, nil},
		{"an hour in the cache", p(5, 0.5, 6.25, 10, 25), cost.Usage{Input: 344_139, CacheWrite1h: 344_139}, "3.44139", cost.Measured, nil},
		{"both cache times", p(5, 0.5, 6.25, 10, 25), cost.Usage{Input: 1_000_000, CacheWrite: 600_000, CacheWrite1h: 400_000}, "7.75", cost.Measured, nil},
		{"reasoning is part of output", cost.Tokens(1, 10), cost.Usage{Output: 100, Reasoning: 60}, "0.001", cost.Measured, nil},
		{"reasoning at its own rate", reasoning, cost.Usage{Output: 100, Reasoning: 60}, "0.00064", cost.Measured, nil},
		{"the provider's word", cost.Tokens(1, 1), cost.Usage{Input: 5, USD: &said}, "0.0123", cost.Provider, nil},
		{"estimated", cost.Tokens(1, 1), cost.Usage{Input: 5, Estimated: true}, "0.000005", cost.Estimated, nil},
		{"free", cost.Free(), cost.Usage{Input: 1e6, Output: 1e6}, "0", cost.Measured, nil},
		{"unknown", cost.Price{}, cost.Usage{Input: 1e6}, "0", cost.Unpriced, cost.ErrUnpriced},
		{"half known", cost.Price{Input: cost.Per(1)}, cost.Usage{Input: 1000, Output: 1000}, "0.001", cost.Unpriced, cost.ErrUnpriced},
		{"an embedding has no output", cost.Price{Input: cost.Per(1)}, cost.Usage{Input: 1000}, "0.001", cost.Measured, nil},
		{"per request", cost.Price{Request: cost.Per(0.01)}, cost.Usage{Input: 1000, Requests: 3}, "0.03", cost.Measured, nil},
		{"per second", cost.Price{Second: cost.Per(0.001)}, cost.Usage{Wall: 1500 * time.Millisecond}, "0.0015", cost.Measured, nil},
		{"per GPU hour", cost.Price{GPUHour: cost.Per(3.6)}, cost.Usage{GPU: 2 * time.Second}, "0.002", cost.Measured, nil},
		{"more cached than input", p(1, 0.1, -1, -1, 1), cost.Usage{Input: 10, CacheRead: 1000}, "0.0001", cost.Measured, cost.ErrInconsistent},
		{"negative counts", cost.Tokens(1, 1), cost.Usage{Input: -50, Output: 10}, "0.00001", cost.Measured, cost.ErrInconsistent},
		{"absurd counts saturate", cost.Tokens(1e6, 1), cost.Usage{Input: 1 << 62}, "9223372.036854775807", cost.Measured, nil},
	} {
		got, basis, err := c.price.Of(c.usage)
		if got != usd(c.want) || basis != c.basis || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v %v %v, want %s %v %v", c.name, got, basis, err, c.want, c.basis, c.err)
		}
	}
}

// No usage within the bound costs more than the bound, and OutputFor never allows
// more than the budget pays for.
func TestBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		p := cost.Price{Input: cost.Per(r.Float64() * 30), Output: cost.Per(r.Float64() * 100)}
		if r.IntN(2) == 0 {
			p.CacheRead, p.CacheWrite, p.CacheWrite1h = cost.Per(r.Float64()), cost.Per(r.Float64()*40), cost.Per(r.Float64()*50)
			p.Reasoning, p.Request = cost.Per(r.Float64()*200), cost.Per(r.Float64()/100)
		}
		in, out := r.Int64N(100_000), r.Int64N(100_000)
		bound := p.Bound(in, out, 0, 0)
		u := cost.Usage{Input: r.Int64N(in + 1), Output: r.Int64N(out + 1), Requests: 1}
		u.CacheRead = r.Int64N(u.Input + 1)
		u.CacheWrite = r.Int64N(u.Input - u.CacheRead + 1)
		u.Reasoning = r.Int64N(u.Output + 1)
		if got, _, err := p.Of(u); err != nil || got > bound {
			t.Fatalf("%+v costs %v, beyond the bound of %v (%v)", u, got, bound, err)
		}
		budget := cost.Amount(r.Int64N(int64(bound) + 2))
		if n := p.OutputFor(budget, in, out, 0, 0); n > 0 && p.Bound(in, n, 0, 0) > budget {
			t.Fatalf("%v was said to pay for %d tokens, which cost up to %v", budget, n, p.Bound(in, n, 0, 0))
		}
	}
}

func TestPriceJSON(t *testing.T) {
	p := cost.Tokens(0.25, 2)
	p.Reasoning = cost.Per(0)
	b, err := json.Marshal(p)
	if err != nil || string(b) != `{"input":"0.25","output":"2","reasoning":"0"}` {
		t.Fatalf("%s, %v", b, err)
	}
	var back cost.Price
	if err := json.Unmarshal(b, &back); err != nil || back != p {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestListPrice(t *testing.T) {
	p, ok := cost.ListPrice("openai", "gpt-4o-mini")
	if usd, _, err := p.Of(cost.Usage{Input: 1000, Output: 1000}); !ok || err != nil || usd != cost.Dollars(0.00075) {
		t.Errorf("%v, %v", usd, err)
	}
	for _, c := range [][2]string{{"openai", "gpt-4o-mini-x"}, {"openai", "gpt"}, {"", "gpt-5"}, {"nobody", "gpt-5"}} {
		if p, ok := cost.ListPrice(c[0], c[1]); ok || p.Known() {
			t.Errorf("%v has a price", c)
		}
	}
}
