package cost

import (
	"errors"
	"fmt"
	"time"
)

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

// Price says what a model or tool charges. The zero Price is unknown, never
// free; use Free for what costs nothing.
//
// A missing CacheRead or CacheWrite falls back to Input, a missing
// CacheWrite1h to CacheWrite, a missing Reasoning to Output.
type Price struct {
	Input        Rate `json:"input,omitzero"`          // USD per million input tokens
	CacheRead    Rate `json:"cache_read,omitzero"`     // USD per million input tokens read from a cache
	CacheWrite   Rate `json:"cache_write,omitzero"`    // USD per million input tokens written to a cache
	CacheWrite1h Rate `json:"cache_write_1h,omitzero"` // the same, kept for an hour
	Output       Rate `json:"output,omitzero"`         // USD per million output tokens
	Reasoning    Rate `json:"reasoning,omitzero"`      // USD per million output tokens that are reasoning
	Request      Rate `json:"request,omitzero"`        // USD per request
	Second       Rate `json:"second,omitzero"`         // USD per second of wall time
	GPUHour      Rate `json:"gpu_hour,omitzero"`       // USD per GPU and hour
}

// Tokens is the usual price: US dollars per million input and output tokens.
func Tokens(inUSD, outUSD float64) Price { return Price{Input: Per(inUSD), Output: Per(outUSD)} }

// Free is the price of what costs nothing, such as a model on one's own GPU.
func Free() Price { return Tokens(0, 0) }

// Known reports whether any rate is stated.
func (p Price) Known() bool {
	return p.byToken() || p.Request.set || p.Second.set || p.GPUHour.set
}

func (p Price) byToken() bool { return p.Input.set || p.Output.set }

// Validate returns an *InvalidError that names the first rate that is negative
// or not a number.
func (p Price) Validate() error {
	for _, r := range []struct {
		name string
		Rate
	}{
		{"Input", p.Input}, {"CacheRead", p.CacheRead}, {"CacheWrite", p.CacheWrite}, {"CacheWrite1h", p.CacheWrite1h},
		{"Output", p.Output}, {"Reasoning", p.Reasoning}, {"Request", p.Request}, {"Second", p.Second}, {"GPUHour", p.GPUHour},
	} {
		if r.set && r.usd < 0 {
			return &InvalidError{Field: "Price." + r.name, Value: r.usd.String(), Fix: "state a rate of zero or more US dollars, or leave it out if it is unknown"}
		}
	}
	return nil
}

const perMillion = 1_000_000

// Of prices a usage. Each line item is rounded once, to 10⁻¹² USD, so sums of
// prices are exact. A usage with USD set is taken at its word (Provider).
//
// It returns ErrUnpriced, and the part that is known, where a rate that the
// usage needs is not stated; and ErrInconsistent, with the usage clamped, where
// parts exceed their whole or counts are negative.
func (p Price) Of(u Usage) (Amount, Basis, error) {
	if u.USD != nil && *u.USD >= 0 {
		return *u.USD, Provider, nil
	}
	basis := Measured
	if u.Estimated {
		basis = Estimated
	}
	u, consistent := u.clamped()
	var sum Amount
	known := p.Known()
	item := func(r Rate, n, per int64) {
		if n > 0 && !r.set {
			known = false
		}
		sum = add(sum, Amount(scale(int64(r.usd), n, per)))
	}
	if p.byToken() {
		item(p.Input, u.Input-u.CacheRead-u.CacheWrite-u.CacheWrite1h, perMillion)
		item(p.CacheRead.or(p.Input), u.CacheRead, perMillion)
		item(p.CacheWrite.or(p.Input), u.CacheWrite, perMillion)
		item(p.CacheWrite1h.or(p.CacheWrite, p.Input), u.CacheWrite1h, perMillion)
		item(p.Output, u.Output-u.Reasoning, perMillion)
		item(p.Reasoning.or(p.Output), u.Reasoning, perMillion)
	}
	if p.Request.set {
		item(p.Request, u.Requests, 1)
	}
	if p.Second.set {
		item(p.Second, int64(u.Wall), int64(time.Second))
	}
	if p.GPUHour.set {
		item(p.GPUHour, int64(u.GPU), int64(time.Hour))
	}
	switch {
	case !known:
		return sum, Unpriced, fmt.Errorf("%w: state every rate that %+v needs", ErrUnpriced, u)
	case !consistent:
		return sum, basis, ErrInconsistent
	}
	return sum, basis, nil
}

// Bound is the most that one request can cost: every input token at the
// dearest input rate, every output token at the dearest output rate, and wall
// and GPU time where they are priced. An unknown Price bounds nothing: check
// Known first.
func (p Price) Bound(input, output int64, wall time.Duration, gpus int) Amount {
	in := max(p.Input.usd, p.CacheRead.usd, p.CacheWrite.usd, p.CacheWrite1h.usd)
	out := max(p.Output.usd, p.Reasoning.usd)
	sum := add(p.Request.usd, Amount(scaleUp(int64(in), input, perMillion)))
	sum = add(sum, Amount(scaleUp(int64(out), output, perMillion)))
	sum = add(sum, Amount(scaleUp(int64(p.Second.usd), int64(wall), int64(time.Second))))
	return add(sum, Amount(scaleUp(int64(p.GPUHour.usd), int64(wall)*int64(gpus), int64(time.Hour))))
}

