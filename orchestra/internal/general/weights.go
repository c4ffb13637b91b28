package general

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Schema names the format of weight files, and its version.
const Schema = "toolorchestra.policy/2"

// ErrFile means that a weight file cannot be used.
var ErrFile = errors.New("no general weights")

// maxFile bounds a weight file, in bytes.
const maxFile = 4 << 20

// Weights is a small network over the feature vector: layers of weights and
// biases with tanh between them, and one number at the end. It is not changed
// while it is used.
type Weights struct {
	Schema   string            `json:"schema"`
	Version  string            `json:"version"`
	About    string            `json:"about"` // where the numbers come from
	Facts    map[string]string `json:"facts,omitempty"`
	Features []string          `json:"features"` // must be those of this version
	Layers   []Layer           `json:"layers"`
	Reading  *Reading          `json:"reading,omitempty"` // nil: texts tell nothing
}

// Layer is one layer of a network.
type Layer struct {
	Weights [][]float32 `json:"weights"` // a row per output
	Bias    []float32   `json:"bias"`
}

// Read reads and checks a weight file. Errors wrap ErrFile, or are those of r.
func Read(r io.Reader) (*Weights, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	var w Weights
	switch d := json.NewDecoder(bytes.NewReader(b)); {
	case len(b) > maxFile:
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrFile, maxFile)
	default:
		d.DisallowUnknownFields()
		if err := d.Decode(&w); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
	}
	if err := w.Check(); err != nil {
		return nil, err
	}
	return &w, nil
}

// Write is the inverse of Read. What Read would refuse is not written.
func (w *Weights) Write(to io.Writer) error {
	if err := w.Check(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(w, "", " ")
	if err != nil {
		return err
	}
	b = append(compact(b), '\n')
	if len(b) > maxFile {
		return fmt.Errorf("%w: it would take %d bytes, and %d are allowed: use narrower layers", ErrFile, len(b), maxFile)
	}
	_, err = to.Write(b)
	return err
}

// Check says what is wrong with weights, and readies those that were made in memory.
func (w *Weights) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
	}
	switch {
	case w.Schema != Schema:
		return bad("its schema is %q, and this version reads %q", w.Schema, Schema)
	case !slices.Equal(w.Features, Names[:]):
		return bad("it was made for other features (%d, not the %d of this version): train it anew", len(w.Features), int(NumFeatures))
	case len(w.Layers) == 0 || len(w.Layers) > 8:
		return bad("it has %d layers, and 1 to 8 are allowed", len(w.Layers))
	}
	in := int(NumFeatures)
	for i, l := range w.Layers {
		if len(l.Weights) == 0 || len(l.Weights) != len(l.Bias) || len(l.Weights) > maxWidth {
			return bad("layer %d has %d rows and %d biases", i+1, len(l.Weights), len(l.Bias))
		}
		for _, row := range append(slices.Clone(l.Weights), l.Bias) {
			if slices.ContainsFunc(row, func(x float32) bool { return !(x >= -most && x <= most) }) {
				return bad("layer %d holds numbers that are not finite, or beyond %.0f", i+1, float64(most))
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
	if w.Reading != nil {
		if err := w.Reading.check(); err != nil {
			return bad("its reading: %v", err)
		}
	}
	return nil
}

// most bounds weights, so that scores are finite.
const most = 1e6

// maxWidth is the most outputs of one layer.
const maxWidth = 256

// Score runs the network. It allocates nothing.
func (w *Weights) Score(f *Features) float32 {
	var a, b [maxWidth]float32
	x := f[:]
	y := &a
	for i, l := range w.Layers {
		x = l.forward(x, y[:], i < len(w.Layers)-1)
		if y == &a {
			y = &b
		} else {
			y = &a
		}
	}
	return x[0]
}

// forward writes the outputs of a layer for x into y, and returns them.
func (l *Layer) forward(x, y []float32, squash bool) []float32 {
	for j, row := range l.Weights {
		sum := l.Bias[j]
		for k, v := range row {
			sum += v * x[k]
		}
		if squash {
			sum = float32(math.Tanh(float64(sum)))
		}
		y[j] = sum
	}
	return y[:len(l.Weights)]
}

// Clone returns weights that may be changed. The reading is shared.
func (w *Weights) Clone() *Weights {
	c := *w
	c.Facts = map[string]string{}
	maps.Copy(c.Facts, w.Facts)
	c.Layers = nil
	for _, l := range w.Layers {
		n := Layer{Bias: slices.Clone(l.Bias)}
		for _, row := range l.Weights {
			n.Weights = append(n.Weights, slices.Clone(row))
		}
		c.Layers = append(c.Layers, n)
	}
	return &c
}
