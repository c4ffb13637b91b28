package arith

import (
	"math"
	"math/big"
)

const functions = "sqrt cbrt abs floor ceil round min max gcd lcm log ln log2 log10 exp sin cos tan pow mod factorial sum avg binomial"

// arity returns how many arguments a function takes.
func arity(name string) (lo, hi int, ok bool) {
	switch name {
	case "sqrt", "cbrt", "abs", "floor", "ceil", "ln", "log2", "log10", "exp", "sin", "cos", "tan", "factorial":
		return 1, 1, true
	case "round", "log":
		return 1, 2, true
	case "pow", "mod", "binomial":
		return 2, 2, true
	case "min", "max", "gcd", "lcm", "sum", "avg":
		return 1, maxInput, true
	}
	return 0, 0, false
}

func (m *machine) call(name string, a []Value) (Value, error) {
	x := a[0]
	switch name {
	case "sqrt", "cbrt":
		return radical(name, x)
	case "abs":
		if x.sign() < 0 {
			return m.binary("-", whole(0), x)
		}
		return x, nil
	case "floor", "ceil", "round":
		return m.round(name, a)
	case "exp":
		return exponential(x)
	case "ln", "log2", "log10", "log":
		return logarithm(name, a)
	case "sin", "cos", "tan":
		return trig(name, x)
	case "pow":
		return pow(x, a[1])
	case "mod":
		return m.binary("%", x, a[1])
	case "factorial":
		return factorial(x)
	case "binomial":
		return m.binomial(x, a[1])
	case "min", "max":
		for _, v := range a[1:] {
			if c := v.cmp(x); name == "min" && c < 0 || name == "max" && c > 0 {
				x = v
			}
		}
		return x, nil
	case "gcd", "lcm":
		return m.divisors(name, a)
	}
	var err error // sum, avg
	for _, v := range a[1:] {
		if x, err = m.binary("+", x, v); err == nil {
			err = m.spend(x)
		}
		if err != nil {
			return Value{}, err
		}
	}
	if name == "avg" {
		return m.binary("/", x, whole(int64(len(a))))
	}
	return x, nil
}

func radical(name string, x Value) (Value, error) {
	n := 2
	if name == "cbrt" {
		n = 3
	}
	switch s := x.sign(); {
	case s == 0:
		return whole(0), nil
	case s < 0 && n == 2:
		return Value{}, problem("a negative number has no real square root")
	case s < 0:
		v, err := radical(name, negate(x))
		if err != nil {
			return Value{}, err
		}
		return negate(v), nil
	}
	if x.rat != nil {
		if r, ok := root(x.rat, n); ok {
			return exact(r), nil
		}
	}
	if n == 2 {
		return inexact(newFloat().Sqrt(x.float())), nil
	}
	f := newFloat().Quo(ln(x.float()), setFloat(3))
	return inexact(exp(f)), nil
}

func negate(x Value) Value {
	if x.rat != nil {
		return exact(new(big.Rat).Neg(x.rat))
	}
	return inexact(newFloat().Neg(x.flt))
}

// round serves floor, ceil and round(x, places), the latter half away from zero.
func (m *machine) round(name string, a []Value) (Value, error) {
	x := a[0]
	switch name {
	case "ceil":
		v, err := m.round("floor", []Value{negate(x)})
		if err != nil {
			return Value{}, err
		}
		return negate(v), nil
	case "floor":
		if x.rat != nil {
			return exactInt(floor(x.rat)), nil
		}
		i, err := floorFloat(x.flt)
		if err != nil {
			return Value{}, err
		}
		return exactInt(i), nil
	}
	places := 0
	if len(a) == 2 {
		var ok bool
		if places, ok = a[1].small(); !ok || max(places, -places) > 1000 {
			return Value{}, problem("round takes -1000 to 1000 decimals")
		}
	}
	scale, err := powInt(big.NewRat(10, 1), big.NewInt(int64(places)))
	if err != nil {
		return Value{}, err
	}
	v, err := m.binary("*", x, scale)
	if err != nil {
		return Value{}, err
	}
	if v.rat == nil {
		if v.flt.MantExp(nil) > precision/2 {
			return Value{}, problem("rounding needs more digits than an approximation has")
		}
		v = exactInt(nearestInt(v.flt))
	} else {
		half := big.NewRat(1, 2)
		i := floor(half.Add(half, new(big.Rat).Abs(v.rat)))
		if v.sign() < 0 {
			i.Neg(i)
		}
		v = exactInt(i)
	}
	return m.binary("/", v, scale)
}

