package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// NewHTTP returns a client that shares nothing with http.DefaultClient. It
// follows no redirects and limits nothing but dialling. Compression is not asked
// for where a stream is to be read as it comes.
func NewHTTP(compression bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ForceAttemptHTTP2:     true,
			DisableCompression:    !compression,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		// A redirected POST becomes a GET without a body: better to say so.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Send makes a request. sent reports whether the server may have seen it: only a
// connection that exists can have carried something.
func Send(h *http.Client, req *http.Request) (resp *http.Response, sent bool, err error) {
	var asked, got atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	resp, err = h.Do(req.WithContext(ctx))
	if err != nil {
		// A RoundTripper that is not an *http.Transport need not call the trace.
		return nil, got.Load() || !asked.Load() && !neverSent(err), err
	}
	return resp, true, nil
}

// Drain reads the end of a body, so that its connection can be used again, but
// waits for it no longer than a moment; then it cancels.
func Drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(50*time.Millisecond, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10)
}

// Ended returns why ctx is over, or nil. A deadline that has passed counts even
// if its timer has not fired yet: connections obey the deadline itself.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if d, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
