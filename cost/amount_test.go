package cost_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		in   string
		want cost.Amount
		text string // "" = an error
	}{
		{"0", 0, "$0"},
		{"0.1", 100_000_000_000, "$0.1"},
		{"$0.0025", 2_500_000_000, "$0.0025"},
		{"1", 1_000_000_000_000, "$1"},
		{"-3.5", -3_500_000_000_000, "-$3.5"},
		{"0.000000000001", 1, "$0.000000000001"},
		{"0.0000000000005", 1, "$0.000000000001"},
		{"0.00000000000049", 0, "$0"},
		{"9223372.036854775807", math.MaxInt64, "$9223372.036854775807"},
		{".5", 500_000_000_000, "$0.5"},
		{"9223372.036854775808", 0, ""},
		{"9223372.0368547758079", 0, ""},
		{"99999999999999999999", 0, ""},
		{"", 0, ""}, {"$", 0, ""}, {"1.", 0, ""}, {".", 0, ""}, {"1e3", 0, ""}, {"0x1", 0, ""}, {"1,5", 0, ""}, {"--1", 0, ""}, {" 1", 0, ""},
	} {
		got, err := cost.ParseAmount(c.in)
		if c.text == "" {
			var invalid *cost.InvalidError
			if !errors.As(err, &invalid) || got.Valid() {
				t.Errorf("%q: %v, %v", c.in, got, err)
			}
			continue
		}
		if err != nil || got != c.want || got.String() != c.text {
			t.Errorf("%q: %d %q, %v; want %d %q", c.in, got, got.String(), err, c.want, c.text)
		}
		b, err := json.Marshal(got)
		var back cost.Amount
		if err2 := json.Unmarshal(b, &back); err != nil || err2 != nil || back != got {
			t.Errorf("%s: round trip %v, %v, %v", b, back, err, err2)
		}
	}
}

func TestDollars(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e7, -1e300} {
		if a := cost.Dollars(f); a.Valid() {
			t.Errorf("%v gives %v", f, a)
		}
	}
	if _, err := cost.Invalid.MarshalText(); err == nil {
		t.Error("an invalid amount was written")
	}
	// 0.1 + 0.7 against a cap of 0.8, and 10,000 times 99.99: exact.
	if cost.Dollars(0.1)+cost.Dollars(0.7) != cost.Dollars(0.8) {
		t.Error("0.1 + 0.7 is not 0.8")
	}
	var sum cost.Amount
	for range 10_000 {
		sum += cost.Dollars(99.99)
	}
	if sum.String() != "$999900" {
		t.Error(sum)
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0.1", "-1", "$2.5", "9223372.036854775807", "1e5", "..", "0.0000000000005"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := cost.ParseAmount(s)
		if (err == nil) != a.Valid() {
			t.Fatalf("%q: %v, %v", s, a, err)
		}
		if err == nil {
			if b, err := cost.ParseAmount(a.String()); err != nil || b != a {
				t.Fatalf("%q: %v reads back as %v, %v", s, a, b, err)
			}
		}
	})
}
