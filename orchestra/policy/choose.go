package policy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// candidate is something that can be done next.
type candidate struct {
	offer  int // index in State.Offers; -1 = the end
	expert int // of the network, or -1
	value  float32
	f      general.Features
	score  float32
}

// tooled reports whether there is more to choose from than experts, so that the
// general weights decide.
func (th *thought) tooled(s *State) bool {
	if len(th.task.Experts) == 0 {
		return true
	}
	for i := range s.Tools {
		if t := &s.Tools[i]; t.Effects&tools.Answers == 0 || len(t.Choices) == 0 {
			return true
		}
	}
	return false
}

// weigh lists and scores what can be done next: every tool, every expert that was
// not asked yet, and the end. The best comes first, the earlier of equals.
func (th *thought) weigh(w *general.Weights, s *State) (cs []candidate, attempt string) {
	th.look(w, s)
	cs = th.candidates[:0]
	add := func(c candidate) *candidate {
		cs = append(cs, c)
		return &cs[len(cs)-1]
	}
	for i := range s.Offers {
		o := &s.Offers[i]
		switch e := slices.Index(th.offers, i); {
		case e < 0:
			c := add(candidate{offer: i, expert: -1})
			th.describeOffer(&c.f, s, o)
		case th.askable(e):
			c := add(candidate{offer: i, expert: e, value: th.values[e]})
			th.describeExpert(&c.f, s, o, e)
		}
	}
	end := add(candidate{offer: -1, expert: -1})
	attempt, confidence := th.attempt(s)
	if attempt != "" {
		th.describeFinish(&end.f, s, confidence)
	} else {
		end.f = general.Features{general.GiveUp: 1}
	}
	for i := range cs {
		cs[i].score = w.Score(&cs[i].f)
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	th.candidates = cs
	return cs, attempt
}

// attempt finds the attempt to finish with, the newest of equals, and how far it
// can be trusted: by its own word or, if several have answered, by who agrees
// with whom.
func (th *thought) attempt(s *State) (id string, confidence float32) {
	for _, a := range s.Work.Attempts() {
		if strings.TrimSpace(a.Text) == "" {
			continue // a run cannot end with it
		}
		c, byExpert := float32(a.Confidence), th.by(a.By) >= 0
		switch {
		case c == 0 && a.Truncated:
			c = cutOff
		case c == 0:
			c = Unstated
		}
		if i := slices.Index(th.attempts, a.ID); i >= 0 && i < len(th.p) {
			switch {
			case byExpert && a.Confidence > 0:
				c = min(c, th.p[i])
			case byExpert:
				c = th.p[i]
			default:
				c = max(c, th.p[i])
			}
		} else if byExpert && a.Confidence == 0 && !a.Truncated {
			c = 0.01 // another stands for it
		}
		if c >= confidence || id == "" {
			id, confidence = a.ID, c
		}
	}
	return id, confidence
}

// general decides among tools, experts and the end.
func (n *Network) general(s *State, th *thought) (Decision, error) {
	cs, attempt := th.weigh(n.w, s)
	pick := 0
	if x := n.explore; x != nil {
		pick = x.pick(cs)
	}
	d := Decision{Reasoning: n.reason(s, cs, pick, th)}
	switch i := cs[pick].offer; {
	case i >= 0:
		best := &s.Offers[i]
		d.Calls = []Call{{Tool: best.Tool, Args: best.Args, Writer: best.Writer}}
	case attempt != "":
		d.Finish = &Finish{Attempt: attempt}
	default:
		return Decision{}, fmt.Errorf("%w: %d offers are masked, %d seem useless, and there is no attempt to finish with", ErrNothingLeft, len(s.Masked), len(s.Offers))
	}
	return d, nil
}

// reason says what was chosen over what, and the features that speak for it most.
func (n *Network) reason(s *State, cs []candidate, pick int, th *thought) string {
	c := &cs[pick]
	b := c.name(s, th.said[:0])
	b = append(b, " scores "...)
	b = strconv.AppendFloat(b, float64(c.score), 'f', 2, 32)
	if len(n.w.Layers) == 1 {
		b = n.parts(b, c)
	}
	if c.expert >= 0 {
		b = append(b, "; "...)
		b = th.because(b, c.expert, c.value)
	}
	if len(cs) > 1 {
		next := &cs[0]
		if pick == 0 {
			next = &cs[1]
		}
		b = next.name(s, append(b, "; next is "...))
		b = strconv.AppendFloat(append(b, " with "...), float64(next.score), 'f', 2, 32)
	}
	th.said = b
	return string(b)
}

// parts appends the three features that count most.
func (n *Network) parts(b []byte, c *candidate) []byte {
	var best [3]int
	k := 0
	w := n.w.Layers[0].Weights[0]
	for i := range w {
		v := abs(w[i] * c.f[i])
		if v == 0 {
			continue
		}
		at := k
		for at > 0 && v > abs(w[best[at-1]]*c.f[best[at-1]]) {
			at--
		}
		if at == len(best) {
			continue
		}
		k = min(k+1, len(best))
		copy(best[at+1:k], best[at:])
		best[at] = i
	}
	for i, f := range best[:k] {
		b = append(append(b, [...]string{" (", ", ", ", "}[i]...), general.Names[f]...)
		v := float64(w[f] * c.f[f])
		b = append(b, ' ')
		if v >= 0 {
			b = append(b, '+')
		}
		b = strconv.AppendFloat(b, v, 'f', 2, 32)
	}
	if k > 0 {
		b = append(b, ')')
	}
	return b
}

// name appends what a candidate is.
func (c *candidate) name(s *State, b []byte) []byte {
	switch {
	case c.offer < 0 && c.f[general.GiveUp] != 0:
		return append(b, "to give up"...)
	case c.offer < 0:
		return append(b, "to finish"...)
	}
	return s.Offers[c.offer].name(b)
}

// name appends the tool of an offer and who does it, or writes its arguments.
func (o *Offer) name(b []byte) []byte {
	b = append(b, o.Tool...)
	if by := o.Choice + o.Writer; by != "" { // it has one of them at most
		b = append(append(b, " by "...), by...)
	}
	return b
}

func abs(x float32) float32 { return max(x, -x) }

// Choice is one decision of the general weights, as package train needs it: its
// features have no meaning elsewhere.
type Choice struct {
	Candidates [][]float32 // the features of each
	Offers     []int       // index in State.Offers of each; -1 = the end
	Picked     int
	Logprob    float64 // natural logarithm of the chance that it had
}

// Explore is the policy with its general choices (among tools, experts and the
// end) drawn with chances in proportion to exp(score/temperature), each told to
// record. At a temperature of 0 or below the best is drawn. The draws go by seed. It
// is experimental and for package train, for one run at a time.
func (n *Network) Explore(temperature float64, seed uint64, record func(Choice)) *Network {
	if !(temperature >= coldest) {
		temperature = coldest
	}
	x := *n
	x.explore = &explorer{temperature: temperature, rng: rand.New(rand.NewPCG(seed, 0x6578706c)), record: record}
	return &x
}

// coldest is the least temperature: the best is drawn.
const coldest = 1e-6

type explorer struct {
	temperature float64
	rng         *rand.Rand
	record      func(Choice)
}

// pick draws a candidate.
func (x *explorer) pick(cs []candidate) int {
	sum, top := 0.0, float64(cs[0].score)
	chance := func(c *candidate) float64 { return math.Exp((float64(c.score) - top) / x.temperature) }
	for i := range cs {
		sum += chance(&cs[i])
	}
	at := x.rng.Float64() * sum
	pick := 0
	for i := range cs {
		if at -= chance(&cs[i]); at <= 0 {
			pick = i
			break
		}
	}
	if x.record != nil {
		c := Choice{Picked: pick, Logprob: math.Log(chance(&cs[pick]) / sum)}
		for i := range cs {
			c.Candidates, c.Offers = append(c.Candidates, slices.Clone(cs[i].f[:])), append(c.Offers, cs[i].offer)
		}
		x.record(c)
	}
	return pick
}
