package agl

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	// ErrConflict means that a rollout is in a state from which it cannot go where
	// it was sent: somebody else moved it.
	ErrConflict = errors.New("agl: the rollout is in another state")
	// ErrGone means that the server does not know the rollout, any more: trainers
	// delete those that they have read, and a restarted server has none.
	ErrGone = errors.New("agl: no such rollout")
	// ErrKey means that the server wants another key.
	ErrKey = errors.New("agl: the key was refused: check ClientConfig.Key, which must be the server's key=…")
	// ErrBusy means that the server asks to come again later.
	ErrBusy = errors.New("agl: the server asks to wait")
	// ErrMalformed means that a reply makes no sense.
	ErrMalformed = errors.New("agl: malformed reply")
	// ErrTooLong means that a reply is longer than MaxReply.
	ErrTooLong = errors.New("agl: the reply is too long")
	// ErrCut means that a reply ended early.
	ErrCut = errors.New("agl: the reply ended early")
	// ErrUnreachable means that no reply began.
	ErrUnreachable = errors.New("agl: no reply: is agl-server running there?")
)

// Error is a failed call of a Client.
type Error struct {
	Op         string        // method and path
	Status     int           // of HTTP, or 0 if no reply began
	Retryable  bool          // the same call may succeed later
	RetryAfter time.Duration // the server asked to wait that long; 0 = it did not say
	Paused     bool          // the gateway is paused while weights move
	Body       string        // start of the server's message
	Err        error         // one of the errors above, or the context's, with its cause
}

// Error says what happened, and what to do about it where that is known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("agl: " + e.Op)
	if e.Status != 0 {
		b.WriteString(": status " + strconv.Itoa(e.Status))
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "agl: "))
	}
	if e.Body != "" {
		b.WriteString(": " + e.Body)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (retry after %s)", e.RetryAfter)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// status fills in what a reply that is no success says.
func (e *Error) status(resp *http.Response, body []byte, key string) {
	e.Status = resp.StatusCode
	e.Body = readable(body, key)
	e.RetryAfter = retryAfter(resp.Header)
	e.Paused = isPaused(resp.Header)
	switch s := resp.StatusCode; {
	case s == http.StatusConflict:
		e.Err = ErrConflict
	case s == http.StatusNotFound:
		e.Err = ErrGone
		if !strings.Contains(e.Body, "Rollout") {
			e.Err = fmt.Errorf("%w, or no such API: is the URL that of an agl-server of version 1?", ErrGone)
		}
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		e.Err = ErrKey
	case s == http.StatusTooManyRequests:
		e.Err, e.Retryable = ErrBusy, true
	case s >= 300 && s < 400:
		e.Err = fmt.Errorf("redirected to %q: use the address that leads to", readable([]byte(resp.Header.Get("Location")), key))
	case s == http.StatusRequestTimeout, s >= 500 && s != http.StatusNotImplemented:
		e.Retryable = true
	}
}

// isPaused reports whether a 429 is the gateway's, while weights move.
func isPaused(h http.Header) bool { return h.Get("X-Agl-Paused") != "" }

// longestWait bounds what a server may ask for.
const longestWait = time.Hour

// retryAfter reads how long a server asks to wait; 0 = it does not say.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s, longestWait.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(at), 0), longestWait)
	}
	return 0
}

// readable makes one line for people of what a server says, without the key.
func readable(b []byte, key string) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), 2048)]), "\uFFFD")
	if key != "" {
		s = strings.ReplaceAll(s, key, "***")
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}
