package policy

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
)

// ErrNothingLeft means that nothing can be called and there is no attempt to
// finish with.
var ErrNothingLeft = errors.New("policy: nothing is left to try")

// ErrWeights means that a weight file cannot be used.
var ErrWeights = errors.New("policy: unusable weight file")

// weights.json was learned in generated tasks with tools: see package train.
//
//go:embed weights.json
var generalFile []byte

// builtin reads the general weights that ship with the module, once.
var builtin = sync.OnceValues(func() (*general.Weights, error) { return readGeneral(bytes.NewReader(generalFile)) })

func readGeneral(r io.Reader) (*general.Weights, error) {
	w, err := general.Read(r)
	if errors.Is(err, general.ErrFile) {
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	return w, err
}

// shipped is the policy that ships with the module, made once.
var shipped = sync.OnceValues(func() (*Network, error) { return Learned() })

// Embedded is the policy for machines without a GPU: Learned with its defaults.
// It decides in microseconds and at no cost. It cannot write: arguments come from
// Spec.Propose or from experts. It knows tools and models by their descriptors
// only, never by name.
func Embedded() Policy {
	n, err := shipped()
	if err != nil {
		return broken{err} // a build with damaged weights: tests exclude it
	}
	return n
}

// EmbeddedWith is Embedded with general weights (the choice among tools, experts
// and the end) from a file that package train wrote. The error wraps ErrWeights,
// or is that of r.
func EmbeddedWith(r io.Reader, opts ...NetworkOption) (*Network, error) {
	w, err := readGeneral(r)
	if err != nil {
		return nil, err
	}
	n, err := Learned(opts...)
	if err != nil {
		return nil, err
	}
	n.w = w
	return n, nil
}

// ShippedWeights is the file of general weights that ships with the module, as
// EmbeddedWith reads it: what training starts from.
func ShippedWeights() []byte { return bytes.Clone(generalFile) }

// broken is a policy that cannot be had.
type broken struct{ err error }

// Info describes the policy.
func (p broken) Info() Info { return Info{Name: "embedded"} }

// Decide says why there is none.
func (p broken) Decide(context.Context, *State) (Decision, error) { return Decision{}, p.err }
