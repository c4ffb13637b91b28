package modeltest_test

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
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

var info = models.Info{Name: "expert", Provider: "test", Price: cost.Tokens(1, 2), Tools: true, Schema: true}

func TestConform(t *testing.T) {
	say := modeltest.Say("The answer is forty-two.")
	think := modeltest.Step{Reasoning: "six times seven …", Text: "42"}
	call := modeltest.CallTool("multiply", `{"a": 6, "b": 7}`)
	for name, step := range map[string]modeltest.Step{"text": say, "reasoning": think, "call": call, "no usage": modeltest.NoUsage(say)} {
		t.Run(name, func(t *testing.T) {
			modeltest.Conform(t, func(*testing.T) models.Model { return modeltest.New(info, modeltest.Forever(step)) })
		})
	}
}

// Time in a bubble is free, so slow models can be checked at full length.
func TestCheckSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, p := range modeltest.Check(func() models.Model {
			return modeltest.New(info, modeltest.Forever(modeltest.Slow(20*time.Second, modeltest.Say("The answer is forty-two."))))
		}) {
			t.Error(p)
		}
	})
}

func TestCheckFindsBroken(t *testing.T) {
	want := map[string]string{
		"partial": "cancelled in mid-stream: a call that was cancelled in its first delta returned",
		"late":    "stream: OnDelta was called after Generate had returned",
		"meddler": "request is not changed: Generate changed Request.Messages",
		"lossy":   "answer: usage: 0 tokens in and 0 out",
		"deaf":    "deadline: the call still ran 2s after",
		"crash":   "invalid request: an empty request: the call panicked",
	}
	broken := modeltest.Broken()
	if len(broken) != len(want) {
		t.Fatalf("%d broken models, %d expectations", len(broken), len(want))
	}
	for name, mk := range broken {
		t.Run(name, func(t *testing.T) { finds(t, mk, want[name]) })
	}
}

// finds fails if Check does not report a problem.
func finds(t *testing.T, mk func() models.Model, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		problems := modeltest.Check(mk)
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
	good := func() *modeltest.Model {
		return modeltest.New(info, modeltest.Forever(modeltest.Say("The answer is forty-two.")))
	}
	wrap := func(after func(r *models.Request, resp *models.Response, err error) (*models.Response, error)) func() models.Model {
		return func() models.Model {
			m := good()
			return modeltest.Func(info, func(ctx context.Context, r *models.Request) (*models.Response, error) {
				resp, err := m.Generate(ctx, r)
				return after(r, resp, err)
			})
		}
	}
	answer := func(change func(resp *models.Response)) func() models.Model {
		return wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if resp != nil {
				change(resp)
			}
			return resp, err
		})
	}
	for want, mk := range map[string]func() models.Model{
		"info: there is no model":   func() models.Model { return nil },
		"info: Info.Name is empty":  func() models.Model { return modeltest.New(models.Info{}) },
		"info: Info.Price: cost: P": func() models.Model { return modeltest.New(models.Info{Price: cost.Tokens(-1, 0)}) },
		"info: Info has a negative": func() models.Model { return modeltest.New(models.Info{Context: -1}) },
		"info: Info changed after":  func() models.Model { return &fickle{Model: good()} },
		"info: the call failed":     func() models.Model { return modeltest.New(info) },

		"answer: the response has neither":   answer(func(r *models.Response) { r.Text = "" }),
		"answer: the response has no Finish": answer(func(r *models.Response) { r.Finish = "" }),
		"answer: the usage has a negative":   answer(func(r *models.Response) { r.Usage.GPU = -1 }),
		"answer: usage: Reasoning (9)":       answer(func(r *models.Response) { r.Usage.Reasoning = 9 }),
		"answer: usage: cached tokens (99)":  answer(func(r *models.Response) { r.Usage.CacheRead, r.Usage.CacheWrite = 90, 9 }),
		"answer: the call returned neither": wrap(func(*models.Request, *models.Response, error) (*models.Response, error) {
			return nil, nil
		}),
		"answer: a failed call returned a response too": wrap(func(_ *models.Request, resp *models.Response, _ error) (*models.Response, error) {
			return resp, errors.New("oops")
		}),
		"answer: a failed call returned a *errors.errorString": wrap(func(*models.Request, *models.Response, error) (*models.Response, error) {
			return nil, errors.New("oops")
		}),
		"stream: the deltas say": answer(func(r *models.Response) { r.Text += " And more." }),
		"stream: the deltas reason": answer(func(r *models.Response) {
			r.Reasoning = "Hm."
		}),
		"request is not changed: Generate changed Request.Temperature": wrap(func(r *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if r.Temperature != nil {
				*r.Temperature = 0
			}
			return resp, err
		}),
		"request is not changed: Generate changed Request.OnDelta": wrap(func(r *models.Request, resp *models.Response, err error) (*models.Response, error) {
			r.OnDelta = nil
			return resp, err
		}),
		"request is not changed: Generate changed Request.Tools": wrap(func(r *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if len(r.Tools) > 0 {
				r.Tools[0].Schema = json.RawMessage(`{"a":1}`)
			}
			return resp, err
		}),
		"invalid request: an empty request was answered": wrap(func(*models.Request, *models.Response, error) (*models.Response, error) {
			return &models.Response{Text: "42", Finish: models.FinishStop}, nil
		}),
		"invalid request: a request with both Messages and Prompt: the error does not wrap": wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if err != nil {
				err = &models.Error{Err: errors.New("status 400")}
			}
			return resp, err
		}),
		"invalid request: Sent is true": wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if err != nil {
				err = &models.Error{Sent: true, Err: err}
			}
			return resp, err
		}),
		"context done before: Sent is true": wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if err != nil {
				err = &models.Error{Sent: true, Err: err}
			}
			return resp, err
		}),
		"context done before: the error is not the context's": wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if err != nil {
				err = &models.Error{Err: errors.New("aborted")}
			}
			return resp, err
		}),
		"context done before: a call whose context was cancelled before was answered": func() models.Model {
			m := good()
			return modeltest.Func(info, func(ctx context.Context, r *models.Request) (*models.Response, error) {
				return m.Generate(context.WithoutCancel(ctx), r)
			})
		},
		"cancelled in mid-stream: Partial": wrap(func(_ *models.Request, resp *models.Response, err error) (*models.Response, error) {
			if e, ok := err.(*models.Error); ok && e.Partial != nil {
				e.Partial.Text = ""
			}
			return resp, err
		}),
		"concurrent use: beside other calls the deltas say": func() models.Model { return &mixed{Model: good()} },
	} {
		t.Run(want, func(t *testing.T) { finds(t, mk, want) })
	}
}

// fickle has another name each time.
type fickle struct {
	*modeltest.Model
	n atomic.Int64
}

func (f *fickle) Info() models.Info {
	i := info
	i.Latency = time.Duration(f.n.Add(1))
	return i
}

// mixed adds what was not streamed from the third call on.
type mixed struct{ *modeltest.Model }

func (m *mixed) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	resp, err := m.Model.Generate(ctx, r)
	if resp != nil && len(m.Requests()) > 2 {
		resp.Text += " "
	}
	return resp, err
}

func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		want := "context done before: the call never returned"
		for _, p := range modeltest.Check(func() models.Model {
			return modeltest.Func(info, func(ctx context.Context, r *models.Request) (*models.Response, error) {
				if ctx.Err() != nil {
					<-free
				}
				return nil, &models.Error{Err: context.Canceled}
			})
		}) {
			if strings.HasPrefix(p.Error(), want) {
				return
			}
		}
		t.Errorf("no problem %q", want)
	})
}
