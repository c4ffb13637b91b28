package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// anyState is a state as tools, experts and users may bring it about.
func anyState(rng *rand.Rand) *policy.State {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	texts := []string{"", " ", "…", "Paris", "paris.", "42", "a\x00\xff", "不知道", long, "<answer>It is", strings.Repeat("x", 5000)}
	s := &policy.State{Turn: 1 + rng.IntN(20), Prompt: pick(texts...), Left: cost.Spend{USD: cost.Dollars(rng.Float64() * float64(rng.IntN(2))), Turns: rng.IntN(3) * 5, Time: time.Duration(rng.IntN(3)-1) * time.Minute},
		Limit: cost.Spend{USD: cost.Dollars(float64(rng.IntN(2)))}, Spent: cost.Spend{USD: cost.Dollars(rng.Float64())},
		Prefer: prefs.Vector{Accuracy: float64(rng.IntN(3)) / 2, Cost: float64(rng.IntN(3)) / 2, Latency: float64(rng.IntN(3)) / 2, Use: map[string]float64{"m1": float64(rng.IntN(2))}}}
	names := []string{"tool"}
	for i := range rng.IntN(6) {
		spec := tools.Spec{Name: fmt.Sprint("tool-", i), Description: pick(append(texts, "Search the web.", "Run a program.")...), Effects: tools.Effects(rng.IntN(64)), Latency: time.Duration(rng.IntN(2)) * time.Hour}
		names = append(names, spec.Name)
		for k := range rng.IntN(4) * rng.IntN(2) {
			info := models.Info{Name: fmt.Sprint("m", rng.IntN(4)), Price: cost.Tokens(rng.Float64()*1e3, rng.Float64()), Skill: models.Skill{Score: rng.Float64(), Tasks: rng.IntN(3)}}
			names = append(names, info.Name)
			spec.Choices = append(spec.Choices, tools.Choice{Alias: pick("model", fmt.Sprint("e-", k)), Info: info})
		}
		s.Tools = append(s.Tools, spec)
		o := policy.Offer{Tool: spec.Name, Effects: spec.Effects, Names: names, Latency: spec.Latency, Estimate: cost.Estimate{Mean: cost.Spend{USD: cost.Dollars(rng.Float64() * float64(rng.IntN(2)))}}}
		for _, c := range spec.Choices {
			o.Choice, o.Skill = c.Alias, c.Info.Skill
			o.Args, _ = json.Marshal(map[string]string{"model": c.Alias})
			s.Offers = append(s.Offers, o)
		}
		if len(spec.Choices) == 0 {
			o.Writer = pick("", "writer-1")
			s.Offers = append(s.Offers, o)
		}
	}
	for i := range rng.IntN(6) {
		t := policy.Turn{N: i + 1}
		for range rng.IntN(3) {
			c := policy.Call{Tool: pick(names...), Args: json.RawMessage(pick(`{}`, `{"model":"e-1"}`, `{"model":"model"}`, `{"model":`, `[1]`, ``)), Writer: pick("", "writer-1")}
			if len(s.Offers) > 0 && rng.IntN(2) == 0 {
				o := s.Offers[rng.IntN(len(s.Offers))]
				c = policy.Call{Tool: o.Tool, Args: o.Args, Writer: o.Writer}
			}
			d := policy.Outcome{Call: c, USD: cost.Dollars(rng.Float64() * float64(rng.IntN(2)))}
			if rng.IntN(3) == 0 {
				d.Err = &tools.Error{Kind: tools.Kind(pick("failed", "refused", "bad_arguments")), Err: errors.New("no")}
			} else if rng.IntN(2) == 0 {
				d.Result.Attempts = []tools.Attempt{{By: pick("", "m1", "m2", "m3", c.Tool), Text: pick(texts...), Truncated: rng.IntN(4) == 0, Confidence: float64(rng.IntN(3)) / 2}}
			}
			s.Work = s.Work.With(d.Result)
			t.Done = append(t.Done, d)
		}
		s.Turns = append(s.Turns, t)
	}
	return s
}

// Whatever the state, a decision is one of the offers or an attempt that a run can
// end with; and memory that is used again for other runs changes none.
func TestDecisionsAreSoundAndIndependent(t *testing.T) {
	const n = 1000
	rng := rand.New(rand.NewPCG(4, 4))
	states, want := make([]*policy.State, n), make([]policy.Decision, n)
	var p policy.Policy
	for i := range states {
		s := anyState(rng)
		if i%50 == 0 { // memory that nobody has used
			fresh, err := policy.Learned()
			if err != nil {
				t.Fatal(err)
			}
			p = fresh
		}
		d, err := p.Decide(t.Context(), s)
		states[i], want[i] = s, d
		switch {
		case errors.Is(err, policy.ErrNothingLeft):
		case err != nil:
			t.Fatal(i, err)
		case d.Finish != nil:
			if a, ok := s.Work.Attempt(d.Finish.Attempt); !ok || strings.TrimSpace(a.Text) == "" || len(d.Calls) > 0 {
				t.Errorf("state %d: ends with %+v", i, a)
			}
		case len(d.Calls) != 1:
			t.Errorf("state %d: %d calls", i, len(d.Calls))
		default:
			found := false
			for _, o := range s.Offers {
				found = found || o.Tool == d.Calls[0].Tool && string(o.Args) == string(d.Calls[0].Args) && o.Writer == d.Calls[0].Writer
			}
			if !found {
				t.Errorf("state %d: calls %+v, which is no offer", i, d.Calls[0])
			}
		}
	}
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for k := range n {
				i := (k*7 + g*701) % n
				if d, _ := policy.Embedded().Decide(t.Context(), states[i]); !reflect.DeepEqual(d, want[i]) {
					t.Errorf("state %d: decided %s, alone %s", i, d.Reasoning, want[i].Reasoning)
				}
			}
		})
	}
	wait.Wait()
}
