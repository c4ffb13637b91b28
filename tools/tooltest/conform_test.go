package tooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/tooltest"
)

var hello = json.RawMessage(`{"text": "hello"}`)

func spec() tools.Spec {
	return tools.Spec{
		Name:        "echo",
		Description: "Says a text.",
		Schema:      json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}`),
	}
}

// echo keeps the contract, whatever it is called with.
func echo(ctx context.Context, c tools.Call) (tools.Result, error) {
	var in struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(c.Args, &in); err != nil || in.Text == nil {
		return tools.Result{}, &tools.ArgumentsError{Problem: "text: must be a string"}
	}
	if err := ctx.Err(); err != nil {
		return tools.Result{}, err
	}
	if c.OnDelta != nil {
		c.OnDelta(models.Delta{Text: *in.Text})
	}
	return tools.Result{Text: *in.Text, Attempts: []tools.Attempt{{Text: *in.Text + "!", Confidence: 1}}}, nil
}

func TestConform(t *testing.T) {
	tooltest.Conform(t, func(*testing.T) tools.Tool {
		s := spec()
		s.Effects = tools.Answers | tools.ReadOnly
		s.MaxSpend = cost.Dollars(0.01)
		s.Estimate = func(tools.Call) cost.Estimate { return cost.Estimate{Name: "echo", Worst: cost.Spend{USD: s.MaxSpend}} }
		s.Propose = func(c tools.Call) []json.RawMessage {
			b, err := json.Marshal(map[string]string{"text": c.Prompt})
			if err != nil {
				t.Error(err)
			}
			return []json.RawMessage{b}
		}
		return tooltest.Func(s, echo)
	}, hello, json.RawMessage(`{"text": ""}`))
}

// A tool without parameters needs no arguments.
func TestConformWithoutArguments(t *testing.T) {
	tooltest.Conform(t, func(*testing.T) tools.Tool {
		s := spec()
		s.Schema = json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`)
		return tooltest.Func(s, nil)
	})
}

// The meter that a call gets admits what the tool asks for, known price or not,
// and no more.
func TestMeter(t *testing.T) {
	byLimit, byEstimate := spec(), spec()
	byLimit.MaxSpend = cost.Dollars(0.25)
	byEstimate.Estimate = func(tools.Call) cost.Estimate { return cost.Estimate{Worst: cost.Spend{USD: cost.Dollars(0.25)}} }
	t.Run("MaxSpend", func(t *testing.T) { checkMeter(t, byLimit, cost.Dollars(0.25)) })
	t.Run("Estimate", func(t *testing.T) { checkMeter(t, byEstimate, cost.Dollars(0.25)) })
}

func checkMeter(t *testing.T, s tools.Spec, most cost.Amount) {
	for _, p := range tooltest.Check(func() tools.Tool {
		return tooltest.Func(s, func(ctx context.Context, c tools.Call) (tools.Result, error) {
			h, err := cost.FromContext(ctx).Reserve(cost.Estimate{Name: "expert", Floor: cost.Spend{USD: most}, Worst: cost.Spend{USD: most}})
			if err != nil {
				t.Errorf("what it asked for was refused: %v", err)
				return tools.Result{}, err
			}
			defer h.Release()
			if _, err := cost.FromContext(ctx).Reserve(cost.Estimate{Name: "expert", Floor: cost.Spend{USD: 1}, Worst: cost.Spend{USD: 1}}); err == nil {
				t.Error("more than that was admitted")
			}
			return tools.Result{}, nil
		})
	}) {
		t.Error(p)
	}
}

func TestCheckFindsBroken(t *testing.T) {
	want := map[string]string{
		"crash":   "bad arguments: no arguments: panic: ",
		"deaf":    "cancelled: the call still ran 2s after",
		"meddler": "arguments are not changed: Call changed its arguments",
		"fickle":  "spec: Spec changed, from",
		"late":    "call: OnDelta was called after Call had returned",
		"evasive": "call: the tool promises tools.Answers",
	}
	broken := tooltest.Broken()
	if len(broken) != len(want) {
		t.Fatalf("%d broken tools, %d expectations", len(broken), len(want))
	}
	for name, mk := range broken {
		t.Run(name, func(t *testing.T) { finds(t, mk, want[name]) })
	}
}

// finds fails if Check does not report a problem.
func finds(t *testing.T, mk func() tools.Tool, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(2 * time.Hour) // of the bubble: for calls that were left running
		problems := tooltest.Check(mk, hello)
		for _, p := range problems {
			if strings.HasPrefix(p.Error(), want) {
				return
			}
		}
		t.Errorf("no problem %q among %d:\n%v", want, len(problems), errors.Join(problems...))
	})
}

