package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Generate implements models.Model. Every error is a *models.Error. An error
// object in the body of a reply with status 200 has Status 0, unless nothing
// else arrived and its code is that of a status.
func (m *client) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := m.check(r); err != nil {
		return nil, m.fail(nil, models.Error{Err: err})
	}
	endpoint, body, err := m.body(r)
	if err != nil {
		return nil, m.fail(nil, models.Error{Err: err})
	}
	if err := ended(ctx); err != nil {
		return nil, m.fail(nil, models.Error{Err: err})
	}
	a := &answer{r: r, start: time.Now(), usage: cost.Tally{Flavor: cost.Chat}}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := m.post(inner, endpoint, body, r.OnDelta != nil)
	if err != nil {
		var e *sendError
		errors.As(err, &e)
		if end := ended(ctx); end != nil {
			return nil, m.fail(nil, models.Error{Sent: e.sent, Err: end})
		}
		return nil, m.fail(nil, m.unsent(e))
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, m.fail(nil, m.status(resp, r))
	}
	read := m.plain
	if streamed(resp, r.OnDelta != nil) {
		read = m.stream
	}
	if e := read(ctx, resp, a); e != nil {
		e.Sent = true
		return nil, m.fail(a, *e)
	}
	out, err := a.done()
	if err != nil {
		return nil, m.fail(a, models.Error{Sent: true, Retryable: true, Err: err})
	}
	drain(resp.Body, cancel)
	if err := m.obeyed(r, a.finish, out.Text); err != nil {
		return nil, m.fail(a, models.Error{Sent: true, Err: err})
	}
	return out, nil
}

// sendError is a request without a response.
type sendError struct {
	sent bool
	err  error
}

// Error says what happened, and what to do about it where that is known.
func (e *sendError) Error() string { return e.err.Error() }

// post sends the request. Its error is a *sendError.
func (m *client) post(ctx context.Context, endpoint string, body []byte, stream bool) (*http.Response, error) {
	// Only a connection that exists can have carried something.
	var asked, got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base.JoinPath(endpoint).String(), bytes.NewReader(body))
	if err != nil {
		return nil, &sendError{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if stream {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	req.Header.Set("User-Agent", "toolorchestra-go")
	if m.key != "" {
		req.Header.Set("Authorization", "Bearer "+m.key)
	}
	for name, values := range m.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := m.http.Do(req)
	if err != nil {
		// A RoundTripper that is not an *http.Transport need not call the trace.
		return nil, &sendError{sent: got.Load() || !asked.Load() && !neverSent(err), err: err}
	}
	return resp, nil
}

// streamed reports whether the reply is a stream. Servers may answer with a
// plain body where a stream was asked for.
func streamed(resp *http.Response, asked bool) bool {
	switch t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); t {
	case "text/event-stream":
		return true
	case "application/json", "text/html":
		return false
	}
	return asked
}

// stream reads chunks until the end that the server announces. A stream
// without [DONE] is whole if it named a finish_reason and then ended cleanly:
// some servers leave [DONE] out.
func (m *client) stream(ctx context.Context, resp *http.Response, a *answer) *models.Error {
	ev := newEvents(resp.Body)
	for {
		if err := ended(ctx); err != nil {
			return &models.Error{Err: err}
		}
		name, data, err := ev.next()
		if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
			return nil
		}
		if len(data) > 0 {
			var p reply
			bad := json.Unmarshal(data, &p)
			switch {
			case bad != nil && err != nil: // cut off
			case p.fault() || name == "error":
				return m.reported(&p, data, a)
			case bad != nil:
				a.about(&p)
				return m.malformed(bad, data)
			default:
				if bad := a.take(&p, false); bad != nil {
					return m.malformed(bad, nil)
				}
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, errEventTooLong):
			return m.malformed(err, nil)
		case err == io.EOF && a.finish != "":
			return nil
		default:
			return cut(ctx, err)
		}
	}
}

// plain reads a body that is one JSON value.
func (m *client) plain(ctx context.Context, resp *http.Response, a *answer) *models.Error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return cut(ctx, err)
	case len(b) > maxReply:
		return m.malformed(errTooLong, nil)
	}
	var p reply
	dec := json.NewDecoder(bytes.NewReader(b))
	err = dec.Decode(&p)
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return cut(ctx, err)
	case p.fault():
		return m.reported(&p, b, a)
	case err != nil:
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			a.about(&p) // all fields but that one are read
		}
		return m.malformed(err, b)
	case len(p.Choices) == 0:
		a.about(&p)
		return m.malformed(errNoChoice, b)
	}
	if err := a.take(&p, true); err != nil {
		return m.malformed(err, nil)
	}
	return nil
}

// drain reads the end of a body, so that its connection can be used again, but
// waits for it no longer than a moment.
func drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(50*time.Millisecond, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10)
}

// ended returns why ctx is over, or nil. A deadline that has passed counts even
// if its timer has not fired yet: connections obey the deadline itself.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if d, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
