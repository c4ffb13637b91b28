package chaos

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errOver ends a reply at the byte where a fault strikes.
var errOver = errors.New("chaos: the reply ends here")

// mangler writes a reply's bytes with a fault in them.
type mangler struct {
	w     io.Writer
	f     Fault
	n     int // bytes so far
	pause func(time.Duration) error
}

func (m *mangler) Write(b []byte) (int, error) {
	out, over := b, false
	switch m.f.Kind {
	case Cut, End, Reset, Stall:
		if over = m.n+len(b) > m.f.At; over {
			out = b[:max(m.f.At-m.n, 0)]
		}
	case Garbage:
		out = m.f.spoil(b, m.n)
	}
	m.n += len(b)
	if _, err := m.w.Write(out); err != nil {
		return 0, err
	}
	if over {
		return len(out), errOver
	}
	return len(b), nil
}

// spoil puts the fault's bytes into a piece that begins at n; it does not change b.
func (f Fault) spoil(b []byte, n int) []byte {
	from, to := max(f.At, n), min(f.At+len(f.Bytes), n+len(b))
	if from >= to {
		return b
	}
	out := append([]byte(nil), b...)
	copy(out[from-n:to-n], f.Bytes[from-f.At:])
	return out
}

// slowly writes b in pieces with pauses between them.
func (m *mangler) slowly(b []byte) error {
	const pieces = 8
	size := max(len(b)/pieces, 1)
	for len(b) > 0 {
		n := min(size, len(b))
		if _, err := m.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		if err := m.pause(m.f.Wait / pieces); err != nil {
			return err
		}
	}
	return nil
}

const page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in to the network.</body></html>\n"

// instead is the reply that comes instead of the server's, if the fault is one.
func (f Fault) instead() (status int, header http.Header, body string, ok bool) {
	header = http.Header{}
	switch f.Kind {
	case Status:
		header.Set("Content-Type", "application/json")
		if f.RetryAfter != "" {
			header.Set("Retry-After", f.RetryAfter)
		}
		return f.Code, header, fmt.Sprintf(`{"error":{"message":"no, says status %d","type":"server_error"}}`, f.Code), true
	case Portal:
		header.Set("Content-Type", "text/html")
		return http.StatusOK, header, page, true
	case Empty:
		return http.StatusOK, header, "", true
	}
	return 0, nil, "", false
}
