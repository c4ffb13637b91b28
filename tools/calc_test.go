package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/arith"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func workspace(docs ...tools.Document) tools.Workspace {
	return tools.Workspace{}.With(tools.Result{Documents: docs})
}

var hashes = workspace(
	tools.Document{ID: "crypto/sha256", Title: "Package sha256", Text: "const BlockSize = 64\n\nThe blocksize of SHA256.\n\nconst Size = 32\n"},
	tools.Document{ID: "crypto/sha512", Title: "Package sha512", Text: "const (\n\tBlockSize = 128 // in bytes\n\tSize = 64\n)\nSee sha256."},
	tools.Document{ID: "math", Text: "const (\n\tMaxUint16 = 1<<16 - 1 // 65535\n\tMaxInt8  int = 127\n\tPi = 3.14\n)"},
)

func TestCalculatorCall(t *testing.T) {
	calc := tools.Calculator()
	for _, c := range []struct {
		args, answer, text string
		confidence         float64
		sources            []string
	}{
		{args: `{"expression":"17.5 / 100 * 2340"}`, answer: "409.5", text: "17.5 / 100 * 2340 = 409.5", confidence: 1},
		{args: `{"expression":"2^64"}`, answer: "18446744073709551616", text: "2 ^ 64 = 18446744073709551616", confidence: 1},
		{args: `{"expression":"1/3"}`, answer: "≈ 0.333333333333333 (1/3)", text: "1 / 3 ≈ 0.333333333333333 (1/3)", confidence: 1},
		{args: `{"expression":"sqrt(2)"}`, answer: "≈ 1.4142135623731", text: "sqrt(2) ≈ 1.4142135623731", confidence: 0.95},
		{args: `{"expression":"15 percent of 80"}`, answer: "12", text: "15 / 100 * 80 = 12", confidence: 1},
		{args: `{'expression': '200 - 15%',}`, answer: "170", text: "200 * (1 - 15 / 100) = 170", confidence: 1},
		{args: `"3*(4+5)"`, answer: "27", text: "3 * (4 + 5) = 27", confidence: 1},
		{args: `3*(4+5)`, answer: "27", text: "3 * (4 + 5) = 27", confidence: 1},
		{args: `{"expression":"8 * sha256.BlockSize"}`, answer: "512 (8 * sha256.BlockSize, with sha256.BlockSize = 64)",
			text: "8 * sha256.BlockSize = 512, with sha256.BlockSize = 64", confidence: 0.95, sources: []string{"crypto/sha256"}},
		{args: `{"expression":"sha512.Size + sha512.BlockSize - math.MaxUint16"}`,
			answer: "-65343 (sha512.Size + sha512.BlockSize - math.MaxUint16, with sha512.Size = 64, sha512.BlockSize = 128, math.MaxUint16 = 65535)",
			text:   "sha512.Size + sha512.BlockSize - math.MaxUint16 = -65343, with sha512.Size = 64, sha512.BlockSize = 128, math.MaxUint16 = 65535", confidence: 0.95,
			sources: []string{"crypto/sha512", "math"}},
		{args: `{"expression":"twice sha256.Size"}`, answer: "64 (sha256.Size * 2, with sha256.Size = 32)", text: "sha256.Size * 2 = 64, with sha256.Size = 32",
			confidence: 0.95, sources: []string{"crypto/sha256"}},
	} {
		r, err := calc.Call(context.Background(), tools.Call{Args: json.RawMessage(c.args), Work: hashes})
		if err != nil || len(r.Attempts) != 1 {
			t.Errorf("%s: %+v, %v", c.args, r, err)
			continue
		}
		a := r.Attempts[0]
		if a.Text != c.answer || r.Text != c.text || a.Confidence != c.confidence || !slices.Equal(a.Sources, c.sources) || a.By != "calculator" {
			t.Errorf("%s:\n%q\n%+v", c.args, r.Text, a)
		}
	}
}