// OutputFor is the inverse of Bound: how many output tokens are paid for by
// budget beside input tokens and the fixed parts. It is 0 if not even one is,
// and limit if the output is free or cheap enough.
func (p Price) OutputFor(budget Amount, input, limit int64, wall time.Duration, gpus int) int64 {
	left := sub(budget, p.Bound(input, 0, wall, gpus))
	out := max(p.Output.usd, p.Reasoning.usd)
	if out <= 0 {
		return limit
	}
	return min(limit, scaleDown(int64(left), perMillion, int64(out)))
}

// WallFor is the inverse of Bound in time: how long a call may take that is
// priced by time, beside its tokens and fixed parts; at most limit.
func (p Price) WallFor(budget Amount, input, output int64, limit time.Duration, gpus int) time.Duration {
	left := sub(budget, p.Bound(input, output, 0, 0))
	second := add(p.Second.usd, Amount(scaleUp(int64(p.GPUHour.usd), int64(gpus), int64(time.Hour/time.Second))))
	if second <= 0 {
		return limit
	}
	return min(limit, time.Duration(scaleDown(int64(left), int64(time.Second), int64(second))))
}

// scaleUp is scale rounded up, for bounds; one unit more never hurts there.
func scaleUp(a, n, per int64) int64 {
	if a <= 0 || n <= 0 {
		return 0
	}
	return add(scale(a, n, per), 1)
}

// scaleDown is scale rounded down by at least as much as scaleUp adds.
func scaleDown(a, n, per int64) int64 { return sub(scale(sub(a, 2), n, per), 1) }

// Usage is what a call consumed. Known false means that nobody said, which is
// not the same as nothing.
type Usage struct {
	Input        int64         `json:"input,omitempty"`          // input tokens, cached ones included
	CacheRead    int64         `json:"cache_read,omitempty"`     // part of Input
	CacheWrite   int64         `json:"cache_write,omitempty"`    // part of Input
	CacheWrite1h int64         `json:"cache_write_1h,omitempty"` // part of Input
	Output       int64         `json:"output,omitempty"`         // output tokens, reasoning included
	Reasoning    int64         `json:"reasoning,omitempty"`      // part of Output
	Requests     int64         `json:"requests,omitempty"`       // calls, where they are priced
	Wall         time.Duration `json:"wall,omitempty"`           // nanoseconds in JSON
	GPU          time.Duration `json:"gpu,omitempty"`            // GPU seconds: GPUs × time; nanoseconds in JSON
	Known        bool          `json:"known,omitempty"`
	Estimated    bool          `json:"estimated,omitempty"` // counted by us, not by the provider
	USD          *Amount       `json:"usd,omitempty"`       // what the provider says it charged
}

// Tokens is the number of input and output tokens.
func (u Usage) Tokens() int64 { return add(max(u.Input, 0), max(u.Output, 0)) }

// clamped returns u with parts no larger than their wholes and nothing
// negative, and whether it was so already.
func (u Usage) clamped() (Usage, bool) {
	v := u
	for _, n := range []*int64{&v.Input, &v.CacheRead, &v.CacheWrite, &v.CacheWrite1h, &v.Output, &v.Reasoning, &v.Requests, (*int64)(&v.Wall), (*int64)(&v.GPU)} {
		*n = max(*n, 0)
	}
	// The parts were reported one by one, so they are believed before the sum.
	v.Input = max(v.Input, add(add(v.CacheRead, v.CacheWrite), v.CacheWrite1h))
	v.Reasoning = min(v.Reasoning, v.Output)
	return v, v == u
}

// Basis says where the figure of a ledger row comes from.
type Basis uint8

const (
	Unpriced  Basis = iota // the price is unknown; the row's USD is a lower bound
	Measured               // reported usage at the stated price
	Provider               // the amount that the provider reported
	Estimated              // usage counted by us, for instance of a cut stream
	Reserved               // nothing is known of the usage: the whole hold is charged
)

var basisNames = [...]string{"unpriced", "measured", "provider", "estimated", "reserved"}

// String is the name of the basis in ledgers and trajectories.
func (b Basis) String() string {
	if int(b) < len(basisNames) {
		return basisNames[b]
	}
	return fmt.Sprintf("basis(%d)", uint8(b))
}

// MarshalText writes the name.
func (b Basis) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (b *Basis) UnmarshalText(t []byte) error {
	for i, n := range basisNames {
		if n == string(t) {
			*b = Basis(i)
			return nil
		}
	}
	return &InvalidError{Field: "basis", Value: string(t), Fix: "use one of unpriced, measured, provider, estimated, reserved"}
}

var (
	// ErrUnpriced means that the price of a call is unknown.
	ErrUnpriced = errors.New("cost: price unknown")
	// ErrInconsistent means that a usage contradicts itself.
	ErrInconsistent = errors.New("cost: inconsistent usage")
)
