package arith

import (
	"fmt"
	"math/big"
)

// Eval evaluates the expression. consts gives the values of names other than
// pi and e; it may be nil. Errors are *Error.
func (e *Expr) Eval(consts func(name string) (Value, bool)) (Value, error) {
	m := &machine{consts: consts}
	return m.eval(e.root)
}

// machine is one evaluation.
type machine struct {
	consts func(string) (Value, bool)
	work   int
}

// problem is an operation that has no value; eval adds the position.
type problem string

func (p problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return problem(fmt.Sprintf(format, args...)) }

var (
	errTooLarge = problem(fmt.Sprintf("the result has more than %d bits", maxBits))
	errTooMuch  = problem("the expression takes too much work; split it")
)

func (m *machine) eval(n *node) (Value, error) {
	fail := func(err error) (Value, error) {
		if p, ok := err.(problem); ok {
			return Value{}, &Error{Pos: n.pos, Problem: string(p)}
		}
		return Value{}, err
	}
	switch n.op {
	case "num":
		return m.done(n, exact(n.val))
	case "name":
		v, ok := m.name(n.text)
		if !ok {
			return fail(problemf("the value of %q is not known; write the number", clip(n.text)))
		}
		return m.done(n, v)
	}
	args := make([]Value, len(n.args))
	for i, a := range n.args {
		v, err := m.eval(a)
		if err != nil {
			return Value{}, err
		}
		args[i] = v
	}
	var v Value
	var err error
	switch n.op {
	case "neg":
		v, err = m.binary("-", whole(0), args[0])
	case "!":
		v, err = factorial(args[0])
	case "call":
		v, err = m.call(n.text, args)
	default:
		v, err = m.binary(n.op, args[0], args[1])
	}
	if err != nil {
		return fail(err)
	}
	return m.done(n, v)
}

// done checks the size of a result and counts the work.
func (m *machine) done(n *node, v Value) (Value, error) {
	if v.rat != nil && bits(v.rat) > maxBits || v.flt != nil && max(v.flt.MantExp(nil), -v.flt.MantExp(nil)) > maxBits {
		return Value{}, &Error{Pos: n.pos, Problem: string(errTooLarge)}
	}
	if err := m.spend(v); err != nil {
		return Value{}, &Error{Pos: n.pos, Problem: err.Error()}
	}
	return v, nil
}

// spend counts the work that a value of this size stands for: the square of
// its machine words, since rationals are reduced after each operation.
func (m *machine) spend(v Value) error {
	words := 64 // an approximation costs series
	if v.rat != nil {
		words = bits(v.rat) / 64
	}
	if m.work += 1 + words + words*words/64; m.work > maxWork {
		return errTooMuch
	}
	return nil
}

func (m *machine) name(name string) (Value, bool) {
	switch name {
	case "pi":
		return inexact(pi()), true
	case "e":
		return inexact(exp(setFloat(1))), true
	}
	if m.consts == nil {
		return Value{}, false
	}
	v, ok := m.consts(name)
	return v, ok && (v.rat != nil || v.flt != nil)
}

func (m *machine) binary(op string, x, y Value) (Value, error) {
	switch op {
	case "^":
		return pow(x, y)
	case "<<", ">>":
		return shift(op, x, y)
	case "/", "//", "%":
		if y.sign() == 0 {
			return Value{}, problem("division by zero")
		}
	}
	if x.rat == nil || y.rat == nil {
		return binaryFloat(op, x.float(), y.float())
	}
	r := new(big.Rat)
	switch op {
	case "+":
		r.Add(x.rat, y.rat)
	case "-":
		r.Sub(x.rat, y.rat)
	case "*":
		r.Mul(x.rat, y.rat)
	case "/":
		r.Quo(x.rat, y.rat)
	case "//":
		r.SetInt(floor(r.Quo(x.rat, y.rat)))
	case "%": // x - y*floor(x/y): it has the sign of y
		r.SetInt(floor(r.Quo(x.rat, y.rat)))
		r.Sub(x.rat, r.Mul(r, y.rat))
	}
	return exact(r), nil
}

func binaryFloat(op string, x, y *big.Float) (Value, error) {
	f := newFloat()
	switch op {
	case "+":
		f.Add(x, y)
	case "-":
		f.Sub(x, y)
	case "*":
		f.Mul(x, y)
	case "/":
		f.Quo(x, y)
	default:
		q, err := floorFloat(f.Quo(x, y))
		if err != nil {
			return Value{}, err
		}
		if op == "//" {
			return exactInt(q), nil
		}
		f.Sub(x, f.Mul(newFloat().SetInt(q), y))
	}
	return inexact(f), nil
}

