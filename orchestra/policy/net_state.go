package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// thought is the memory of one decision.
type thought struct {
	task    learned.Task
	scratch learned.Scratch
	hasher  learned.Hasher

	offers   []int  // of each expert: index in State.Offers, or -1
	down     []bool // of each expert: it failed before it answered
	names    []string
	aliases  []string
	toolOf   []string
	cards    []learned.Card // of experts that state a Skill
	answers  []string       // different ones, as they are compared
	attempts []string       // id of the newest attempt that gives each
	p        []float32
	values   []float32
	first    int    // the likeliest answer, or -1
	rest     string // id of the newest attempt that is none of the answers, of what was cut off only where there is no other; or ""
	prose    int    // the answer that all long ones count as, or -1
	speaker  float32

	scene      scene
	candidates []candidate
	said       []byte
}

// prosePast is how many words an answer may have to be compared with others.
const prosePast = 12

// isExpert reports whether an offer is an expert that gives an answer.
func isExpert(o *Offer) bool { return o.Effects&tools.Answers != 0 && o.Choice != "" }

// think works out what each answer and each expert is worth.
func (n *Network) think(s *State, th *thought) error {
	t := &th.task
	t.Experts, t.Answers, t.Lambda = t.Experts[:0], 0, 0
	th.down, th.offers, th.names, th.aliases, th.toolOf = th.down[:0], th.offers[:0], th.names[:0], th.aliases[:0], th.toolOf[:0]
	th.answers, th.attempts, th.first, th.prose = th.answers[:0], th.attempts[:0], -1, -1
	th.p, th.values, th.rest = nil, nil, ""
	if err := n.experts(s, th); err != nil {
		return err
	}
	if len(t.Experts) == 0 {
		return nil
	}
	n.n.Read(t, th.hasher.Features(s.Prompt, n.n.IDF))
	t.Options, t.Length, t.Digits = th.hasher.Options, th.hasher.Length, th.hasher.Digits
	th.history(s)
	n.n.Begin(t)
	n.prefer(s, th)
	p, none := n.n.Posterior(t, &th.scratch)
	th.p = p
	th.first, _ = learned.Best(p)
	th.values = n.n.Values(t, p, none, &th.scratch)
	for i := range th.values {
		if j := th.offers[i]; j >= 0 {
			th.values[i] += th.wished(s, &s.Offers[j])
		}
	}
	return nil
}

// wished is what the preference for an offer is worth, less what its time is.
func (th *thought) wished(s *State, o *Offer) float32 {
	return float32(useShare*s.Prefer.Weight(o.Names...)) - th.late(s, o)
}

// late is what the time of an offer is worth.
func (th *thought) late(s *State, o *Offer) float32 {
	var slowest float64
	for i := range s.Offers {
		if isExpert(&s.Offers[i]) {
			slowest = max(slowest, float64(s.Offers[i].Latency))
		}
	}
	if slowest <= 0 {
		return 0
	}
	return float32(latencyShare * s.Prefer.Latency * float64(o.Latency) / slowest)
}

// prefer sets what cost is worth.
func (n *Network) prefer(s *State, th *thought) {
	t := &th.task
	if n.worth > 0 {
		t.Lambda = float32(float64(t.Unit) / n.worth.Dollars())
		return
	}
	t.Lambda = float32(CostShare * s.Prefer.Cost / max(s.Prefer.Accuracy, 0.05))
}

// experts lists the experts that give answers, whether they may be called now or
// not.
func (n *Network) experts(s *State, th *thought) error {
	t := &th.task
	input := learned.InputTokens(utf8.RuneCountInString(s.Prompt))
	for _, d := range s.Work.Documents() {
		input += float32(len(d.Text) / 4)
	}
	choices := 0
	for i := range s.Tools {
		choices += len(s.Tools[i].Choices)
	}
	if th.cards = th.cards[:0]; cap(th.cards) < choices { // it must not move later: experts point into it
		th.cards = make([]learned.Card, 0, choices)
	}
	for i := range s.Tools {
		spec := &s.Tools[i]
		if spec.Effects&tools.Answers == 0 {
			continue
		}
		for k := range spec.Choices {
			c := &spec.Choices[k]
			e := learned.Expert{Bound: -1, Tokens: -1, Card: n.cards[c.Info.Name]}
			if b, ok := n.bound[c.Info.Name]; ok {
				e.Bound = b
			} else if len(n.bound) > 0 {
				return n.mismatch(s)
			}
			if e.Card == nil {
				e.Card = n.stated(th, &c.Info.Skill)
			}
			e.In, e.Out = input*perToken(c.Info.Price.Input), perToken(c.Info.Price.Output)
			t.Experts = append(t.Experts, e)
			th.names, th.aliases, th.toolOf = append(th.names, c.Info.Name), append(th.aliases, c.Alias), append(th.toolOf, spec.Name)
			offer := -1
			for j := range s.Offers {
				if o := &s.Offers[j]; o.Tool == spec.Name && o.Choice == c.Alias {
					offer = j
				}
			}
			th.offers = append(th.offers, offer)
		}
	}
	for name := range n.bound {
		if !slices.Contains(th.names, name) {
			return n.mismatch(s)
		}
	}
	return nil
}

