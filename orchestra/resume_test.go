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

// mailer is an orchestrator whose policy sends one mail, which needs approval,
// asks the caller's clock at once, and then says what became of both.
func mailer(t testing.TB, sent *atomic.Int64, opts ...orchestra.Option) *orchestra.Orchestrator {
	send := fnTool{tools.Spec{Name: "send_mail", Description: "sends", Effects: tools.NeedsApproval, Fee: cost.Dollars(0.001)},
		func(context.Context, tools.Call) (tools.Result, error) {
			sent.Add(1)
			return tools.Result{Text: "sent"}, nil
		}}
	clock := fnTool{tools.Spec{Name: "clock", Description: "the caller's clock", Effects: tools.ClientSide},
		func(context.Context, tools.Call) (tools.Result, error) { panic("it is the caller's") }}
	decide := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		if len(s.Turns) == 0 {
			return calls(policy.Call{Tool: "noop"}, policy.Call{ID: "mail", Tool: "send_mail", Args: json.RawMessage(`{"to":"ada"}`)}, policy.Call{Tool: "clock"}), nil
		}
		var said []string
		for _, o := range s.Turns[0].Done {
			if o.Err != nil {
				said = append(said, o.Call.Tool+" "+o.Err.Err.Error())
			} else {
				said = append(said, o.Call.Tool+" "+o.Result.Text)
			}
		}
		return say(strings.Join(said, ", ")), nil
	})
	return newOrchestra(t, append(opts, orchestra.WithPolicy(decide), orchestra.WithTools(noop("noop", nil), send, clock))...)
}

// stored writes a trajectory and reads it, as another process would.
func stored(t testing.TB, past *orchestra.Trajectory) *orchestra.Trajectory {
	t.Helper()
	var b bytes.Buffer
	if _, err := past.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again, err := orchestra.ReadTrajectory(&b)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestApproval(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replies []orchestra.Reply
		want    string
		sent    int64
	}{
		{"approved", []orchestra.Reply{orchestra.Approve("mail"), orchestra.Provide("call-2", tools.Result{Text: "noon"})}, "noop ok, send_mail sent, clock noon", 1},
		{"refused", []orchestra.Reply{orchestra.Refuse("mail", "not to Ada"), orchestra.Provide("call-2", tools.Result{Text: "noon"})},
			"noop ok, send_mail the user refused it: not to Ada, clock noon", 0},
		{"both refused", []orchestra.Reply{orchestra.Refuse("mail", ""), orchestra.Refuse("call-2", "no clock")},
			"noop ok, send_mail the user refused it: no reason was given, clock the user refused it: no clock", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent atomic.Int64
			o := mailer(t, &sent)
			res, err := o.Run(context.Background(), orchestra.Task{Prompt: "tell Ada the time"})
			if !errors.Is(err, orchestra.ErrPaused) || !errors.Is(err, orchestra.ErrNoAnswer) || res.Stop != orchestra.Paused || len(res.Pending) != 2 {
				t.Fatalf("%v, stop %s, pending %v", err, res.Stop, res.Pending)
			}
			if p := res.Pending[0]; p.ID != "mail" || p.Call.Tool != "send_mail" || p.Why != tools.NeedsApproval {
				t.Errorf("pending %+v", p)
			}
			past := stored(t, res.Trajectory)
			if got := past.Result(); got.Stop != orchestra.Paused || len(got.Pending) != 2 || got.Pending[1].Why != tools.ClientSide {
				t.Errorf("the file says %s, pending %v", got.Stop, got.Pending)
			}
			res, err = mailer(t, &sent).Resume(context.Background(), past, tt.replies...).Result()
			if err != nil || res.Answer != tt.want || sent.Load() != tt.sent {
				t.Errorf("%q, %v, sent %d; want %q", res.Answer, err, sent.Load(), tt.want)
			}
			if want := cost.Dollars(0.001) * cost.Amount(tt.sent); res.Spent.USD != want {
				t.Errorf("spent %v, want %v", res.Spent.USD, want)
			}
			if res.Spent.Turns != 2 {
				t.Errorf("%d turns", res.Spent.Turns)
			}
			if stored(t, res.Trajectory).Result().Answer != tt.want {
				t.Error("the file of the resumed run has another answer")
			}
		})
	}
}

// One reply at a time: the run waits for the rest, also after a crash.
func TestRepliesOneByOne(t *testing.T) {
	var sent atomic.Int64
	o := mailer(t, &sent)
	res, _ := o.Run(context.Background(), orchestra.Task{Prompt: "tell Ada the time"})
	res, err := o.Resume(context.Background(), res.Trajectory, orchestra.Approve("mail")).Result()
	if !errors.Is(err, orchestra.ErrPaused) || len(res.Pending) != 1 || res.Pending[0].Call.Tool != "clock" || sent.Load() != 1 {
		t.Fatalf("%v, pending %v, sent %d", err, res.Pending, sent.Load())
	}
	res, err = o.Resume(context.Background(), stored(t, res.Trajectory), orchestra.Provide("call-2", tools.Result{Text: "noon"})).Result()
	if err != nil || res.Answer != "noop ok, send_mail sent, clock noon" || sent.Load() != 1 {
		t.Errorf("%q, %v, sent %d", res.Answer, err, sent.Load())
	}
}

