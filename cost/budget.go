package cost

import (
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Limit bounds spending. The zero Limit is the SDK's default (see Budget);
// Max(0) is "spend nothing".
type Limit struct {
	kind uint8 // 0 default, 1 max, 2 none
	max  Amount
}

// USD limits spending to a number of US dollars.
func USD(dollars float64) Limit { return Max(Dollars(dollars)) }

// Max limits spending to an exact amount.
func Max(a Amount) Limit { return Limit{1, a} }

// NoLimit does not limit spending. It has to be asked for.
func NoLimit() Limit { return Limit{kind: 2} }

// IsZero reports whether l is the default.
func (l Limit) IsZero() bool { return l == Limit{} }

// String formats the limit for people.
func (l Limit) String() string {
	switch l.kind {
	case 0:
		return "default"
	case 1:
		return l.max.String()
	}
	return "none"
}

// MarshalText writes the amount, "default" or "none".
func (l Limit) MarshalText() ([]byte, error) {
	if l.kind == 1 {
		return l.max.MarshalText()
	}
	return []byte(l.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (l *Limit) UnmarshalText(b []byte) error {
	switch string(b) {
	case "default":
		*l = Limit{}
	case "none":
		*l = NoLimit()
	default:
		a, err := ParseAmount(string(b))
		if err != nil {
			return err
		}
		*l = Max(a)
	}
	return nil
}

// Amount is the limit as a number; ok false: there is none, or it is the default,
// and the Amount is MaxAmount or DefaultUSD.
func (l Limit) Amount() (a Amount, ok bool) { return l.amount(DefaultUSD), l.kind == 1 }

// amount is the limit as a number, MaxAmount for none.
func (l Limit) amount(byDefault Amount) Amount {
	switch l.kind {
	case 0:
		return byDefault
	case 1:
		return l.max
	}
	return MaxAmount
}

// Unlimited, in a count or duration of a Budget, asks for no bound.
const Unlimited = -1

// What a run gets for the zero fields of its Budget.
const (
	DefaultUSD      = Amount(picoPerUSD / 10) // $0.10
	DefaultTime     = 5 * time.Minute
	DefaultTurns    = 20
	DefaultCalls    = 40
	DefaultFailures = 3
)

// Budget bounds one scope of spending. Of a run, zero fields take the defaults
// ($0.10, 5 minutes, 20 turns, 40 calls, 3 failures in a row, tokens and GPU
// time not bounded); Unlimited lifts a bound. Of a scope above runs (NewMeter), zero
// fields other than USD do not bound: a tenant has no natural number of turns.
// Time, Turns and Failures are counted by runs only.
type Budget struct {
	USD           Limit          `json:"usd,omitzero"`
	Time          time.Duration  `json:"time,omitempty"`           // active time of a run; nanoseconds in JSON
	Turns         int            `json:"turns,omitempty"`          // decisions of the policy
	Calls         int            `json:"calls,omitempty"`          // tool calls of a run; outside runs, metered model calls
	Failures      int            `json:"failures,omitempty"`       // turns in a row without one call that worked
	Tokens        int64          `json:"tokens,omitempty"`         // input and output tokens of all model calls
	GPU           time.Duration  `json:"gpu,omitempty"`            // GPUs × time of all calls of models that say how many they use (models.OnGPUs) or are priced by it; nanoseconds in JSON
	PerName       map[string]Sub `json:"per_name,omitempty"`       // by tool, model or source, or "policy". Runs refuse unknown names; a model that only a tool knows is made known by its Spec.Sources
	AllowUnpriced bool           `json:"allow_unpriced,omitempty"` // admit calls whose price is unknown
}

// Sub bounds what one tool or model may take of a Budget. Its zero fields do
// not bound.
type Sub struct {
	USD   Limit `json:"usd,omitzero"`
	Calls int   `json:"calls,omitempty"`
}

// Validate returns an *InvalidError that names the first field that cannot be
// meant.
func (b Budget) Validate() error {
	if err := b.USD.validate("Budget.USD"); err != nil {
		return err
	}
	for _, n := range []struct {
		field string
		value int64
	}{{"Time", int64(b.Time)}, {"Turns", int64(b.Turns)}, {"Calls", int64(b.Calls)}, {"Failures", int64(b.Failures)}, {"Tokens", b.Tokens}, {"GPU", int64(b.GPU)}} {
		if n.value < Unlimited {
			return &InvalidError{Field: "Budget." + n.field, Value: strconv.FormatInt(n.value, 10), Fix: "use a positive number, 0 for the default or cost.Unlimited"}
		}
	}
	for name, s := range b.PerName {
		field := fmt.Sprintf("Budget.PerName[%q]", name)
		if err := s.USD.validate(field + ".USD"); err != nil {
			return err
		}
		if s.Calls < Unlimited {
			return &InvalidError{Field: field + ".Calls", Value: strconv.Itoa(s.Calls), Fix: "use a positive number, or 0 for no bound"}
		}
	}
	return nil
}

func (l Limit) validate(field string) error {
	if l.kind == 1 && l.max < 0 {
		return &InvalidError{Field: field, Value: l.max.String(), Fix: "use an amount of zero or more, cost.Max(0) to spend nothing, or cost.NoLimit()"}
	}
	return nil
}

// Or fills b's zero fields, and the names that PerName lacks, from another
// budget.
func (b Budget) Or(other Budget) Budget {
	if b.USD.IsZero() {
		b.USD = other.USD
	}
	b.Time = or(b.Time, other.Time)
	b.Turns = or(b.Turns, other.Turns)
	b.Calls = or(b.Calls, other.Calls)
	b.Failures = or(b.Failures, other.Failures)
	b.Tokens = or(b.Tokens, other.Tokens)
	b.GPU = or(b.GPU, other.GPU)
	if len(other.PerName) > 0 {
		merged := maps.Clone(other.PerName)
		maps.Copy(merged, b.PerName)
		b.PerName = merged
	}
	b.AllowUnpriced = b.AllowUnpriced || other.AllowUnpriced
	return b
}

// Plus adds more to b: where one of them is not bounded, the sum is not. Zero
// fields add nothing.
func (b Budget) Plus(more Budget) Budget {
	b.USD = b.USD.plus(more.USD, DefaultUSD)
	b.Time, b.Turns, b.Calls = plus(b.Time, more.Time), plus(b.Turns, more.Turns), plus(b.Calls, more.Calls)
	b.Failures, b.Tokens, b.GPU = plus(b.Failures, more.Failures), plus(b.Tokens, more.Tokens), plus(b.GPU, more.GPU)
	if len(b.PerName) > 0 { // names without a limit stay without
		b.PerName = maps.Clone(b.PerName)
		for name, s := range b.PerName {
			m := more.PerName[name]
			if !s.USD.IsZero() {
				s.USD = s.USD.plus(m.USD, MaxAmount)
			}
			s.Calls = plus(s.Calls, m.Calls)
			b.PerName[name] = s
		}
	}
	b.AllowUnpriced = b.AllowUnpriced || more.AllowUnpriced
	return b
}

func (l Limit) plus(more Limit, byDefault Amount) Limit {
	switch {
	case more.IsZero() || l.kind == 2:
		return l
	case more.kind == 2:
		return more
	}
	if l.amount(byDefault) < 0 || more.max < 0 {
		return Max(Invalid)
	}
	return Max(add(l.amount(byDefault), more.max))
}

// plus adds bounds; 0 is none that was stated, and Unlimited stays, as does what
// cannot be meant.
func plus[T int | int64 | time.Duration](a, b T) T {
	switch {
	case b == 0:
		return a
	case a < 0 || b < 0:
		return min(a, b, Unlimited)
	case a == 0:
		return 0
	}
	return add(a, b)
}

// WithDefaults fills b's zero fields with a run's defaults.
func (b Budget) WithDefaults() Budget {
	return b.Or(Budget{USD: Max(DefaultUSD), Time: DefaultTime, Turns: DefaultTurns, Calls: DefaultCalls, Failures: DefaultFailures})
}

func or[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}

// Spend is the one vector of everything that is counted.
type Spend struct {
	USD      Amount        `json:"usd"`
	Tokens   int64         `json:"tokens,omitempty"`
	Calls    int           `json:"calls,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	Time     time.Duration `json:"time,omitempty"`     // wall time, nanoseconds in JSON
	GPU      time.Duration `json:"gpu,omitempty"`      // GPU time, nanoseconds in JSON
	Unpriced int           `json:"unpriced,omitempty"` // calls whose price is unknown: USD is then a lower bound
}

// Add returns the sum, saturated.
func (s Spend) Add(t Spend) Spend {
	return Spend{
		USD: add(s.USD, t.USD), Tokens: add(s.Tokens, t.Tokens), Calls: add(s.Calls, t.Calls), Turns: add(s.Turns, t.Turns),
		Time: add(s.Time, t.Time), GPU: add(s.GPU, t.GPU), Unpriced: add(s.Unpriced, t.Unpriced),
	}
}

// AnyTokens, as the Worst.Tokens of an Estimate, asks for whatever is left, of
// GPU time as well: of a tool call that bounds its model calls by money only.
const AnyTokens = 1 << 40

// Estimate is a call before it is made.
type Estimate struct {
	Name   string `json:"name"`          // model or tool, as in the ledger and in Budget.PerName
	ID     string `json:"id,omitempty"`  // of the call
	Floor  Spend  `json:"floor"`         // below this the call makes no sense
	Mean   Spend  `json:"mean"`          // what it is likely to take; shown to policies
	Worst  Spend  `json:"worst"`         // never more than this
	Fee    Amount `json:"fee,omitempty"` // of Floor, what the call itself will be charged: the hold's Meter cannot spend it
	Priced bool   `json:"priced"`        // false: refused unless Budget.AllowUnpriced
}
