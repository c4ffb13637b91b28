package fit

import (
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// The text model's settings: domains with AdaGrad, experts with a small fixed
// rate, at which their noisy labels are not memorised.
const (
	textEpochs = 8
	domainRate = 0.05
	expertRate = 0.02
)

// sample is a text, its domain, and which bound experts solve it.
type sample struct {
	features []learned.TextFeature
	domain   int
	right    []bool
}

// weighBuckets sets the inverse document frequencies.
func weighBuckets(n *learned.Net, texts []string) {
	var h learned.Hasher
	df := make([]int, learned.Buckets)
	for _, t := range texts {
		for _, f := range h.Features(t, nil) {
			df[f.Index]++
		}
	}
	for i, d := range df {
		n.IDF[i] = float32(math.Log(float64(len(texts)+1)/float64(d+1))) + 1
	}
}

// text fits the text model.
func fitText(n *learned.Net, rows []*sample, rng *rand.Rand) {
	out := n.Text.Out
	w, b := n.Text.Weights, n.Text.Bias
	sum := make([]float32, learned.Buckets*n.Domains)
	sumBias := make([]float32, n.Domains)
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	y, d := make([]float32, out), make([]float32, out)
	for epoch := range textEpochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		rate := float32(expertRate)
		if epoch >= textEpochs/2 {
			rate /= 2
		}
		for _, i := range order {
			r := rows[i]
			copy(y, b)
			for _, f := range r.features {
				row := w[int(f.Index)*out:][:out]
				for k, v := range row {
					y[k] += float32(f.Value * v)
				}
			}
			softmaxGrad(y[:n.Domains], d[:n.Domains], r.domain)
			for k := n.Domains; k < out; k++ {
				d[k] = float32(1 / (1 + math.Exp(-float64(y[k]))))
				if r.right[k-n.Domains] {
					d[k]--
				}
			}
			for k, x := range d {
				if k < n.Domains {
					sumBias[k] += float32(x * x)
					b[k] -= float32(domainRate*x) / (float32(math.Sqrt(float64(sumBias[k]))) + 1e-6)
				} else {
					b[k] -= float32(rate * x)
				}
			}
			for _, f := range r.features {
				row := w[int(f.Index)*out:][:out]
				acc := sum[int(f.Index)*n.Domains:][:n.Domains]
				for k, x := range d {
					g := float32(x * f.Value)
					if k < n.Domains {
						if g == 0 {
							continue
						}
						acc[k] += float32(g * g)
						row[k] -= float32(domainRate*g) / (float32(math.Sqrt(float64(acc[k]))) + 1e-6)
					} else {
						row[k] -= float32(rate * g)
					}
				}
			}
		}
	}
}

// softmaxGrad writes the gradient of the negative log-likelihood of one class.
func softmaxGrad(y, d []float32, class int) {
	learned.Softmax(y, d)
	d[class]--
}
