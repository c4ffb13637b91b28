package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// network makes the file of a network that has learned nothing: every answer is
// as likely as its voters say at equal weights, and an expert is worth its own
// accuracy if nobody was asked, and otherwise the given gain.
func network(t testing.TB, gain float32, bound ...string) []byte {
	t.Helper()
	domains := []string{"law", "math"}
	n := learned.New(len(domains), len(bound), learned.Sizes{Answer: 4, Value1: 4, Value2: 4})
	n.Value3.Bias[0] = gain
	card := learned.Card{Skill: []float32{0.5, 0.5}, Mean: 0.5, Tokens: []float32{100, 100}, LogTokens: []float32{4.5, 4.5}, Spread: 0.5}
	h := learned.Header{Version: "none", About: "nothing was learned", Domains: domains, Prior: card, Sizes: learned.Sizes{Answer: 4, Value1: 4, Value2: 4}, Experts: bound}
	for range bound {
		h.Cards = append(h.Cards, card)
	}
	var b bytes.Buffer
	if err := learned.Write(&b, h, n); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, file []byte, opts ...policy.NetworkOption) *policy.Network {
	t.Helper()
	n, err := policy.ReadNetwork(bytes.NewReader(file), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expertState is the first turn of a task for some experts.
func expertState(infos ...models.Info) *policy.State {
	spec := tools.Spec{Name: "answer", Effects: tools.ReadOnly | tools.Answers}
	s := &policy.State{Turn: 1, Prompt: "What is a tort?", Prefer: prefs.Default()}
	for i, info := range infos {
		alias := fmt.Sprintf("answer-%d", i+1)
		spec.Choices = append(spec.Choices, tools.Choice{Alias: alias, Info: info})
		s.Offers = append(s.Offers, policy.Offer{Tool: "answer", Choice: alias, Args: []byte(`{"model":"` + alias + `"}`), Names: []string{"answer", info.Name},
			Effects: spec.Effects, Latency: info.Latency, Skill: info.Skill})
	}
	s.Tools = []tools.Spec{spec}
	return s
}

// reply books what an expert answered, for that much money.
func reply(s *policy.State, expert int, text string, usd float64) {
	o := s.Offers[expert]
	out := policy.Outcome{Call: policy.Call{Tool: o.Tool, Args: o.Args}, USD: cost.Dollars(usd)}
	if text == "" {
		out.Err = &tools.Error{Kind: tools.Failed, Err: errors.New("no text")}
	} else {
		s.Work = s.Work.With(tools.Result{Attempts: []tools.Attempt{{By: s.Tools[0].Choices[expert].Info.Name, Text: text}}})
	}
	s.Turns = append(s.Turns, policy.Turn{N: s.Turn, Done: []policy.Outcome{out}})
	s.Turn++
}

// asked is the alias of the expert that is asked; "" = the run is finished.
func asked(t testing.TB, p policy.Policy, s *policy.State) string {
	t.Helper()
	d, err := p.Decide(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if d.Finish != nil {
		return ""
	}
	_, alias, _ := strings.Cut(string(d.Calls[0].Args), `:"`)
	return strings.TrimSuffix(alias, `"}`)
}

func skilled(name string, score, in, out float64) models.Info {
	return models.Info{Name: name, Price: cost.Tokens(in, out), Skill: models.Skill{Score: score, Tasks: 200}}
}

func TestNetworkAsksTheExpertWorthMost(t *testing.T) {
	n := open(t, network(t, 0))
	good, cheap := skilled("good", 0.9, 10, 40), skilled("cheap", 0.85, 0.1, 0.4)
	if a := asked(t, n, expertState(good, skilled("bad", 0.2, 10, 40))); a != "answer-1" {
		t.Errorf("of two at one price, %s", a)
	}
	s := expertState(good, cheap)
	if a := asked(t, n, s); a != "answer-1" {
		s.Prefer.Cost = 1
		if b := asked(t, n, s); b != "answer-2" {
			t.Errorf("%s, and %s where cost matters more", a, b)
		}
	}
	s.Prefer = prefs.Vector{Accuracy: 1}
	if a := asked(t, n, s); a != "answer-1" {
		t.Errorf("where cost does not matter, %s", a)
	}
	s.Prefer = prefs.Vector{Accuracy: 1, Cost: 1}
	if a := asked(t, n, s); a != "answer-2" {
		t.Errorf("where cost matters, %s", a)
	}
	s.Prefer = prefs.Vector{Accuracy: 1, Cost: 0.8, Use: map[string]float64{"good": 1}}
	if a := asked(t, n, s); a != "answer-1" {
		t.Errorf("where it is preferred, %s", a)
	}
	if a := asked(t, open(t, network(t, 0), policy.WithWorth(cost.Dollars(1e-6))), expertState(good, cheap)); a != "answer-2" {
		t.Errorf("where a right answer is worth little, %s", a)
	}
	slow, quick := cheap, cheap
	slow.Name, slow.Latency, quick.Latency = "slow", time.Minute, time.Second
	if a := asked(t, n, expertState(slow, quick)); a != "answer-2" {
		t.Errorf("of two that differ in time, %s", a)
	}
}

func TestNetworkKnowsDomains(t *testing.T) {
	file := network(t, 0)
	a, b := skilled("a", 0.5, 1, 1), skilled("b", 0.5, 1, 1)
	a.Skill.ByDomain = map[string]float64{"law": 0.9, "math": 0.2}
	b.Skill.ByDomain = map[string]float64{"law": 0.3, "math": 0.6}
	// Nothing was learned of texts, so both domains are as likely.
	if got := asked(t, open(t, file), expertState(b, a)); got != "answer-2" {
		t.Error(got)
	}
	card := policy.Card{Name: "b", Tasks: 100, Mean: 0.8, Skill: map[string]float64{"law": 0.9}}
	if got := asked(t, open(t, file, policy.WithCards(card)), expertState(b, a)); got != "answer-1" {
		t.Error("a card does not replace the Skill:", got)
	}
	if got := open(t, file).Domains(); len(got) != 2 {
		t.Error(got)
	}
}

func TestNetworkFinishesWhenAskingIsNotWorthIt(t *testing.T) {
	infos := []models.Info{skilled("a", 0.8, 1, 1), skilled("b", 0.7, 1, 1), skilled("c", 0.6, 1, 1)}
	eager, content := open(t, network(t, 0.5)), open(t, network(t, -0.01))
	s := expertState(infos...)
	reply(s, 0, "tort law", 0.001)
	if a := asked(t, content, s); a != "" {
		t.Errorf("asked %s although that is worth nothing", a)
	}
	if a := asked(t, eager, s); a == "" || a == "answer-1" {
		t.Errorf("asked %q", a)
	}
	reply(s, 1, "", 0.001) // an answer that cannot be used
	if a := asked(t, eager, s); a != "answer-3" {
		t.Errorf("asked %q", a)
	}
	reply(s, 2, "contract", 0.001)
	if a := asked(t, eager, s); a != "" {
		t.Errorf("asked %q again", a)
	}
}

func TestNetworkAsksOnUntilThereIsAnAnswer(t *testing.T) {
	n := open(t, network(t, -5))
	s := expertState(skilled("a", 0.8, 1, 1), skilled("b", 0.7, 1, 1))
	if asked(t, n, s) == "" {
		t.Fatal("nobody is asked")
	}
	reply(s, 0, "", 0.001)
	if a := asked(t, n, s); a != "answer-2" {
		t.Errorf("asked %q", a)
	}
	s.Offers = nil // for want of money
	if _, err := n.Decide(t.Context(), s); !errors.Is(err, policy.ErrNothingLeft) {
		t.Error(err)
	}
	s = expertState(skilled("a", 0.8, 1, 1))
	reply(s, 0, "", 0) // it never answered, so it may be asked again
	if a := asked(t, n, s); a != "answer-1" {
		t.Errorf("asked %q", a)
	}
}

func TestNetworkAsksNobodyWhoIsMasked(t *testing.T) {
	n := open(t, network(t, 0.5))
	s := expertState(skilled("a", 0.9, 1, 1), skilled("b", 0.2, 1, 1))
	s.Offers = s.Offers[1:]
	if a := asked(t, n, s); a != "answer-2" {
		t.Errorf("asked %q", a)
	}
}

func TestAgreeingAnswersAreOne(t *testing.T) {
	file := network(t, -1)
	n := open(t, file)
	s := expertState(skilled("a", 0.8, 1, 1), skilled("b", 0.7, 1, 1), skilled("c", 0.9, 1, 1))
	reply(s, 0, "Paris", 0.001)
	reply(s, 1, " paris. ", 0.001)
	d, err := n.Decide(t.Context(), s)
	if err != nil || d.Finish == nil || d.Finish.Attempt != "attempt-2" {
		t.Errorf("%+v, %v: want the newest attempt of the only answer", d.Finish, err)
	}
	s.Work = s.Work.With(tools.Result{Attempts: []tools.Attempt{{By: "calculator", Text: "…", Confidence: 0.9}}})
	if d, err := n.Decide(t.Context(), s); err != nil || d.Finish == nil || d.Finish.Attempt != "attempt-2" {
		t.Errorf("%+v, %v: an attempt that says nothing counts", d.Finish, err)
	}
}

func TestAWrongBindingIsRefused(t *testing.T) {
	n := open(t, network(t, 0, "a", "b"))
	a, b, c := skilled("a", 0.8, 1, 1), skilled("b", 0.7, 1, 1), skilled("c", 0.9, 1, 1)
	if got := asked(t, n, expertState(b, a)); got == "" || len(n.Bound()) != 2 {
		t.Error("its own experts in another order are refused")
	}
	for name, s := range map[string]*policy.State{"one is missing": expertState(a), "one is foreign": expertState(a, b, c), "another": expertState(a, c)} {
		if _, err := n.Decide(t.Context(), s); !errors.Is(err, policy.ErrBinding) || !tools.IsFatal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToolsAreLeftToTheGeneralWeights(t *testing.T) {
	n := open(t, network(t, 0.5))
	s := expertState(skilled("a", 0.8, 1, 1))
	calc := tools.Spec{Name: "tort_register", Description: "What is a tort?", Effects: tools.ReadOnly | tools.Answers}
	s.Tools = append(s.Tools, calc)
	s.Offers = append(s.Offers, policy.Offer{Tool: calc.Name, Args: []byte(`{}`), Names: []string{calc.Name}, Effects: calc.Effects})
	d, err := n.Decide(t.Context(), s)
	if err != nil || len(d.Calls) != 1 || d.Calls[0].Tool != calc.Name {
		t.Errorf("%+v, %v: want the exact tool that fits the task", d, err)
	}
	e, err := policy.Embedded().Decide(t.Context(), s)
	if err != nil || e.Calls[0].Tool != d.Calls[0].Tool {
		t.Errorf("Embedded decides %+v, %v", e, err)
	}
}

func TestBadNetworksAreRefused(t *testing.T) {
	file := network(t, 0)
	for name, f := range map[string][]byte{"empty": nil, "cut": file[:1000], "the hand-made weights": []byte(`{"schema":"toolorchestra.policy/1"}`)} {
		if _, err := policy.ReadNetwork(bytes.NewReader(f)); !errors.Is(err, policy.ErrWeights) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := policy.ReadNetwork(bytes.NewReader(policy.ShippedWeights())); !errors.Is(err, policy.ErrWeights) || !strings.Contains(err.Error(), "WithGeneral") {
		t.Errorf("general weights: %v", err)
	}
	if _, err := policy.Learned(policy.WithGeneral(bytes.NewReader(file))); !errors.Is(err, policy.ErrWeights) || !strings.Contains(err.Error(), "LoadNetwork") {
		t.Errorf("a network as general weights: %v", err)
	}
	for name, o := range map[string]policy.NetworkOption{
		"nil":           nil,
		"no worth":      policy.WithWorth(0),
		"no name":       policy.WithCards(policy.Card{Mean: 0.5}),
		"skill above 1": policy.WithCards(policy.Card{Name: "a", Mean: 0.5, Skill: map[string]float64{"law": 2}}),
		"mean below 0":  policy.WithCards(policy.Card{Name: "a", Mean: -1}),
	} {
		if _, err := policy.ReadNetwork(bytes.NewReader(file), o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := policy.LoadNetwork(t.TempDir() + "/none"); err == nil {
		t.Error("a file that does not exist is loaded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, file).Decide(ctx, expertState(skilled("a", 1, 1, 1))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestHostileStatesDoNotPanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	free, bound := open(t, network(t, 0.1)), open(t, network(t, 0.1, "x", "y"))
	for range 2000 {
		var infos []models.Info
		for i := range rng.IntN(70) {
			info := models.Info{Name: fmt.Sprint("m", i), Latency: time.Duration(rng.IntN(3)) * time.Hour}
			if rng.IntN(2) == 0 {
				info.Skill = models.Skill{Score: rng.Float64(), Tasks: rng.IntN(3), ByDomain: map[string]float64{"law": rng.Float64()}}
				info.Price = cost.Tokens(rng.Float64()*1e6, rng.Float64())
			}
			infos = append(infos, info)
		}
		s := expertState(infos...)
		s.Prompt = strings.Repeat("(A) x\xff", rng.IntN(5))
		s.Prefer = prefs.Vector{Accuracy: float64(rng.IntN(2)), Cost: float64(rng.IntN(2))}
		for i := range infos {
			if rng.IntN(3) == 0 {
				reply(s, i, []string{"", "A", "B", "C", "…"}[rng.IntN(5)], rng.Float64()*float64(rng.IntN(2)))
			}
		}
		for _, p := range []policy.Policy{free, bound} {
			if d, err := p.Decide(t.Context(), s); err == nil && d.Finish == nil && len(d.Calls) == 0 {
				t.Fatal("neither a call nor an end")
			}
		}
	}
}

// The same run on a busy machine takes the same decisions, for the same reasons.
func TestDecisionsDoNotHangOnTheMachine(t *testing.T) {
	s := expertState(models.Info{Name: "m", Latency: 20 * time.Second, Price: cost.Tokens(1, 1)})
	s.Tools = append(s.Tools, tools.Spec{Name: "look_up", Description: "Looks up articles of an encyclopedia.", Latency: time.Second, Effects: tools.ReadOnly})
	s.Offers = append(s.Offers, policy.Offer{Tool: "look_up", Args: []byte("{}"), Names: []string{"look_up"}, Latency: time.Second, Effects: tools.ReadOnly})
	s.Prefer.Latency = 0.5
	why := func(left time.Duration) string {
		s.Left.Time = left
		d, err := policy.Embedded().Decide(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return d.Reasoning
	}
	for _, limit := range []time.Duration{10 * time.Minute, 5 * time.Minute, 90 * time.Second} {
		if late := why(limit - 4*time.Second); late != why(limit) {
			t.Errorf("4 s after the start of %v: %s, and at once %s", limit, late, why(limit))
		}
	}
	if why(10*time.Minute) == why(time.Minute) {
		t.Error("the time left makes no difference")
	}
}
