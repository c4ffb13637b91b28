package cost

import "strconv"

// Rate is a price for the unit that its field in Price names. The zero Rate
// means "not stated", which is not the same as free.
type Rate struct {
	set bool
	usd Amount
}

// Per makes a Rate of a number of US dollars. Per(0) is free.
func Per(usd float64) Rate { return PerAmount(Dollars(usd)) }

// PerAmount makes a Rate of an exact amount.
func PerAmount(a Amount) Rate { return Rate{set: true, usd: a} }

// IsZero reports whether the rate is not stated.
func (r Rate) IsZero() bool { return !r.set }

// Amount returns the rate and whether it is stated.
func (r Rate) Amount() (Amount, bool) { return r.usd, r.set }

// MarshalText writes the rate in dollars; a rate that is not stated is empty.
func (r Rate) MarshalText() ([]byte, error) {
	if !r.set {
		return nil, nil
	}
	return r.usd.MarshalText()
}

// UnmarshalText is the inverse of MarshalText.
func (r *Rate) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Rate{}
		return nil
	}
	a, err := ParseAmount(string(b))
	if err == nil {
		*r = PerAmount(a)
	}
	return err
}

// or returns r, or the first stated rate of the alternatives.
func (r Rate) or(alternatives ...Rate) Rate {
	for _, a := range alternatives {
		if r.set {
			break
		}
		r = a
	}
	return r
}

// MediaRates are rates for tokens that are not text, in USD per million. What is
// not stated costs what text does.
type MediaRates struct {
	Audio Rate `json:"audio,omitzero"`
	Image Rate `json:"image,omitzero"`
	Video Rate `json:"video,omitzero"`
}

// Price says what a model or tool charges. The zero Price is unknown, never
// free; use Free for what costs nothing.
//
// No token is free because its rate is missing. A missing CacheRead or
// CacheWrite falls back to Input, a missing CacheWrite1h to CacheWrite, a
// missing Reasoning or Citation to Output, a missing rate of InputMedia to
// Input, of OutputMedia to Output, and of CacheMedia to CacheRead, then to
// InputMedia. A web search without a rate is unpriced, unless requests are
// priced.
//
// Prices may be compared with ==, where Over and the service tiers are the
// same pointers. What they point to must not be changed.
type Price struct {
	Input        Rate       `json:"input,omitzero"`          // USD per million input tokens
	CacheRead    Rate       `json:"cache_read,omitzero"`     // USD per million input tokens read from a cache
	CacheWrite   Rate       `json:"cache_write,omitzero"`    // USD per million input tokens written to a cache, for five minutes where the time is priced
	CacheWrite1h Rate       `json:"cache_write_1h,omitzero"` // the same, kept for an hour
	InputMedia   MediaRates `json:"input_media,omitzero"`    // input tokens that are not text
	CacheMedia   MediaRates `json:"cache_media,omitzero"`    // the same, read from a cache
	Output       Rate       `json:"output,omitzero"`         // USD per million output tokens
	Reasoning    Rate       `json:"reasoning,omitzero"`      // USD per million output tokens that are reasoning
	Citation     Rate       `json:"citation,omitzero"`       // USD per million output tokens that are citations
	OutputMedia  MediaRates `json:"output_media,omitzero"`   // output tokens that are not text
	Request      Rate       `json:"request,omitzero"`        // USD per request
	Search       Rate       `json:"search,omitzero"`         // USD per web search that the provider makes
	Image        Rate       `json:"image,omitzero"`          // USD per image made; not charged where the image's tokens are
	Second       Rate       `json:"second,omitzero"`         // USD per second of wall time
	GPUHour      Rate       `json:"gpu_hour,omitzero"`       // USD per GPU and hour

	// Over prices the whole request, not only what is beyond, where its input has
	// more tokens than Over.Above, cached ones included.
	Over *Tier `json:"over,omitempty"`
	// What the provider's service tiers charge, whole prices again. The tier that
	// served the call counts (Usage.Service), not the one asked for. Batch and
	// Flex are discounts: where they are not stated, the ordinary price is
	// charged. A call served with priority is unpriced if Priority is missing.
	Batch    *Price `json:"batch,omitempty"`
	Flex     *Price `json:"flex,omitempty"`
	Priority *Price `json:"priority,omitempty"`
}

