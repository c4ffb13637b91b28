package agl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// MaxReply bounds a reply that is read, in bytes.
const MaxReply = 64 << 20

// ClientConfig says where the server is.
type ClientConfig struct {
	// URL is the server's address, such as "http://localhost:8080".
	URL string
	// Key is sent as a bearer token. Empty: none, which a server without a key
	// takes.
	Key string
	// HTTP makes the calls and is not changed. Nil: a client of its own that limits
	// dialling and TLS to 10 seconds each and nothing else, and follows no
	// redirects.
	HTTP *http.Client
}

// ConfigError is a configuration that cannot work.
type ConfigError struct {
	Field string // "ClientConfig.URL", "Config.Play", …
	Fix   string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *ConfigError) Error() string { return "agl: " + e.Field + ": " + e.Fix }

// Client is the API of an agl-server. It tries nothing twice. It is safe for
// concurrent use.
type Client struct {
	base *url.URL
	key  string
	http *http.Client
	own  bool // http is not the caller's
}

// NewClient returns a client. It does no I/O. Errors are *ConfigError.
func NewClient(c ClientConfig) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(strings.TrimSpace(c.URL), "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" {
		return nil, &ConfigError{Field: "ClientConfig.URL", Fix: fmt.Sprintf(`%q is no address of a server; write it like "http://localhost:8080"`, c.URL)}
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &ConfigError{Field: "ClientConfig.Key", Fix: "it has spaces, line breaks or other characters that no key has; trim it"}
	}
	h := c.HTTP
	if h == nil {
		h = &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second,
				ForceAttemptHTTP2:   true,
				MaxIdleConnsPerHost: 64,
				IdleConnTimeout:     90 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Client{base: base, key: c.Key, http: h, own: c.HTTP == nil}, nil
}

// Close drops the idle connections of a client that was given no HTTP of its
// caller's, its jobs' ones included. It can still be used.
func (c *Client) Close() error {
	if c.own {
		c.http.CloseIdleConnections()
	}
	return nil
}

// call makes one call, of a path that is escaped. In, if it is not nil, is the
// body; out, if it is not nil, takes the reply.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	e := &Error{Op: method + " " + path}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			e.Err = err
			return e
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		e.Err = err
		return e
	}
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "toolorchestra-go")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		e.fail(ctx, ErrUnreachable, err)
		return e
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxReply+1))
	switch {
	case resp.StatusCode >= 300:
		e.status(resp, raw, c.key)
		return e
	case err != nil:
		e.fail(ctx, ErrCut, err)
		return e
	case len(raw) > MaxReply:
		e.Err = fmt.Errorf("%w: it has more than %d bytes", ErrTooLong, MaxReply)
		return e
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		e.Err, e.Body, e.Retryable = fmt.Errorf("%w: %w", ErrMalformed, err), readable(raw, c.key), true
		return e
	}
	return nil
}

// fail is a call without a whole reply.
func (e *Error) fail(ctx context.Context, what, err error) {
	if end := context.Cause(ctx); end != nil {
		e.Err = end
		return
	}
	e.Err, e.Retryable = fmt.Errorf("%w: %w", what, err), true
}
