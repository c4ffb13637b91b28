package learned

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// Numbers may be finite and still too large to reckon with.
func TestFilesWithHugeNumbersAreRefused(t *testing.T) {
	sizes := Sizes{Answer: 4, Value1: 4, Value2: 4}
	card := Card{Skill: []float32{0.5}, Mean: 0.5, Tokens: []float32{100}, LogTokens: []float32{4}, Spread: 1}
	h := Header{Domains: []string{"a"}, Prior: card, Sizes: sizes}
	for name, change := range map[string]func(*Net){
		"text":  func(n *Net) { n.Text.Weights[0] = math.MaxFloat32 },
		"value": func(n *Net) { n.Value3.Bias[0] = math.MaxFloat32 },
		"none":  func(n *Net) { n.None = -math.MaxFloat32 },
	} {
		n := New(1, 0, sizes)
		change(n)
		var b bytes.Buffer
		if err := Write(&b, h, n); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadFile(&b); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