// TestRules breaks every other rule once.
func TestRules(t *testing.T) {
	result := func(change func(*tools.Result)) func() tools.Tool {
		return func() tools.Tool {
			return tooltest.Func(spec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
				r, err := echo(ctx, c)
				change(&r)
				return r, err
			})
		}
	}
	described := func(change func(*tools.Spec)) func() tools.Tool {
		return func() tools.Tool {
			s := spec()
			change(&s)
			return tooltest.Func(s, echo)
		}
	}
	proposing := func(args ...json.RawMessage) func() tools.Tool {
		return described(func(s *tools.Spec) { s.Propose = func(tools.Call) []json.RawMessage { return args } })
	}
	for want, mk := range map[string]func() tools.Tool{
		"spec: there is no tool":                  func() tools.Tool { return nil },
		"spec: tools:":                            described(func(s *tools.Spec) { s.Name = "not a name" }),
		"spec: Spec changed: Estimate or Propose": func() tools.Tool { return &forgetful{Tool: described(func(*tools.Spec) {})()} },
		"call: the call with": func() tools.Tool {
			return tooltest.Func(spec(), func(context.Context, tools.Call) (tools.Result, error) {
				return tools.Result{}, errors.New("oops")
			})
		},
		"call: the result for {\"text\": \"hello\"} is not UTF-8 in its Text":      result(func(r *tools.Result) { r.Text = "\xff" }),
		"call: the result for {\"text\": \"hello\"} is not UTF-8 in its Documents": result(func(r *tools.Result) { r.Documents = []tools.Document{{Title: "\xff"}} }),
		"call: the result for {\"text\": \"hello\"} is not UTF-8 in its Runs":      result(func(r *tools.Result) { r.Runs = []tools.CodeRun{{Output: "\xff"}} }),
		"call: the result for {\"text\": \"hello\"} has an attempt with":           result(func(r *tools.Result) { r.Attempts = []tools.Attempt{{Confidence: 2}} }),
		"call: the result for {\"text\": \"hello\"} has Data":                      result(func(r *tools.Result) { r.Data = json.RawMessage("{") }),
		"call: Spec.Estimate of {\"text\": \"hello\"}: Floor": described(func(s *tools.Spec) {
			s.Estimate = func(tools.Call) cost.Estimate {
				return cost.Estimate{Floor: cost.Spend{USD: 2}, Worst: cost.Spend{USD: 1}}
			}
		}),
		"bad arguments: Spec.Estimate of no arguments: panic: ": described(func(s *tools.Spec) {
			s.Estimate = func(c tools.Call) cost.Estimate { return cost.Estimate{ID: string(c.Args[:1])} }
		}),
		"bad arguments: not JSON: the error is fatal": func() tools.Tool {
			return tooltest.Func(spec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
				r, err := echo(ctx, c)
				return r, tools.Fatal(err)
			})
		},
		"cancelled: the call never returned": func() tools.Tool {
			return tooltest.Func(spec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
				if c.OnDelta != nil {
					time.Sleep(time.Hour)
				}
				return echo(ctx, c)
			})
		},
		"context done before: panic: ": func() tools.Tool {
			return tooltest.Func(spec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
				if ctx.Err() != nil {
					panic("out of time")
				}
				return echo(ctx, c)
			})
		},
		"concurrent use: beside other calls": func() tools.Tool {
			busy := make(chan struct{}, 1)
			return tooltest.Func(spec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
				select {
				case busy <- struct{}{}:
				default:
					return tools.Result{}, errors.New("busy")
				}
				time.Sleep(time.Millisecond)
				<-busy
				return echo(ctx, c)
			})
		},
		"proposals: Spec.Propose proposed {, which is not JSON": proposing(json.RawMessage("{")),
		"proposals: the tool refused {}":                        proposing(hello, json.RawMessage("{}")),
		"proposals: Spec.Propose: panic: ": described(func(s *tools.Spec) {
			s.Propose = func(c tools.Call) []json.RawMessage { return []json.RawMessage{json.RawMessage(c.Prompt[:1])} }
		}),
	} {
		t.Run(want, func(t *testing.T) { finds(t, mk, want) })
	}
}

// forgetful has no Propose when it is asked again.
type forgetful struct {
	tools.Tool
	asked atomic.Bool
}

func (f *forgetful) Spec() tools.Spec {
	s := f.Tool.Spec()
	if !f.asked.Swap(true) {
		s.Propose = func(tools.Call) []json.RawMessage { return nil }
	}
	return s
}

func TestFunc(t *testing.T) {
	f := tooltest.Func(spec(), nil)
	if r, err := f.Call(t.Context(), tools.Call{}); err != nil || r.Text != "ok" || f.Spec().Name != "echo" {
		t.Errorf("got %+v, %v", r, err)
	}
}
