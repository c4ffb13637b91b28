package orchestra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

type query struct {
	Q string `json:"q" validate:"required"`
}

// What a policy or a tool may do wrong, one by one: each has a typed outcome, and
// the run goes on or ends with a reason and the whole bill.
func TestWhatGoesWrong(t *testing.T) {
	forever := func(d policy.Decision) decideFunc {
		return func(context.Context, *policy.State) (policy.Decision, error) { return d, nil }
	}
	typed := tools.Must(tools.New("typed", "A typed tool.", func(_ context.Context, q query) (string, error) { return "ok " + q.Q, nil }))
	failing := func(name string, err error) tools.Tool {
		return fnTool{tools.Spec{Name: name}, func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, err }}
	}
	panicking := fnTool{tools.Spec{Name: "panics"}, func(context.Context, tools.Call) (tools.Result, error) { panic("a bug") }}
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		policy policy.Policy
		budget cost.Budget
		stop   orchestra.Stop
		answer string
		kind   tools.Kind // of the first failed call; "" = none
		turns  int
		err    error
	}{
		{name: "always calls the tool", policy: forever(call("ok", `{"q":"x"}`)), stop: orchestra.OutOfTurns, turns: 20, err: orchestra.ErrNoAnswer},
		{name: "always calls, no bound on turns", policy: forever(call("ok", `{}`)), budget: cost.Budget{Turns: cost.Unlimited}, stop: orchestra.Stuck, turns: 42, kind: tools.Refused},
		{name: "arguments are not JSON", policy: script(call("typed", `nonsense`)), stop: orchestra.Answered, answer: "done", kind: tools.BadArguments, turns: 2},
		{name: "arguments are cut off", policy: script(call("typed", `{"q": "half an inst`)), stop: orchestra.Answered, answer: "done", kind: tools.BadArguments, turns: 2},
		{name: "a required key is missing", policy: script(call("typed", `{}`)), stop: orchestra.Answered, answer: "done", kind: tools.BadArguments, turns: 2},
		{name: "arguments are empty", policy: forever(call("typed", ``)), stop: orchestra.Stuck, kind: tools.BadArguments, turns: 3},
		{name: "the tool returns an error", policy: script(call("fails", `{}`)), stop: orchestra.Answered, answer: "done", kind: tools.Failed, turns: 2},
		{name: "the tool returns a fatal error", policy: script(call("fatal", `{}`)), stop: orchestra.Failed, kind: tools.Failed, turns: 1, err: boom},
		{name: "an unknown tool", policy: script(call("nope", `{}`)), stop: orchestra.Answered, answer: "done", kind: tools.Unknown, turns: 2},
		{name: "the tool panics", policy: script(call("panics", `{}`)), stop: orchestra.Answered, answer: "done", kind: tools.Panicked, turns: 2},
		{name: "the policy panics", policy: decideFunc(func(context.Context, *policy.State) (policy.Decision, error) { panic("a bug") }), stop: orchestra.Failed, turns: 3},
		{name: "the policy fails", policy: decideFunc(func(context.Context, *policy.State) (policy.Decision, error) { return policy.Decision{}, boom }), stop: orchestra.Failed, turns: 3, err: boom},
		{name: "the policy's output is malformed", policy: decideFunc(func(context.Context, *policy.State) (policy.Decision, error) {
			return policy.Decision{}, fmt.Errorf("%w: x", policy.ErrMalformed)
		}), stop: orchestra.Stuck, turns: 3, err: policy.ErrMalformed},
		{name: "an empty decision", policy: forever(policy.Decision{}), stop: orchestra.Stuck, turns: 3},
		{name: "finishing with nothing", policy: forever(policy.Decision{Finish: &policy.Finish{}}), stop: orchestra.Stuck, turns: 3},
		{name: "finishing with an attempt that does not exist", policy: forever(policy.Decision{Finish: &policy.Finish{Attempt: "attempt-7"}}), stop: orchestra.Stuck, turns: 3},
		{name: "an expert that does not exist", policy: script(call("answer", `{"model":"answer-9"}`)), stop: orchestra.Answered, answer: "done", kind: tools.BadArguments, turns: 2},
		{name: "eight calls with six allowed", policy: script(calls(repeat(8, policy.Call{Tool: "ok"})...)), budget: cost.Budget{Calls: 7}, stop: orchestra.Answered, answer: "done", kind: tools.Refused, turns: 2},
		{name: "endless calls in one decision", policy: script(calls(repeat(1000, policy.Call{Tool: "ok"})...)), budget: cost.Budget{Calls: cost.Unlimited}, stop: orchestra.Answered, answer: "done", kind: tools.Refused, turns: 2},
		{name: "an id twice", policy: script(calls(policy.Call{ID: "a", Tool: "ok", Args: []byte(`{"x":1}`)}, policy.Call{ID: "a", Tool: "ok", Args: []byte(`{"x": 1}`)})), stop: orchestra.Answered, answer: "done", kind: tools.Refused, turns: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran atomic.Int64
			o := newOrchestra(t, orchestra.WithPolicy(c.policy), orchestra.WithTools(noop("ok", &ran), typed, failing("fails", boom), failing("fatal", tools.Fatal(boom)), panicking),
				orchestra.WithExperts(expert("mini", "", cost.Tokens(1, 10))))
			res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: c.budget})
			if res == nil || res.Stop != c.stop || res.Answer != c.answer || (err == nil) != (c.answer != "") {
				t.Fatalf("result %+v, error %v", res, err)
			}
			if c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("error %v is not %v", err, c.err)
			}
			if turns := res.Trajectory.Turns(); len(turns) != c.turns {
				t.Errorf("%d turns, want %d", len(turns), c.turns)
			}
			var first tools.Kind
			for _, turn := range res.Trajectory.Turns() {
				for _, d := range turn.Done {
					if d.Err != nil && first == "" && (d.Call.Tool != "answer" || d.Err.Kind != tools.Failed) { // not the last attempt
						first = d.Err.Kind
					}
				}
			}
			if first != c.kind {
				t.Errorf("first failure is %q, want %q", first, c.kind)
			}
			if res.Spent.USD != res.Ledger.Total().USD {
				t.Errorf("counter %v, ledger %v", res.Spent.USD, res.Ledger.Total().USD)
			}
			if n := ran.Load(); n > 64 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

