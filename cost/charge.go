package cost

import (
	"fmt"
	"strings"
	"time"
)

const perMillion = 1_000_000

// Of prices a usage. Each line item is rounded once, to 10⁻¹² USD, so sums of
// prices are exact. A usage with USD set is taken at its word (Provider).
//
// It returns ErrUnpriced, and the part that is known, where a rate that the
// usage needs is not stated; and ErrInconsistent, with the usage clamped, where
// parts exceed their whole or counts are negative.
func (p Price) Of(u Usage) (Amount, Basis, error) { return p.of(&u) }

// of is Of without copies: both are large.
func (p *Price) of(given *Usage) (Amount, Basis, error) {
	if given.USD != nil && *given.USD >= 0 {
		return *given.USD, Provider, nil
	}
	basis := Measured
	if given.Estimated {
		basis = Estimated
	}
	u, consistent := given.clamped()
	q, known := p.served(&u)
	known = known && q.Known()
	var sum Amount
	item := func(r Rate, n, per int64) {
		if n > 0 && !r.set {
			known = false
		}
		sum = add(sum, Amount(scale(int64(r.usd), n, per)))
	}
	// An image is paid for once: by its tokens where they are counted and priced.
	perImage := u.Images > 0 && q.Image.set && (u.Output == 0 || !q.Output.set && !q.OutputMedia.Image.set)
	if q.byToken() {
		q.inputItems(&u, item)
		if !perImage {
			q.outputItems(&u, item)
		}
	}
	if perImage || u.Images > 0 && u.Output == 0 && !q.Request.set {
		item(q.Image, u.Images, 1)
	}
	if q.Request.set {
		item(q.Request, u.Requests, 1)
	}
	if q.Search.set || !q.Request.set {
		item(q.Search, u.Searches, 1)
	}
	if q.Second.set {
		item(q.Second, int64(u.Wall), int64(time.Second))
	}
	if q.GPUHour.set {
		item(q.GPUHour, int64(u.GPU), int64(time.Hour))
	}
	switch {
	case !known:
		return sum, Unpriced, fmt.Errorf("%w: state every rate that %+v needs", ErrUnpriced, u)
	case !consistent:
		return sum, basis, ErrInconsistent
	}
	return sum, basis, nil
}

// served is the price of the service tier and input tier that a clamped usage
// fell into; ok false: the service is dearer than p by an amount that p does not
// state.
func (p *Price) served(u *Usage) (q *Price, ok bool) {
	q, ok = p, true
	switch s := strings.ToLower(u.Service); {
	case s == "batch" && p.Batch != nil:
		q = p.Batch
	case s == "flex" && p.Flex != nil:
		q = p.Flex
	case s == "priority":
		if ok = p.Priority != nil; ok {
			q = p.Priority
		}
	}
	for n := 0; n < maxTiers && q.Over != nil && u.Input > q.Over.Above; n++ {
		q = &q.Over.Price
	}
	return q, ok
}

// inputItems splits a clamped usage's input into what has a rate of its own.
func (p *Price) inputItems(u *Usage, item func(r Rate, n, per int64)) {
	text := u.Input - u.CacheRead - u.CacheWrite - u.CacheWrite1h
	cached := u.CacheRead
	media, parts := u.InputMedia.counts(), u.CacheMedia.counts()
	in, read := p.InputMedia.rates(), p.CacheMedia.rates()
	for i := range media {
		fresh := min(media[i]-parts[i], text) // what of it is cached, unsaid, is in CacheRead
		text -= fresh
		cached -= parts[i]
		item(in[i].or(p.Input), fresh, perMillion)
		item(read[i].or(p.CacheRead, in[i], p.Input), parts[i], perMillion)
	}
	item(p.Input, text, perMillion)
	item(p.CacheRead.or(p.Input), cached, perMillion)
	item(p.CacheWrite.or(p.Input), u.CacheWrite, perMillion)
	item(p.CacheWrite1h.or(p.CacheWrite, p.Input), u.CacheWrite1h, perMillion)
}

// outputItems does the same with the output.
func (p *Price) outputItems(u *Usage, item func(r Rate, n, per int64)) {
	text := u.Output - u.Reasoning - u.Citations
	rates := p.OutputMedia.rates()
	for i, n := range u.OutputMedia.counts() {
		text -= n
		item(rates[i].or(p.Output), n, perMillion)
	}
	item(p.Output, text, perMillion)
	item(p.Reasoning.or(p.Output), u.Reasoning, perMillion)
	item(p.Citation.or(p.Output), u.Citations, perMillion)
}

func (m *MediaRates) rates() [3]Rate { return [...]Rate{m.Audio, m.Image, m.Video} }

// worst is the dearest of every rate that a request with so much input may be
// charged, whatever tier serves it: tokens at Input and Output, Request with an
// image.
func (p *Price) worst(input int64) (w struct{ in, out, request, second, gpuHour Amount }) {
	one := func(q *Price) {
		for n := 0; ; n++ {
			r := q.rates()
			for i := range tokenRates {
				if to := &w.in; r[i].set {
					if i >= firstOutput {
						to = &w.out
					}
					*to = max(*to, r[i].usd)
				}
			}
			w.request = max(w.request, add(q.Request.usd, q.Image.usd))
			w.second, w.gpuHour = max(w.second, q.Second.usd), max(w.gpuHour, q.GPUHour.usd)
			if n == maxTiers || q.Over == nil || input <= q.Over.Above {
				return
			}
			q = &q.Over.Price
		}
	}
	one(p)
	for _, s := range p.services() {
		if s.price != nil {
			one(s.price)
		}
	}
	return w
}

// Bound is the most that one request can cost: every input token at the dearest
// input rate, every output token at the dearest output rate, of all tiers that so
// much input may fall into; one image, and wall and GPU time, where they are
// priced. Web searches that a provider makes of its own are not in it. An unknown
// Price bounds nothing: check Known first.
func (p Price) Bound(input, output int64, wall time.Duration, gpus int) Amount {
	w := p.worst(input)
	sum := add(w.request, Amount(scaleUp(int64(w.in), input, perMillion)))
	sum = add(sum, Amount(scaleUp(int64(w.out), output, perMillion)))
	sum = add(sum, Amount(scaleUp(int64(w.second), int64(wall), int64(time.Second))))
	return add(sum, Amount(scaleUp(int64(w.gpuHour), scale(int64(wall), int64(gpus), 1), int64(time.Hour))))
}

// OutputFor is the inverse of Bound: how many output tokens are paid for by
// budget beside input tokens and the fixed parts. It is 0 if not even one is,
// and limit if the output is free or cheap enough.
func (p Price) OutputFor(budget Amount, input, limit int64, wall time.Duration, gpus int) int64 {
	left := sub(budget, p.Bound(input, 0, wall, gpus))
	out := p.worst(input).out
	if out <= 0 {
		return limit
	}
	return min(limit, scaleDown(int64(left), perMillion, int64(out)))
}

// WallFor is the inverse of Bound in time: how long a call may take that is
// priced by time, beside its tokens and fixed parts; at most limit.
func (p Price) WallFor(budget Amount, input, output int64, limit time.Duration, gpus int) time.Duration {
	left := sub(budget, p.Bound(input, output, 0, 0))
	w := p.worst(input)
	second := add(w.second, Amount(scaleUp(int64(w.gpuHour), int64(gpus), int64(time.Hour/time.Second))))
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
