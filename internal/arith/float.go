package arith

import "math/big"

// precision is of approximations in bits, 96 digits. 50 digits are promised;
// the rest is lost in series and in reducing large arguments.
const precision = 320

// The tests compute both digits strings anew.
const (
	piDigits  = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
	ln2Digits = "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863327"
)

func constant(digits string) *big.Float {
	f, _, _ := newFloat().Parse(digits, 10)
	return f
}

func pi() *big.Float  { return constant(piDigits) }
func ln2() *big.Float { return constant(ln2Digits) }

// tiny reports whether adding x to something of size 1 changes nothing.
func tiny(x *big.Float) bool { return x.Sign() == 0 || x.MantExp(nil) < -precision }

// exp returns e^x for |x| < 2^17: with x = k ln 2 + r, the series of
// r/2^8 squared eight times, and k added to the exponent.
func exp(x *big.Float) *big.Float {
	k := nearestInt(newFloat().Quo(x, ln2()))
	r := newFloat().Sub(x, newFloat().Mul(newFloat().SetInt(k), ln2()))
	r.SetMantExp(r, -8)
	sum, term := setFloat(1), setFloat(1)
	for i := int64(1); !tiny(term); i++ {
		term.Mul(term, r).Quo(term, newFloat().SetInt64(i))
		sum.Add(sum, term)
	}
	for range 8 {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, int(k.Int64()))
}

// ln returns the natural logarithm of x > 0: with x = m 2^k and m in [½, 1),
// Halley steps from the processor's logarithm, each of which triples the digits.
func ln(x *big.Float) *big.Float {
	m := newFloat()
	k := x.MantExp(m)
	if k == 1 || k == 0 { // near 1 the sum below would cancel
		m.SetMantExp(m, k)
		k = 0
	}
	y := lnStart(m)
	for range 3 {
		e := exp(y)
		diff := newFloat().Sub(m, e)
		y.Add(y, diff.Mul(diff, setFloat(2)).Quo(diff, e.Add(e, m)))
	}
	return y.Add(y, newFloat().Mul(newFloat().SetInt64(int64(k)), ln2()))
}

// sinCos reduces x modulo 2π and sums both series. Below 2^64 the reduction
// costs 20 digits.
func sinCos(x *big.Float) (sin, cos *big.Float, err error) {
	if x.MantExp(nil) > 64 {
		return nil, nil, problem("an angle this large cannot be reduced; take it modulo 2*pi first")
	}
	turn := pi()
	turn.Add(turn, turn)
	r := newFloat().Mul(turn, newFloat().SetInt(nearestInt(newFloat().Quo(x, turn))))
	r.Sub(x, r)
	sums := [2]*big.Float{setFloat(1), newFloat()}
	term := setFloat(1)
	for i := int64(1); !tiny(term) || i < 8; i++ {
		term.Mul(term, r).Quo(term, newFloat().SetInt64(i))
		if i%4 >= 2 {
			sums[i%2].Sub(sums[i%2], term)
		} else {
			sums[i%2].Add(sums[i%2], term)
		}
	}
	for i, s := range sums { // what is left of a zero after rounding
		if s.Sign() != 0 && s.MantExp(nil) < -precision*5/8 {
			sums[i] = newFloat()
		}
	}
	return sums[1], sums[0], nil
}
