package arith_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/arith"
)

func FuzzEval(f *testing.F) {
	for _, s := range []string{"1+2*3", "9^9^9^9", "5000!!", "sqrt(2)^100", "1,234 // max(1,2)", "0x1p", "1e16000*1e16000",
		"(((1", "2^65000 % 3^40000", "ln(1e-16000)", "tan(pi/2)", "binomial(1000,500)", "15% - 3", "lcm(1,2,3)", "exp(-45000)", "floor(e*1e40)",
		"round(2/3,1000)", "log(2^60000,2)", "-0^0.5", "2^(1/64)", "(2/3)^(5/7)", "1>>70000", "5²³√2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start := time.Now()
		v, err := arith.Eval(s)
		if d := time.Since(start); d > 20*time.Second { // far above what the work limit allows
			t.Fatalf("%q took %v", s, d)
		}
		if err != nil {
			var e *arith.Error
			if !errors.As(err, &e) || e.Problem == "" || e.Pos < 0 || e.Pos > len(s) {
				t.Fatalf("%q: %#v", s, err)
			}
			return
		}
		if v.String() == "" {
			t.Fatalf("%q: no text", s)
		}
		// What is printed means the same.
		e, err := arith.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := arith.Eval(e.String())
		if len(e.String()) <= 10<<10 && (err != nil || again.String() != v.String()) {
			t.Fatalf("%q = %v but %q = %v, %v", s, v, e, again, err)
		}
	})
}

// FuzzIntegers compares random expressions with a reference that is computed
// while they are written.
func FuzzIntegers(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 20 {
			s, want := generate(r, 5)
			v, err := arith.Eval(s)
			if err != nil || !v.Exact() || v.Rat().Cmp(new(big.Rat).SetInt(want)) != 0 || v.String() != want.String() {
				t.Fatalf("%s = %v, %v; want %v", s, v, err, want)
			}
		}
	})
}

// generate writes an integer expression with all parentheses.
func generate(r *rand.Rand, depth int) (string, *big.Int) {
	if depth == 0 || r.IntN(6) == 0 {
		n := big.NewInt(r.Int64N(1 << r.IntN(62)))
		return n.String(), n
	}
	x, a := generate(r, depth-1)
	y, b := generate(r, depth-1)
	v := new(big.Int)
	switch op := []string{"+", "-", "*", "//", "%", "^", "neg"}[r.IntN(7)]; op {
	case "+":
		return fmt.Sprintf("(%s+%s)", x, y), v.Add(a, b)
	case "-":
		return fmt.Sprintf("(%s - %s)", x, y), v.Sub(a, b)
	case "*":
		return fmt.Sprintf("(%s*%s)", x, y), v.Mul(a, b)
	case "^":
		n := r.Int64N(5)
		return fmt.Sprintf("(%s)^%d", x, n), v.Exp(a, big.NewInt(n), nil)
	case "neg":
		return fmt.Sprintf("(-%s)", x), v.Neg(a)
	default:
		if b.Sign() == 0 {
			return x, a
		}
		q, m := new(big.Int).QuoRem(a, b, new(big.Int))
		if m.Sign() != 0 && m.Sign() != b.Sign() { // down, not to zero
			q.Sub(q, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			return fmt.Sprintf("((%s) %% (%s))", x, y), m
		}
		return fmt.Sprintf("((%s)//(%s))", x, y), q
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"What is 17.5 percent of 2,340?", "3 plus 4, times 5", "sum of 3, 4, and 5", "20 is what percent of 80?",
		"What is twenty-five hundred and one minus a dozen?", "10 divided by 3, rounded to two decimal places", "the fourth root of 81",
		"log base 2 of 1024", "multiply BlockSize by 4 and then add 5", "two thirds of 90 %", "remainder when 100 is divided by 7",
		"Hello! 3!", "5% off 2", "percentage change from A.B to 3", "raise 2 to the 3rd", "a", "and", "seven -", "\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		expr, ok := arith.Read(s, func(name string) (string, bool) { return "1<<3 - 1", len(name)%2 == 0 })
		if !ok {
			return
		}
		var e *arith.Error
		if _, err := arith.Eval(expr); errors.As(err, &e) && e.Syntax {
			t.Fatalf("%q: %q: %v", s, expr, err)
		}
	})
}
