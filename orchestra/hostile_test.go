package orchestra_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

// spending is a tool that spends all that its meter lets it, and then fails or
// not.
func spending(spec tools.Spec, err error) tools.Tool {
	greedy := models.Metered(echoFunc{models.Info{Name: "inner", Price: cost.Tokens(0, 1000), MaxOutput: 10_000, MinOutput: 1},
		func(_ context.Context, r *models.Request) (*models.Response, error) {
			return &models.Response{Text: "x", Usage: cost.Usage{Output: int64(r.MaxOutput), Known: true}}, nil
		}})
	return fnTool{spec, func(ctx context.Context, c tools.Call) (tools.Result, error) {
		for range 50 {
			if _, err := greedy.Generate(ctx, &models.Request{Messages: []models.Message{{Role: models.User, Text: "x"}}}); err != nil {
				break
			}
		}
		return tools.Result{Text: "ok"}, err
	}}
}

// A tool's fee is kept apart from what its models may spend.
func TestFeeIsNotSpentTwice(t *testing.T) {
	tool := spending(tools.Spec{Name: "t", Fee: cost.Dollars(0.01), MaxSpend: cost.Dollars(0.005)}, nil)
	o := newOrchestra(t, orchestra.WithPolicy(script(call("t", "{}"))), orchestra.WithTools(tool))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(0.012)}})
	if err != nil || res.Spent.USD > cost.Dollars(0.012) || res.Ledger.Total().USD != res.Spent.USD {
		t.Errorf("spent %v of $0.012: %v", res.Spent.USD, err)
	}
	var over cost.Amount
	for _, r := range res.Ledger {
		over += r.Over
	}
	if over > 0 {
		t.Errorf("%v beyond the holds", over)
	}
}

func TestEstimateCannotLieBelowZero(t *testing.T) {
	spec := tools.Spec{Name: "t", Fee: cost.Dollars(0.01), Estimate: func(tools.Call) cost.Estimate {
		return cost.Estimate{Floor: cost.Spend{USD: -cost.Dollars(0.01)}, Worst: cost.Spend{USD: -cost.Dollars(0.01)}, Priced: true}
	}}
	o := newOrchestra(t, orchestra.WithPolicy(script(call("t", "{}"))), orchestra.WithTools(spending(spec, nil)))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.Max(0)}})
	if err != nil || res.Spent.USD != 0 {
		t.Errorf("spent %v of nothing: %v", res.Spent.USD, err)
	}
	if _, err := res.Trajectory.WriteTo(&strings.Builder{}); err != nil {
		t.Error(err)
	}
}

// A failure has the same kind however the run is consumed, and with or without a
// timeout.
func TestKindsOfFailure(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		tool := fnTool{tools.Spec{Name: "t", Timeout: timeout}, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{}, errors.New("no such order")
		}}
		o := newOrchestra(t, orchestra.WithPolicy(script(call("t", "{}"))), orchestra.WithTools(tool))
		s := o.Stream(context.Background(), orchestra.Task{Prompt: "x"})
		for range s.Events() {
		}
		streamed, _ := s.Result()
		ran, _ := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
		for _, res := range []*orchestra.Result{streamed, ran} {
			if k := res.Trajectory.Turns()[0].Done[0].Err.Kind; k != tools.Failed {
				t.Errorf("timeout %v: %q", timeout, k)
			}
		}
	}
}

// The cause of a run that got stuck is in its error.
func TestCauseIsKept(t *testing.T) {
	refused := &models.Error{Model: "m", Status: 401, Sent: true, Body: "bad key"}
	m := echoFunc{models.Info{Name: "m", Price: cost.Tokens(1, 1)}, func(context.Context, *models.Request) (*models.Response, error) { return nil, refused }}
	o := newOrchestra(t, orchestra.WithExperts(m))
	_, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
	var e *models.Error
	if !errors.As(err, &e) || e.Status != 401 || !errors.Is(err, orchestra.ErrNoAnswer) {
		t.Errorf("%v", err)
	}
}

