package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Proxy stands between a client and a server and spoils what passes. It speaks
// HTTP/1.1 on the loopback. Close it.
type Proxy struct {
	plan   *Plan
	point  string
	up     *url.URL
	http   *http.Transport
	ln     net.Listener
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Proxy makes a proxy in front of the server at an address. It listens until it
// is closed.
func (p *Plan) Proxy(point, upstream string) (*Proxy, error) {
	up, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	x := &Proxy{plan: p, point: point, up: up, ln: ln, http: &http.Transport{DisableCompression: true}, conns: map[net.Conn]bool{}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.all.Go(x.accept)
	return x, nil
}

// URL is the address of the proxy, with the upstream's path.
func (x *Proxy) URL() string { return "http://" + x.ln.Addr().String() + x.up.Path }

// Close closes all connections and waits for their end.
func (x *Proxy) Close() {
	x.cancel()
	_ = x.ln.Close()
	x.mu.Lock()
	for c := range x.conns {
		_ = c.Close()
	}
	x.mu.Unlock()
	x.all.Wait()
	x.http.CloseIdleConnections()
}

func (x *Proxy) accept() {
	for {
		c, err := x.ln.Accept()
		if err != nil {
			return // closed
		}
		x.mu.Lock()
		if x.ctx.Err() != nil {
			x.mu.Unlock()
			_ = c.Close()
			return
		}
		x.conns[c] = true
		x.mu.Unlock()
		x.all.Go(func() {
			x.serve(c.(*net.TCPConn))
			x.mu.Lock()
			delete(x.conns, c)
			x.mu.Unlock()
			_ = c.Close()
		})
	}
}

// serve answers the requests of one connection, until one goes so wrong that the
// connection is of no more use.
func (x *Proxy) serve(c *net.TCPConn) {
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		f := x.plan.draw(x.point, wireKinds)
		switch f.Kind {
		case Refuse:
			_ = c.SetLinger(0) // close with RST
			return
		case Silence:
			_, _ = io.Copy(io.Discard, in) // until the client leaves, or Close
			return
		case Jump:
			if x.pause(f.Wait) != nil {
				return
			}
		}
		if err := x.exchange(c, in, f); err != nil {
			switch {
			case f.Kind == Stall && errors.Is(err, errOver):
				_, _ = io.Copy(io.Discard, in)
			case f.Kind == Reset, f.Kind == Lost:
				_ = c.SetLinger(0)
			}
			return
		}
	}
}

// exchange passes one request on and its reply back. An error ends the
// connection.
func (x *Proxy) exchange(c net.Conn, in *bufio.Reader, f Fault) error {
	req, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	out := &mangler{w: c, f: f, pause: x.pause}
	if status, header, body, ok := f.instead(); ok {
		return x.reply(out, status, header, int64(len(body)), bytes.NewReader([]byte(body)))
	}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	next, err := http.NewRequestWithContext(ctx, req.Method, x.up.Scheme+"://"+x.up.Host+req.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	next.Header = req.Header
	resp, err := x.http.RoundTrip(next)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if f.Kind == Lost {
		_, _ = io.Copy(io.Discard, resp.Body)
		return errOver
	}
	return x.reply(out, resp.StatusCode, resp.Header, resp.ContentLength, resp.Body)
}

// reply writes a reply. What has a known length and is not to change it is sent
// as it is, what may end anywhere lasts until the connection is closed, and all
// else is sent in chunks.
func (x *Proxy) reply(out *mangler, status int, h http.Header, length int64, body io.Reader) error {
	closes := out.f.Kind == End
	chunked := !closes && (length < 0 || out.f.Kind == Repeat || out.f.Kind == Drop)
	h = h.Clone()
	h.Del("Content-Length")
	switch {
	case closes:
		h.Set("Connection", "close")
	case chunked:
		h.Set("Transfer-Encoding", "chunked")
	default:
		h.Set("Content-Length", fmt.Sprint(length))
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = h.Write(&head) // to memory
	head.WriteString("\r\n")
	send := func(b []byte, slow bool) error {
		if slow {
			return out.slowly(b)
		}
		_, err := out.Write(b)
		return err
	}
	if err := send(head.Bytes(), out.f.Kind == SlowHeader); err != nil {
		return err
	}
	buf := make([]byte, 256)
	for i := 0; ; i++ {
		n, err := body.Read(buf)
		if n > 0 {
			piece := buf[:n]
			if chunked {
				piece = fmt.Appendf(nil, "%x\r\n%s\r\n", n, piece)
			}
			times := 1
			switch {
			case out.f.Kind == Repeat && i == out.f.At:
				times = 2
			case out.f.Kind == Drop && i == out.f.At:
				times = 0
			}
			for range times {
				if err := send(piece, out.f.Kind == SlowBody); err != nil {
					return err
				}
			}
		}
		if err == io.EOF && chunked {
			return send([]byte("0\r\n\r\n"), false)
		}
		if err == io.EOF && !closes {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pause waits, but not for longer than the proxy lives.
func (x *Proxy) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
}
