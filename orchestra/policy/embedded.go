package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// ErrNothingLeft means that nothing can be called and there is no attempt to
// finish with.
var ErrNothingLeft = errors.New("policy: nothing is left to try")

type embedded struct{ w *weights }

// builtin reads the weights that ship with the module, once.
var builtin = sync.OnceValues(func() (*weights, error) { return readWeights(bytes.NewReader(handMade)) })

// Embedded is the policy for machines without a GPU. It scores what can be done
// next by a small network over one documented feature vector (see features.go),
// in microseconds and at no cost, and does what scores best. It cannot write:
// arguments come from Spec.Propose or from experts. Its weights are made by hand
// as yet (weights.json says so). It knows tools and models by their descriptors
// only, never by name.
func Embedded() Policy {
	w, err := builtin()
	if err != nil {
		return broken{err} // a build with a damaged weights.json: tests exclude it
	}
	return &embedded{w}
}

// EmbeddedWith is Embedded with weights from a file in the format of
// weights.json. The error wraps ErrWeights.
func EmbeddedWith(r io.Reader) (Policy, error) {
	w, err := readWeights(r)
	if err != nil {
		return nil, err
	}
	return &embedded{w}, nil
}

// Info describes the policy.
func (p *embedded) Info() Info { return Info{Name: "embedded", Version: p.w.Version} }

// candidate is something that can be done next.
type candidate struct {
	offer *Offer // nil: the end
	f     features
	score float32
}

// Decide does what scores best; the earlier of equals.
func (p *embedded) Decide(ctx context.Context, s *State) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, context.Cause(ctx)
	}
	cs := make([]candidate, 0, len(s.Offers)+1)
	task := words(s.Prompt)
	for i := range s.Offers {
		c := candidate{offer: &s.Offers[i]}
		describeOffer(&c.f, s, c.offer, task)
		cs = append(cs, c)
	}
	var end candidate
	attempt, ok := describeFinish(&end.f, s)
	if !ok {
		end.f = features{fGiveUp: 1}
	}
	cs = append(cs, end)
	for i := range cs {
		cs[i].score = p.w.score(&cs[i].f)
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	d := Decision{Reasoning: p.why(cs)}
	switch best := cs[0].offer; {
	case best != nil:
		d.Calls = []Call{{Tool: best.Tool, Args: best.Args, Writer: best.Writer}}
	case ok:
		d.Finish = &Finish{Attempt: attempt.ID}
	default:
		return Decision{}, fmt.Errorf("%w: %d offers are masked, %d seem useless, and there is no attempt to finish with", ErrNothingLeft, len(s.Masked), len(s.Offers))
	}
	return d, nil
}

// why says what was chosen over what, and the features that speak for it most.
func (p *embedded) why(cs []candidate) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s scores %.2f", cs[0].name(), cs[0].score)
	if len(p.w.Layers) == 1 {
		type part struct {
			name string
			v    float32
		}
		var parts []part
		for i, w := range p.w.Layers[0].Weights[0] {
			if v := w * cs[0].f[i]; v != 0 {
				parts = append(parts, part{featureNames[i], v})
			}
		}
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(abs(b.v), abs(a.v)) })
		for i, x := range parts[:min(3, len(parts))] {
			fmt.Fprintf(&b, "%s%s %+.2f", []string{" (", ", ", ", "}[i], x.name, x.v)
		}
		if len(parts) > 0 {
			b.WriteString(")")
		}
	}
	if len(cs) > 1 {
		fmt.Fprintf(&b, "; next is %s with %.2f", cs[1].name(), cs[1].score)
	}
	return b.String()
}

func (c *candidate) name() string {
	switch {
	case c.offer == nil && c.f[fGiveUp] != 0:
		return "to give up"
	case c.offer == nil:
		return "to finish"
	case c.offer.Choice != "":
		return c.offer.Tool + " by " + c.offer.Choice
	}
	return c.offer.Tool
}

func abs(x float32) float32 { return max(x, -x) }

// broken is a policy that cannot be had.
type broken struct{ err error }

// Info describes the model.
func (p broken) Info() Info { return Info{Name: "embedded"} }

// Decide asks the policy.
func (p broken) Decide(context.Context, *State) (Decision, error) { return Decision{}, p.err }
