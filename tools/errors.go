package tools

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Kind says what went wrong with a call.
type Kind string

// Kinds of Error.
const (
	BadArguments Kind = "bad_arguments" // not JSON, cut off, or against the schema; the tool did not run
	Unknown      Kind = "unknown_tool"  // no tool of that name
	Refused      Kind = "refused"       // budget, preference, limit or repetition; the tool did not run
	TimedOut     Kind = "timed_out"     // the tool's Timeout or the run's time was over
	Panicked     Kind = "panicked"      // the stack went to the logger
	Failed       Kind = "failed"        // the tool returned an error
	Interrupted  Kind = "interrupted"   // the process ended during the call: it may have happened; its hold was charged in full
	Abandoned    Kind = "abandoned"     // the tool ignored its cancelled context and still runs; its hold was charged in full
)

// Error is a call that failed.
type Error struct {
	Tool   string
	CallID string
	Kind   Kind
	Err    error // the cause
}

// Error says what happened, and what to do about it where that is known.
func (e *Error) Error() string {
	return fmt.Sprintf("tools: %s: %s: %v", e.Tool, e.Kind, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorJSON is an Error in a trajectory: the cause keeps its text only.
type errorJSON struct {
	Tool   string `json:"tool"`
	CallID string `json:"call_id,omitempty"`
	Kind   Kind   `json:"kind"`
	Err    string `json:"err"`
}

// MarshalJSON writes the error with the text of its cause.
func (e *Error) MarshalJSON() ([]byte, error) {
	j := errorJSON{Tool: e.Tool, CallID: e.CallID, Kind: e.Kind}
	if e.Err != nil {
		j.Err = e.Err.Error()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Error) UnmarshalJSON(b []byte) error {
	var j errorJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Error{Tool: j.Tool, CallID: j.CallID, Kind: j.Kind, Err: errors.New(j.Err)}
	return nil
}

// ErrDuplicate means that two tools have one name.
var ErrDuplicate = errors.New("tools: two tools with one name")

// SpecError is a tool that cannot be offered.
type SpecError struct {
	Tool  string
	Field string // of Spec, or the path of a Go type's field
	Fix   string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *SpecError) Error() string {
	return fmt.Sprintf("tools: %q: %s: %s", e.Tool, e.Field, e.Fix)
}

// Fatal marks an error of a tool that must stop the run. Other errors are told
// to the policy.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatal{err}
}

// IsFatal reports whether err was marked by Fatal.
func IsFatal(err error) bool {
	if err == nil {
		return false
	}
	var f *fatal
	return errors.As(err, &f)
}

type fatal struct{ err error }

// Error says what happened, and what to do about it where that is known.
func (f *fatal) Error() string { return f.err.Error() }

// Unwrap gives the cause.
func (f *fatal) Unwrap() error { return f.err }

// ArgumentsError is a call whose arguments cannot be used. Its text is written
// for the policy.
type ArgumentsError struct {
	Problem   string // what is wrong, naming the field
	Truncated bool   // the arguments were cut off: half an instruction is never executed
}

// Error says what happened, and what to do about it where that is known.
func (e *ArgumentsError) Error() string { return "tools: arguments: " + e.Problem }
