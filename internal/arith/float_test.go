package arith

import (
	"math/big"
	"testing"
)

// atanInverse sums atan(1/n), or atanh(1/n).
func atanInverse(n int64, hyperbolic bool) *big.Float {
	x := new(big.Float).SetPrec(500).SetInt64(n)
	sum := new(big.Float).SetPrec(500)
	power := new(big.Float).SetPrec(500).Quo(big.NewFloat(1), x)
	square := new(big.Float).SetPrec(500).Mul(x, x)
	for i := int64(1); power.MantExp(nil) > -450; i += 2 {
		term := new(big.Float).SetPrec(500).Quo(power, new(big.Float).SetInt64(i))
		if !hyperbolic && i%4 == 3 {
			term.Neg(term)
		}
		sum.Add(sum, term)
		power.Quo(power, square)
	}
	return sum
}

func combine(hyperbolic bool, terms ...[2]int64) *big.Float {
	sum := new(big.Float).SetPrec(500)
	for _, t := range terms {
		a := atanInverse(t[1], hyperbolic)
		sum.Add(sum, a.Mul(a, new(big.Float).SetInt64(t[0])))
	}
	return sum
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want *big.Float
	}{
		{"pi", pi(), combine(false, [2]int64{16, 5}, [2]int64{-4, 239})},                        // Machin
		{"ln 2", ln2(), combine(true, [2]int64{18, 26}, [2]int64{-2, 4801}, [2]int64{8, 8749})}, // the same for logarithms
	} {
		diff := new(big.Float).Sub(c.got, c.want)
		if diff.Sign() != 0 && diff.MantExp(nil) > -290 {
			t.Errorf("%s is wrong by %v", c.name, diff)
		}
	}
}

// Identities hold to far more than the promised 50 digits.
func TestIdentities(t *testing.T) {
	for _, s := range []string{
		"exp(ln(7)) - 7", "ln(exp(0.3)) - 0.3", "ln(1.0000001) + ln(1/1.0000001)", "ln(12345) - ln(12344) - ln(12345/12344)",
		"sin(1)^2 + cos(1)^2 - 1", "sin(2) - 2*sin(1)*cos(1)", "sin(100) + sin(-100)", "sin(1e15 + pi) + sin(1e15)",
		"2^0.5 - sqrt(2)", "cbrt(5)^3 - 5", "10^log10(3) - 3", "2^log2(0.3) - 0.3", "tan(0.5) - sin(0.5)/cos(0.5)", "e - exp(1)",
		"(exp(40000) / exp(39999) - e)", "cos(pi/3) - 1/2",
	} {
		v, err := Eval(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		} else if f := v.float(); f.Sign() != 0 && f.MantExp(nil) > -170 { // 2^-170 = 10^-51
			t.Errorf("%s = %v", s, f)
		}
	}
}
