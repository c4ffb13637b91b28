package train

import (
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// labelled is a text with the outputs that a head shall have for it: 0 or 1, or
// below 0 where that is not known.
type labelled struct {
	text string
	want []float32
}

// fitHead fits one logistic regression for each output on the words of texts,
// by AdaGrad. With softmax, the outputs exclude each other.
func fitHead(texts []labelled, outputs, epochs int, softmax bool, rng *rand.Rand) general.Head {
	const rate, decay = 0.15, 2e-4
	w := make([]float32, general.Buckets*outputs)
	seen := make([]float32, len(w))
	bias, seenBias := make([]float32, outputs), make([]float32, outputs)
	var h learned.Hasher
	y, p := make([]float32, outputs), make([]float32, outputs)
	order := rng.Perm(len(texts))
	for range epochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			fs := h.Features(general.Cut(texts[i].text), nil)
			copy(y, bias)
			for _, f := range fs {
				for j := range y {
					y[j] += f.Value * w[general.Bucket(f)*outputs+j]
				}
			}
			if softmax {
				learned.Softmax(y, p)
			}
			for j := range y {
				want := texts[i].want[j]
				if want < 0 {
					continue
				}
				if !softmax {
					p[j] = float32(1 / (1 + math.Exp(-float64(y[j]))))
				}
				d := p[j] - want
				seenBias[j] += d * d
				bias[j] -= rate * d / float32(math.Sqrt(float64(seenBias[j])+1e-8))
				for _, f := range fs {
					k := general.Bucket(f)*outputs + j
					g := d*f.Value + decay*w[k]
					seen[k] += g * g
					w[k] -= rate * g / float32(math.Sqrt(float64(seen[k])+1e-8))
				}
			}
		}
	}
	return general.NewHead(w, bias)
}
