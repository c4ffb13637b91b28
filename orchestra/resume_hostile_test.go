package orchestra_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// cutAfter is the trajectory as a crash right behind the first event that ok accepts leaves it.
func cutAfter(t testing.TB, past *orchestra.Trajectory, ok func(orchestra.Event) bool) *orchestra.Trajectory {
	t.Helper()
	var b bytes.Buffer
	if _, err := past.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	i := 0
	for e := range past.Events() {
		i++
		if ok(e) {
			cut, err := orchestra.ReadTrajectory(strings.NewReader(strings.Join(lines[:i], "")))
			if err != nil {
				t.Fatal(err)
			}
			return cut
		}
	}
	t.Fatal("no such event")
	return nil
}

func approvalTool(name string, sent *atomic.Int64, effects tools.Effects) tools.Tool {
	return fnTool{tools.Spec{Name: name, Description: "sends", Effects: effects},
		func(context.Context, tools.Call) (tools.Result, error) {
			sent.Add(1)
			return tools.Result{Text: "sent"}, nil
		}}
}

// 1: a trajectory that is older than what the checkpoint has.
func TestStale(t *testing.T) {
	files, _ := orchestra.NewFileCheckpoint(t.TempDir())
	var sent atomic.Int64
	o := mailer(t, &sent, orchestra.WithCheckpoint(files))
	res, _ := o.Run(context.Background(), orchestra.Task{ID: "one", Prompt: "tell Ada the time"})
	for range 2 {
		past := res.Trajectory
		_, err := o.Resume(context.Background(), past, orchestra.Approve("mail"), orchestra.Provide("call-2", tools.Result{Text: "noon"})).Result()
		t.Log(err)
	}
	if sent.Load() != 1 {
		t.Errorf("%d mails", sent.Load())
	}
}

// 2
func TestErroredDecisionShiftsIDs(t *testing.T) {
	var ran, sent atomic.Int64
	n := 0
	o := newOrchestra(t, orchestra.WithTools(noop("pay", &ran), approvalTool("send", &sent, tools.NeedsApproval)), orchestra.WithPolicy(decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if n++; n == 1 {
			return calls(policy.Call{Tool: "pay"}), policy.ErrMalformed
		}
		if n == 2 {
			return calls(policy.Call{Tool: "pay"}, policy.Call{Tool: "send"}), nil
		}
		return say("done"), nil
	})))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	if len(res.Pending) != 1 || ran.Load() != 1 {
		t.Fatal(res.Pending, ran.Load())
	}
	res, err := o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Approve(res.Pending[0].ID)).Result()
	if ran.Load() != 1 || sent.Load() != 1 {
		t.Errorf("paid %d times, sent %d; stop %s, pending %v, %v", ran.Load(), sent.Load(), res.Stop, res.Pending, err)
	}
}

// 3
func TestPanickedConsumerIsChargedTwice(t *testing.T) {
	n := 0
	o := newOrchestra(t, orchestra.WithTools(noopFee("pay", cost.Dollars(0.01)), noop("second", nil)), orchestra.WithPolicy(decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if n++; n == 1 {
			return calls(policy.Call{Tool: "pay"}, policy.Call{Tool: "second"}), nil
		}
		return say("done"), nil
	})))
	s := o.Stream(context.Background(), orchestra.Task{Prompt: "p"})
	func() {
		defer func() { _ = recover() }()
		for e := range s.Events() {
			if c, ok := e.(orchestra.Called); ok && c.Call.Tool == "second" {
				panic("consumer")
			}
		}
	}()
	res, _ := s.Result()
	if res.Spent.USD != cost.Dollars(0.01) {
		t.Fatal(res.Spent)
	}
	res, err := o.Resume(context.Background(), stored(t, res.Trajectory)).Result()
	if res.Spent.USD != cost.Dollars(0.01) {
		t.Errorf("spent %v: %v %v", res.Spent.USD, res.Ledger, err)
	}
}

