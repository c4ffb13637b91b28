package arith_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/arith"
)

func TestEval(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1+2*3", "7"},
		{"(1+2)*3", "9"},
		{"-2^2", "-4"},
		{"(-2)^2", "4"},
		{"2^-1", "0.5"},
		{"2^3^2", "512"},
		{"2**10", "1024"},
		{"10 - 3 - 2", "5"},
		{"100/5/2", "10"},
		{"7//2", "3"},
		{"-7//2", "-4"},
		{"-7 % 3", "2"},
		{"7 % (-3)", "-2"},
		{"15% * 80", "12"},
		{"50% - 3", "-2.5"},
		{"50% + 20%", "0.7"},
		{"5!", "120"},
		{"3!!", "720"},
		{"-3!", "-6"},
		{"2^3!", "64"},
		{"1,234,567 + 1", "1234568"},
		{"1_000 * 2", "2000"},
		{"0.1 + 0.2", "0.3"},
		{".5*4", "2"},
		{"1e3 + 1.5e-2", "1000.015"},
		{"0xff + 0b101 + 0o17", "275"},
		{"1<<16 - 1", "65535"},
		{"1<<63 - 1", "9223372036854775807"},
		{"256 >> 4", "16"},
		{"1e10*1e10", "100000000000000000000"},
		{"2^100", "1267650600228229401496703205376"},
		{"1/3", "≈ 0.333333333333333 (1/3)"},
		{"2/3*3", "2"},
		{"1/1024", "0.0009765625"},
		{"sqrt(144)", "12"},
		{"sqrt(4/9)", "≈ 0.666666666666667 (2/3)"},
		{"sqrt(2)", "≈ 1.4142135623731"},
		{"√16 + 1", "5"},
		{"cbrt(27)", "3"},
		{"cbrt(-8/27)", "≈ -0.666666666666667 (-2/3)"},
		{"27^(1/3)", "3"},
		{"8^(2/3)", "4"},
		{"(1/4)^-0.5", "2"},
		{"sqrt(10^60)", "1000000000000000000000000000000"},
		{"abs(-3.5)", "3.5"},
		{"floor(-2.5)", "-3"},
		{"ceil(2.1)", "3"},
		{"ceil(-2.1)", "-2"},
		{"round(2.5)", "3"},
		{"round(-2.5)", "-3"},
		{"round(2.345, 2)", "2.35"},
		{"round(1234, -2)", "1200"},
		{"round(pi, 4)", "3.1416"},
		{"floor(sqrt(2))", "1"},
		{"floor(-sqrt(2))", "-2"},
		{"floor(sqrt(2)^2)", "2"},
		{"min(3, 1, 2) + max(1,234)", "235"},
		{"max(1,234,5)", "234"},
		{"gcd(12, 18, 27)", "3"},
		{"lcm(4, 6, 10)", "60"},
		{"lcm(0, 5)", "0"},
		{"gcd(0, 0)", "0"},
		{"log2(1024)", "10"},
		{"log2(1/8)", "-3"},
		{"log10(1000000)", "6"},
		{"log(81, 3)", "4"},
		{"ln(1)", "0"},
		{"log(10)", "≈ 2.30258509299405"},
		{"ln(2)", "≈ 0.693147180559945"},
		{"ln(exp(1))", "≈ 1"},
		{"exp(0)", "1"},
		{"exp(1) - e", "≈ 0"},
		{"sin(0) + cos(0)", "1"},
		{"sin(pi)", "≈ 0"},
		{"cos(pi)", "≈ -1"},
		{"tan(pi/4)", "≈ 1"},
		{"sin(1)", "≈ 0.841470984807897"},
		{"sin(1000)", "≈ 0.826879540532003"},
		{"cos(2)", "≈ -0.416146836547142"},
		{"pow(2, 0.5)", "≈ 1.4142135623731"},
		{"(-1)^(9^5)", "-1"},
		{"1^(2^60000)", "1"},
		{"mod(10, 4)", "2"},
		{"5.5 % 2", "1.5"},
		{"factorial(20)", "2432902008176640000"},
		{"sum(1, 2, 3) / avg(2, 4)", "2"},
		{"mean(1, 2)", "1.5"},
		{"binomial(52, 5)", "2598960"},
		{"binomial(3, 5)", "0"},
		{"math.sqrt(16) + math.Pow(2, 3)", "12"},
		{"math.Pi", "≈ 3.14159265358979"},
		{"3 × 4 ÷ 2 − 1", "5"},
		{"3² + 2³", "17"},
		{"0^0", "1"},
		{"e^0", "≈ 1"},
		{"2^0.5 * 2^0.5", "≈ 2"},
		{"1e-25 * 1", "0.0000000000000000000000001"},
		{"1e-70 * 1", "≈ 1e-70"},
		{"10^-400 / 3", "≈ 3.33333333333333e-401"},
		{"+5", "5"},
	} {
		v, err := arith.Eval(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := v.String(); got != c.want {
			t.Errorf("%s = %s, want %s", c.in, got, c.want)
		}
		if approx := strings.HasPrefix(c.want, "≈") && !strings.Contains(c.want, "("); approx == v.Exact() && !strings.HasPrefix(c.in, "10^") && !strings.HasPrefix(c.in, "1e-70") {
			t.Errorf("%s: exact is %v", c.in, v.Exact())
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for _, c := range []struct {
		in, problem string
		pos         int
		syntax      bool
	}{
		{"", "missing", 0, true},
		{"1 +", "missing", 3, true},
		{"1 / 0", "division by zero", 2, false},
		{"1 // (2-2)", "division by zero", 2, false},
		{"5 % 0", "division by zero", 2, false},
		{"0^-1", "division by zero", 1, false},
		{"0 ^ (-1/2)", "division by zero", 2, false},
		{"9^9^9^9", "bits", 3, false},
		{"2^65536", "bits", 1, false},
		{"2^(1/2)^(-40)", "bits", 1, false},
		{"1e99999", "exponent", 0, true},
		{"1e99999999999999999999", "exponent", 0, true},
		{"7000!", "bits", 4, false},
		{"(-1)!", "factorial", 4, false},
		{"2.5!", "factorial", 3, false},
		{"binomial(65536, 32768)", "bits", 0, false},
		{"binomial(1e18, 1e17)", "bits", 0, false},
		{"1 << 70000", "bits", 2, false},
		{"1 << -1", "not negative", 2, false},
		{"exp(1e6)", "bits", 0, false},
		{"exp(exp(exp(exp(5))))", "bits", 0, false},
		{"sqrt(-1)", "square root", 0, false},
		{"(-8)^(1/3)", "cbrt", 4, false},
		{"ln(0)", "positive", 0, false},
		{"log(5, 1)", "base", 0, false},
		{"sin(1e30)", "reduced", 0, false},
		{"tan(pi/2)", "tangent", 0, false},
		{"gcd(1.5, 2)", "integers", 0, false},
		{"floor(exp(200))", "rounding", 0, false},
		{"round(1, 5000)", "decimals", 0, false},
		{"foo + 1", "not known", 0, false},
		{"sha256.BlockSize", "not known", 0, false},
		{"foo(1)", "unknown function", 0, true},
		{"sqrt()", "needs", 0, true},
		{"sqrt(1, 2)", "needs", 0, true},
		{"(1", "not closed", 0, true},
		{"1)", "unexpected", 1, true},
		{"2(3)", "unexpected", 1, true},
		{"2 3", "operator", 2, true},
		{"2pi", "operator", 0, true},
		{"1.26.0", "not a number", 0, true},
		{"0755", "leading 0", 0, true},
		{"1,23 + 1", "unexpected", 1, true},
		{"200 - 15%", "two meanings", 4, true},
		{"7 % -3", "two meanings", 2, true},
		{"7%-3", "two meanings", 1, true},
		{"3 & 4", "not part", 2, true},
		{"half of 3", "unexpected", 5, true},
		{strings.Repeat("(", 300), "nested", 0, true},
		{strings.Repeat("-", 5000) + "1", "nested", 0, true},
		{strings.Repeat("2^", 3000) + "2", "nested", 0, true},
		{strings.Repeat("1", 20000), "longer", 0, true},
		{strings.Repeat("5000!+", 1500) + "1", "work", 0, false},
		{strings.Repeat("binomial(9999,4999)+", 500) + "1", "work", 0, false},
		{"1" + strings.Repeat("²", 3000), "nested", 0, true},
		{"\xff", "not part", 0, true},
	} {
		v, err := arith.Eval(c.in)
		var e *arith.Error
		if !errors.As(err, &e) {
			t.Errorf("%.40s = %v, %v; want an *Error", c.in, v, err)
			continue
		}
		if !strings.Contains(e.Problem, c.problem) || e.Syntax != c.syntax || c.pos > 0 && e.Pos != c.pos {
			t.Errorf("%.40s: %v (syntax %v, pos %d)", c.in, err, e.Syntax, e.Pos)
		}
	}
}
