package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
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
	if err := wire.Ended(ctx); err != nil {
		return nil, m.fail(nil, models.Error{Err: err})
	}
	a := &answer{r: r, start: time.Now(), usage: cost.Tally{Flavor: cost.Chat}}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, sent, err := m.post(inner, endpoint, body, r.OnDelta != nil)
	if err != nil {
		if end := wire.Ended(ctx); end != nil {
			return nil, m.fail(nil, models.Error{Sent: sent, Err: end})
		}
		return nil, m.fail(nil, wire.Unsent(err, sent, "is a server running at "+m.base.Host+"?"))
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
	wire.Drain(resp.Body, cancel)
	if err := m.obeyed(r, a.finish, out.Text); err != nil {
		return nil, m.fail(a, models.Error{Sent: true, Err: err})
	}
	return out, nil
}

// post sends the request. sent reports whether the server may have seen it.
func (m *client) post(ctx context.Context, endpoint string, body []byte, stream bool) (resp *http.Response, sent bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base.JoinPath(endpoint).String(), bytes.NewReader(body))
	if err != nil {
		return nil, false, err
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
	return wire.Send(m.http, req)
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
		if err := wire.Ended(ctx); err != nil {
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
			return wire.Cut(ctx, err)
		}
	}
}

// plain reads a body that is one JSON value.
func (m *client) plain(ctx context.Context, resp *http.Response, a *answer) *models.Error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return wire.Cut(ctx, err)
	case len(b) > maxReply:
		return m.malformed(errTooLong, nil)
	}
	var p reply
	dec := json.NewDecoder(bytes.NewReader(b))
	err = dec.Decode(&p)
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return wire.Cut(ctx, err)
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
