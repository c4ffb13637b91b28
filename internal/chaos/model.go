package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// errUntyped is a failure of no known type.
var errUntyped = errors.New("chaos: something went wrong")

// Model makes a model of m that fails as models do, and as they must not.
func (p *Plan) Model(point string, m models.Model) models.Model {
	return &model{m, p, point}
}

type model struct {
	m     models.Model
	plan  *Plan
	point string
}

// Info describes the model.
func (x *model) Info() models.Info { return x.m.Info() }

// Unwrap gives the model below.
func (x *model) Unwrap() models.Model { return x.m }

// Generate asks the model, and spoils what it says.
func (x *model) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	f := x.plan.draw(x.point, modelKinds)
	info := x.m.Info()
	fail := func(e models.Error) (*models.Response, error) {
		e.Model, e.Provider = info.Name, info.Provider
		return nil, &e
	}
	switch f.Kind {
	case Failure:
		return nil, errUntyped
	case Status:
		after, err := time.ParseDuration(f.RetryAfter + "s")
		if err != nil {
			after = 0
		}
		return fail(models.Error{Status: f.Code, Sent: true, Retryable: true, RetryAfter: max(after, 0)})
	case Hang:
		<-ctx.Done()
		return fail(models.Error{Sent: true, Err: ctx.Err()})
	case Deaf, Jump:
		time.Sleep(f.Wait)
		if f.Kind == Deaf {
			ctx = context.WithoutCancel(ctx)
		}
	case Panic:
		panic("chaos: a bug in a model")
	case Nothing:
		return nil, nil
	}
	q := *r
	if on := r.OnDelta; on != nil && f.Kind == Truncate {
		room := f.At
		q.OnDelta = func(d models.Delta) {
			if d.Text = d.Text[:min(len(d.Text), room)]; d.Text+d.Reasoning != "" {
				on(d)
			}
			room -= len(d.Text)
		}
	}
	resp, err := x.m.Generate(ctx, &q)
	if err != nil || resp == nil {
		return resp, err
	}
	if f.Kind == Truncate {
		resp.Text, resp.Calls, resp.Finish = resp.Text[:min(len(resp.Text), f.At)], nil, ""
		return fail(models.Error{Sent: true, Retryable: true, Partial: resp, Err: models.ErrTruncated})
	}
	f.distort(resp)
	return resp, nil
}

// distort spoils a whole response.
func (f Fault) distort(resp *models.Response) {
	switch f.Kind {
	case NoUsage:
		resp.Usage = cost.Usage{}
	case LyingUsage:
		resp.Usage.Input *= 1000
		resp.Usage.Output *= 1000
	case BadArgs:
		for i, c := range resp.Calls {
			resp.Calls[i].Args = c.Args[:len(c.Args)/2]
		}
	case SameIDs:
		for i := range resp.Calls {
			resp.Calls[i].ID = "call-1"
		}
		if len(resp.Calls) == 1 {
			resp.Calls = append(resp.Calls, resp.Calls[0])
		}
	case InvalidText:
		resp.Text = fmt.Sprintf("\xff\xfe%s<|im_end|>\n</tool_call>\x00%s", resp.Text, strings.Repeat("�", 3))
	}
}
