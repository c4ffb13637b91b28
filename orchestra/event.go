package orchestra

import (
	"encoding/json"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Event is something that happened in a run. All but Delta are durable: they
// make up the Trajectory. Events are not to be changed.
type Event interface{ event() string }

// Schema names the format of trajectories, and its major version.
const Schema = "toolorchestra.trajectory/1"

// Started is the first event.
type Started struct {
	Schema string       `json:"schema"`
	Run    string       `json:"run"`
	Policy string       `json:"policy"`
	Task   Task         `json:"task"` // with the defaults filled in
	Tools  []tools.Spec `json:"tools"`
	At     time.Time    `json:"at"`
}

// Decided says what the policy wants, of what it was offered.
type Decided struct {
	Turn     int             `json:"turn"`
	Decision policy.Decision `json:"decision"`
	Offers   []policy.Offer  `json:"offers,omitempty"`
	Masked   []policy.Masked `json:"masked,omitempty"`
	Left     cost.Spend      `json:"left"` // as the policy saw it
	Err      string          `json:"err,omitempty"`
	// Malformed: Err is a policy.ErrMalformed, so that the turn counts as one.
	Malformed bool          `json:"malformed,omitempty"`
	USD       cost.Amount   `json:"usd"` // what the decision cost
	Start     time.Time     `json:"start"`
	Took      time.Duration `json:"took"` // of the decision; nanoseconds in JSON
}

// Deciding says that a policy that costs something is about to be asked.
type Deciding struct {
	Turn int        `json:"turn"`
	Held cost.Spend `json:"held"`
}

// Waiting says that a call is not made: somebody has to agree (see
// tools.NeedsApproval), or to make it (tools.ClientSide). The run goes on with
// its turn's other calls, then pauses.
type Waiting struct{ Pending }

// Resumed begins the next part of a run.
type Resumed struct {
	At      time.Time `json:"at"`
	After   int       `json:"after"` // events that the run had
	Replies []Reply   `json:"replies,omitempty"`
}

// Delta is a piece of text of a model that is generating, as it writes it, with
// its markup: the policy's if Call is empty. It is not durable. The answer alone
// is in Stopped.
type Delta struct {
	Turn int
	Call string // id of the tool call
	models.Delta
}

// Called says that a call begins. What was held for it is granted, no more; of
// tokens and GPU time it says only what the call itself had asked for.
type Called struct {
	ID   string      `json:"id"`
	Call policy.Call `json:"call"`
	Held cost.Spend  `json:"held"`
}

// Returned says what became of a call, refused ones included.
type Returned struct{ policy.Outcome }

// Charged is a row of the ledger.
type Charged struct {
	cost.Row
	// Lost: Resume charged it, for a call or decision that was under way when the
	// process ended.
	Lost bool `json:"lost,omitempty"`
}

// Noted is a remark of the loop.
type Noted struct {
	Text string `json:"text"`
	Err  string `json:"err,omitempty"`
}

// Stopped is the last event.
type Stopped struct {
	Stop      Stop       `json:"stop"`
	Answer    string     `json:"answer,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	Sources   []string   `json:"sources,omitempty"`
	Spent     cost.Spend `json:"spent"`
	Err       string     `json:"err,omitempty"`
}

// Unknown is an event of a later version of this package. It is kept as it is.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
}

func (Started) event() string   { return "started" }
func (Deciding) event() string  { return "deciding" }
func (Decided) event() string   { return "decided" }
func (Waiting) event() string   { return "waiting" }
func (Resumed) event() string   { return "resumed" }
func (Delta) event() string     { return "delta" }
func (Called) event() string    { return "called" }
func (Returned) event() string  { return "returned" }
func (Charged) event() string   { return "charged" }
func (Noted) event() string     { return "noted" }
func (Stopped) event() string   { return "stopped" }
func (u Unknown) event() string { return u.Kind }
