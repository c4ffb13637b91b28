package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Policy decides what a run does next. Implementations are safe for concurrent
// use by many runs and keep nothing between calls: all that they may know is in
// the State.
type Policy interface {
	// Info describes the policy. It does no I/O.
	Info() Info
	// Decide picks calls, or finishes. The context carries the run's meter: models
	// that the policy asks are metered (models.Metered). It must obey ctx: unlike a
	// tool, a policy is not given up. The error of a model that
	// answered uselessly is ErrMalformed; the loop asks again a few times.
	Decide(ctx context.Context, s *State) (Decision, error)
}

// Info describes a policy.
type Info struct {
	Name    string
	Version string
	// Writes: the policy can write arguments and text. Others only pick among
	// offers, whose arguments come from Spec.Propose or from an expert.
	Writes bool
	// Estimate is what one decision costs; nil = nothing.
	Estimate func(*State) cost.Estimate
}

// State is all that a policy knows. It must not be changed.
type State struct {
	Run      string // id of the run
	Turn     int    // 1 for the first
	Seed     uint64 // of this run, for policies that draw
	Prompt   string // the task
	Messages []models.Message
	Prefer   prefs.Vector
	Turns    []Turn // what happened so far; turns of useless outputs have neither calls nor Finish
	Work     tools.Workspace
	Tools    []tools.Spec // all of them, in the order of registration; the same in every turn
	Offers   []Offer      // what may be called now, in that order
	Masked   []Masked     // what may not, and why
	Spent    cost.Spend
	Left     cost.Spend         // what may still be spent, the answer reserve excluded
	Limit    cost.Spend         // what the run could spend at its start
	OnDelta  func(models.Delta) // nil, or takes what the policy's model writes, until Decide returns
}

// Offer is one thing that can be called: a tool, or a tool with an expert.
type Offer struct {
	Tool     string          `json:"tool"`              // names an entry of State.Tools
	Choice   string          `json:"choice,omitempty"`  // alias in its "model" argument; "" for tools without choices
	Writer   string          `json:"writer,omitempty"`  // expert that would write the arguments; "" if none is needed
	Args     json.RawMessage `json:"args,omitempty"`    // complete arguments, where known
	Names    []string        `json:"names,omitempty"`   // what preferences see: tool, model, sources
	Estimate cost.Estimate   `json:"estimate"`          // before it is granted
	Latency  time.Duration   `json:"latency,omitempty"` // typical; nanoseconds in JSON
	Skill    models.Skill    `json:"skill,omitzero"`    // of the expert
	Effects  tools.Effects   `json:"effects,omitempty"` // of the tool
}

// Masked is something that may not be called now.
type Masked struct {
	Tool   string `json:"tool"`
	Choice string `json:"choice,omitempty"`
	Why    Why    `json:"why"`
}

// Why is the reason for a mask.
type Why string

// Reasons for masks.
const (
	Unaffordable Why = "unaffordable" // its Floor exceeds what is left beside the answer reserve
	Forbidden    Why = "forbidden"    // by the preferences' Never
	Repeated     Why = "repeated"     // the same call was made on the same workspace
	NoArguments  Why = "no_arguments" // neither the policy, Propose nor an expert has any
	Broken       Why = "broken"       // it failed too often
	TooSlow      Why = "too_slow"     // it usually takes longer than what is left of the time
	NoPrice      Why = "unpriced"     // and Budget.AllowUnpriced is not set
)

// Decision is what a policy wants: calls, the end, or calls and then the end.
type Decision struct {
	Reasoning string         `json:"reasoning,omitempty"`
	Calls     []Call         `json:"calls,omitempty"` // may be empty only when Finish is set
	Finish    *Finish        `json:"finish,omitempty"`
	Text      string         `json:"text,omitempty"`      // what a policy that talks said beside its calls
	Malformed []string       `json:"malformed,omitempty"` // what looked like a call and could not be read
	Forced    bool           `json:"forced,omitempty"`    // the output had no call, so another try was held to a grammar
	By        string         `json:"by,omitempty"`        // model that the policy let take this turn; "" = its own
	Sample    *models.Sample `json:"sample,omitempty"`    // of the policy's model; of the forced try, if that gave the calls
}

// Call is a tool call that a policy wants.
type Call struct {
	ID     string          `json:"id,omitempty"` // as the policy's model named it; made unique by the loop
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Writer string          `json:"writer,omitempty"` // expert that writes Args
}

// MarshalJSON writes arguments that are not JSON as a string, so that a
// trajectory holds what a model really wrote.
func (c Call) MarshalJSON() ([]byte, error) {
	type plain Call
	c.Args = jsonfix.Storable(c.Args)
	return json.Marshal(plain(c))
}

// Finish ends a run: with Text, with the attempt of that id, or with the newest
// attempt (those of the same decision's calls included) if both are empty.
type Finish struct {
	Text      string `json:"text,omitempty"`
	Attempt   string `json:"attempt,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // Text was cut off at an output cap
}

// Turn is one decision and what became of it.
type Turn struct {
	N        int           `json:"n"`
	Decision Decision      `json:"decision"`
	Done     []Outcome     `json:"done,omitempty"`
	Start    time.Time     `json:"start"`
	Took     time.Duration `json:"took"`
}

// Outcome is what became of a call.
type Outcome struct {
	ID     string        `json:"id"`
	Call   Call          `json:"call"`
	Result tools.Result  `json:"result,omitzero"`
	Err    *tools.Error  `json:"err,omitempty"` // nil = the call worked
	Took   time.Duration `json:"took"`          // nanoseconds in JSON
	USD    cost.Amount   `json:"usd"`           // what the call cost, its models included
}
