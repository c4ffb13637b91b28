package policy_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Whole runs in both dialects, with scripted models.

var (
	brainInfo  = models.Info{Name: "orchestrator-8b", Raw: true, Schema: true, Price: cost.Tokens(0.1, 0.1), Context: 40_960, MaxOutput: 2000}
	talkerInfo = models.Info{Name: "talker", Tools: true, Price: cost.Tokens(0.1, 0.4), MaxOutput: 1000}
	miniInfo   = models.Info{Name: "mini", Price: cost.Tokens(0.25, 2), MaxOutput: 500}
)

const (
	stops   = "<think>\nI should ask answer-1.\n</think>\n\n"
	unread  = "<tool_call>answer-1, please</tool_call>"
	answer1 = `{"name": "answer", "arguments": {"model": "answer-1"}}`
)

func trained(t *testing.T, m models.Model, opts ...policy.TrainedOption) policy.Policy {
	t.Helper()
	p, err := policy.Trained(m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func conversation(t *testing.T, m models.Model, opts ...policy.ConversationOption) policy.Policy {
	t.Helper()
	p, err := policy.Conversation(m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func orchestrator(t *testing.T, p policy.Policy, opts ...orchestra.Option) *orchestra.Orchestrator {
	t.Helper()
	o, err := orchestra.New(append(opts, orchestra.WithPolicy(p))...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func rowsOf(l cost.Ledger, name string) (n int) {
	for _, r := range l {
		if r.Name == name {
			n++
		}
	}
	return n
}

// checkBill reads the trajectory back and compares it with the result.
func checkBill(t *testing.T, res *orchestra.Result) *orchestra.Trajectory {
	t.Helper()
	if res.Ledger.Total().USD != res.Spent.USD || res.Spent.USD == 0 {
		t.Errorf("the ledger says %v, the run %v", res.Ledger.Total().USD, res.Spent.USD)
	}
	var b bytes.Buffer
	if _, err := res.Trajectory.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	read, err := orchestra.ReadTrajectory(&b)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestForcedRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  []modeltest.Step
		forced []bool // by turn
	}{
		{"thinks and stops", []modeltest.Step{modeltest.Say(stops), modeltest.Say(answer1)}, []bool{true}},
		{"malformed twice", []modeltest.Step{modeltest.Say(unread), modeltest.Say(unread), modeltest.Say(answer1)}, []bool{false, true}},
		{"the grammar is ignored at first", []modeltest.Step{modeltest.Say(stops), modeltest.Say("no"), modeltest.Say(unread), modeltest.Say(answer1)}, []bool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			brain, mini := modeltest.New(brainInfo, c.steps...), modeltest.New(miniInfo, modeltest.Say("<answer>42</answer>"))
			res, err := orchestrator(t, trained(t, brain), orchestra.WithExperts(mini)).Run(context.Background(), orchestra.Task{Prompt: "6*7?"})
			if err != nil || res.Answer != "42" {
				t.Fatalf("%q: %v", res.Answer, err)
			}
			brain.AssertDone(t)
			if n := rowsOf(res.Ledger, brainInfo.Name); n != len(c.steps) {
				t.Errorf("%d rows of %d calls of the policy's model", n, len(c.steps))
			}
			turns := checkBill(t, res).Turns()
			if len(turns) != len(c.forced) {
				t.Fatalf("%d turns, want %d", len(turns), len(c.forced))
			}
			for i, want := range c.forced {
				if turns[i].Decision.Forced != want {
					t.Errorf("turn %d: forced %v", i+1, !want)
				}
			}
		})
	}
}

// The dearer Worst of a policy that may force is held during the decision only:
// what is offered, and for how much a run can be had at all, stay the same.
func TestForcingLeavesOffersAsTheyAre(t *testing.T) {
	run := func(usd cost.Amount, opts ...policy.TrainedOption) (offers, held string, err error) {
		brain := modeltest.New(brainInfo, modeltest.Say("<tool_call>"+answer1+"</tool_call>"))
		mini := modeltest.New(miniInfo, modeltest.Say("<answer>42</answer>"))
		res, err := orchestrator(t, trained(t, brain, opts...), orchestra.WithExperts(mini)).Run(context.Background(), orchestra.Task{Prompt: "6*7?", Budget: cost.Budget{USD: cost.USD(usd.Dollars())}})
		for e := range res.Trajectory.Events() {
			switch e := e.(type) {
			case orchestra.Decided:
				for _, o := range e.Offers {
					offers += o.Tool + " " + o.Choice + " " + o.Estimate.Worst.USD.String() + "; "
				}
				offers += e.Left.USD.String()
			case orchestra.Called:
				held += e.Held.USD.String()
			}
		}
		return offers, held, err
	}
	worked := 0
	for cents := range 40 {
		usd := cost.Dollars(0.0005 + float64(cents)*0.0001)
		offers, held, err := run(usd)
		plain, plainHeld, plainErr := run(usd, policy.WithoutForcing())
		if offers != plain || held != plainHeld || (err == nil) != (plainErr == nil) {
			t.Errorf("%v: offers %q, held %q (%v); without forcing %q, %q (%v)", usd, offers, held, err, plain, plainHeld, plainErr)
		}
		if err == nil {
			worked++
		}
	}
	if worked == 0 || worked == 40 {
		t.Errorf("%d of 40 budgets suffice: the test shows nothing", worked)
	}
}

// What was malformed is known to a run that goes on later.
func TestForcedAfterResume(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leave := modeltest.Step{Hang: true, Check: func(*models.Request) error { cancel(); return nil }}
	mini := modeltest.New(miniInfo, modeltest.Say("<answer>42</answer>"))
	brain := modeltest.New(brainInfo, modeltest.Say(unread), leave, modeltest.Say(unread), modeltest.Say(answer1))
	o := orchestrator(t, trained(t, brain), orchestra.WithExperts(mini))
	res, err := o.Run(ctx, orchestra.Task{Prompt: "6*7?"})
	if err == nil || res.Stop != orchestra.Canceled {
		t.Fatalf("%q: %v", res.Stop, err)
	}
	res, err = o.Resume(context.Background(), checkBill(t, res)).Result()
	if err != nil || res.Answer != "42" {
		t.Fatalf("%q: %v", res.Answer, err)
	}
	brain.AssertDone(t)
	if turns := checkBill(t, res).Turns(); !turns[len(turns)-1].Decision.Forced {
		t.Errorf("turns %+v", turns)
	}
}

func multiply(t *testing.T) tools.Tool {
	t.Helper()
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	tool, err := tools.New("multiply", "Multiplies.", func(_ context.Context, x in) (int, error) {
		if x.A > 1000 {
			return 0, errors.New("too large")
		}
		return x.A * x.B, nil
	}, tools.WithEffects(tools.ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// A chat goes on over two runs; calls work, fail, are unknown and are refused,
// and the model hears it all.
func TestConversationRun(t *testing.T) {
	for _, info := range []models.Info{talkerInfo, {Name: "qwen3-8b", Raw: true, Price: cost.Tokens(0.1, 0.1), Context: 40_960, MaxOutput: 2000}} {
		t.Run(info.Name, func(t *testing.T) {
			call := func(name, args string) modeltest.Step { return modeltest.CallTool(name, args) }
			if info.Raw {
				call = func(name, args string) modeltest.Step {
					return modeltest.Say("<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + args + "}\n</tool_call>")
				}
			}
			m := modeltest.New(info,
				call("multiply", `{"a":6,"b":7}`), modeltest.Say("It is 42."),
				call("multiply", `{"a":6000,"b":7}`), call("divide", `{"a":6}`), call("answer", `{"model":"answer-1"}`), modeltest.Say(""), call("answer", `{"model":"answer-2"}`), modeltest.Say("I do not know."))
			mini := modeltest.New(miniInfo, modeltest.Say("<answer>43</answer>"))
			other := miniInfo
			other.Name = "maxi"
			o := orchestrator(t, conversation(t, m), orchestra.WithExperts(mini, modeltest.New(other)), orchestra.WithTools(multiply(t)), orchestra.WithPreferences(prefs.Vector{Never: []string{"maxi"}}))
			chat := orchestra.Task{Prompt: "6*7?"}
			res, err := o.Run(context.Background(), chat)
			if err != nil || res.Answer != "It is 42." || res.Spent.Turns != 2 {
				t.Fatalf("%q: %v", res.Answer, err)
			}
			checkBill(t, res)
			chat.Messages = append(chat.Messages, models.Message{Role: models.User, Text: chat.Prompt}, models.Message{Role: models.Assistant, Text: res.Answer})
			chat.Prompt = "And 6000*7?"
			res, err = o.Run(context.Background(), chat)
			if err != nil || res.Answer != "I do not know." || res.Spent.Turns != 6 {
				t.Fatalf("%q after %d turns: %v", res.Answer, res.Spent.Turns, err)
			}
			m.AssertDone(t)
			mini.AssertDone(t)
			if n := rowsOf(res.Ledger, info.Name); n != 6 {
				t.Errorf("%d rows of the policy's model", n)
			}
			checkBill(t, res)
			last := m.Requests()[7]
			text := last.Prompt
			for _, msg := range last.Messages {
				text += msg.Text + "\n"
			}
			for _, want := range []string{"6*7?", "It is 42.", "And 6000*7?", "failed: too large", "unknown_tool", "use one of answer, multiply", "Answer of mini: 43", "refused", "Never use maxi"} {
				if !strings.Contains(text, want) {
					t.Errorf("the last request lacks %q: %s", want, text)
				}
			}
			for _, d := range last.Tools {
				text += string(d.Schema)
			}
			if strings.Contains(text, `"answer-2"]`) || strings.Contains(text, "answer-2 (maxi)") {
				t.Error("a forbidden expert is offered")
			}
		})
	}
}

// An expert that takes a turn is paid within the run, and named.
func TestCallExpertRun(t *testing.T) {
	gpt := modeltest.New(models.Info{Name: "gpt-5", Tools: true, Price: cost.Tokens(1.25, 10), MaxOutput: 500}, modeltest.CallTool("multiply", `{"a":6,"b":7}`))
	m := modeltest.New(talkerInfo, modeltest.CallTool("call_expert", `{"expert":"expert-1"}`), modeltest.Say("It is 42."))
	res, err := orchestrator(t, conversation(t, m, policy.WithCallExpert(gpt)), orchestra.WithTools(multiply(t))).
		Run(context.Background(), orchestra.Task{Prompt: "6*7?", Budget: cost.Budget{USD: cost.USD(0.02)}})
	if err != nil || res.Answer != "It is 42." {
		t.Fatalf("%q: %v", res.Answer, err)
	}
	m.AssertDone(t)
	gpt.AssertDone(t)
	if rowsOf(res.Ledger, "gpt-5") != 1 || rowsOf(res.Ledger, "talker") != 2 {
		t.Errorf("rows %+v", res.Ledger)
	}
	if turns := checkBill(t, res).Turns(); turns[0].Decision.By != "gpt-5" || turns[0].Done[0].Result.Text != "42" || turns[1].Decision.By != "" {
		t.Errorf("turns %+v", turns)
	}
}

// An answer that ends at the output cap is an answer, and marked.
func TestConversationTruncatedAnswer(t *testing.T) {
	m := modeltest.New(talkerInfo, modeltest.Say(strings.Repeat("word ", 2000)))
	res, err := orchestrator(t, conversation(t, m)).Run(context.Background(), orchestra.Task{Prompt: "Talk."})
	if err != nil || !res.Truncated || !strings.HasPrefix(res.Answer, "word word") {
		t.Errorf("%.20q, truncated %v: %v", res.Answer, res.Truncated, err)
	}
}

// Many calls in one reply are made beside each other, and the loop bounds them.
func TestConversationManyCalls(t *testing.T) {
	var calls []models.ToolCall
	for range 70 {
		calls = append(calls, models.ToolCall{ID: "same", Name: "multiply", Args: []byte(`{"a":6,"b":7}`)})
	}
	m := modeltest.New(talkerInfo, modeltest.DuplicateIDs(calls...), modeltest.Say("It is 42."))
	res, err := orchestrator(t, conversation(t, m), orchestra.WithTools(multiply(t))).Run(context.Background(), orchestra.Task{Prompt: "6*7?"})
	if err != nil || res.Answer != "It is 42." {
		t.Fatalf("%q: %v", res.Answer, err)
	}
	results := 0
	for _, msg := range m.Requests()[1].Messages {
		if msg.Role == models.ToolRole {
			results++
		}
	}
	if results != 70 {
		t.Errorf("%d results of 70 calls", results)
	}
}