func repeat(n int, c policy.Call) []policy.Call {
	cs := make([]policy.Call, n)
	for i := range cs {
		cs[i] = c
	}
	return cs
}

// Eight calls at once with room for seven, the reserve's included: the first six
// run.
func TestFirstCallsOfABatchRun(t *testing.T) {
	var ran atomic.Int64
	o := newOrchestra(t, orchestra.WithPolicy(script(calls(repeat(8, policy.Call{Tool: "ok"})...))), orchestra.WithTools(noop("ok", &ran)),
		orchestra.WithExperts(expert("mini", "x", cost.Tokens(1, 10))))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{Calls: 7}})
	for i, d := range res.Trajectory.Turns()[0].Done {
		if (d.Err == nil) != (i < 6) {
			t.Errorf("call %d: %v", i, d.Err)
		}
		if d.Err != nil && !errors.Is(d.Err, cost.ErrExceeded) {
			t.Errorf("call %d: %v", i, d.Err)
		}
	}
	if ran.Load() != 6 {
		t.Errorf("%d calls ran", ran.Load())
	}
}

func TestTimeAndCancellation(t *testing.T) {
	hangs := fnTool{tools.Spec{Name: "hangs"}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}}
	slow := fnTool{tools.Spec{Name: "slow", Timeout: time.Second}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}}
	run := func(t *testing.T, ctx context.Context, tool tools.Tool, b cost.Budget) (*orchestra.Result, time.Duration, error) {
		o := newOrchestra(t, orchestra.WithPolicy(script(call(tool.Spec().Name, "{}"))), orchestra.WithTools(tool))
		start := time.Now()
		res, err := o.Run(ctx, orchestra.Task{Prompt: "x", Budget: b})
		return res, time.Since(start), err
	}
	t.Run("budget of time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			res, took, err := run(t, t.Context(), hangs, cost.Budget{Time: 10 * time.Second})
			if res.Stop != orchestra.OutOfTime || err == nil || took != 10*time.Second {
				t.Errorf("%q after %v: %v", res.Stop, took, err)
			}
		})
	})
	t.Run("the caller's deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			res, took, err := run(t, ctx, hangs, cost.Budget{})
			if res.Stop != orchestra.Canceled || !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
				t.Errorf("%q after %v: %v", res.Stop, took, err)
			}
		})
	})
	t.Run("a tool's timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			res, took, err := run(t, t.Context(), slow, cost.Budget{})
			if res.Answer != "done" || err != nil || took != time.Second || res.Trajectory.Turns()[0].Done[0].Err.Kind != tools.TimedOut {
				t.Errorf("%q after %v: %v", res.Stop, took, err)
			}
		})
	})
	t.Run("a tool that ignores its context is given up and charged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			inner := models.Metered(expert("mini", "x", cost.Tokens(1, 1)))
			late := make(chan error, 1)
			deaf := fnTool{tools.Spec{Name: "deaf", Timeout: time.Second, MaxSpend: cost.Dollars(0.01)}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
				<-release
				_, err := inner.Generate(context.WithoutCancel(ctx), &models.Request{Prompt: "x"})
				late <- err
				return tools.Result{Text: "too late"}, nil
			}}
			res, took, err := run(t, t.Context(), deaf, cost.Budget{})
			d := res.Trajectory.Turns()[0].Done[0]
			if err != nil || took != 2*time.Second || d.Err.Kind != tools.Abandoned || res.Spent.USD != cost.Dollars(0.01) || res.Ledger[0].Basis != cost.Reserved {
				t.Errorf("after %v: %v, %+v, spent %v", took, err, d, res.Spent.USD)
			}
			close(release)
			if err := <-late; !errors.Is(err, cost.ErrClosed) {
				t.Errorf("it could still spend: %v", err)
			}
		})
	})
	t.Run("two calls, one is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			deaf := fnTool{tools.Spec{Name: "deaf", Timeout: time.Second, Effects: tools.Parallel}, func(context.Context, tools.Call) (tools.Result, error) {
				<-release
				return tools.Result{}, nil
			}}
			fine := fnTool{tools.Spec{Name: "fine", Effects: tools.Parallel}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
				time.Sleep(5 * time.Second)
				return tools.Result{Text: "ok"}, nil
			}}
			o := newOrchestra(t, orchestra.WithPolicy(script(calls(policy.Call{Tool: "deaf"}, policy.Call{Tool: "fine"}), call("fine", "{}"))), orchestra.WithTools(deaf, fine))
			res, err := o.Run(t.Context(), orchestra.Task{Prompt: "x"})
			close(release)
			done := res.Trajectory.Turns()[0].Done
			if err != nil || done[0].Err == nil || done[0].Err.Kind != tools.Abandoned || done[1].Err != nil || done[1].Result.Text != "ok" {
				t.Errorf("%v: %+v", err, done)
			}
			if second := res.Trajectory.Turns()[1].Done[0]; second.Err != nil {
				t.Errorf("the next turn: %v", second.Err)
			}
		})
	})
}

