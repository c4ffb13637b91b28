package cost

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is money in 10⁻¹² US dollars (pico-USD). Sums of Amounts are exact,
// whatever their order. The range is about ±9.2 million dollars.
type Amount int64

const (
	// MaxAmount is the largest Amount; Left reports it for "no limit".
	MaxAmount Amount = math.MaxInt64
	// Invalid is what Dollars makes of NaN, infinities and overflow. Budgets,
	// prices and tools refuse it with an *InvalidError.
	Invalid Amount = math.MinInt64

	picoDigits = 12
	picoPerUSD = 1_000_000_000_000
)

// Dollars converts US dollars to an Amount, exactly as the number is written
// in decimal: Dollars(0.1) is a tenth. NaN, infinities and numbers out of
// range give Invalid.
func Dollars(usd float64) Amount {
	if math.IsNaN(usd) || math.IsInf(usd, 0) {
		return Invalid
	}
	a, err := ParseAmount(strconv.FormatFloat(usd, 'f', -1, 64))
	if err != nil {
		return Invalid
	}
	return a
}

// ParseAmount reads a decimal number of US dollars such as "0.0025" or
// "$0.0025". Digits below 10⁻¹² are rounded half away from zero. Anything
// else is an *InvalidError.
func ParseAmount(s string) (Amount, error) {
	bad := func(why string) (Amount, error) {
		return Invalid, &InvalidError{Field: "amount", Value: strconv.Quote(clip(s, 60)), Fix: why + `; write US dollars as a decimal, for example "0.0025"`}
	}
	digits, negative := s, false
	if strings.HasPrefix(digits, "-") {
		negative, digits = true, digits[1:]
	}
	digits = strings.TrimPrefix(digits, "$")
	whole, frac, dot := strings.Cut(digits, ".")
	if whole == "" && frac == "" || dot && frac == "" {
		return bad("no digits")
	}
	var n uint64
	up := false
	for i, part := range [2]string{whole, frac} {
		for j := range len(part) {
			d := part[j] - '0'
			switch {
			case d > 9:
				return bad("not a decimal number")
			case i == 1 && j == picoDigits:
				up = d >= 5
				continue
			case i == 1 && j > picoDigits:
				continue
			}
			hi, lo := bits.Mul64(n, 10)
			if hi != 0 || lo > math.MaxInt64 {
				return bad("out of range")
			}
			n = lo + uint64(d)
		}
	}
	for range picoDigits - min(len(frac), picoDigits) {
		hi, lo := bits.Mul64(n, 10)
		if hi != 0 || lo > math.MaxInt64 {
			return bad("out of range")
		}
		n = lo
	}
	if up {
		n++
	}
	if n > math.MaxInt64 {
		return bad("out of range")
	}
	if negative {
		return -Amount(n), nil
	}
	return Amount(n), nil
}

// Dollars returns a as a float64, for display and statistics only.
func (a Amount) Dollars() float64 { return float64(a) / picoPerUSD }

// Valid reports whether a is not Invalid.
func (a Amount) Valid() bool { return a != Invalid }

// String formats a for people: "$0.0025".
func (a Amount) String() string {
	if !a.Valid() {
		return "invalid amount"
	}
	if a < 0 {
		return "-$" + string((-a).decimal(nil))
	}
	return "$" + string(a.decimal(nil))
}

// MarshalText writes a as a decimal number of dollars, without loss.
func (a Amount) MarshalText() ([]byte, error) {
	if !a.Valid() {
		return nil, &InvalidError{Field: "amount", Value: "invalid", Fix: "it came from NaN, an infinity or an overflow"}
	}
	if a < 0 {
		return (-a).decimal([]byte{'-'}), nil
	}
	return a.decimal(nil), nil
}

// UnmarshalText is the inverse of MarshalText.
func (a *Amount) UnmarshalText(b []byte) error {
	v, err := ParseAmount(string(b))
	if err == nil {
		*a = v
	}
	return err
}

// decimal appends a ≥ 0 as a decimal without trailing zeros.
func (a Amount) decimal(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(a)/picoPerUSD, 10)
	frac := uint64(a) % picoPerUSD
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(picoPerUSD / 10); frac > 0; unit /= 10 {
		b = append(b, byte('0'+frac/unit))
		frac %= unit
	}
	return b
}

// number is any of the units that budgets count.
type number interface{ ~int | ~int64 }

// add is a saturating sum of two numbers that are not negative.
func add[T number](a, b T) T {
	if s := a + b; s >= a {
		return s
	}
	return T(math.MaxInt64)
}

// sub is what remains of a after b, never below zero.
func sub[T number](a, b T) T { return max(a-b, 0) }

// scale returns a×n/per for numbers that are not negative, rounded half up and
// saturated.
func scale(a, n, per int64) int64 {
	if a <= 0 || n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(n))
	lo, carry := bits.Add64(lo, uint64(per)/2, 0)
	if hi += carry; hi >= uint64(per) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(per))
	return int64(min(q, math.MaxInt64))
}

// InvalidError is a value that no budget, price or amount can have.
type InvalidError struct {
	Field string // what was set, for example "Budget.USD"
	Value string // as given
	Fix   string // what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("cost: %s is %s: %s", e.Field, e.Value, e.Fix)
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
