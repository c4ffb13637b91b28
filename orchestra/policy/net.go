package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// ErrBinding means that a network has parameters of its own for some experts,
// and the orchestrator has others.
var ErrBinding = errors.New("policy: the network is bound to other experts")

// Network is a policy whose choice among experts was learned from recorded
// answers (package train). It reads the task, weighs the answers that it has seen
// by who gave them and at what length, and asks a further expert where that is
// worth more than it costs. Where there is more than experts to choose from (search,
// code, other tools), general weights decide: over a vector of features of each tool, of the expert that the network would ask, and of the end.
//
// It knows experts by their price, their measured Skill and their Card, never by
// name, unless it was trained as bound to a fixed set of them. It is immutable
// and safe for concurrent use.
type Network struct {
	h     learned.Header
	n     *learned.Net
	w     *general.Weights
	cards map[string]*learned.Card // by name of the expert
	prior *learned.Card
	worth cost.Amount
	bound map[string]int
	pool  *sync.Pool // of *thought

	explore *explorer // nil = the best is done
}

// NetworkOption varies what Learned, ReadNetwork, LoadNetwork and Network.With make.
type NetworkOption interface{ network(*Network) error }

type networkOption func(*Network) error

func (f networkOption) network(n *Network) error { return f(n) }

// WithWorth says what a right answer is worth. An expert is then asked if it
// raises the chance of one by more than its price is of that sum, whatever the
// preferences' weight of cost. The default goes by the preferences: see
// CostShare. Where there is more than experts to choose from, this is one feature
// among others.
func WithWorth(a cost.Amount) NetworkOption {
	return networkOption(func(n *Network) error {
		if a <= 0 {
			return fmt.Errorf("policy: WithWorth: %s is no worth: state a positive sum, or leave the option out", a)
		}
		n.worth = a
		return nil
	})
}

// WithCards adds what was measured of experts, by their names. A card replaces
// what the expert's Skill says.
func WithCards(cards ...Card) NetworkOption {
	return networkOption(func(n *Network) error {
		for i := range cards {
			c, err := n.card(&cards[i])
			if err != nil {
				return err
			}
			n.cards[cards[i].Name] = c
		}
		return nil
	})
}

// CostShare is what the cost of the dearest expert is worth in probability of a
// right answer, at weights of 1 for cost and for accuracy: a call at that price
// has to raise the chance by as much. It grows with the ratio of the two
// weights, and prices below the dearest one's count in proportion. Where there is
// more than experts to choose from, this is one feature among others.
const CostShare = 0.12

// latencyShare is the same for the time of the slowest expert.
const latencyShare = 0.03

// useShare is what asking a fully preferred expert is worth.
const useShare = 0.3

// ReadNetwork reads a network from a file that package train wrote. Errors wrap
// ErrWeights, or are those of r.
func ReadNetwork(r io.Reader, opts ...NetworkOption) (*Network, error) {
	var seen beginning
	h, net, err := learned.ReadFile(io.TeeReader(r, &seen))
	switch {
	case errors.Is(err, learned.ErrFile) && seen.is(general.Schema):
		return nil, fmt.Errorf("%w: these are general weights: pass them to WithGeneral", ErrWeights)
	case errors.Is(err, learned.ErrFile):
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	case err != nil:
		return nil, err
	}
	w, err := builtin()
	if err != nil {
		return nil, err
	}
	n := &Network{h: h, n: net, w: w, cards: map[string]*learned.Card{}, prior: &h.Prior, bound: map[string]int{},
		pool: &sync.Pool{New: func() any { return new(thought) }}}
	for i, name := range h.Experts {
		n.bound[name] = i
		n.cards[name] = &h.Cards[i]
	}
	if err := n.set(opts); err != nil {
		return nil, err
	}
	return n, nil
}

// beginning is that of a file.
type beginning struct{ b []byte }

// Write keeps what there is room for.
func (h *beginning) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), 512-len(h.b))]...)
	return len(p), nil
}

// is reports whether the file begins as one of a schema, whatever its version.
func (h *beginning) is(schema string) bool {
	name, _, _ := strings.Cut(schema, "/")
	return bytes.Contains(h.b, []byte(`"`+name+`/`))
}

// LoadNetwork is ReadNetwork of a file. A network that is not bound knows no
// expert: give it cards (WithCards), or experts with a measured Skill.
func LoadNetwork(path string, opts ...NetworkOption) (*Network, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n, err := ReadNetwork(bytes.NewReader(b), opts...)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return n, nil
}