// mismatch says how the experts differ from those that the network is bound to.
func (n *Network) mismatch(s *State) error {
	var have, lacks, unknown []string
	for i := range s.Tools {
		if s.Tools[i].Effects&tools.Answers != 0 {
			for _, c := range s.Tools[i].Choices {
				have = append(have, c.Info.Name)
			}
		}
	}
	for _, e := range n.h.Experts {
		if !slices.Contains(have, e) {
			lacks = append(lacks, e)
		}
	}
	for _, e := range have {
		if _, ok := n.bound[e]; !ok {
			unknown = append(unknown, e)
		}
	}
	return tools.Fatal(fmt.Errorf("%w: missing %q, unknown to it %q: use the experts that it was trained with (Network.Bound), or weights that go by descriptors alone", ErrBinding, lacks, unknown))
}

// perToken is what a token costs in USD; an unstated rate counts as nothing.
func perToken(r cost.Rate) float32 {
	a, _ := r.Amount()
	return float32(a.Dollars() / 1e6)
}

// history books who was asked, and what was answered.
func (th *thought) history(s *State) {
	t := &th.task
	th.down = append(th.down[:0], make([]bool, len(t.Experts))...)
	for i := range s.Turns {
		for k := range s.Turns[i].Done {
			d := &s.Turns[i].Done[k]
			e := th.expert(&d.Call)
			if e < 0 {
				continue // not an expert
			}
			if d.Err != nil && d.USD == 0 { // it never answered
				th.down[e] = th.down[e] || d.Err.Kind != tools.Refused
				continue
			}
			x := &t.Experts[e]
			x.Asked, x.Answer = true, -1
			x.Tokens = learned.OutputTokens(float32(d.USD.Dollars()), x.In, x.Out)
		}
	}
	whole := false // rest
	for _, a := range s.Work.Attempts() {
		e := th.by(a.By)
		byExpert := e >= 0 && t.Experts[e].Asked
		answer := -1
		switch {
		case a.Truncated: // no answer yet
		case !wordy(a.Text):
			answer = th.answer(a.Text)
		case byExpert:
			t.Experts[e].Answer = th.say(a.ID, t.Experts[e].Card.Mean)
			continue
		}
		if answer < 0 {
			if blank := strings.TrimSpace(a.Text) == ""; !blank && (!a.Truncated || !whole) {
				th.rest, whole = a.ID, !a.Truncated
			}
			continue
		}
		th.attempts[answer] = a.ID
		if byExpert {
			t.Experts[e].Answer = answer
			continue
		}
		c := a.Confidence // of a tool, which has no card
		if c == 0 {
			c = Unstated
		}
		t.Experts = append(t.Experts, learned.Expert{Bound: -1, Stated: float32(c), Asked: true, Answer: answer, Tokens: -1})
		th.offers, th.names, th.aliases, th.toolOf = append(th.offers, -1), append(th.names, ""), append(th.aliases, ""), append(th.toolOf, "")
	}
	t.Answers = len(th.answers)
}

// by finds the expert that made an attempt, one that was asked if several have
// the name, or -1. Tools need not say who made theirs.
func (th *thought) by(name string) int {
	found := -1
	for i, n := range th.names {
		if n == name && n != "" && (found < 0 || th.task.Experts[i].Asked) {
			found = i
		}
	}
	return found
}

// askable reports whether an expert can be asked, and has not been. One that
// failed without an answer is asked again only where there is no other.
func (th *thought) askable(i int) bool {
	free := func(i int) bool { return th.offers[i] >= 0 && !th.task.Experts[i].Asked }
	if !free(i) || !th.down[i] {
		return free(i)
	}
	for k, down := range th.down {
		if !down && free(k) {
			return false
		}
	}
	return true
}

// wordy reports whether an answer is too long to be worded alike by others that
// mean the same.
func wordy(text string) bool {
	n := 0
	for range strings.FieldsSeq(text) {
		if n++; n > prosePast {
			return true
		}
	}
	return false
}

// say books a long answer. All of them count as one, for which that of the
// expert with the best record stands: they cannot be compared.
func (th *thought) say(attempt string, record float32) int {
	if th.prose < 0 {
		th.prose, th.speaker = len(th.answers), -1
		th.answers, th.attempts = append(th.answers, ""), append(th.attempts, "")
	}
	if record >= th.speaker {
		th.attempts[th.prose], th.speaker = attempt, record
	}
	return th.prose
}

// expert finds who was called, or -1.
func (th *thought) expert(c *Call) int {
	alias := modelOf(c.Args)
	for i, tool := range th.toolOf {
		if tool == c.Tool && tool != "" && string(alias) == th.aliases[i] {
			return i
		}
	}
	return -1
}

// modelOf is the "model" argument of a call. As offers write it, it is cut out;
// an alias may need JSON's escapes, though, and other policies write as they like.
func modelOf(args json.RawMessage) []byte {
	if alias, ok := bytes.CutPrefix(args, []byte(`{"model":"`)); ok {
		if alias, ok = bytes.CutSuffix(alias, []byte(`"}`)); ok && !bytes.ContainsAny(alias, `"\`) {
			return alias
		}
	}
	var v struct{ Model string }
	_ = json.Unmarshal(args, &v) // what is no JSON names nobody
	return []byte(v.Model)
}

// answer numbers an answer; those that differ in case, spacing and punctuation
// around them only are one. It is -1 for one that says nothing.
func (th *thought) answer(text string) int {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '%' })
	if text == "" {
		return -1
	}
	for i, a := range th.answers {
		if i != th.prose && strings.EqualFold(a, text) {
			return i
		}
	}
	th.answers, th.attempts = append(th.answers, text), append(th.attempts, "")
	return len(th.answers) - 1
}