type echoFunc struct {
	info models.Info
	f    func(context.Context, *models.Request) (*models.Response, error)
}

func (m echoFunc) Info() models.Info { return m.info }
func (m echoFunc) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	return m.f(ctx, r)
}

// A limit on a model masks the offers that would call it; when nothing else
// answers, the run says that it is the money.
func TestLimitsByModel(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("dear", "by dear", cost.Tokens(1, 1)), expert("cheap", "by cheap", cost.Tokens(2, 2))))
	limit := func(names ...string) cost.Budget {
		b := cost.Budget{PerName: map[string]cost.Sub{}}
		for _, n := range names {
			b.PerName[n] = cost.Sub{USD: cost.Max(0)}
		}
		return b
	}
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: limit("dear")})
	if err != nil || res.Answer != "by cheap" {
		t.Errorf("%q, %v", res.Answer, err)
	}
	res, err = o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: limit("dear", "cheap")})
	if res.Stop != orchestra.OutOfBudget || err == nil {
		t.Errorf("%q, %v", res.Stop, err)
	}
}

// A consumer that panics gets its panic back, and no money stays held.
func TestConsumerPanics(t *testing.T) {
	inner := models.Metered(expert("inner", "x", cost.Tokens(1, 1)))
	slow := fnTool{tools.Spec{Name: "slow", MaxSpend: cost.Dollars(0.01), Fee: cost.Dollars(0.001), Effects: tools.Parallel}, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		for range 3 {
			if _, err := inner.Generate(ctx, &models.Request{Prompt: "x"}); err != nil {
				return tools.Result{}, err
			}
		}
		return tools.Result{Text: "ok"}, nil
	}}
	o := newOrchestra(t, orchestra.WithPolicy(script(calls(policy.Call{Tool: "slow"}, policy.Call{Tool: "slow"}))), orchestra.WithTools(slow),
		orchestra.WithExperts(expert("mini", "x", cost.Tokens(1, 10))))
	for _, at := range []string{"started", "decided", "called", "returned", "charged"} {
		tenant, err := cost.NewMeter("tenant", cost.Budget{USD: cost.USD(1)})
		if err != nil {
			t.Fatal(err)
		}
		s := o.Stream(cost.NewContext(context.Background(), tenant), orchestra.Task{Prompt: "x"})
		func() {
			defer func() {
				if p := recover(); p != "mine" {
					t.Errorf("%s: recovered %v", at, p)
				}
			}()
			for e := range s.Events() {
				_, started := e.(orchestra.Started)
				_, decided := e.(orchestra.Decided)
				_, called := e.(orchestra.Called)
				_, returned := e.(orchestra.Returned)
				_, charged := e.(orchestra.Charged)
				if started && at == "started" || decided && at == "decided" || called && at == "called" || returned && at == "returned" || charged && at == "charged" {
					if res, err := s.Result(); res == nil || err == nil {
						t.Errorf("inside the loop: %v, %v", res, err)
					}
					panic("mine")
				}
			}
		}()
		res, err := s.Result()
		if at == "called" && tenant.Spent().USD != 0 {
			t.Errorf("a call that had not begun cost %v", tenant.Spent().USD)
		}
		if res == nil || err == nil || res.Ledger.Total().USD != tenant.Spent().USD || res.Spent.USD != tenant.Spent().USD || res.Run == "" || res.Stop != orchestra.Canceled {
			t.Errorf("%s: %+v, %v", at, res, err)
		}
		if held := cost.Dollars(1) - tenant.Spent().USD - tenant.Left().USD; held != 0 {
			t.Errorf("%s: %v stay held", at, held)
		}
	}
}

// A consumer that panics at the very end keeps the answer.
func TestConsumerPanicsAtTheEnd(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))))
	s := o.Stream(context.Background(), orchestra.Task{Prompt: "x"})
	func() {
		defer func() { _ = recover() }()
		for e := range s.Events() {
			if _, ok := e.(orchestra.Stopped); ok {
				panic("mine")
			}
		}
	}()
	if res, err := s.Result(); err != nil || res.Answer != "42" {
		t.Errorf("%q, %v", res.Answer, err)
	}
}