// Tier is the price of requests with a long input. Its rates stand alone: one
// that is missing falls back within the tier.
type Tier struct {
	Above int64 `json:"above"` // input tokens; a request with exactly as many is below
	Price Price `json:"price"`
}

// maxTiers is how many tiers of one price are looked at.
const maxTiers = 8

// Tokens is the usual price: US dollars per million input and output tokens.
func Tokens(inUSD, outUSD float64) Price { return Price{Input: Per(inUSD), Output: Per(outUSD)} }

// Free is the price of what costs nothing, such as a model on one's own GPU.
func Free() Price { return Price{Input: PerAmount(0), Output: PerAmount(0)} }

// Known reports whether any rate is stated.
func (p Price) Known() bool {
	return p.byToken() || p.Request.set || p.Search.set || p.Image.set || p.Second.set || p.GPUHour.set
}

func (p *Price) byToken() bool { return p.Input.set || p.Output.set }

// rate names a field of Price.
type rate struct {
	name string
	*Rate
}

// rates lists p's rates: first those per million tokens (tokenRates of them, those
// of output from firstOutput), then the others.
func (p *Price) rates() [21]rate {
	return [...]rate{
		{"Input", &p.Input}, {"CacheRead", &p.CacheRead}, {"CacheWrite", &p.CacheWrite}, {"CacheWrite1h", &p.CacheWrite1h},
		{"InputMedia.Audio", &p.InputMedia.Audio}, {"InputMedia.Image", &p.InputMedia.Image}, {"InputMedia.Video", &p.InputMedia.Video},
		{"CacheMedia.Audio", &p.CacheMedia.Audio}, {"CacheMedia.Image", &p.CacheMedia.Image}, {"CacheMedia.Video", &p.CacheMedia.Video},
		{"Output", &p.Output}, {"Reasoning", &p.Reasoning}, {"Citation", &p.Citation},
		{"OutputMedia.Audio", &p.OutputMedia.Audio}, {"OutputMedia.Image", &p.OutputMedia.Image}, {"OutputMedia.Video", &p.OutputMedia.Video},
		{"Request", &p.Request}, {"Search", &p.Search}, {"Image", &p.Image}, {"Second", &p.Second}, {"GPUHour", &p.GPUHour},
	}
}

const (
	firstOutput = 10 // of rates
	tokenRates  = 16
)

// Validate returns an *InvalidError that names the first rate that is negative
// or not a number, or the first tier that cannot be meant.
func (p Price) Validate() error { return p.validate("Price", true) }

func (p *Price) validate(field string, services bool) error {
	q := p
	for n := 0; ; n++ {
		for _, r := range q.rates() {
			if r.set && r.usd < 0 {
				return &InvalidError{Field: field + "." + r.name, Value: r.usd.String(), Fix: "state a rate of zero or more US dollars, or leave it out if it is unknown"}
			}
		}
		if q.Over == nil {
			break
		}
		above := q.Over.Above
		field += ".Over"
		switch {
		case n == maxTiers:
			return &InvalidError{Field: field, Value: "the ninth tier", Fix: "state at most eight, none of them inside itself"}
		case above <= 0 || q.Over.Price.Over != nil && q.Over.Price.Over.Above <= above:
			return &InvalidError{Field: field + ".Above", Value: strconv.FormatInt(above, 10), Fix: "state numbers of input tokens that grow from tier to tier"}
		}
		q = &q.Over.Price
		if q.Batch != nil || q.Flex != nil || q.Priority != nil {
			return &InvalidError{Field: field + ".Price", Value: "one with service tiers", Fix: "state Batch, Flex and Priority at the outermost Price, each with an Over of its own"}
		}
	}
	for _, s := range p.services() {
		switch {
		case s.price == nil:
		case !services:
			return &InvalidError{Field: field + "." + s.name, Value: "a service tier in a service tier", Fix: "state Batch, Flex and Priority at the outermost Price"}
		default:
			if err := s.price.validate(field+"."+s.name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

type service struct {
	name  string
	price *Price
}

func (p *Price) services() [3]service {
	return [...]service{{"Batch", p.Batch}, {"Flex", p.Flex}, {"Priority", p.Priority}}
}

// serviceList is services without those that are not stated.
func (p *Price) serviceList() (all []service) {
	for _, s := range p.services() {
		if s.price != nil {
			all = append(all, s)
		}
	}
	return all
}
