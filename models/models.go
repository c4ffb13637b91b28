package models

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
)

// Model is a language model. Implementations are safe for concurrent use and
// do not keep or change the request.
type Model interface {
	// Info describes the model. It does no I/O and always returns the same.
	Info() Info
	// Generate answers one request. It returns either a complete response or an
	// error: a stream that ended early is an *Error with ErrTruncated, and what
	// had arrived is in its Partial. It obeys ctx, refuses requests that cannot be
	// meant (Request.Validate) before it sends anything, and passes all text to
	// OnDelta if that is set. modeltest.Conform checks these duties.
	Generate(ctx context.Context, r *Request) (*Response, error)
}

// Info describes a model.
type Info struct {
	Name      string        `json:"name"`                 // as in ledgers, budgets by name and preferences
	Provider  string        `json:"provider,omitempty"`   // who serves it
	Price     cost.Price    `json:"price,omitzero"`       // the zero Price is unknown, not free
	Context   int           `json:"context,omitempty"`    // tokens of prompt and output together; 0 = unknown
	MaxOutput int           `json:"max_output,omitempty"` // most output tokens of one call, reasoning included; 0 = unknown, and DefaultMaxOutput is asked for
	MinOutput int           `json:"min_output,omitempty"` // with fewer output tokens an answer makes no sense; 0 = DefaultMinOutput
	Latency   time.Duration `json:"latency,omitempty"`    // typical time of an answer; nanoseconds in JSON
	Skill     Skill         `json:"skill,omitzero"`
	Raw       bool          `json:"raw,omitempty"`    // takes Request.Prompt
	Tools     bool          `json:"tools,omitempty"`  // takes Request.Tools
	Schema    bool          `json:"schema,omitempty"` // obeys Request.Schema
}

// Skill says how good a model is. The zero Skill is a prior.
type Skill struct {
	About    string             `json:"about,omitempty"`     // one sentence for policies that read
	Score    float64            `json:"score,omitempty"`     // 0 to 1, share of calibration tasks solved
	Tasks    int                `json:"tasks,omitempty"`     // number of calibration tasks; 0 = Score is not measured
	ByDomain map[string]float64 `json:"by_domain,omitempty"` // the same by domain
}

// Role says who wrote a message.
type Role string

// The roles of chat protocols.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of a tool call
)

// Message is one entry of a chat.
type Message struct {
	Role      Role       `json:"role"`
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"calls,omitempty"`
	CallID    string     `json:"call_id,omitempty"` // of a ToolRole message: the call it answers
}

// ToolCall is a model's wish to call a tool.
type ToolCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"` // as the model wrote them: maybe not JSON
}

// MarshalJSON writes arguments that are not JSON as a string.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	type plain ToolCall
	c.Args = jsonfix.Storable(c.Args)
	return json.Marshal(plain(c))
}

// ToolDef describes a tool to a model.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON schema of the arguments; key order is kept
}

// Request is what a model is asked. Exactly one of Messages and Prompt is set.
type Request struct {
	Messages    []Message
	Prompt      string          // raw completion, for models with Info.Raw
	Tools       []ToolDef       // for models with Info.Tools
	Schema      json.RawMessage // of the output, for models with Info.Schema
	MaxOutput   int             // hard cap on output tokens, reasoning included; 0 = the model's. A meter may lower it down to MinOutput
	MinOutput   int             // 0 = the model's
	Temperature *float64        // nil = the server's default, as are TopP, TopK, Seed and Think
	TopP        *float64
	TopK        *int
	Seed        *int64
	Stop        []string
	Think       *bool       // ask for or against reasoning, where the model knows how
	Tokens      bool        // ask for token ids and logprobs
	Affinity    string      // requests with one value are best served by one server: the id of a run
	OnDelta     func(Delta) // set: stream. Called from Generate's goroutine, never after it returns
}

// Validate returns an error that wraps ErrInvalidRequest if r cannot be meant:
// neither Messages nor Prompt is set, or both are, or a cap is negative. A Model
// calls it first.
func (r *Request) Validate() error {
	switch {
	case r == nil || len(r.Messages) == 0 && r.Prompt == "":
		return fmt.Errorf("%w: set Messages, or Prompt for a raw completion", ErrInvalidRequest)
	case len(r.Messages) > 0 && r.Prompt != "":
		return fmt.Errorf("%w: Messages and Prompt are both set", ErrInvalidRequest)
	case r.MaxOutput < 0 || r.MinOutput < 0:
		return fmt.Errorf("%w: MaxOutput and MinOutput are numbers of tokens; use 0 for the model's own", ErrInvalidRequest)
	}
	return nil
}

// Delta is a piece of a streamed response.
type Delta struct {
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Restart   bool   `json:"restart,omitempty"` // a retry began: forget what came before
}

// Finish says why a model stopped.
type Finish string

// Reasons to stop. A server's other reasons are passed through.
const (
	FinishStop   Finish = "stop"   // the model was done
	FinishLength Finish = "length" // the output cap was reached: the text is cut
	FinishCalls  Finish = "calls"  // the model wants tools to be called
	FinishFilter Finish = "filter" // the provider withheld the output
)

// Response is a complete answer.
type Response struct {
	Text      string
	Reasoning string
	Calls     []ToolCall
	Finish    Finish
	Usage     cost.Usage // Known false: the server did not say
	Model     string     // the model that served it, as it names itself
	Sample    *Sample    // with Request.Tokens, where the server can
}

// Sample is a response as sampled, for training. Token ids come from the
// server that sampled them, never from text that was tokenised again.
type Sample struct {
	Prompt    string    `json:"prompt,omitempty"`     // as rendered, for raw completions
	PromptIDs []int32   `json:"prompt_ids,omitempty"` // token ids of the prompt
	OutputIDs []int32   `json:"output_ids,omitempty"` // token ids of the output
	Logprobs  []float32 `json:"logprobs,omitempty"`   // natural logarithms, one per output token
}

// Composite is a Model made of others, such as Retry. Metered goes through it
// to the models that are really called, so that each attempt is charged.
type Composite interface {
	Model
	// Map returns the same composite over f of each model.
	Map(f func(Model) Model) Model
}

// Estimator is a Model that says itself what a request may cost: one that asks
// other models, metered, to answer it.
type Estimator interface {
	Estimate(r *Request) cost.Estimate
}

// Counter is a Model that counts tokens; find it with As.
type Counter interface {
	// CountTokens counts the tokens of r's input. Exact false: it is an estimate.
	CountTokens(r *Request) (n int64, exact bool)
}

// Embedder is a Model that embeds texts; find it with As.
type Embedder interface {
	// Embed returns one vector per text.
	Embed(ctx context.Context, texts []string) ([][]float32, cost.Usage, error)
}

// As finds the first model in a chain of wrappers (those with a method
// Unwrap() Model) that is a T.
func As[T any](m Model) (T, bool) {
	for m != nil {
		if t, ok := m.(T); ok {
			return t, true
		}
		u, ok := m.(interface{ Unwrap() Model })
		if !ok {
			break
		}
		m = u.Unwrap()
	}
	var zero T
	return zero, false
}