// A whole answer is preferred to one that was cut off, and a cut one is marked.
func TestCutAnswers(t *testing.T) {
	cut := echoFunc{models.Info{Name: "cut", Price: cost.Tokens(1, 1)}, func(context.Context, *models.Request) (*models.Response, error) {
		return &models.Response{Text: "<answer>cut off te", Finish: models.FinishLength, Usage: cost.Usage{Known: true}}, nil
	}}
	both := script(call("answer", `{"model":"answer-1"}`), call("answer", `{"model":"answer-2"}`))
	o := newOrchestra(t, orchestra.WithPolicy(both), orchestra.WithExperts(expert("mini", "<answer>whole</answer>", cost.Tokens(1, 10)), cut))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{Turns: 2}})
	if err != nil || res.Answer != "whole" || res.Truncated {
		t.Errorf("%q %v, %v", res.Answer, res.Truncated, err)
	}
	o = newOrchestra(t, orchestra.WithExperts(cut))
	if res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"}); err != nil || res.Answer != "cut off te" || !res.Truncated || !res.Trajectory.Result().Truncated {
		t.Errorf("%q %v, %v", res.Answer, res.Truncated, err)
	}
}

// An expert in reserve can be limited and forbidden by its own name.
func TestNamesWithinFallback(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(models.Fallback(expert("a", "x", cost.Tokens(1, 1)), expert("b", "x", cost.Tokens(1, 1)))))
	if _, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{PerName: map[string]cost.Sub{"b": {Calls: 1}}}}); err != nil {
		t.Error(err)
	}
	var invalid *orchestra.InvalidError
	if _, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Prefer: prefs.Vector{Never: []string{"b"}}}); !errors.As(err, &invalid) || invalid.Field != "Task.Prefer.Never" {
		t.Error(err)
	}
}

// A slow consumer does not make a tool look abandoned.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := fnTool{tools.Spec{Name: "t", Timeout: 10 * time.Millisecond}, func(_ context.Context, c tools.Call) (tools.Result, error) {
			c.OnDelta(models.Delta{Text: "x"})
			return tools.Result{Text: "ok"}, nil
		}}
		o := newOrchestra(t, orchestra.WithPolicy(script(call("t", "{}"))), orchestra.WithTools(tool))
		for range 20 {
			s := o.Stream(t.Context(), orchestra.Task{Prompt: "x"})
			for e := range s.Events() {
				if _, ok := e.(orchestra.Delta); ok {
					time.Sleep(5 * time.Second)
				}
			}
			if res, _ := s.Result(); res.Trajectory.Turns()[0].Done[0].Err != nil {
				t.Fatal(res.Trajectory.Turns()[0].Done[0].Err)
			}
		}
	})
}

// A tool that ends its goroutine ends no run.
func TestGoexit(t *testing.T) {
	exits := fnTool{tools.Spec{Name: "exits"}, func(context.Context, tools.Call) (tools.Result, error) { runtime.Goexit(); return tools.Result{}, nil }}
	o := newOrchestra(t, orchestra.WithPolicy(script(call("exits", "{}"), call("ok", "{}"))), orchestra.WithTools(exits, noop("ok", nil)))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
	turns := res.Trajectory.Turns()
	if err != nil || turns[0].Done[0].Err == nil || turns[0].Done[0].Err.Kind != tools.Panicked || turns[1].Done[0].Err != nil {
		t.Errorf("%v, %+v", err, turns)
	}
}

// A policy that fails for ever ends, whatever the budget.
func TestEndlessFailure(t *testing.T) {
	o := newOrchestra(t, orchestra.WithPolicy(decideFunc(func(context.Context, *policy.State) (policy.Decision, error) {
		return policy.Decision{}, errors.New("no")
	})))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{Turns: cost.Unlimited, Failures: cost.Unlimited, Time: cost.Unlimited}})
	if res.Stop != orchestra.Failed || err == nil || len(res.Trajectory.Turns()) > 200 {
		t.Errorf("%q after %d turns", res.Stop, len(res.Trajectory.Turns()))
	}
}

