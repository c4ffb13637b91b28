package arith

import (
	"math/big"
	"strings"
)

// Value is a number: a rational, or a binary approximation with at least 50
// correct digits. It is immutable.
type Value struct {
	rat *big.Rat   // nil if inexact
	flt *big.Float // nil if exact
}

// Exact reports whether v is the true result and no approximation.
func (v Value) Exact() bool { return v.rat != nil }

// Rat returns v as a rational, or nil if it is inexact.
func (v Value) Rat() *big.Rat {
	if v.rat == nil {
		return nil
	}
	return new(big.Rat).Set(v.rat)
}

const (
	shownPlaces = 30 // decimals that an exact decimal may have
	shownDigits = 15 // significant digits of anything else
	shownRatio  = 60 // bytes that the fraction beside it may have
)

// String writes integers in full and rationals that end within 30 decimals
// exactly. Other rationals are "≈ 0.333333333333333 (1/3)", without the
// fraction if it is long, and inexact values "≈ 1.4142135623731".
func (v Value) String() string {
	switch {
	case v.rat == nil && v.flt == nil:
		return "0"
	case v.rat == nil:
		return "≈ " + v.flt.Text('g', shownDigits)
	case v.rat.IsInt():
		return v.rat.Num().String()
	}
	if n, ok := v.rat.FloatPrec(); ok && n <= shownPlaces {
		return v.rat.FloatString(n)
	}
	s := "≈ " + v.float().Text('g', shownDigits)
	if bits(v.rat) < 4*shownRatio {
		if r := v.rat.RatString(); len(r) <= shownRatio {
			s += " (" + r + ")"
		}
	}
	return s
}

// decimal writes an exact value as a number that Parse reads, if it ends.
func decimal(r *big.Rat) (string, bool) {
	n, ok := r.FloatPrec()
	if !ok {
		return "", false
	}
	return strings.TrimPrefix(r.FloatString(n), "+"), true
}

func exact(r *big.Rat) Value        { return Value{rat: r} }
func exactInt(i *big.Int) Value     { return Value{rat: new(big.Rat).SetInt(i)} }
func inexact(f *big.Float) Value    { return Value{flt: f} }
func whole(i int64) Value           { return Value{rat: new(big.Rat).SetInt64(i)} }
func bits(r *big.Rat) int           { return max(r.Num().BitLen(), r.Denom().BitLen()) }
func newFloat() *big.Float          { return new(big.Float).SetPrec(precision) }
func setFloat(x float64) *big.Float { return newFloat().SetFloat64(x) }
func (v Value) isInt() bool         { return v.rat != nil && v.rat.IsInt() }
func (v Value) sign() int {
	if v.rat != nil {
		return v.rat.Sign()
	}
	return v.flt.Sign()
}

// float returns v in the working precision.
func (v Value) float() *big.Float {
	if v.rat == nil {
		return v.flt
	}
	return newFloat().SetRat(v.rat)
}

func (v Value) cmp(w Value) int {
	if v.rat != nil && w.rat != nil {
		return v.rat.Cmp(w.rat)
	}
	return v.float().Cmp(w.float())
}

// small returns v as an integer of at most 32 bits.
func (v Value) small() (int, bool) {
	if !v.isInt() || v.rat.Num().BitLen() > 31 {
		return 0, false
	}
	return int(v.rat.Num().Int64()), true
}
