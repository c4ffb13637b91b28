package modeltest

import (
	"context"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Broken returns makers of models that each break one rule, under the name of
// what they do wrong. Check finds a problem in every one of them. They are for
// tests of code that must survive such models. "deaf" takes three
// seconds a call, or no time in a bubble of testing/synctest.
func Broken() map[string]func() models.Model {
	return map[string]func() models.Model{
		"partial": partial, "late": late, "meddler": meddler, "lossy": lossy, "deaf": deaf, "crash": crash,
	}
}

func broken(generate func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error)) models.Model {
	m := New(models.Info{Name: "broken", Price: cost.Free()}, Forever(Say("The answer is forty-two.")))
	return Func(m.Info(), func(ctx context.Context, r *models.Request) (*models.Response, error) {
		return generate(m, ctx, r)
	})
}

// partial returns what had arrived when it was cancelled as if it were whole.
func partial() models.Model {
	return broken(func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error) {
		resp, err := m.Generate(ctx, r)
		if e, ok := err.(*models.Error); ok && e.Partial != nil {
			e.Partial.Finish = models.FinishStop
			return e.Partial, nil
		}
		return resp, err
	})
}

// late calls OnDelta once more after it has returned.
func late() models.Model {
	return broken(func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error) {
		resp, err := m.Generate(ctx, r)
		if on := r.OnDelta; on != nil {
			time.AfterFunc(time.Millisecond, func() { on(models.Delta{Text: "!"}) })
		}
		return resp, err
	})
}

// meddler writes into the caller's array of messages, behind its end.
func meddler() models.Model {
	return broken(func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error) {
		own := *r
		if len(r.Messages) > 0 {
			own.Messages = append(r.Messages, models.Message{Role: models.System, Text: "Think step by step."})
		}
		return m.Generate(ctx, &own)
	})
}

// lossy claims to know that its answers consumed nothing.
func lossy() models.Model {
	return broken(func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error) {
		resp, err := m.Generate(ctx, r)
		if err == nil {
			resp.Usage = cost.Usage{Known: true}
		}
		return resp, err
	})
}

// deaf takes three seconds and does not notice that its context is done.
func deaf() models.Model {
	return New(models.Info{Name: "broken", Price: cost.Free()},
		Forever(Step{Text: "The answer is forty-two.", Delay: 3 * time.Second, Deaf: true}))
}

// crash panics if there are no messages.
func crash() models.Model {
	return broken(func(m *Model, ctx context.Context, r *models.Request) (*models.Response, error) {
		_ = r.Messages[0]
		return m.Generate(ctx, r)
	})
}
