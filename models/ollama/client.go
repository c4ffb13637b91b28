package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

const provider = "ollama"

// Client speaks to a server: what it is, what it has, what it runs. Errors of
// its methods are *models.Error, with the model asked about, or the host. It is
// safe for concurrent use.
type Client struct {
	base  *url.URL
	http  *http.Client
	own   bool      // http is ours to close
	lines sync.Pool // of *lines
}

// NewClient returns a client of the server at an address, which is as in
// Config.BaseURL, as is h in Config.HTTP. It does no I/O. The error is a
// *ConfigError.
func NewClient(baseURL string, h *http.Client) (*Client, error) {
	base, err := address(baseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, http: h, own: h == nil}
	if c.own {
		c.http = wire.NewHTTP(false)
	}
	c.lines.New = func() any { return new(lines) }
	return c, nil
}

// Close closes idle connections, where the HTTP client is the Client's own.
func (c *Client) Close() {
	if c.own {
		c.http.CloseIdleConnections()
	}
}

// id says whom an error is about.
type id struct{ name, provider string }

func (c *Client) about(model string) id {
	return id{or(model, c.base.Host), provider}
}

func (i id) fail(e models.Error) *models.Error {
	e.Model, e.Provider = i.name, i.provider
	return &e
}

// reply is an answer with status 200 to 299 whose body is not read yet.
type reply struct {
	http.Response
	cancel func()
}

// close ends the call.
func (r *reply) close() {
	r.cancel()
	_ = r.Body.Close() // nothing more is wanted of it
}

// drain reads the end of the body, so that the connection can be used again.
func (r *reply) drain() { wire.Drain(r.Body, r.cancel) }

// open sends a request and reads its status. Whatever is no success is an error.
func (c *Client) open(ctx context.Context, who id, method, path string, body io.Reader) (*reply, *models.Error) {
	if err := wire.Ended(ctx); err != nil {
		return nil, who.fail(models.Error{Err: err})
	}
	inner, cancel := context.WithCancel(ctx)
	resp, sent, err := c.send(inner, method, path, body)
	if err != nil {
		cancel()
		if end := wire.Ended(ctx); end != nil {
			return nil, who.fail(models.Error{Sent: sent, Err: end})
		}
		return nil, who.fail(wire.Unsent(err, sent, "is Ollama running at "+c.base.Host+"? start it with `ollama serve`:"))
	}
	r := &reply{*resp, cancel}
	if resp.StatusCode >= 300 {
		defer r.close()
		return nil, who.fail(c.status(resp))
	}
	return r, nil
}

// send sends a request. sent reports whether the server may have seen it.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (resp *http.Response, sent bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), body)
	if err != nil {
		return nil, false, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/x-ndjson, application/json")
	req.Header.Set("User-Agent", "toolorchestra-go")
	return wire.Send(c.http, req)
}

// encode makes the body of a request. Invalid UTF-8 becomes U+FFFD.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // NaN, for instance
		return nil, fmt.Errorf("%w: %v", models.ErrInvalidRequest, err)
	}
	return b.Bytes(), nil
}

// call asks for one JSON value, which it reads into out; in and out may be nil.
func (c *Client) call(ctx context.Context, who id, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := encode(in)
		if err != nil {
			return who.fail(models.Error{Err: err})
		}
		body = bytes.NewReader(b)
	}
	r, e := c.open(ctx, who, method, path, body)
	if e != nil {
		return e
	}
	defer r.close()
	b, err := io.ReadAll(io.LimitReader(r.Body, maxReply+1))
	var fault struct {
		Error json.RawMessage `json:"error"`
	}
	switch {
	case err != nil:
		e = wire.Cut(ctx, err)
	case len(b) > maxReply:
		e = c.malformed(errTooLong, nil)
	case out == nil:
		return nil
	case json.Unmarshal(b, &fault) != nil:
		e = c.malformed(errNoObject, b)
	case said(fault.Error) != "":
		e = reported(said(fault.Error), false)
	default:
		if err := json.Unmarshal(b, out); err == nil {
			return nil
		} else {
			e = c.malformed(err, b)
		}
	}
	e.Sent = true
	return who.fail(*e)
}

// stream calls f with each line of a body until it reports the end. A stream that
// ends before that is models.ErrTruncated. All lines together have to keep within
// maxReply, or each if they are many by nature.
func (c *Client) stream(ctx context.Context, r *reply, many bool, f func(line []byte) (end bool, e *models.Error)) *models.Error {
	l := c.lines.Get().(*lines)
	defer c.lines.Put(l)
	l.reset(r.Body)
	for {
		if err := wire.Ended(ctx); err != nil {
			return &models.Error{Err: err}
		}
		b, err := l.next()
		if many {
			l.left = maxReply
		}
		if b = bytes.TrimSpace(b); len(b) > 0 && !errors.Is(err, errTooLong) && (err == nil || json.Valid(b)) {
			end, e := f(b)
			if end || e != nil {
				return e
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, errTooLong):
			return c.malformed(err, nil)
		case len(b) > 0 && b[0] != '{' && err == io.EOF:
			return c.malformed(errNoObject, b)
		default:
			return wire.Cut(ctx, err)
		}
	}
}