// AddBudget lets a run go on that had too little.
func TestAddBudget(t *testing.T) {
	paid := noopFee("paid", cost.Dollars(0.04))
	o := newOrchestra(t, orchestra.WithPolicy(decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		n := 0
		for _, turn := range s.Turns {
			for _, o := range turn.Done {
				if o.Err == nil {
					n++
				}
			}
		}
		if n == 3 {
			return say("three"), nil
		}
		return call("paid", `{}`), nil
	})), orchestra.WithTools(paid))
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "pay three times", Budget: cost.Budget{USD: cost.USD(0.1), Turns: 2}})
	if err == nil || res.Stop != orchestra.OutOfTurns {
		t.Fatalf("%v, %s", err, res.Stop)
	}
	past := stored(t, res.Trajectory)
	if _, err := o.Resume(context.Background(), past).Result(); !errors.Is(err, orchestra.ErrOver) || !strings.Contains(err.Error(), "AddBudget") {
		t.Errorf("without more budget: %v", err)
	}
	res, err = o.Resume(context.Background(), past, orchestra.AddBudget(cost.Budget{USD: cost.USD(0.05), Turns: 5})).Result()
	if err != nil || res.Answer != "three" || res.Spent.USD != cost.Dollars(0.12) {
		t.Errorf("%q, %v, spent %v", res.Answer, err, res.Spent.USD)
	}
	if usd := res.Trajectory.Task().Budget.USD; usd != cost.USD(0.15) {
		t.Errorf("the budget is %v", usd)
	}
}

func noopFee(name string, fee cost.Amount) tools.Tool {
	return fnTool{tools.Spec{Name: name, Fee: fee}, func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "ok"}, nil }}
}

// What cannot be resumed is refused with a typed error, and stays resumable.
func TestResumeRefuses(t *testing.T) {
	var sent atomic.Int64
	o := mailer(t, &sent)
	paused, _ := o.Run(context.Background(), orchestra.Task{Prompt: "tell Ada the time"})
	over, err := newOrchestra(t, orchestra.WithPolicy(script()), orchestra.WithTools(noop("noop", nil))).Run(context.Background(), orchestra.Task{Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	other := newOrchestra(t, orchestra.WithPolicy(script()), orchestra.WithTools(noop("noop", nil)))
	for _, tt := range []struct {
		name    string
		o       *orchestra.Orchestrator
		past    *orchestra.Trajectory
		replies []orchestra.Reply
		is      error
		says    string
	}{
		{"nil", o, nil, nil, nil, "empty"},
		{"empty", o, &orchestra.Trajectory{}, nil, nil, "empty"},
		{"other tools", other, paused.Trajectory, nil, orchestra.ErrMismatch, "3 tools"},
		{"over", other, over.Trajectory, nil, orchestra.ErrOver, "answered"},
		{"unknown id", o, paused.Trajectory, []orchestra.Reply{orchestra.Approve("nope")}, nil, "nope"},
		{"two replies", o, paused.Trajectory, []orchestra.Reply{orchestra.Approve("mail"), orchestra.Refuse("mail", "")}, nil, "two"},
		{"approve what is the caller's", o, paused.Trajectory, []orchestra.Reply{orchestra.Approve("call-2")}, nil, "Provide"},
		{"provide what is run here", o, paused.Trajectory, []orchestra.Reply{orchestra.Provide("mail", tools.Result{})}, nil, "approve"},
		{"zero reply", o, paused.Trajectory, []orchestra.Reply{{}}, nil, "empty"},
		{"bad budget", o, paused.Trajectory, []orchestra.Reply{orchestra.AddBudget(cost.Budget{Turns: -5})}, nil, "Budget.Turns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := 0
			s := tt.o.Resume(context.Background(), tt.past, tt.replies...)
			for range s.Events() {
				events++
			}
			res, err := s.Result()
			var run *orchestra.RunError
			if !errors.As(err, &run) || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v", err)
			}
			if res == nil || events != 0 || sent.Load() != 0 {
				t.Errorf("result %v, %d events, %d mails", res, events, sent.Load())
			}
		})
	}
	if res, err := o.Resume(context.Background(), paused.Trajectory, orchestra.Approve("mail"), orchestra.Provide("call-2", tools.Result{Text: "noon"})).Result(); err != nil {
		t.Errorf("after all that: %v, %v", res.Stop, err)
	}
}

