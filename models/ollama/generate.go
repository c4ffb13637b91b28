package ollama

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// Generate answers one request, through /api/generate if it has a Prompt, else
// through /api/chat. Every error is a *models.Error; see the package's doc for
// what they mean. The first call loads the model, as Load does. Usage is unknown
// where the server leaves out a count.
func (m *Model) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	path, body, err := m.body(r)
	if err != nil {
		return nil, m.self().fail(models.Error{Err: err})
	}
	a := &answer{r: r}
	var out *models.Response
	e := m.ask(ctx, path, body, func(reply *reply, start time.Time) *models.Error {
		a.start = start
		var l line
		e := m.stream(ctx, reply, false, func(b []byte) (bool, *models.Error) {
			if err := l.parse(b); err != nil {
				return false, m.malformed(err, b)
			}
			return a.take(&l)
		})
		if e == nil {
			out, e = a.done(m.window())
		}
		if e != nil {
			return a.failed(e)
		}
		reply.drain()
		return nil
	})
	if e != nil {
		if errors.Is(e, errCall) {
			m.doubtful.Store(true)
			m.loads.cool()
		}
		return nil, e
	}
	return out, nil
}

// ask sends a request when it is its turn, and reads the reply.
func (m *Model) ask(ctx context.Context, path string, body []byte, read func(r *reply, start time.Time) *models.Error) *models.Error {
	refuse := func(err error, retry bool) *models.Error {
		return m.self().fail(models.Error{Err: err, Retryable: retry})
	}
	if err := wire.Ended(ctx); err != nil {
		return refuse(err, false)
	}
	leave, err := m.queue.enter()
	if err != nil {
		return refuse(err, true)
	}
	defer leave()
	if e := m.loads.ready(ctx); e != nil {
		return m.self().fail(*e)
	}
	done, err := m.queue.turn(ctx)
	if err != nil {
		return refuse(err, wire.Ended(ctx) == nil)
	}
	defer done()
	start := time.Now()
	reply, e := m.open(ctx, m.self(), http.MethodPost, path, bytes.NewReader(body))
	if e != nil {
		if e.Status < 400 || e.Status >= 500 || e.Status == http.StatusNotFound {
			m.loads.cool() // it may not be loaded any more
		}
		return e
	}
	defer reply.close()
	if e := read(reply, start); e != nil {
		return m.self().fail(*e)
	}
	return nil
}
