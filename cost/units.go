package cost

import (
	"math"
	"time"
)

// units is the part of a Spend that is reserved. It is kept apart because it is
// small: a call that is reserved and settled moves a dozen of them.
type units struct {
	usd    Amount
	tokens int64
	gpu    time.Duration
	calls  int
}

// boundless is what is left where nothing is bounded.
var boundless = units{usd: MaxAmount, tokens: math.MaxInt64, gpu: math.MaxInt64, calls: math.MaxInt}

func (s *Spend) units() units { return units{s.USD, s.Tokens, s.GPU, s.Calls} }

func (u units) spend() Spend { return Spend{USD: u.usd, Tokens: u.tokens, GPU: u.gpu, Calls: u.calls} }

// count adds what a call has used.
func (s *Spend) count(u *units, unpriced int) {
	s.USD, s.Tokens, s.GPU, s.Calls = add(s.USD, u.usd), add(s.Tokens, u.tokens), add(s.GPU, u.gpu), add(s.Calls, u.calls)
	s.Unpriced = add(s.Unpriced, unpriced)
}

// plus is the sum, saturated.
func (u units) plus(v units) units {
	return units{add(u.usd, v.usd), add(u.tokens, v.tokens), add(u.gpu, v.gpu), add(u.calls, v.calls)}
}

// minus is what remains, never below zero.
func (u units) minus(v units) units {
	return units{sub(u.usd, v.usd), sub(u.tokens, v.tokens), sub(u.gpu, v.gpu), sub(u.calls, v.calls)}
}

// upTo is the smaller of two, unit by unit.
func (u units) upTo(v units) units {
	return units{min(u.usd, v.usd), min(u.tokens, v.tokens), min(u.gpu, v.gpu), min(u.calls, v.calls)}
}

// over names the first unit in which u is more than v, or is empty.
func (u *units) over(v *units) string {
	switch {
	case u.usd > v.usd:
		return "USD"
	case u.tokens > v.tokens:
		return "tokens"
	case u.calls > v.calls:
		return "calls"
	case u.gpu > v.gpu:
		return "GPU"
	}
	return ""
}

// left is what remains of a limit. A unit that is not bounded stays so, whatever
// was taken of it.
func (limit *units) left(spent *Spend, held *units) units {
	l := boundless
	if limit.usd != l.usd {
		l.usd = sub(limit.usd, add(spent.USD, held.usd))
	}
	if limit.tokens != l.tokens {
		l.tokens = sub(limit.tokens, add(spent.Tokens, held.tokens))
	}
	if limit.calls != l.calls {
		l.calls = sub(limit.calls, add(spent.Calls, held.calls))
	}
	if limit.gpu != l.gpu {
		l.gpu = sub(limit.gpu, add(spent.GPU, held.gpu))
	}
	return l
}

// bounds are the units of a budget; what it does not bound is boundless.
func (b *Budget) bounds() units {
	u := boundless
	u.usd = b.USD.amount(DefaultUSD)
	if b.Tokens > 0 {
		u.tokens = b.Tokens
	}
	if b.Calls > 0 {
		u.calls = b.Calls
	}
	if b.GPU > 0 {
		u.gpu = b.GPU
	}
	return u
}
