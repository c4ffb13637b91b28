package orchestra

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// MaxPrompt bounds a task's prompt, in bytes. Longer material belongs into a
// retriever.
const MaxPrompt = 1 << 20

// Task is what a run is asked to do.
type Task struct {
	ID       string            `json:"id,omitempty"` // names the run and seeds its draws; "" = random
	Prompt   string            `json:"prompt"`
	Messages []models.Message  `json:"messages,omitempty"` // the conversation before the prompt: experts see it, and policies that read it (Conversation does, Embedded and Trained do not)
	Budget   cost.Budget       `json:"budget,omitzero"`    // zero fields: those of WithBudget, then the defaults
	Prefer   prefs.Vector      `json:"prefer,omitzero"`    // zero: those of WithPreferences, then the default
	Meta     map[string]string `json:"meta,omitempty"`     // kept in the trajectory
}

// validate checks what can be checked before anything is spent, and fills in
// defaults.
func (o *Orchestrator) validate(t Task) (Task, error) {
	switch {
	case strings.TrimSpace(t.Prompt) == "":
		return t, &InvalidError{Field: "Task.Prompt", Fix: "it is empty: say what the run is to do"}
	case len(t.Prompt) > MaxPrompt:
		return t, &InvalidError{Field: "Task.Prompt", Fix: fmt.Sprintf("it has %d bytes, and at most %d are taken: put long material behind a retriever (WithSearch)", len(t.Prompt), MaxPrompt)}
	case !utf8.ValidString(t.Prompt):
		return t, &InvalidError{Field: "Task.Prompt", Fix: "it is not valid UTF-8: decode it first, or pass strings.ToValidUTF8(prompt, \"\\uFFFD\")"}
	}
	if err := t.Budget.Validate(); err != nil {
		return t, &InvalidError{Field: "Task.Budget", Err: err}
	}
	if err := o.known(t.Budget); err != nil {
		return t, &InvalidError{Field: "Task.Budget", Err: err}
	}
	t.Budget = t.Budget.Or(o.budget).WithDefaults()
	if t.Prefer.IsZero() {
		t.Prefer = o.prefer
	}
	t.Prefer = t.Prefer.OrDefault()
	if err := t.Prefer.Validate(o.names); err != nil {
		return t, &InvalidError{Field: "Task.Prefer", Err: err}
	}
	return t, nil
}

// Result is what a run came to.
type Result struct {
	Run        string      // id of the run: Task.ID, or drawn
	Answer     string      // "" exactly when Run returned an error
	Truncated  bool        // the answer was cut off at an output cap: a larger budget or MaxOutput gives the rest
	Sources    []string    // ids of the documents that the answer relies on, where known
	Stop       Stop        // why the run ended
	Spent      cost.Spend  // as counted when calls were settled
	Ledger     cost.Ledger // every charge; its Total().USD is Spent.USD
	Pending    []Pending   // calls that wait for a reply; only with Paused
	Trajectory *Trajectory // all that happened
}

// Stop says why a run ended. A run may have an answer whatever its Stop.
type Stop string

// Reasons to end.
const (
	Answered    Stop = "answered"
	Paused      Stop = "paused"   // calls wait for replies: see Result.Pending and Resume
	OutOfBudget Stop = "budget"   // money, tokens or calls
	OutOfTurns  Stop = "turns"    // Budget.Turns
	OutOfTime   Stop = "time"     // Budget.Time
	Stuck       Stop = "stuck"    // too many turns in a row without a call that worked
	Canceled    Stop = "canceled" // the caller's context, or the consumer left
	Failed      Stop = "failed"   // the policy or a tool failed for good, or the task is invalid
)

var (
	// ErrNoAnswer is what every error of Run is: there is no answer. The cause is
	// wrapped beside it.
	ErrNoAnswer = errors.New("orchestra: no answer")
	// ErrPaused means that calls wait for replies, which Resume takes.
	ErrPaused = errors.New("orchestra: paused: calls wait for replies")
	// ErrMismatch means that a trajectory belongs to other tools or experts.
	ErrMismatch = errors.New("orchestra: the trajectory belongs to other tools or experts")
	// ErrOver means that a run has ended, so that it cannot be resumed.
	ErrOver = errors.New("orchestra: the run is over")
	// ErrSchema means that a file is no trajectory of this major version.
	ErrSchema = errors.New("orchestra: unknown trajectory schema")
)

// RunError is the error of a run without an answer.
type RunError struct {
	Stop Stop
	Err  error // the cause; nil where Stop says it all
}

// Error says what happened, and what to do about it where that is known.
func (e *RunError) Error() string {
	hint := map[Stop]string{
		OutOfBudget: "the budget is spent: raise Task.Budget or allow cheaper experts",
		OutOfTurns:  "the policy did not finish within Budget.Turns",
		OutOfTime:   "Budget.Time is over",
		Stuck:       "no call worked for several turns: see the trajectory",
	}[e.Stop]
	s := fmt.Sprintf("%v (%s)", ErrNoAnswer, e.Stop)
	if e.Err != nil {
		return s + ": " + e.Err.Error()
	}
	if hint != "" {
		return s + ": " + hint
	}
	return s
}

// Unwrap gives ErrNoAnswer and the cause.
func (e *RunError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrNoAnswer}
	}
	return []error{ErrNoAnswer, e.Err}
}