func floor(r *big.Rat) *big.Int { // big.Int's Div rounds down for a positive divisor
	return new(big.Int).Div(r.Num(), r.Denom())
}

// floorFloat rounds down. Next to an integer an approximation does not tell
// on which side the true value is.
func floorFloat(f *big.Float) (*big.Int, error) {
	if f.MantExp(nil) > precision/2 {
		return nil, problem("rounding needs more digits than an approximation has")
	}
	nearest := nearestInt(f)
	if close := newFloat().Sub(f, newFloat().SetInt(nearest)); close.Sign() == 0 || close.MantExp(nil) < -precision/2 {
		return nearest, nil
	}
	i, _ := f.Int(nil)
	if f.Sign() < 0 {
		i.Sub(i, big.NewInt(1)) // Int drops the fraction, and there is one
	}
	return i, nil
}

// nearestInt rounds half away from zero.
func nearestInt(f *big.Float) *big.Int {
	half := setFloat(0.5)
	if f.Sign() < 0 {
		half.Neg(half)
	}
	i, _ := half.Add(half, f).Int(nil)
	return i
}

func shift(op string, x, y Value) (Value, error) {
	n, ok := y.small()
	if !x.isInt() || !ok || n < 0 {
		return Value{}, problemf("%s needs an integer and a small count that is not negative", op)
	}
	if op == ">>" {
		return exactInt(new(big.Int).Rsh(x.rat.Num(), uint(n))), nil
	}
	if n > maxBits {
		return Value{}, errTooLarge
	}
	return exactInt(new(big.Int).Lsh(x.rat.Num(), uint(n))), nil
}

// pow is exact for integer exponents and for roots that are rational.
func pow(x, y Value) (Value, error) {
	if y.isInt() && x.rat != nil {
		return powInt(x.rat, y.rat.Num())
	}
	switch x.sign() {
	case 0:
		if y.sign() > 0 {
			return whole(0), nil
		}
		return Value{}, problem("division by zero: zero to a negative power")
	case -1:
		if !y.isInt() {
			return Value{}, problem("a negative number has no real power that is no integer; cbrt(x) takes cube roots of negative numbers")
		}
		v, err := pow(Value{flt: newFloat().Neg(x.float())}, y)
		if err == nil && y.rat.Num().Bit(0) == 1 {
			v.flt = newFloat().Neg(v.flt)
		}
		return v, err
	}
	if x.rat != nil && y.rat != nil {
		if q := y.rat.Denom(); q.IsInt64() && q.Int64() <= 64 {
			if root, ok := root(x.rat, int(q.Int64())); ok {
				return powInt(root, y.rat.Num())
			}
		}
	}
	f := newFloat().Mul(y.float(), ln(x.float()))
	if f.MantExp(nil) > 17 { // e to 2^17 has more than maxBits bits
		return Value{}, errTooLarge
	}
	return inexact(exp(f)), nil
}

func powInt(x *big.Rat, n *big.Int) (Value, error) {
	negative := n.Sign() < 0
	if negative && x.Sign() == 0 {
		return Value{}, problem("division by zero: zero to a negative power")
	}
	n = new(big.Int).Abs(n)
	if bits(x) <= 1 { // 0, 1 and -1 take any power
		switch {
		case n.Sign() == 0:
			return whole(1), nil
		case x.Sign() < 0 && n.Bit(0) == 0:
			return whole(1), nil
		}
		return exact(x), nil
	}
	if n.BitLen() > 31 || (bits(x)-1)*int(n.Int64()) > maxBits {
		return Value{}, errTooLarge
	}
	num := new(big.Int).Exp(x.Num(), n, nil)
	den := new(big.Int).Exp(x.Denom(), n, nil)
	if negative {
		num, den = den, num
	}
	return exact(new(big.Rat).SetFrac(num, den)), nil
}

// root returns the n-th root of x > 0, if it is rational and not enormous.
func root(x *big.Rat, n int) (*big.Rat, bool) {
	num, ok := rootInt(x.Num(), n)
	if !ok {
		return nil, false
	}
	den, ok := rootInt(x.Denom(), n)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetFrac(num, den), true
}

func rootInt(x *big.Int, n int) (*big.Int, bool) {
	var r *big.Int
	switch {
	case n == 1:
		return x, true
	case n == 2:
		r = new(big.Int).Sqrt(x)
	case x.BitLen()/n > precision/2:
		return nil, false
	default:
		f := newFloat().Quo(ln(newFloat().SetInt(x)), newFloat().SetInt64(int64(n)))
		r = nearestInt(exp(f))
	}
	return r, new(big.Int).Exp(r, big.NewInt(int64(n)), nil).Cmp(x) == 0
}