// 4
func TestOpenLastAttemptIsChargedAtEveryResume(t *testing.T) {
	var tries atomic.Int64
	answer := fnTool{tools.Spec{Name: "ask", Description: "a person", Effects: tools.Answers, Fee: cost.Dollars(0.01), Propose: func(tools.Call) []json.RawMessage { return []json.RawMessage{json.RawMessage("{}")} }},
		func(context.Context, tools.Call) (tools.Result, error) {
			tries.Add(1)
			return tools.Result{Attempts: []tools.Attempt{{Text: "42"}}}, nil
		}}
	d := decideFunc(func(context.Context, *policy.State) (policy.Decision, error) { return call("noop", "{}"), nil })
	o := newOrchestra(t, orchestra.WithTools(answer, noop("noop", nil)), orchestra.WithPolicy(pick{d}))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "p", Budget: cost.Budget{Turns: 1}})
	if res.Answer != "42" {
		t.Fatal(res, err)
	}
	cut := cutAfter(t, res.Trajectory, func(e orchestra.Event) bool { c, ok := e.(orchestra.Called); return ok && c.Call.Tool == "ask" })
	tries.Store(0)
	res, err = o.Resume(context.Background(), cut).Result()
	t.Log(res.Stop, res.Spent.USD, err, "tries", tries.Load())
	one := res.Spent.USD
	if tries.Load() != 0 {
		t.Errorf("the interrupted attempt was made again, though it is not idempotent")
	}
	tries.Store(0)
	res, err = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.AddBudget(cost.Budget{Turns: 1})).Result()
	t.Log(res.Stop, res.Spent.USD, err, tries.Load())
	if res.Spent.USD != one && tries.Load() == 0 {
		t.Errorf("%v more, though nothing was asked", res.Spent.USD-one)
	}
}

type pick struct{ decideFunc }

func (p pick) Info() policy.Info { return policy.Info{Name: "pick"} }

// 5
func TestCrashBehindLostCharge(t *testing.T) {
	o := newOrchestra(t, orchestra.WithTools(noopFee("pay", cost.Dollars(0.01))), orchestra.WithPolicy(script(call("pay", "{}"))))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	isCalled := func(e orchestra.Event) bool { _, ok := e.(orchestra.Called); return ok }
	isCharged := func(e orchestra.Event) bool { _, ok := e.(orchestra.Charged); return ok }
	cut := cutAfter(t, res.Trajectory, isCalled)
	res, _ = o.Resume(context.Background(), cut).Result()
	if res.Spent.USD != cost.Dollars(0.01) {
		t.Fatal(res.Spent)
	}
	cut = cutAfter(t, res.Trajectory, isCharged)
	res, _ = o.Resume(context.Background(), cut).Result()
	if res.Spent.USD != cost.Dollars(0.01) {
		t.Errorf("spent %v: %v", res.Spent.USD, res.Ledger)
	}
}

// 6
func TestApprovedCallIsLostWhenReserveDoesNotFit(t *testing.T) {
	var sent atomic.Int64
	answer := fnTool{tools.Spec{Name: "ask", Description: "a person", Effects: tools.Answers, Fee: cost.Dollars(0.04)},
		func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, errors.New("busy") }}
	d := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		switch len(s.Turns) {
		case 0, 1:
			return calls(policy.Call{Tool: "ask", Args: json.RawMessage(`{"n":` + string(rune('0'+len(s.Turns))) + `}`)}, policy.Call{Tool: "noop"}), nil
		case 2:
			return call("send", "{}"), nil
		}
		if s.Turns[2].Done == nil {
			return say("what became of my mail?"), nil
		}
		return say("mail: " + s.Turns[2].Done[0].Result.Text), nil
	})
	o := newOrchestra(t, orchestra.WithTools(answer, noop("noop", nil), approvalTool("send", &sent, tools.NeedsApproval)), orchestra.WithPolicy(d))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "p", Budget: cost.Budget{USD: cost.Max(cost.Dollars(0.10))}})
	if res.Stop != orchestra.Paused {
		t.Fatal(res.Stop, err)
	}
	res, err = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Approve(res.Pending[0].ID)).Result()
	if res.Answer != "mail: sent" {
		t.Errorf("stop %s, answer %q, sent %d, %v", res.Stop, res.Answer, sent.Load(), err)
	}
	res, err = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.AddBudget(cost.Budget{USD: cost.Max(cost.Dollars(1))})).Result()
	t.Logf("with more: stop %s, answer %q, sent %d, %v", res.Stop, res.Answer, sent.Load(), err)
}