// Info describes the policy. Its version names both sets of weights.
func (n *Network) Info() Info {
	return Info{Name: "embedded", Version: n.h.Version + "+" + n.w.Version}
}

// Domains are the kinds of tasks that the network tells apart: the keys of
// models.Skill.ByDomain that it understands.
func (n *Network) Domains() []string { return slices.Clone(n.h.Domains) }

// Facts says where the weights come from, and what is known of their training.
func (n *Network) Facts() map[string]string {
	f := map[string]string{"about": n.h.About, "version": n.h.Version, "general.about": n.w.About, "general.version": n.w.Version}
	maps.Copy(f, n.h.Facts)
	for k, v := range n.w.Facts {
		f["general."+k] = v
	}
	return f
}

// With is the network with further options; n stays as it is.
func (n *Network) With(opts ...NetworkOption) (*Network, error) {
	x := *n
	x.cards = maps.Clone(n.cards)
	if err := x.set(opts); err != nil {
		return nil, err
	}
	return &x, nil
}

func (n *Network) set(opts []NetworkOption) error {
	for i, o := range opts {
		if o == nil {
			return fmt.Errorf("policy: network option %d is nil: leave it out", i+1)
		}
		if err := o.network(n); err != nil {
			return err
		}
	}
	return nil
}

// Bound lists the experts that the network has parameters of its own for; none
// if it knows experts by their descriptors alone.
func (n *Network) Bound() []string { return slices.Clone(n.h.Experts) }

// Decide does what is worth most.
func (n *Network) Decide(ctx context.Context, s *State) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, context.Cause(ctx)
	}
	th := n.pool.Get().(*thought)
	defer n.pool.Put(th)
	if bad := n.think(s, th); bad != nil {
		return Decision{}, bad
	}
	if th.tooled(s) {
		return n.general(s, th)
	}
	best, value := th.choose()
	if value <= 0 && th.task.Answers > 0 {
		best = -1
	}
	switch {
	case best >= 0:
		o := &s.Offers[th.offers[best]]
		return Decision{Reasoning: th.why(o, best, value), Calls: []Call{{Tool: o.Tool, Args: o.Args, Writer: o.Writer}}}, nil
	case th.first >= 0:
		return Decision{Reasoning: th.whyEnd(value), Finish: &Finish{Attempt: th.attempts[th.first]}}, nil
	case th.rest != "":
		return Decision{Reasoning: "to finish: nobody is left to ask, and this is all that was answered", Finish: &Finish{Attempt: th.rest}}, nil
	}
	return Decision{}, fmt.Errorf("%w: %d offers are masked, and no expert gave an answer", ErrNothingLeft, len(s.Masked))
}

// choose finds the expert that is worth asking most, or -1. Without any answer
// yet, that one is asked whatever it is worth: a run without an answer is worth
// nothing.
func (th *thought) choose() (best int, value float32) {
	best, value = -1, float32(math.Inf(-1))
	for i := range th.down {
		if th.askable(i) && th.values[i] > value {
			best, value = i, th.values[i]
		}
	}
	return best, value
}

// why says what speaks for asking an expert.
func (th *thought) why(o *Offer, i int, value float32) string {
	b := o.name(th.said[:0])
	th.said = th.because(append(b, ": "...), i, value)
	return string(th.said)
}

// because appends what an expert is expected to be worth.
func (th *thought) because(b []byte, i int, value float32) []byte {
	e := &th.task.Experts[i]
	if th.task.Answers > 0 {
		b = append(b, "asking on is worth "...)
	} else {
		b = append(b, "likely right "...)
		b = strconv.AppendFloat(b, float64(e.Accuracy()), 'f', 2, 32)
		b = append(b, ", worth "...)
	}
	b = strconv.AppendFloat(b, float64(value), 'f', 3, 32)
	b = append(b, " after its cost of "...)
	b = strconv.AppendFloat(b, float64(th.task.Lambda*e.Cost()), 'f', 3, 32)
	if th.first >= 0 {
		b = append(b, "; the best answer so far is likely right "...)
		b = strconv.AppendFloat(b, float64(th.p[th.first]), 'f', 2, 32)
	}
	return b
}

// whyEnd says why no expert is asked any more.
func (th *thought) whyEnd(value float32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "to finish: the answer is likely right %.2f", th.p[th.first])
	if !math.IsInf(float64(value), 0) {
		fmt.Fprintf(&b, ", and asking on is worth %.3f", value)
	} else {
		b.WriteString(", and nobody is left to ask")
	}
	return b.String()
}
