package models

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrTruncated means that a stream ended before the server said it was done.
	ErrTruncated = errors.New("models: stream ended early")
	// ErrContextOverflow means that the prompt does not fit into the model's context.
	ErrContextOverflow = errors.New("models: prompt exceeds the context")
	// ErrMalformed means that a server's reply could not be understood.
	ErrMalformed = errors.New("models: malformed reply")
	// ErrInvalidRequest means that the request cannot be meant, whatever the model.
	ErrInvalidRequest = errors.New("models: invalid request")
)

// Error is a failed call of a model.
type Error struct {
	Model      string
	Provider   string
	Status     int           // HTTP status, or 0
	Sent       bool          // false: nothing reached the server, so nothing was billed
	Retryable  bool          // another try may succeed
	RetryAfter time.Duration // the server asked to wait that long; 0 = it did not say
	Body       string        // start of the server's message
	Partial    *Response     // what had arrived, with its usage; nil = nothing
	Err        error         // the cause, for errors.Is; may be nil
}

// Error says what happened, and what to do about it where that is known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("models: " + e.Model)
	if e.Provider != "" {
		b.WriteString(" at " + e.Provider)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "models: "))
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