// 7
func TestAttemptsKeepTheirIDs(t *testing.T) {
	var sent atomic.Int64
	attempt := func(name, text string, e tools.Effects) tools.Tool {
		return fnTool{tools.Spec{Name: name, Description: "x", Effects: e | tools.Answers}, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Attempts: []tools.Attempt{{Text: text}}}, nil
		}}
	}
	saw := ""
	d := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		switch len(s.Turns) {
		case 0:
			return calls(policy.Call{ID: "mine", Tool: "client"}, policy.Call{Tool: "server"}), nil
		case 1:
			a, _ := s.Work.Attempt("attempt-1")
			saw = a.Text
			d := call("send", "{}")
			d.Finish = &policy.Finish{Attempt: "attempt-1"}
			return d, nil
		}
		return say("?"), nil
	})
	o := newOrchestra(t, orchestra.WithTools(attempt("client", "", tools.ClientSide), attempt("server", "SERVER", 0), approvalTool("send", &sent, tools.NeedsApproval)), orchestra.WithPolicy(d))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	res, _ = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Provide("mine", tools.Result{Attempts: []tools.Attempt{{Text: "CLIENT"}}})).Result()
	if res.Stop != orchestra.Paused {
		t.Fatal(res.Stop)
	}
	res, err := o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Approve(res.Pending[0].ID)).Result()
	if err != nil || res.Answer != saw {
		t.Errorf("the policy chose %q, and the answer is %q (%v)", saw, res.Answer, err)
	}
}

// 8
func TestResumeUnderEndedContextKeepsApprovedCall(t *testing.T) {
	var sent atomic.Int64
	o := newOrchestra(t, orchestra.WithTools(approvalTool("send", &sent, tools.NeedsApproval)), orchestra.WithPolicy(script(call("send", "{}"))))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	res, err := o.Resume(ctx, res.Trajectory, orchestra.Approve("call-1")).Result()
	t.Log(res.Stop, err)
	res, err = o.Resume(context.Background(), res.Trajectory).Result()
	if sent.Load() != 1 {
		t.Errorf("approved and not sent: %s %q %v", res.Stop, res.Answer, err)
	}
}

// 9
func TestProvidedGarbageCanBeWritten(t *testing.T) {
	for _, r := range []orchestra.Reply{
		orchestra.Provide("call-2", tools.Result{Data: json.RawMessage("not json")}),
		orchestra.Provide("call-2", tools.Result{Attempts: []tools.Attempt{{Text: "x", Confidence: nan()}}}),
	} {
		var sent atomic.Int64
		o := mailer(t, &sent)
		res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "tell Ada the time"})
		res, _ = o.Resume(context.Background(), res.Trajectory, r, orchestra.Refuse("mail", "no")).Result()
		if _, err := res.Trajectory.WriteTo(&bytes.Buffer{}); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func nan() float64 { var z float64; return z / z }

// 10
func TestApprovalSeesArguments(t *testing.T) {
	var got atomic.Value
	wipe := fnTool{tools.Spec{Name: "wipe", Description: "deletes", Effects: tools.NeedsApproval, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		func(_ context.Context, c tools.Call) (tools.Result, error) {
			got.Store(string(c.Args))
			return tools.Result{Text: "gone"}, nil
		}}
	d := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		for _, of := range s.Offers {
			if of.Tool == "wipe" && len(s.Turns) == 0 {
				return calls(policy.Call{Tool: "wipe", Args: of.Args, Writer: of.Writer}), nil
			}
		}
		return say("done"), nil
	})
	o := newOrchestra(t, orchestra.WithExperts(expert("gpt", `{"path":"/"}`, cost.Free())), orchestra.WithTools(wipe), orchestra.WithPolicy(pick{d}))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	if len(res.Pending) == 0 {
		t.Skip("not offered", err)
	}
	shown := string(res.Pending[0].Call.Args)
	_, _ = o.Resume(context.Background(), res.Trajectory, orchestra.Approve(res.Pending[0].ID)).Result()
	if g, _ := got.Load().(string); g != shown {
		t.Errorf("approved %q, made with %q", shown, g)
	}
}

