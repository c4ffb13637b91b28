package prefs

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotUnderstood is in the chain of a Part that the grammar has no reading for.
var ErrNotUnderstood = errors.New("not understood")

// ParseError is a text of which some parts have no effect.
type ParseError struct {
	Parts []Part // at least one, in the order of the text
}

// Part is a piece of a text that has no effect.
type Part struct {
	Text   string // as written
	Offset int    // in bytes
	Err    error  // why: *UnknownNameError, *ContradictionError, or one that wraps ErrNotUnderstood
}

// Error quotes the parts, and says what to write instead.
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString("prefs: ")
	for i, p := range e.Parts {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%q: %s", p.Text, strings.TrimPrefix(p.Err.Error(), "prefs: "))
	}
	return b.String()
}

// Unwrap gives the error of each part.
func (e *ParseError) Unwrap() []error {
	errs := make([]error, len(e.Parts))
	for i, p := range e.Parts {
		errs[i] = p.Err
	}
	return errs
}

// ContradictionError is two wishes that exclude each other. Neither has an effect.
type ContradictionError struct {
	Name   string // of a tool, model or source, or Accuracy, Cost or Latency
	First  string // as written
	Second string // as written
}

// Error says which they are.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("prefs: %q and %q say opposite things of %s: keep one of them", e.First, e.Second, e.Name)
}

func notUnderstood(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotUnderstood, fmt.Sprintf(format, args...))
}
