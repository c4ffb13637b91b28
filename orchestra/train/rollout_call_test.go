package train_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Calls that ran count for the tool, whatever came of them; those that did not
// run do not. Those that the policy should have known are malformed.
func TestCallsCountIfTheyRan(t *testing.T) {
	named := func(id string) policy.Call {
		return policy.Call{ID: id, Tool: "echo", Args: json.RawMessage(`{"text":"a"}`)}
	}
	unknown := policy.Decision{Calls: []policy.Call{{Tool: "nothing", Args: json.RawMessage(`{}`)}}}
	for name, c := range map[string]struct {
		d      policy.Decision
		count  int
		errs   []string
		format bool
	}{
		"worked":        {echoes(`{"text":"a"}`), 1, []string{""}, true},
		"two at once":   {echoes(`{"text":"a"}`, `{"text":"b"}`), 2, []string{"", ""}, true},
		"failed":        {echoes(`{"text":"fail"}`), 1, []string{"failed"}, true},
		"twice":         {echoes(`{"text":"a"}`, `{"text":"a"}`), 2, []string{"", ""}, true},
		"bad arguments": {echoes(`{"text":7,"x":`), 0, []string{"bad_arguments"}, false},
		"unknown tool":  {unknown, 0, []string{"unknown_tool"}, false},
		"one id twice":  {policy.Decision{Calls: []policy.Call{named("x"), named("x"), named("y")}}, 2, []string{"", "refused", ""}, true},
		"mixed":         {echoes(`{"text":"fail"}`, `{}`, `{"text":"b"}`), 2, []string{"failed", "bad_arguments", ""}, false},
	} {
		r := fold(t, ran(t, c.d, finish("done")))
		var errs []string
		for _, call := range r.Turns[0].Calls {
			errs = append(errs, call.Err)
		}
		if r.Calls["echo"] != c.count || r.Calls["nothing"] != 0 || !slices.Equal(errs, c.errs) || r.Turns[0].FormatOK != c.format || !r.Turns[1].FormatOK || r.Turns[1].Text != "done" {
			t.Errorf("%s: %d calls, errors %q, turns %+v", name, r.Calls["echo"], errs, r.Turns)
		}
		if broken := r.Metrics(nil).Broken; broken == c.format {
			t.Errorf("%s: the rollout is broken: %t", name, broken)
		}
	}
}

func TestRefusedRepetitionsDoNotCount(t *testing.T) {
	d := echoes(`{"text":"hush"}`)
	r := fold(t, ran(t, d, d, finish("done")))
	if r.Calls["echo"] != 1 || r.Turns[1].Calls[0].Err != "refused" || !r.Turns[1].FormatOK {
		t.Errorf("%d calls, %+v", r.Calls["echo"], r.Turns[1])
	}
}

// Arguments that an expert wrote are in the row as they were called with, and
// the writer counts as used. That they are useless is not the policy's fault.
func TestArgumentsOfWritersAreThoseThatWereCalled(t *testing.T) {
	for _, c := range []struct {
		writes []string
		args   string
		err    string
		count  int
	}{
		{[]string{`{"text":"a"}`}, `{"text":"a"}`, "", 1},
		{[]string{`{"x":1}`, `{"x":2}`}, `{"x":2}`, "bad_arguments", 0},
	} {
		pen := &speaks{info: models.Info{Name: "pen", Price: cost.Tokens(1, 10)}, texts: c.writes}
		other := &speaks{info: models.Info{Name: "other", Price: cost.Tokens(1, 10)}}
		echo := tools.Must(tools.New("echo", "Says it again.", func(_ context.Context, in text) (string, error) { return in.Text, nil }))
		synctest.Test(t, func(t *testing.T) {
			o, err := orchestra.New(orchestra.WithPolicy(asks{}), orchestra.WithExperts(other, pen), orchestra.WithTools(echo))
			if err != nil {
				t.Fatal(err)
			}
			res, err := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
			if err != nil {
				t.Fatal(err)
			}
			r := fold(t, reread(t, res.Trajectory))
			call := r.Turns[0].Calls[0]
			if string(call.Args) != c.args || call.Writer == "" || call.Err != c.err || !r.Turns[0].FormatOK || r.Calls["pen"] != c.count || r.Calls["echo"] != c.count || r.Calls["other"] != 0 {
				t.Errorf("%v: %+v, %v", c.writes, call, r.Calls)
			}
			if r.Turns[0].USD != r.USD || r.USD == 0 {
				t.Errorf("the turn costs %s of %s", r.Turns[0].USD, r.USD)
			}
		})
	}
}

// asks is a policy that cannot write: it takes the last offer of "echo", and finishes.
type asks struct{}

func (asks) Info() policy.Info { return policy.Info{Name: "asks"} }
func (asks) Decide(_ context.Context, s *policy.State) (policy.Decision, error) {
	for _, o := range slices.Backward(s.Offers) {
		if o.Tool == "echo" && s.Turn == 1 {
			return policy.Decision{Calls: []policy.Call{{Tool: o.Tool, Writer: o.Writer}}}, nil
		}
	}
	return finish("done"), nil
}

// When a run must end, the loop makes an attempt of its own. It is paid, but the
// policy neither gets credit for it nor blame.
func TestTheLoopsOwnAttemptIsNotThePolicys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := &speaks{info: models.Info{Name: "big", Price: cost.Tokens(1, 10)}, texts: []string{`\boxed{42}`}}
		echo := tools.Must(tools.New("echo", "Says it again.", func(_ context.Context, in text) (string, error) { return in.Text, nil }))
		o, err := orchestra.New(orchestra.WithPolicy(decides{echoes(`{"text":"a"}`)}), orchestra.WithExperts(big), orchestra.WithTools(echo))
		if err != nil {
			t.Fatal(err)
		}
		res, err := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?", Budget: cost.Budget{Turns: 1}})
		if err != nil || res.Stop != orchestra.OutOfTurns {
			t.Fatalf("%q: %v", res.Stop, err)
		}
		r := fold(t, reread(t, res.Trajectory))
		if !r.Valid || r.USD == 0 || r.Turns[0].USD != 0 || r.Calls["echo"] != 1 || r.Calls["big"] != 0 || r.Calls["answer"] != 0 || len(r.Turns) != 1 {
			t.Errorf("%+v", r)
		}
	})
}