// Input that cannot be meant is a typed error that names the field, with a result
// and nothing spent.
func TestBadInput(t *testing.T) {
	free := expert("mini", "x", cost.Free())
	priced := expert("mini", "x", cost.Tokens(1, 10))
	valid := []orchestra.Option{orchestra.WithExperts(priced)}
	_, cyclicErr := tools.New("c", "d", func(context.Context, struct {
		X cyclicNode `json:"x"`
	}) (string, error) {
		return "", nil
	})
	for _, c := range []struct {
		name string
		opts []orchestra.Option
		task orchestra.Task
		err  error // of New; else of Run
		want string
	}{
		{name: "negative money", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(-1)}}, want: "Budget.USD"},
		{name: "NaN money", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(math.NaN())}}, want: "Budget.USD"},
		{name: "overflowing money", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(1e9)}}, want: "Budget.USD"},
		{name: "negative turns", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{Turns: -5}}, want: "Budget.Turns"},
		{name: "negative price", opts: []orchestra.Option{orchestra.WithExperts(expert("m", "x", cost.Tokens(-1, 1)))}, want: "Price.Input"},
		{name: "NaN price", opts: []orchestra.Option{orchestra.WithExperts(expert("m", "x", cost.Tokens(1, math.NaN())))}, want: "Price.Output"},
		{name: "unknown preference", opts: valid, task: orchestra.Task{Prompt: "x", Prefer: prefs.Vector{Use: map[string]float64{"mimi": 1}}}, want: `did you mean mini`},
		{name: "weight out of range", opts: valid, task: orchestra.Task{Prompt: "x", Prefer: prefs.Vector{Accuracy: 2}}, want: "Accuracy"},
		{name: "two tools with one name", opts: []orchestra.Option{orchestra.WithTools(noop("t", nil), noop("t", nil))}, want: "two tools with one name"},
		{name: "nil model", opts: []orchestra.Option{orchestra.WithExperts(free, nil)}, want: "WithExperts[1]"},
		{name: "nil tool", opts: []orchestra.Option{orchestra.WithTools(nil)}, want: "WithTools[0]"},
		{name: "nil policy", opts: []orchestra.Option{orchestra.WithPolicy(nil)}, want: "WithPolicy"},
		{name: "nil option", opts: []orchestra.Option{nil}, want: "option 1"},
		{name: "nil retriever", opts: []orchestra.Option{orchestra.WithSearch(nil)}, want: "WithSearch"},
		{name: "a model without a name", opts: []orchestra.Option{orchestra.WithExperts(echo{})}, want: "Info().Name"},
		{name: "a tool name with spaces", opts: []orchestra.Option{orchestra.WithTools(noop("a tool", nil))}, want: "Name"},
		{name: "empty prompt", opts: valid, task: orchestra.Task{Prompt: " \n"}, want: "Task.Prompt"},
		{name: "10 MB prompt", opts: valid, task: orchestra.Task{Prompt: strings.Repeat("x", 10<<20)}, want: "Task.Prompt"},
		{name: "invalid UTF-8", opts: valid, task: orchestra.Task{Prompt: "a\xffb"}, want: "Task.Prompt"},
		{name: "unpriced model", opts: []orchestra.Option{orchestra.WithExperts(expert("dear", "x", cost.Price{}))}, task: orchestra.Task{Prompt: "x"}, want: `the price of "dear"`},
		{name: "a budget below the answer reserve", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(1e-6)}}, want: "takes at least $0.000"},
		{name: "a limit on a name that does not exist", opts: valid, task: orchestra.Task{Prompt: "x", Budget: cost.Budget{PerName: map[string]cost.Sub{"mimi": {Calls: 1}}}}, want: "Budget.PerName names \"mimi\""},
		{name: "a skill that is no number", opts: []orchestra.Option{orchestra.WithExperts(echo{info: models.Info{Name: "m", Skill: models.Skill{Score: math.NaN()}}})}, want: "Skill"},
		{name: "nothing can answer", opts: []orchestra.Option{orchestra.WithTools(noop("t", nil))}, task: orchestra.Task{Prompt: "x"}, want: "nothing here can give an answer"},
		{name: "preferences forbid every answer", opts: valid, task: orchestra.Task{Prompt: "x", Prefer: prefs.Vector{Never: []string{"mini"}}}, want: "Task.Prefer.Never"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := orchestra.New(c.opts...)
			if err == nil {
				var res *orchestra.Result
				res, err = o.Run(context.Background(), c.task)
				if res == nil || res.Trajectory == nil || res.Spent.USD != 0 || res.Answer != "" || err == nil || !errors.Is(err, orchestra.ErrNoAnswer) {
					t.Fatalf("result %+v, error %v", res, err)
				}
				if _, werr := res.Trajectory.WriteTo(&strings.Builder{}); werr != nil {
					t.Errorf("trajectory: %v", werr)
				}
			}
			var invalid *orchestra.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %T %v, want it to contain %q", err, err, c.want)
			}
			if len(err.Error()) > 1500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	var spec *tools.SpecError
	if !errors.As(cyclicErr, &spec) {
		t.Errorf("a struct without a schema: %v", cyclicErr)
	}
}

