package policy

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// weightsSchema names the format of weight files, and its version.
const weightsSchema = "toolorchestra.policy/1"

// ErrWeights means that a weight file cannot be used.
var ErrWeights = errors.New("policy: unusable weight file")

// weights is a small network over the feature vector: layers of weights and
// biases with tanh between them, and one number at the end.
type weights struct {
	Schema   string   `json:"schema"`
	Version  string   `json:"version"`
	About    string   `json:"about"`    // where the numbers come from
	Features []string `json:"features"` // must be those of this version
	Layers   []layer  `json:"layers"`
}

type layer struct {
	Weights [][]float32 `json:"weights"` // a row per output
	Bias    []float32   `json:"bias"`
}

//go:embed weights.json
var handMade []byte

// readWeights reads and checks a weight file.
func readWeights(r io.Reader) (*weights, error) {
	d := json.NewDecoder(io.LimitReader(r, 16<<20))
	d.DisallowUnknownFields()
	var w weights
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrWeights, err)
	}
	return &w, w.check()
}

func (w *weights) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrWeights, fmt.Sprintf(format, args...))
	}
	switch {
	case w.Schema != weightsSchema:
		return bad("its schema is %q, and this version reads %q", w.Schema, weightsSchema)
	case !slices.Equal(w.Features, featureNames[:]):
		return bad("it was made for other features (%d, not the %d of this version): train it anew", len(w.Features), numFeatures)
	case len(w.Layers) == 0 || len(w.Layers) > 8:
		return bad("it has %d layers, and 1 to 8 are allowed", len(w.Layers))
	}
	in := int(numFeatures)
	for i, l := range w.Layers {
		if len(l.Weights) == 0 || len(l.Weights) != len(l.Bias) || len(l.Weights) > 1024 {
			return bad("layer %d has %d rows and %d biases", i+1, len(l.Weights), len(l.Bias))
		}
		for _, row := range append(slices.Clone(l.Weights), l.Bias) {
			if slices.ContainsFunc(row, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }) {
				return bad("layer %d holds numbers that are not finite", i+1)
			}
		}
		for _, row := range l.Weights {
			if len(row) != in {
				return bad("a row of layer %d has %d weights, not %d", i+1, len(row), in)
			}
		}
		in = len(l.Weights)
	}
	if in != 1 {
		return bad("the last layer has %d outputs, not 1", in)
	}
	return nil
}

// score runs the network.
func (w *weights) score(f *features) float32 {
	x := f[:]
	for i, l := range w.Layers {
		y := make([]float32, len(l.Weights))
		for j, row := range l.Weights {
			sum := l.Bias[j]
			for k, v := range row {
				sum += v * x[k]
			}
			if i < len(w.Layers)-1 {
				sum = float32(math.Tanh(float64(sum)))
			}
			y[j] = sum
		}
		x = y
	}
	return x[0]
}
