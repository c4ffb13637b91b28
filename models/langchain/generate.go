package langchain

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// Generate implements models.Model. Every error is a *models.Error.
func (c *client) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := c.check(r); err != nil {
		return nil, c.fail(models.Error{Err: err})
	}
	if err := wire.Ended(ctx); err != nil {
		return nil, c.fail(models.Error{Err: err})
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel() // readers of streams that langchaingo leaves behind end with it
	s := &relay{ctx: ctx, on: r.OnDelta}
	start := time.Now()
	got, sent, err := c.ask(inner, r, s)
	text, reasoning, stopped := s.close()

	out, stop := c.read(got, firstID(r.Messages))
	out.Usage.Requests, out.Usage.Wall = 1, time.Since(start)
	fail := func(e models.Error) (*models.Response, error) {
		e.Sent = sent
		e.Partial = partial(out, text, reasoning)
		return nil, c.fail(e)
	}
	switch {
	case wire.Ended(ctx) != nil: // langchaingo may return what it has and no error
		return fail(models.Error{Err: wire.Ended(ctx)})
	case stopped != nil:
		return fail(models.Error{Err: fmt.Errorf("%w: %w", models.ErrMalformed, stopped)})
	case err != nil:
		return fail(classify(err, text != "" || reasoning != ""))
	case got == nil:
		return fail(models.Error{Err: fmt.Errorf("%w: neither a response nor an error", models.ErrMalformed)})
	}
	if err := c.whole(out, stop, r, text != "" || reasoning != ""); err != nil {
		return fail(models.Error{Retryable: true, Err: err})
	}
	out.Finish = finish(stop, out, r.MaxOutput)
	if r.OnDelta != nil {
		s.finish(out)
	}
	return out, nil
}

// ask calls the provider. Sent is false if nothing can have reached a server.
// A panic over a reply becomes an error; one of the caller's OnDelta is its own.
func (c *client) ask(ctx context.Context, r *models.Request, s *relay) (out *llms.ContentResponse, sent bool, err error) {
	// langchaingo does not tell whether a connection was made; net/http does.
	var asked, got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	defer func() {
		if s.outside.Load() {
			return
		}
		if v := recover(); v != nil {
			out, err = nil, &panicError{v}
		}
		sent = got.Load() || !asked.Load() // what does not use net/http is taken to have sent
	}()
	out, err = c.llm.GenerateContent(ctx, c.messages(r.Messages), c.callOptions(r, s)...)
	return out, true, err
}

// whole says why a reply is not complete, or nil.
func (c *client) whole(out *models.Response, stop string, r *models.Request, streamed bool) error {
	said := out.Text != "" || len(out.Calls) > 0
	needs := c.traits.stops
	if c.streams(r) {
		needs = c.traits.stopsStream
	}
	switch {
	case stop == "" && needs && (said || streamed):
		return fmt.Errorf("%w: there is no stop reason", models.ErrTruncated)
	case !said && streamed && stop == "":
		return fmt.Errorf("%w: what was streamed is not in the reply", models.ErrTruncated)
	case stop == "error" || stop == "abort":
		return fmt.Errorf("%w: the server gave up (%s)", models.ErrTruncated, stop)
	case said:
		return nil
	}
	if f := finish(stop, out, 0); f == models.FinishLength || f == models.FinishFilter {
		return nil // that is why there is nothing
	}
	return fmt.Errorf("%w: %w", models.ErrMalformed, errEmpty)
}

var errEmpty = errors.New("the reply is empty; langchaingo drops errors that arrive in a stream")

// partial is what had arrived, or nil.
func partial(out *models.Response, text, reasoning string) *models.Response {
	if len(text) > len(out.Text) {
		out.Text = text
	}
	if len(reasoning) > len(out.Reasoning) {
		out.Reasoning = reasoning
	}
	if out.Text == "" && out.Reasoning == "" && len(out.Calls) == 0 && !out.Usage.Known {
		return nil
	}
	return out
}