// An orchestrator within a tool: its run nests, its end is its own.
func TestNestedRuns(t *testing.T) {
	inner := newOrchestra(t, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))))
	ask := fnTool{tools.Spec{Name: "ask", MaxSpend: cost.Dollars(0.01), Effects: tools.Answers}, func(ctx context.Context, c tools.Call) (tools.Result, error) {
		res, err := inner.Run(ctx, orchestra.Task{Prompt: c.Prompt, Budget: cost.Budget{USD: cost.NoLimit()}})
		return tools.Result{Text: res.Answer, Attempts: []tools.Attempt{{Text: res.Answer}}}, err
	}}
	outer := newOrchestra(t, orchestra.WithTools(ask))
	res, err := outer.Run(context.Background(), orchestra.Task{Prompt: "x"})
	if err != nil || res.Answer != "42" || res.Spent.USD != cost.Dollars(300e-6) || res.Ledger.Total().USD != res.Spent.USD || res.Spent.Calls != 1 {
		t.Errorf("%q, %+v, %v", res.Answer, res.Spent, err)
	}
	// Broke: the inner run's refusal reaches the outer as a typed error.
	res, err = outer.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(1e-6)}})
	if err == nil || !errors.Is(err, cost.ErrExceeded) || res.Spent.USD != 0 {
		t.Errorf("%q, %v", res.Stop, err)
	}
}

// An orchestrator as a tool of another: one budget, one ledger.
func TestOrchestratorAsTool(t *testing.T) {
	inner := newOrchestra(t, orchestra.WithExperts(expert("mini", "<answer>42</answer>", cost.Tokens(1, 10))), orchestra.WithBudget(cost.Budget{USD: cost.USD(0.02)}))
	tool, err := inner.Tool("research", "Finds things out.")
	if err != nil {
		t.Fatal(err)
	}
	outer := newOrchestra(t, orchestra.WithTools(tool))
	res, err := outer.Run(context.Background(), orchestra.Task{Prompt: "x"})
	if err != nil || res.Answer != "42" || len(res.Ledger) != 1 || res.Ledger[0].Name != "mini" || res.Spent.USD != res.Ledger[0].USD {
		t.Errorf("%q, %+v, %v", res.Answer, res.Ledger, err)
	}
	res, err = outer.Run(context.Background(), orchestra.Task{Prompt: "x", Budget: cost.Budget{USD: cost.USD(1e-6)}})
	if err == nil || !errors.Is(err, cost.ErrExceeded) || res.Spent.USD != 0 {
		t.Errorf("%v, %v", res.Spent.USD, err)
	}
	var spec *tools.SpecError
	if _, err := inner.Tool("two words", ""); !errors.As(err, &spec) {
		t.Error(err)
	}
}

// Documents, errors and texts of any size still make a trajectory that can be
// read.
func TestTrajectoryStaysReadable(t *testing.T) {
	huge := fnTool{tools.Spec{Name: "huge"}, func(context.Context, tools.Call) (tools.Result, error) {
		var docs []tools.Document
		for range 300 {
			docs = append(docs, tools.Document{URL: strings.Repeat("u", 1<<20), Text: strings.Repeat("x", 300<<10)})
		}
		return tools.Result{Documents: docs}, nil
	}}
	loud := fnTool{tools.Spec{Name: "loud"}, func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{}, errors.New(strings.Repeat("e", 70<<20))
	}}
	o := newOrchestra(t, orchestra.WithPolicy(script(call("huge", "{}"), call("loud", "{}"))), orchestra.WithTools(huge, loud))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := orchestra.ReadTrajectory(strings.NewReader(b.String())); err != nil || b.Len() > 16<<20 {
		t.Errorf("%d bytes: %v", b.Len(), err)
	}
}
