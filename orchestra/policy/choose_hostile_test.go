package policy_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// says is a result with one attempt.
func says(a tools.Attempt) tools.Result { return tools.Result{Attempts: []tools.Attempt{a}} }

var long = strings.Repeat("many words say the same in another way ", 3)

// A tool of the application need not say who made an attempt.
func TestAttemptsOfNobodyAreOfTheirTools(t *testing.T) {
	for name, texts := range map[string][]string{
		"a short one and a long one": {"Paris", long},
		"two long ones":              {long, long},
		"two short ones":             {"Paris", "Rome"},
	} {
		for _, s := range []*policy.State{state(offer("exact", tools.ReadOnly|tools.Answers, 0), expertOffer("a-1", 0.001, 0)), state(expertOffer("a-1", 0.001, 0))} {
			for _, text := range texts {
				s = with(s, says(tools.Attempt{Text: text}))
			}
			if got := chosen(t, policy.Embedded(), s); got == "" {
				t.Error(name)
			}
		}
	}
}

// The run refuses to end with an empty answer, so the policy must not want to.
func TestEmptyAttemptsAreNoAnswers(t *testing.T) {
	s := with(state(expertOffer("a-1", 0.001, 0), offer("find", tools.ReadOnly, 0)), says(tools.Attempt{By: "x", Text: " \n", Confidence: 1}))
	if got := chosen(t, policy.Embedded(), s); strings.HasPrefix(got, "finish") {
		t.Errorf("%s, which is empty", got)
	}
	s = with(s, says(tools.Attempt{By: "y", Text: "Rome", Confidence: 0.9}))
	s = with(s, says(tools.Attempt{By: "x", Text: "", Confidence: 1}))
	if got := chosen(t, policy.Embedded(), s); got != "finish attempt-2" {
		t.Errorf("%s, want the only one with a text", got)
	}
	only := expertState(skilled("a", 0.8, 1, 1))
	only.Work = only.Work.With(says(tools.Attempt{By: "x", Text: " "}))
	if a := asked(t, policy.Embedded(), only); a != "answer-1" {
		t.Errorf("asked %q: the only attempt is empty", a)
	}
}

// cut is what an expert's answer is that ended at its output cap.
func cut(by, text string) tools.Attempt {
	return tools.Attempt{By: by, Text: text, Truncated: true, Confidence: 0.1}
}

// tell books the answer of an expert as it is.
func tell(s *policy.State, expert int, a tools.Attempt) {
	o := s.Offers[expert]
	a.By = s.Tools[0].Choices[expert].Info.Name
	s.Work = s.Work.With(says(a))
	s.Turns = append(s.Turns, policy.Turn{N: s.Turn, Done: []policy.Outcome{{Call: policy.Call{Tool: o.Tool, Args: o.Args}, USD: 1e9}}})
	s.Turn++
}

func TestAWholeAnswerIsPreferredToOneThatWasCutOff(t *testing.T) {
	for name, texts := range map[string][2]string{"short": {"It is", "Rome"}, "long": {long, "But " + long}, "long and short": {long, "Rome"}, "short and long": {"It is", long}} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			for _, tool := range []bool{false, true} {
				// The better one's answer was cut off.
				s := expertState(skilled("good", 0.95, 1, 1), skilled("weak", 0.6, 1, 1))
				for _, k := range order {
					if k == 0 {
						tell(s, 0, cut("", texts[0]))
					} else {
						tell(s, 1, tools.Attempt{Text: texts[1]})
					}
				}
				if tool {
					s.Tools = append(s.Tools, tools.Spec{Name: "note", Description: "Keeps a note.", Effects: tools.ReadOnly})
				}
				d, err := policy.Embedded().Decide(t.Context(), s)
				if err != nil || d.Finish == nil {
					t.Fatal(name, d, err)
				}
				if a, _ := s.Work.Attempt(d.Finish.Attempt); a.Truncated {
					t.Errorf("%s, order %v, tools %v: finishes with what was cut off: %s", name, order, tool, d.Reasoning)
				}
			}
		}
	}
}

