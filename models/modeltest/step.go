package modeltest

import (
	"encoding/json"
	"math"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Step is what a Model does when it is asked once. The zero Step answers with
// nothing. In a call, things happen in the order of the fields below; what
// went out before a failure is in the Partial of its *models.Error.
type Step struct {
	// Check looks at (a copy of) the request. Its error fails the call, and later
	// AssertDone, so that code which swallows errors cannot hide it.
	Check func(*models.Request) error

	// Delay is how long the model thinks before it says anything. It ends early
	// with the context.
	Delay time.Duration
	// Deaf makes the model ignore its context: it sleeps and talks to the end.
	Deaf bool
	// Hang blocks until the context is done: before anything is said or, with
	// Cut, after what Cut lets through.
	Hang bool
	// Err fails the call. What is not a *models.Error becomes the cause of one.
	Err error
	// Status fails the call with an HTTP status. 408, 429 and 5xx are retryable.
	Status int
	// RetryAfter is what a server says along with Status.
	RetryAfter time.Duration

	Reasoning string            // streamed first
	Text      string            // streamed next
	Calls     []models.ToolCall // as they are: invalid arguments and missing ids stay so

	// Cut ends the stream after that many bytes of Text (at the end of a
	// character), with Err or else models.ErrTruncated. 0 does not cut; a
	// negative Cut lets nothing through, not even Reasoning.
	Cut int

	// DisobeyCap makes the model ignore output caps. Otherwise it says no more
	// than four bytes a token and stops with FinishLength.
	DisobeyCap bool
	// Finish is why the model says it stopped; "" = the true reason.
	Finish models.Finish
	// Usage is what the model reports; nil = the truth, at four bytes a token.
	Usage *cost.Usage
	// NoUsage leaves usage out of the report.
	NoUsage bool

	extra  int  // how many more times the step is taken; negative: it is dropped
	number bool // give ids to calls that have none
}

// Say answers with a text.
func Say(text string) Step { return Step{Text: text} }

// CallTool asks for one call of a tool. Args are what the model writes, JSON or
// not. The call gets an id that is unique for the model.
func CallTool(name, args string) Step {
	return CallTools(models.ToolCall{Name: name, Args: json.RawMessage(args)})
}

// CallTools asks for several calls of tools in one turn. Calls without an id
// get one that is unique for the model.
func CallTools(calls ...models.ToolCall) Step { return Step{Calls: calls, number: true} }

// Fail fails with an error.
func Fail(err error) Step { return Step{Err: err} }

// RateLimited fails with status 429. After is how long the server asks to wait;
// 0 = it does not say.
func RateLimited(after time.Duration) Step { return Step{Status: 429, RetryAfter: after} }

// Cut answers with a text of which only the first n bytes arrive.
func Cut(text string, n int) Step {
	if n <= 0 {
		n = -1
	}
	return Step{Text: text, Cut: n}
}

// Slow makes a step wait before it answers. It needs no real time in a bubble
// of testing/synctest.
func Slow(d time.Duration, s Step) Step {
	s.Delay = d
	return s
}

// NoUsage makes a step leave out its usage, as many servers do.
func NoUsage(s Step) Step {
	s.NoUsage = true
	return s
}

// Lying makes a step report a usage that is not true. The usage counts as
// known.
func Lying(s Step, u cost.Usage) Step {
	u.Known = true
	s.Usage = &u
	return s
}

// BadArguments asks for a call whose arguments were cut off and are not JSON.
func BadArguments(name string) Step { return CallTool(name, `{"query": "half an instr`) }

// DuplicateIDs asks for calls that all have the same id.
func DuplicateIDs(calls ...models.ToolCall) Step {
	same := make([]models.ToolCall, len(calls))
	for i, c := range calls {
		c.ID = "call-1"
		same[i] = c
	}
	return Step{Calls: same}
}

// Repeat takes a step n times; with n < 1 never.
func Repeat(n int, s Step) Step {
	s.extra = max(n, 0) - 1
	return s
}

// Forever takes a step whenever the model is asked: steps after it are never
// reached. AssertDone does not miss it.
func Forever(s Step) Step {
	s.extra = math.MaxInt
	return s
}