type cyclicNode struct {
	Children []*cyclicNode `json:"children"`
}

// Whatever a tool returns ends in a trajectory that can be written and read.
func TestWildResults(t *testing.T) {
	wild := fnTool{tools.Spec{Name: "wild"}, func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{Text: strings.Repeat("endless ", 1<<20) + "\xff", Data: json.RawMessage("{nonsense"),
			Documents: []tools.Document{{ID: "a", Text: "\xff\x00", Score: math.NaN()}}, Attempts: []tools.Attempt{{Text: "maybe\xff", Confidence: math.Inf(1)}}}, nil
	}}
	o := newOrchestra(t, orchestra.WithPolicy(script(calls(policy.Call{ID: "\xff", Tool: "wild", Args: []byte("\xff not json")}), policy.Decision{Finish: &policy.Finish{}})), orchestra.WithTools(wild))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
	if err != nil || res.Answer != "maybe\uFFFD" {
		t.Fatalf("%q, %v", res.Answer, err)
	}
	var b strings.Builder
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	back, err := orchestra.ReadTrajectory(strings.NewReader(b.String()))
	if err != nil || back.Result().Answer != res.Answer {
		t.Errorf("read back %v", err)
	}
	if r := res.Trajectory.Turns()[0].Done[0].Result; len(r.Text) > 300<<10 || !r.Truncated || r.Documents[0].Score != 0 || r.Attempts[0].Confidence > 1 {
		t.Errorf("%d bytes, %+v", len(r.Text), r.Attempts)
	}
}