// 11
func TestLastAttemptThatWaits(t *testing.T) {
	var asked, wiped atomic.Int64
	ask := fnTool{tools.Spec{Name: "ask", Description: "a person", Effects: tools.Answers | tools.NeedsApproval, Propose: func(tools.Call) []json.RawMessage { return []json.RawMessage{json.RawMessage("{}")} }},
		func(context.Context, tools.Call) (tools.Result, error) {
			asked.Add(1)
			return tools.Result{Attempts: []tools.Attempt{{Text: "42"}}}, nil
		}}
	d := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if s.Turn == 2 {
			return call("wipe", "{}"), nil
		}
		return call("noop", "{}"), nil
	})
	o := newOrchestra(t, orchestra.WithTools(ask, noop("noop", nil), approvalTool("wipe", &wiped, tools.NeedsApproval)), orchestra.WithPolicy(pick{d}))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "p", Budget: cost.Budget{Turns: 1}})
	t.Log(res.Stop, res.Pending, err)
	id := ""
	for e := range res.Trajectory.Events() {
		if w, ok := e.(orchestra.Waiting); ok {
			id = w.ID
			t.Log("waits", w)
		}
	}
	if id == "" {
		return
	}
	res, err = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Approve(id), orchestra.AddBudget(cost.Budget{Turns: 1})).Result()
	t.Log(res.Stop, res.Pending, err)
	if wiped.Load() != 0 {
		t.Errorf("wipe was made without approval: the approval was for ask")
	}
}

// 12
func TestCancelledDecisionsAreNoFailures(t *testing.T) {
	var stop func()
	n := 0
	d := decideFunc(func(ctx context.Context, s *policy.State) (policy.Decision, error) {
		n++
		if n <= 2 {
			stop()
			return policy.Decision{}, ctx.Err()
		}
		if n == 3 {
			return call("nosuch", "{}"), nil
		}
		return say("done"), nil
	})
	o := newOrchestra(t, orchestra.WithTools(noop("noop", nil)), orchestra.WithPolicy(d))
	var past *orchestra.Trajectory
	for range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		stop = cancel
		var res *orchestra.Result
		if past == nil {
			res, _ = o.Run(ctx, orchestra.Task{Prompt: "p"})
		} else {
			res, _ = o.Resume(ctx, past).Result()
		}
		if res.Stop != orchestra.Canceled {
			t.Fatal(res.Stop)
		}
		past = res.Trajectory
	}
	res, err := o.Resume(context.Background(), past).Result()
	if err != nil {
		t.Errorf("%s %v", res.Stop, err)
	}
}

// 13
func TestFileCloseFailsRuns(t *testing.T) {
	files, _ := orchestra.NewFileCheckpoint(t.TempDir())
	o := newOrchestra(t, orchestra.WithTools(noop("noop", nil)), orchestra.WithPolicy(script(call("noop", "{}"))), orchestra.WithCheckpoint(files))
	s := o.Stream(context.Background(), orchestra.Task{ID: "r", Prompt: "p"})
	for e := range s.Events() {
		if _, ok := e.(orchestra.Decided); ok {
			files.Close()
		}
	}
	if _, err := s.Result(); err == nil {
		t.Error("the run went on with a closed checkpoint (and without its lock)")
	}
}

// 14
func TestEmptyFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.run.jsonl"), []byte(`{"event":"star`), 0o600); err != nil {
		t.Fatal(err)
	}
	files, _ := orchestra.NewFileCheckpoint(dir)
	o := newOrchestra(t, orchestra.WithTools(noop("noop", nil)), orchestra.WithPolicy(script()), orchestra.WithCheckpoint(files))
	_, err := o.Run(context.Background(), orchestra.Task{ID: "r", Prompt: "p"})
	past, terr := files.Trajectory("r")
	if err != nil {
		t.Errorf("can be neither started (%v) nor resumed (%v, %v)", err, past, terr)
	}
}

// 15: idempotent call interrupted, made again, crash before rows.
func TestUnlistedIsMaskedByLost(t *testing.T) {
	pay := fnTool{tools.Spec{Name: "pay", Description: "x", Effects: tools.Idempotent, Fee: cost.Dollars(0.01)},
		func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "ok"}, nil }}
	o := newOrchestra(t, orchestra.WithTools(pay), orchestra.WithPolicy(script(call("pay", "{}"))))
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "p"})
	cut := cutAfter(t, res.Trajectory, func(e orchestra.Event) bool { _, ok := e.(orchestra.Called); return ok })
	res, _ = o.Resume(context.Background(), cut).Result()
	if res.Spent.USD != cost.Dollars(0.02) {
		t.Fatal(res.Spent)
	}
	cut = cutAfter(t, res.Trajectory, func(e orchestra.Event) bool { _, ok := e.(orchestra.Returned); return ok })
	res, _ = o.Resume(context.Background(), cut).Result()
	if res.Spent.USD != cost.Dollars(0.02) {
		t.Errorf("spent %v: %v", res.Spent.USD, res.Ledger)
	}
}