// An answer that was cut off is better than none.
func TestWhatWasCutOffIsTheLastResort(t *testing.T) {
	for _, text := range []string{"It is", long} {
		s := expertState(skilled("good", 0.95, 1, 1), skilled("weak", 0.6, 1, 1))
		tell(s, 0, cut("", text))
		if a := asked(t, policy.Embedded(), s); a != "answer-2" {
			t.Errorf("asked %q: the only answer was cut off", a)
		}
		s.Offers = nil
		if a := asked(t, policy.Embedded(), s); a != "" {
			t.Errorf("asked %q", a)
		}
	}
}

// Tools may state no confidence in what they cut off.
func TestACutAttemptOfAToolIsNotTrusted(t *testing.T) {
	s := with(state(offer("exact", tools.ReadOnly|tools.Answers, 0)), says(tools.Attempt{By: "y", Text: "Rome", Confidence: 0.5}))
	s = with(s, says(tools.Attempt{By: "x", Text: "It is", Truncated: true}))
	s.Offers = nil
	if got := chosen(t, policy.Embedded(), s); got != "finish attempt-1" {
		t.Errorf("%s, want the whole one", got)
	}
}

func TestExploringAtAnyTemperatureIsDefined(t *testing.T) {
	for _, temperature := range []float64{0, -1, 1e-300, 1} {
		var c policy.Choice
		n := policy.Embedded().(*policy.Network).Explore(temperature, 1, func(x policy.Choice) { c = x })
		if _, err := n.Decide(t.Context(), state(offer("find", tools.ReadOnly, 0), expertOffer("a-1", 0.001, 0))); err != nil && !errors.Is(err, policy.ErrNothingLeft) {
			t.Fatal(err)
		}
		if !(c.Logprob <= 0) || len(c.Candidates) == 0 {
			t.Errorf("at %v the choice has log probability %v", temperature, c.Logprob)
		}
	}
}

// Two tools may answer by the same experts.
func TestABoundNetworkAllowsAnExpertInTwoTools(t *testing.T) {
	s := expertState(skilled("a", 0.8, 1, 1), skilled("b", 0.7, 1, 1))
	twice := s.Tools[0]
	twice.Name = "answer_briefly"
	s.Tools = append(s.Tools, twice)
	s.Prefer = prefs.Default()
	if _, err := open(t, network(t, 0, "a", "b")).Decide(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// Aliases of an application's tool are its own.
func TestExpertsAreKnownByAnyAlias(t *testing.T) {
	for _, aliases := range [][2]string{{"model", "b"}, {"b", "model"}, {`the "good" one`, "b"}, {"<fast>", "b"}, {"größte", "b"}, {`\`, "b"}} {
		s := expertState(skilled("a", 0.9, 1, 1), skilled("b", 0.8, 1, 1))
		for i, alias := range aliases {
			args, err := json.Marshal(map[string]string{"model": alias})
			if err != nil {
				t.Fatal(err)
			}
			s.Tools[0].Choices[i].Alias, s.Offers[i].Choice, s.Offers[i].Args = alias, alias, args
		}
		n := open(t, network(t, 0.5)) // which would ask all
		for turn := range 2 {
			d, err := n.Decide(t.Context(), s)
			if err != nil || len(d.Calls) != 1 {
				t.Fatalf("%q, turn %d: %+v, %v", aliases, turn, d, err)
			}
			k := slices.IndexFunc(s.Offers, func(o policy.Offer) bool { return string(o.Args) == string(d.Calls[0].Args) })
			reply(s, k, []string{"Rome", "Oslo"}[turn], 0.001)
		}
		if d, err := n.Decide(t.Context(), s); err != nil || d.Finish == nil {
			t.Errorf("%q: asks a third time: %+v, %v", aliases, d, err)
		}
	}
}