// User code that the loop asks for advice may have bugs, too.
func TestHooksPanic(t *testing.T) {
	bug := func() { panic("a bug") }
	hooks := map[string]tools.Spec{
		"propose":     {Name: "hook", Propose: func(tools.Call) []json.RawMessage { bug(); return nil }},
		"estimate":    {Name: "hook", Estimate: func(tools.Call) cost.Estimate { bug(); return cost.Estimate{} }, Propose: func(tools.Call) []json.RawMessage { return []json.RawMessage{noArgs} }},
		"no proposal": {Name: "hook", Propose: func(tools.Call) []json.RawMessage { return []json.RawMessage{[]byte("{bad")} }},
	}
	for name, spec := range hooks {
		t.Run(name, func(t *testing.T) {
			tool := fnTool{spec, func(context.Context, tools.Call) (tools.Result, error) {
				return tools.Result{}, errors.New("never called")
			}}
			o := newOrchestra(t, orchestra.WithTools(tool), orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))))
			res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
			if err != nil || res.Answer != "42" {
				t.Fatal(res.Answer, err)
			}
			if _, err := res.Trajectory.WriteTo(&strings.Builder{}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("policy", func(t *testing.T) {
		o := newOrchestra(t, orchestra.WithPolicy(costly{func(*policy.State) cost.Estimate { panic("a bug") }}), orchestra.WithExperts(expert("mini", "x", cost.Free())))
		if res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"}); res.Stop != orchestra.Failed || err != nil {
			t.Error(res.Stop, err) // the last attempt answers
		}
	})
}

var noArgs = json.RawMessage("{}")

// costly is a policy that says what a decision costs.
type costly struct {
	estimate func(*policy.State) cost.Estimate
}

func (p costly) Info() policy.Info {
	return policy.Info{Name: "costly", Writes: true, Estimate: p.estimate}
}
func (p costly) Decide(ctx context.Context, s *policy.State) (policy.Decision, error) {
	d := say("done")
	d.Sample = &models.Sample{Logprobs: []float32{float32(math.Inf(-1)), -1}}
	h, err := cost.FromContext(ctx).Reserve(p.estimate(s))
	if err == nil {
		_, err = h.Settle(cost.Usage{Input: 100, Known: true}, cost.Tokens(1, 1), nil)
	}
	return d, err
}

// A policy that costs something is held to the budget like everything else, and
// what it sampled can be stored.
func TestPolicyCosts(t *testing.T) {
	e := cost.Estimate{Name: "brain", Floor: cost.Spend{USD: cost.Dollars(0.0001), Calls: 1}, Worst: cost.Spend{USD: cost.Dollars(0.001), Tokens: 500, Calls: 1}, Priced: true}
	o := newOrchestra(t, orchestra.WithPolicy(costly{func(*policy.State) cost.Estimate { return e }}), orchestra.WithExperts(expert("mini", "x", cost.Free())))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(0.0005)}})
	if err != nil || res.Spent.USD != cost.Dollars(0.0001) || res.Spent.Calls != 0 || len(res.Ledger) != 1 || res.Ledger[0].Name != "brain" {
		t.Fatalf("%v, %+v, %+v", err, res.Spent, res.Ledger)
	}
	var b strings.Builder
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Error(err)
	}
	res, err = o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(0.00005)}})
	if res.Stop != orchestra.OutOfBudget || !errors.Is(err, cost.ErrExceeded) || res.Spent.USD != 0 {
		t.Errorf("%q, %v", res.Stop, err)
	}
}

// When the turns are over and there is no attempt, the answer reserve pays for one.
func TestLastAttempt(t *testing.T) {
	o := newOrchestra(t, orchestra.WithPolicy(decideFunc(func(context.Context, *policy.State) (policy.Decision, error) { return call("ok", "{}"), nil })),
		orchestra.WithTools(noop("ok", nil)), orchestra.WithExperts(expert("dear", "dear", cost.Tokens(9, 90)), expert("cheap", "cheap", cost.Tokens(1, 10))))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{Turns: 2}})
	if err != nil || res.Answer != "cheap" || res.Stop != orchestra.OutOfTurns || len(res.Ledger) != 1 {
		t.Errorf("%q, %q, %v", res.Answer, res.Stop, err)
	}
}
