package cost_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// No usage within the bound costs more than the bound, whatever tier it falls
// into and whatever its tokens are; and what OutputFor allows is paid for.
func TestBoundOfTiersAndMedia(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rate := func(most float64) cost.Rate {
		if r.IntN(3) == 0 {
			return cost.Rate{}
		}
		return cost.Per(r.Float64() * most)
	}
	plain := func() cost.Price {
		return cost.Price{Input: cost.Per(r.Float64() * 30), CacheRead: rate(30), CacheWrite: rate(40), CacheWrite1h: rate(50),
			InputMedia: cost.MediaRates{Audio: rate(60), Image: rate(20), Video: rate(9)}, CacheMedia: cost.MediaRates{Audio: rate(30), Image: rate(60), Video: rate(9)},
			Output: cost.Per(r.Float64() * 100), Reasoning: rate(100), Citation: rate(50), OutputMedia: cost.MediaRates{Audio: rate(200), Image: rate(150), Video: rate(9)},
			Request: rate(0.01), Image: cost.Per(r.Float64() / 20)}
	}
	tiered := func() cost.Price {
		p := plain()
		if r.IntN(2) == 0 {
			q := plain()
			if r.IntN(2) == 0 {
				q = above(q, 60_000, plain())
			}
			p = above(p, 20_000, q)
		}
		return p
	}
	services := []string{"", "default", "batch", "flex", "priority", "Priority"}
	tierSeen := 0
	for range 20_000 {
		p := tiered()
		batch, priority := tiered(), tiered()
		p.Priority = &priority
		if r.IntN(2) == 0 {
			p.Batch = &batch
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		in, out := r.Int64N(100_000), r.Int64N(100_000)
		u := cost.Usage{Input: r.Int64N(in + 1), Output: r.Int64N(out + 1), Requests: 1, Images: r.Int64N(2), Service: services[r.IntN(len(services))], Known: true}
		u.CacheRead = r.Int64N(u.Input + 1)
		u.CacheWrite = r.Int64N(u.Input - u.CacheRead + 1)
		u.CacheWrite1h = r.Int64N(u.Input - u.CacheRead - u.CacheWrite + 1)
		u.InputMedia.Audio = r.Int64N(u.Input + 1)
		u.InputMedia.Image = r.Int64N(u.Input - u.InputMedia.Audio + 1)
		u.CacheMedia.Audio = r.Int64N(min(u.CacheRead, u.InputMedia.Audio) + 1)
		u.Reasoning = r.Int64N(u.Output + 1)
		u.OutputMedia.Image = r.Int64N(u.Output - u.Reasoning + 1)
		if u.Input > 20_000 && p.Over != nil {
			tierSeen++
		}
		bound := p.Bound(in, out, 0, 0)
		if got, basis, err := p.Of(u); err != nil || basis != cost.Measured || got > bound {
			t.Fatalf("%+v costs %v, the bound is %v (%v, %v)", u, got, bound, basis, err)
		}
		budget := cost.Amount(r.Int64N(int64(bound) + 2))
		if n := p.OutputFor(budget, in, out, 0, 0); n > 0 && p.Bound(in, n, 0, 0) > budget {
			t.Fatalf("%v was said to pay for %d tokens, which cost up to %v", budget, n, p.Bound(in, n, 0, 0))
		}
	}
	if tierSeen < 1000 {
		t.Errorf("only %d usages were in a higher tier", tierSeen)
	}
}

// Every token is charged once: at one rate for all, a usage costs what its input
// and output do, however it is divided.
func TestTokensAreChargedOnce(t *testing.T) {
	one := cost.Per(1)
	all := cost.MediaRates{Audio: one, Image: one, Video: one}
	full := cost.Price{Input: one, CacheRead: one, CacheWrite: one, CacheWrite1h: one, InputMedia: all, CacheMedia: all, Output: one, Reasoning: one, Citation: one, OutputMedia: all}
	r := rand.New(rand.NewPCG(5, 6))
	n := func() int64 { return r.Int64N(1000) }
	for range 10_000 {
		u := cost.Usage{Input: n(), CacheRead: n(), CacheWrite: n(), CacheWrite1h: n(), InputMedia: cost.Media{Audio: n(), Image: n(), Video: n()}, CacheMedia: cost.Media{Audio: n(), Image: n(), Video: n()},
			Output: n(), Reasoning: n(), Citations: n(), OutputMedia: cost.Media{Audio: n(), Image: n(), Video: n()}, Known: true}
		input := max(u.Input, u.CacheRead+u.CacheWrite+u.CacheWrite1h) // the parts are believed
		for _, p := range []cost.Price{full, cost.Tokens(1, 1)} {
			got, _, err := p.Of(u)
			if want := cost.Amount(input+u.Output) * micro(1); got != want || err != nil && !errors.Is(err, cost.ErrInconsistent) {
				t.Fatalf("%+v costs %v (%v), want %v", u, got, err, want)
			}
		}
	}
}

func TestRatesOfTheirOwn(t *testing.T) {
	media := set(rates(1, 0.1, -1, 10), func(p *cost.Price) {
		p.InputMedia = cost.MediaRates{Audio: cost.Per(5), Video: cost.Per(2)}
		p.CacheMedia.Audio = cost.Per(0.5)
		p.OutputMedia.Audio = cost.Per(20)
		p.Citation = cost.Per(3)
	})
	batch := cost.Tokens(0.5, 5)
	for _, c := range []struct {
		name  string
		price cost.Price
		usage cost.Usage
		want  string
		basis cost.Basis
	}{
		{"audio, some of it cached", media, cost.Usage{Input: 1000, CacheRead: 300, InputMedia: cost.Media{Audio: 500}, CacheMedia: cost.Media{Audio: 200}}, "0.00201", cost.Measured}, // 400×1 + 300×5 + 100×0.1 + 200×0.5
		{"audio, and nobody says what is cached", media, cost.Usage{Input: 64, CacheRead: 50, InputMedia: cost.Media{Audio: 44}}, "0.000075", cost.Measured},                           // 14×5 + 50×0.1
		{"pictures without a rate", media, cost.Usage{Input: 1000, InputMedia: cost.Media{Image: 500, Video: 100}}, "0.0011", cost.Measured},
		{"output", media, cost.Usage{Output: 100, Reasoning: 10, Citations: 20, OutputMedia: cost.Media{Audio: 30}}, "0.00116", cost.Measured}, // 50×10 + 20×3 + 30×20
		{"batch", set(cost.Tokens(1, 10), func(p *cost.Price) { p.Batch = &batch }), cost.Usage{Input: 1000, Service: "batch"}, "0.0005", cost.Measured},
		{"batch without a price is charged as usual", cost.Tokens(1, 10), cost.Usage{Input: 1000, Service: "batch"}, "0.001", cost.Measured},
		{"searches, where requests are priced", cost.Price{Request: cost.Per(0.01)}, cost.Usage{Requests: 1, Searches: 5}, "0.01", cost.Measured},
		{"images", cost.Price{Image: cost.Per(0.04)}, cost.Usage{Images: 3}, "0.12", cost.Measured},
		{"images without a price", cost.Tokens(1, 1), cost.Usage{Images: 3}, "0", cost.Unpriced},
		{"images of tokens without a price", cost.Price{Input: cost.Per(1), Image: cost.Per(0.04)}, cost.Usage{Input: 1000, Output: 500, Images: 1}, "0.041", cost.Measured},
	} {
		c.usage.Known = true
		if got, basis, err := c.price.Of(c.usage); got != usd(c.want) || basis != c.basis || (err == nil) != (basis != cost.Unpriced) {
			t.Errorf("%s: %v %v %v, want %s %v", c.name, got, basis, err, c.want, c.basis)
		}
	}
}

func TestPriceWithTiersInJSON(t *testing.T) {
	flex := cost.Tokens(0.5, 5)
	p := above(set(cost.Tokens(1, 10), func(p *cost.Price) { p.InputMedia.Audio, p.Flex = cost.Per(4), &flex }), 200_000, cost.Tokens(2, 15))
	b, err := json.Marshal(p)
	const want = `{"input":"1","input_media":{"audio":"4"},"output":"10","over":{"above":200000,"price":{"input":"2","output":"15"}},"flex":{"input":"0.5","output":"5"}}`
	if err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	var back cost.Price
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v, %v", back, err)
	}
	loop := &cost.Tier{Above: 1}
	loop.Price.Over = loop
	var invalid *cost.InvalidError
	if err := (cost.Price{Over: loop}).Validate(); !errors.As(err, &invalid) {
		t.Error(err)
	}
	looped := cost.Price{Input: cost.Per(1), Over: loop} // wrong, and yet it ends
	if got, _, _ := looped.Of(cost.Usage{Input: 5, Known: true}); got != 0 || looped.Bound(5, 0, 0, 0) <= 0 {
		t.Error(got)
	}
}
