package general

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// What a reading tells of a task, each between 0 and 1.
const (
	LookUp  = iota // the task needs facts that have to be found
	Compute        // the task needs a calculation
	numNeeds
)

// What a reading tells of a tool's description; together 1.
const (
	Finds    = iota // it finds documents
	Computes        // it computes, or runs programs
	Other           // it does something else
	numKinds
)

// Needs is what a task is read to need.
type Needs [numNeeds]float32

// Kind is what a tool is read to be for.
type Kind [numKinds]float32

// buckets is the number of text features of a reading: those of
// learned.Hasher, folded.
const buckets = 1 << 12

// longest is how many bytes of a text are read.
const longest = 4 << 10

// Head is a linear model over the words of a text. Weights are stored as bytes,
// with one scale for each output.
type Head struct {
	Scale []float32 `json:"scale"`
	Bias  []float32 `json:"bias"`
	Data  string    `json:"data"` // base64 of signed bytes, outputs of one bucket side by side

	w []float32
}

// Reading tells from words what a task needs and what a tool is for.
type Reading struct {
	Task Head `json:"task"`
	Tool Head `json:"tool"`
}

func (r *Reading) check() error {
	if err := r.Task.check(numNeeds); err != nil {
		return fmt.Errorf("of tasks: %w", err)
	}
	if err := r.Tool.check(numKinds); err != nil {
		return fmt.Errorf("of tools: %w", err)
	}
	return nil
}

func (h *Head) check(outputs int) error {
	if len(h.Scale) != outputs || len(h.Bias) != outputs {
		return fmt.Errorf("it has %d scales and %d biases, not %d", len(h.Scale), len(h.Bias), outputs)
	}
	for _, x := range append(append([]float32(nil), h.Scale...), h.Bias...) {
		if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1e6 {
			return fmt.Errorf("a scale or bias is %v", x)
		}
	}
	b, err := base64.StdEncoding.DecodeString(h.Data)
	if err != nil {
		return err
	}
	if len(b) != buckets*outputs {
		return fmt.Errorf("it has %d weights, not %d", len(b), buckets*outputs)
	}
	if h.w != nil {
		return nil
	}
	h.w = make([]float32, len(b))
	for i, x := range b {
		h.w[i] = float32(int8(x)) * h.Scale[i%outputs]
	}
	return nil
}

// NewHead makes a head of full weights, outputs of one bucket side by side.
func NewHead(weights, bias []float32) Head {
	n := len(bias)
	h := Head{Scale: make([]float32, n), Bias: bias}
	for i, x := range weights {
		h.Scale[i%n] = max(h.Scale[i%n], max(x, -x)/127)
	}
	b := make([]byte, len(weights))
	for i, x := range weights {
		if s := h.Scale[i%n]; s > 0 {
			b[i] = byte(int8(math.Round(float64(x / s))))
		}
	}
	h.Data = base64.StdEncoding.EncodeToString(b)
	return h
}

// Bucket is the bucket of a text feature.
func Bucket(f learned.TextFeature) int { return int(f.Index) % buckets }

// Buckets is the number of buckets.
const Buckets = buckets

// Cut is the part of a text that is read.
func Cut(text string) string {
	if len(text) > longest {
		return text[:longest]
	}
	return text
}

func (h *Head) logits(text string, hasher *learned.Hasher, y []float32) {
	copy(y, h.Bias)
	n := len(y)
	for _, f := range hasher.Features(Cut(text), nil) {
		at := Bucket(f) * n
		for j := range y {
			y[j] += f.Value * h.w[at+j]
		}
	}
}

// OfTask reads a task. Without a reading nothing is known, and nothing needed.
func (r *Reading) OfTask(text string, hasher *learned.Hasher) (n Needs) {
	if r == nil {
		return n
	}
	var y [numNeeds]float32
	r.Task.logits(text, hasher, y[:])
	for i, v := range y {
		n[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
	return n
}

// OfTool reads a tool's description. Without a reading it is something else.
func (r *Reading) OfTool(text string, hasher *learned.Hasher) (k Kind) {
	if r == nil {
		return Kind{Other: 1}
	}
	var y [numKinds]float32
	r.Tool.logits(text, hasher, y[:])
	learned.Softmax(y[:], k[:])
	return k
}

// compact puts lists of numbers and of plain words on one line. Other texts stay
// as they are.
func compact(b []byte) []byte {
	if !json.Valid(b) {
		return b
	}
	return lists.ReplaceAllFunc(b, func(m []byte) []byte {
		if m[0] == '"' {
			return m
		}
		return bytes.ReplaceAll(bytes.Join(bytes.Fields(m), nil), []byte(","), []byte(", "))
	})
}

var lists = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\[\]{}"]*\]|\[\s*(?:"[a-z_]*",?\s*)*\]`)