func TestCalculatorErrors(t *testing.T) {
	calc := tools.Calculator()
	for _, c := range []struct {
		args      string
		arguments bool
		problem   string
	}{
		{`{}`, true, "empty"},
		{``, true, "expression"},
		{`{"expression":"  "}`, true, "empty"},
		{`{"expression":["1"]}`, true, "write"},
		{`{"expression":"1+`, true, "write"},
		{`{"expression":"1/0"}`, false, "division by zero"},
		{`{"expression":"what a day"}`, false, "unexpected"},
		{`{"expression":"8 * md5.BlockSize"}`, false, "not known"},
		{`{"expression":"8 * BlockSize"}`, false, "not known"}, // 64 or 128
		{`{"expression":"9^9^9^9"}`, false, "bits"},
	} {
		_, err := calc.Call(context.Background(), tools.Call{Args: json.RawMessage(c.args), Work: hashes})
		var args *tools.ArgumentsError
		var expr *arith.Error
		if c.arguments != errors.As(err, &args) || !c.arguments && !errors.As(err, &expr) || !strings.Contains(fmt.Sprint(err), c.problem) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	_, err := calc.Call(context.Background(), tools.Call{Args: json.RawMessage(`{"expression":"1+`)})
	if args, ok := errors.AsType[*tools.ArgumentsError](err); !ok || !args.Truncated {
		t.Errorf("cut off arguments: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := calc.Call(ctx, tools.Call{Args: json.RawMessage(`{"expression":"1"}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCalculatorPropose(t *testing.T) {
	propose := tools.Calculator().Spec().Propose
	for _, c := range []struct {
		prompt, want string
		work         tools.Workspace
	}{
		{prompt: "What is 17.5 percent of 2,340?", want: `{"expression":"17.5 / 100 * 2340"}`},
		{prompt: "What is 8 times sha256.BlockSize?", work: hashes, want: `{"expression":"8 * sha256.BlockSize"}`},
		{prompt: "What is crypto/sha512.BlockSize minus 1?", work: hashes, want: `{"expression":"crypto/sha512.BlockSize - 1"}`},
		{prompt: "What is MaxUint16 plus 1?", work: hashes, want: `{"expression":"MaxUint16 + 1"}`},
		{prompt: "What is math.MaxInt8 squared?", work: hashes, want: `{"expression":"math.MaxInt8 ^ 2"}`},
		{prompt: "What is 8 << 2?", want: `{"expression":"8 << 2"}`},
		{prompt: "What is 8 times sha256.BlockSize?"},
		{prompt: "What is 8 times md5.BlockSize?", work: hashes},
		{prompt: "What is 8 times BlockSize?", work: hashes}, // conflict
		{prompt: "What is 1 divided by 0?"},
		{prompt: "Which function compares two MACs?"},
	} {
		got := propose(tools.Call{Prompt: c.prompt, Work: c.work})
		if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || string(got[0]) != c.want) {
			t.Errorf("%s: %s, want %s", c.prompt, got, c.want)
			continue
		}
		if got == nil {
			continue
		}
		if _, err := tools.Calculator().Call(context.Background(), tools.Call{Args: got[0], Work: c.work}); err != nil {
			t.Errorf("%s: %s does not run: %v", c.prompt, got[0], err)
		}
	}
}

// Where a value of size.Max is found, and where not.
func TestCalculatorConstants(t *testing.T) {
	for _, c := range []struct {
		want string // "" if there is none
		docs []tools.Document
	}{
		{"7", []tools.Document{{ID: "size", Text: "const Max = 7"}}},
		{"7", []tools.Document{{ID: "a", Title: "Package size", Text: "Max  = 7"}}},
		{"7", []tools.Document{{ID: "a", URL: "https://pkg.go.dev/size", Text: "Max = 7"}}},
		{"7", []tools.Document{{ID: "a", Text: "package size\n\nconst Max = 7"}}},
		{"7", []tools.Document{{ID: "a", Text: "const size.Max = 7"}}},
		{"7", []tools.Document{{ID: "a", Title: "const size.Max = 7"}}},
		{"7", []tools.Document{{ID: "size", Text: "The largest size in bytes: Max = 7."}}},
		{"7", []tools.Document{{ID: "size", Text: "Max = 7 bytes"}}},
		{"7", []tools.Document{{ID: "size", Text: "const Max untyped int = 7 /* seven */"}}},
		{"7", []tools.Document{{ID: "size", Text: "Max := 7; Min := 3"}}},
		{"1024", []tools.Document{{ID: "size", Text: "Max = 1 << 10"}}},
		{"1048576", []tools.Document{{ID: "size", Text: "Max = 1_024 * (1<<10)"}}},
		{"-7", []tools.Document{{ID: "size", Text: "Max = -7"}}},
		// The qualified one wins, and other packages do not count.
		{"7", []tools.Document{{ID: "size", Text: "Max = 9\nsize.Max = 7"}}},
		{"7", []tools.Document{{ID: "size", Text: "Max = 7\nother.Max = 9"}}},
		{"7", []tools.Document{{ID: "other", Text: "Max = 9"}, {ID: "size", Text: "Max = 7"}}},
		{"7", []tools.Document{{ID: "a", Text: "package size; Max = 9"}, {ID: "size", Text: "Max = 7"}}},
		{"7", []tools.Document{{ID: "size/a", Text: "Max = 7"}, {ID: "size/b", Text: "Max = 14 - 7"}}},
		{"", []tools.Document{{ID: "size/a", Text: "Max = 7"}, {ID: "size/b", Text: "Max = 8"}}},
		{"", []tools.Document{{ID: "a", Text: "Max = 7"}}},
		{"", []tools.Document{{ID: "a", Text: "package sizes\nMax = 7"}}},
		{"", []tools.Document{{ID: "size", Text: "MaxLen = 7, xMax = 8, _Max = 9, .Max = 10"}}},
		{"", []tools.Document{{ID: "size", Text: "if Max == 7 or Max != 7 or Max <= 7"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 7 / 2"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 7 ^ 2"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 7 | 8"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 1 << iota"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 7 * Unit"}}},
		{"", []tools.Document{{ID: "size", Text: "Max = 0755"}}},
		{"", []tools.Document{{ID: "size", Text: `Max = "7"`}}},
		{"", []tools.Document{{ID: "size", Text: "Max ="}}},
		{"", []tools.Document{{ID: "size", Text: "Max = pi"}}},
	} {
		r, err := tools.Calculator().Call(context.Background(), tools.Call{Args: json.RawMessage(`{"expression":"size.Max"}`), Work: workspace(c.docs...)})
		got := ""
		if err == nil {
			got, _, _ = strings.Cut(r.Attempts[0].Text, " ")
		}
		if got != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.docs, got, err, c.want)
		}
	}
}

func TestCalculatorSpec(t *testing.T) {
	s := tools.Calculator().Spec()
	if err := tools.Check(s); err != nil {
		t.Error(err)
	}
	if s.Name != "calculator" || s.Effects != tools.ReadOnly|tools.Idempotent|tools.Parallel|tools.Answers || s.Fee != 0 || s.MaxSpend != 0 {
		t.Errorf("%+v", s)
	}
}

func ExampleCalculator() {
	calc := tools.Calculator()
	c := tools.Call{
		Prompt: "What is 8 times sha256.BlockSize?",
		Work: tools.Workspace{}.With(tools.Result{Documents: []tools.Document{
			{ID: "crypto/sha256", Text: "const BlockSize = 64\n\nThe blocksize of SHA256 and SHA224 in bytes."},
		}}),
	}
	c.Args = calc.Spec().Propose(c)[0]
	r, err := calc.Call(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(c.Args))
	fmt.Println(r.Attempts[0].Text, r.Attempts[0].Sources)
	// Output:
	// {"expression":"8 * sha256.BlockSize"}
	// 512 (8 * sha256.BlockSize, with sha256.BlockSize = 64) [crypto/sha256]
}