// A call whose event cannot be kept is not made, and the run ends typed.
func TestCheckpointFails(t *testing.T) {
	full := errors.New("no space left on device")
	for n := 1; n < 8; n++ {
		var ran atomic.Int64
		c := &failing{after: n, err: full}
		o := newOrchestra(t, orchestra.WithPolicy(script(call("noop", `{}`), call("noop", `{"n":1}`))), orchestra.WithTools(noop("noop", &ran)), orchestra.WithCheckpoint(c))
		res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"})
		var ce *orchestra.CheckpointError
		if c.calls < n { // it was over before
			if err != nil {
				t.Errorf("after %d: %v", n, err)
			}
			continue
		}
		if c.last == "stopped" {
			continue // the answer was there already
		}
		if !errors.As(err, &ce) || !errors.Is(err, full) || res.Stop != orchestra.Failed {
			t.Errorf("event %d: %v, stop %s", n, err, res.Stop)
		}
		if c.last == "called" && ran.Load() != int64(c.called) {
			t.Errorf("event %d: %d calls were recorded and %d made", n, c.called, ran.Load())
		}
	}
}

type failing struct {
	after, calls, called int
	err                  error
	last                 string
}

func (c *failing) Append(_ context.Context, _ string, event json.RawMessage) error {
	var head struct{ Event string }
	_ = json.Unmarshal(event, &head)
	if c.calls++; c.calls >= c.after {
		if c.calls == c.after {
			c.last = head.Event
		}
		return c.err
	}
	if head.Event == "called" {
		c.called++
	}
	return nil
}

// A torn last line loses only itself, and the file goes on behind the rest.
func TestFileCheckpoint(t *testing.T) {
	dir := t.TempDir()
	files, err := orchestra.NewFileCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	o := mailer(t, &sent, orchestra.WithCheckpoint(files))
	if _, err := o.Run(context.Background(), orchestra.Task{ID: "a/b ü", Prompt: "tell Ada the time"}); !errors.Is(err, orchestra.ErrPaused) {
		t.Fatal(err)
	}
	if _, err := o.Run(context.Background(), orchestra.Task{ID: "a/b ü", Prompt: "again"}); !errors.Is(err, orchestra.ErrRunExists) {
		t.Errorf("the same id again: %v", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	f, err := os.OpenFile(names[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"event":"resu`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	runs, err := files.Unfinished()
	if err != nil || len(runs) != 1 || runs[0] != "a/b ü" {
		t.Fatal(runs, err)
	}
	past, err := files.Trajectory(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Resume(context.Background(), past, orchestra.Approve("mail"), orchestra.Provide("call-2", tools.Result{Text: "noon"})).Result()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := files.Trajectory(runs[0])
	if err != nil || kept.Result().Answer != res.Answer {
		t.Errorf("kept %v, %v", kept.Result(), err)
	}
	if runs, _ := files.Unfinished(); len(runs) != 0 {
		t.Errorf("unfinished: %v", runs)
	}
	if _, err := files.Trajectory("other"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that is not there: %v", err)
	}
	elsewhere, err := orchestra.NewFileCheckpoint(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailer(t, &sent, orchestra.WithCheckpoint(elsewhere)).Resume(context.Background(), past).Result(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a checkpoint that does not have it: %v", err)
	}
	if _, err := orchestra.NewFileCheckpoint(names[0]); err == nil {
		t.Error("a file as directory")
	}
}

// Two that resume one run: the second is refused before it does anything.
func TestResumeTwice(t *testing.T) {
	dir := t.TempDir()
	var sent atomic.Int64
	files := make([]*orchestra.FileCheckpoint, 2)
	for i := range files {
		var err error
		if files[i], err = orchestra.NewFileCheckpoint(dir); err != nil {
			t.Fatal(err)
		}
	}
	first := mailer(t, &sent, orchestra.WithCheckpoint(files[0]))
	res, _ := first.Run(context.Background(), orchestra.Task{ID: "one", Prompt: "tell Ada the time"})
	for e := range first.Resume(context.Background(), res.Trajectory, orchestra.Approve("mail")).Events() {
		if _, ok := e.(orchestra.Resumed); ok {
			_, err := mailer(t, &sent, orchestra.WithCheckpoint(files[1])).Resume(context.Background(), res.Trajectory, orchestra.Approve("mail")).Result()
			if !errors.Is(err, orchestra.ErrInUse) {
				t.Errorf("the second got %v", err)
			}
			_, err = mailer(t, &sent, orchestra.WithCheckpoint(files[0])).Resume(context.Background(), res.Trajectory, orchestra.Approve("mail")).Result()
			if !errors.Is(err, orchestra.ErrInUse) {
				t.Errorf("the second, in this process, got %v", err)
			}
		}
	}
	if sent.Load() != 1 {
		t.Errorf("%d mails", sent.Load())
	}
}
