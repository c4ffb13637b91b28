package code

import (
	"errors"
	"fmt"
)

// ErrEngine means that the engine failed, and not the program: it could not be
// started, or it has a defect. Another program may work; please report the
// defect.
var ErrEngine = errors.New("the engine failed; try another program, and report this one")

// Error is a program that could not be run, or not to its end. It wraps the
// cause: the context's error, ErrEngine, or the system's error when it had no
// memory to give.
type Error struct {
	Op  string // "wait", "start" or "run"
	Err error
}

// Error says what happened, and what to do about it where that is known.
func (e *Error) Error() string { return "code: " + e.Op + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// LimitError is an option with a value that cannot be used.
type LimitError struct {
	Option string // "WithMemory"
	Fix    string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *LimitError) Error() string { return fmt.Sprintf("code: %s: %s", e.Option, e.Fix) }