func exponential(x Value) (Value, error) {
	if x.rat != nil && x.sign() == 0 {
		return whole(1), nil
	}
	f := x.float()
	if f.MantExp(nil) > 17 {
		return Value{}, errTooLarge
	}
	return inexact(exp(f)), nil
}

// logarithm is exact where the result is an integer.
func logarithm(name string, a []Value) (Value, error) {
	x := a[0]
	base := Value{}
	switch {
	case name == "log2":
		base = whole(2)
	case name == "log10":
		base = whole(10)
	case len(a) == 2:
		base = a[1]
		if base.sign() <= 0 || base.cmp(whole(1)) == 0 {
			return Value{}, problem("the base of a logarithm is positive and not 1")
		}
	}
	if x.sign() <= 0 {
		return Value{}, problem("only positive numbers have a logarithm")
	}
	if x.rat != nil && x.cmp(whole(1)) == 0 {
		return whole(0), nil
	}
	f := ln(x.float())
	if base.rat == nil && base.flt == nil {
		return inexact(f), nil
	}
	f.Quo(f, ln(base.float()))
	if x.rat != nil && base.rat != nil && f.MantExp(nil) <= 17 {
		if n := nearestInt(f); n.Sign() != 0 {
			if p, err := powInt(base.rat, n); err == nil && p.cmp(x) == 0 {
				return exactInt(n), nil
			}
		}
	}
	return inexact(f), nil
}

func trig(name string, x Value) (Value, error) {
	if x.rat != nil && x.sign() == 0 {
		if name == "cos" {
			return whole(1), nil
		}
		return whole(0), nil
	}
	sin, cos, err := sinCos(x.float())
	switch {
	case err != nil:
		return Value{}, err
	case name == "sin":
		return inexact(sin), nil
	case name == "cos":
		return inexact(cos), nil
	case cos.Sign() == 0:
		return Value{}, problem("the tangent has no value at this angle")
	}
	return inexact(sin.Quo(sin, cos)), nil
}

// maxFactorial is the largest n whose n! may have maxBits bits.
const maxFactorial = 6000

func factorial(x Value) (Value, error) {
	n, ok := x.small()
	if !x.isInt() || x.sign() < 0 {
		return Value{}, problem("only integers from 0 on have a factorial")
	}
	if !ok || n > maxFactorial {
		return Value{}, errTooLarge
	}
	return exactInt(new(big.Int).MulRange(1, int64(n))), nil
}

func (m *machine) binomial(x, y Value) (Value, error) {
	if !x.isInt() || !y.isInt() || x.sign() < 0 || y.sign() < 0 {
		return Value{}, problem("binomial takes two integers that are not negative")
	}
	n, k := x.rat.Num(), y.rat.Num()
	if rest := new(big.Int).Sub(n, k); rest.Sign() < 0 {
		return whole(0), nil
	} else if rest.Cmp(k) < 0 {
		k = rest
	}
	// k factors of n's size are multiplied.
	if n.BitLen() > 62 || k.BitLen() > 31 || int(k.Int64())*n.BitLen() > 4*maxBits {
		return Value{}, errTooLarge
	}
	if m.work += 16 * int(k.Int64()); m.work > maxWork {
		return Value{}, errTooMuch
	}
	return exactInt(new(big.Int).Binomial(n.Int64(), k.Int64())), nil
}

func (m *machine) divisors(name string, a []Value) (Value, error) {
	sum := new(big.Int)
	for i, v := range a {
		if !v.isInt() {
			return Value{}, problemf("%s takes integers", name)
		}
		n := new(big.Int).Abs(v.rat.Num())
		g := new(big.Int).GCD(nil, nil, sum, n)
		switch {
		case i == 0:
			sum = n
		case name == "gcd":
			sum = g
		case g.Sign() == 0: // lcm of zeros
		default:
			sum.Mul(sum.Quo(sum, g), n)
		}
		v := exactInt(sum)
		if bits(v.rat) > maxBits {
			return Value{}, errTooLarge
		}
		if err := m.spend(v); err != nil {
			return Value{}, err
		}
	}
	return exactInt(sum), nil
}

// lnStart is the natural logarithm of m, ½ ≤ m < 2, to 15 digits.
func lnStart(m *big.Float) *big.Float {
	f, _ := m.Float64()
	return setFloat(math.Log(f))
}
