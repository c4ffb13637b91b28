package chaos

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// Transport spoils what passes through a RoundTripper, for clients of
// whatever protocol; unlike Proxy it needs no connection, so it can be used in a
// bubble of testing/synctest, where slow replies take no time.
func (p *Plan) Transport(point string, next http.RoundTripper) http.RoundTripper {
	return &transport{p, point, next}
}

type transport struct {
	plan  *Plan
	point string
	next  http.RoundTripper
}

// RoundTrip makes the request, or what became of it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	f := t.plan.draw(t.point, wireKinds)
	ctx := req.Context()
	if status, header, body, ok := f.instead(); ok {
		swallow(req)
		return &http.Response{Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req}, nil
	}
	switch f.Kind {
	case Refuse:
		swallow(req)
		return nil, broken("dial", syscall.ECONNREFUSED)
	case Silence:
		swallow(req)
		<-ctx.Done()
		return nil, ctx.Err()
	case Jump:
		time.Sleep(f.Wait)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case Lost:
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, broken("read", syscall.ECONNRESET)
	case SlowHeader:
		if err := pause(ctx, f.Wait); err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
	}
	resp.Body = &spoilt{ReadCloser: resp.Body, ctx: ctx, f: f}
	return resp, nil
}

// swallow ends a request that goes nowhere, as a RoundTripper must.
func swallow(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func broken(op string, err syscall.Errno) error {
	call := op
	if op == "dial" {
		call = "connect"
	}
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(call, err)}
}

// pause waits as long as ctx lives.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spoilt is a body with a fault in it.
type spoilt struct {
	io.ReadCloser
	ctx  context.Context
	f    Fault
	n    int // bytes so far
	i    int // reads so far
	more bytes.Buffer
}

// Read reads a piece, or what is left of it.
func (s *spoilt) Read(b []byte) (int, error) {
	if s.more.Len() > 0 {
		return s.more.Read(b)
	}
	if len(b) > 256 {
		b = b[:256]
	}
	switch s.f.Kind {
	case Cut, End, Reset, Stall:
		if s.n >= s.f.At {
			return 0, s.end()
		}
		b = b[:min(len(b), s.f.At-s.n)]
	case SlowBody:
		if err := pause(s.ctx, s.f.Wait/8); err != nil {
			return 0, err
		}
	}
	n, err := s.ReadCloser.Read(b)
	switch {
	case s.f.Kind == Garbage:
		copy(b[:n], s.f.spoil(b[:n], s.n))
	case s.f.Kind == Repeat && s.i == s.f.At:
		s.more.Write(b[:n])
		err = nil // it comes again at the next read
	case s.f.Kind == Drop && s.i == s.f.At && n > 0:
		s.i++
		return 0, err
	}
	s.n += n
	s.i++
	return n, err
}

// end is what a reader sees where the body breaks off.
func (s *spoilt) end() error {
	switch s.f.Kind {
	case End:
		return io.EOF
	case Reset:
		return broken("read", syscall.ECONNRESET)
	case Stall:
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	return io.ErrUnexpectedEOF
}
