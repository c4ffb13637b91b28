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
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
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
	var seen beginning
	w, err := general.Read(io.TeeReader(r, &seen))
	switch {
	case errors.Is(err, general.ErrFile) && seen.is(learned.Schema):
		return nil, fmt.Errorf("%w: this is a network of experts: pass it to LoadNetwork or ReadNetwork", ErrWeights)
	case errors.Is(err, general.ErrFile):
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	return w, err
}

// shipped is the policy that ships with the module, made once.
var shipped = sync.OnceValues(func() (*Network, error) { return Learned() })

// Embedded is the policy for machines without a GPU: Learned with its defaults.
// It decides in microseconds and at no cost. It cannot write: arguments come from
// Spec.Propose or from experts. It knows models by price and measured skill, and
// tools by what the words of their name and description say; no name is compared
// with a list.
//
// It reads a task by its words, not by what it means: a task that speaks of what a
// tool does ("How do I delete a file?") has it called, and one in another language
// than the tool's description does not. Mark tools that do harm as NeedsApproval.
func Embedded() Policy {
	n, err := shipped()
	if err != nil {
		return broken{err} // a build with damaged weights: tests exclude it
	}
	return n
}

// WithGeneral takes the general weights (the choice among tools, experts and the
// end) from a file that package train wrote, in place of the shipped ones. The
// error wraps ErrWeights, or is that of r.
func WithGeneral(r io.Reader) NetworkOption {
	return networkOption(func(n *Network) (err error) {
		n.w, err = readGeneral(r)
		return err
	})
}

// ShippedWeights is the file of general weights that ships with the module, as
// WithGeneral reads it: what training starts from.
func ShippedWeights() []byte { return bytes.Clone(generalFile) }

// broken is a policy that cannot be had.
type broken struct{ err error }

// Info describes the policy.
func (p broken) Info() Info { return Info{Name: "embedded"} }

// Decide says why there is none.
func (p broken) Decide(context.Context, *State) (Decision, error) { return Decision{}, p.err }
