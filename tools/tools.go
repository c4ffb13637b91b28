package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Tool can be called by a policy. Implementations are safe for concurrent use
// by many runs. New makes one of a Go function.
type Tool interface {
	// Spec describes the tool. It does no I/O and always returns the same.
	Spec() Spec
	// Call does the work. A plain error is told to the policy, which may try
	// something else; Fatal stops the run. It obeys ctx, which carries a meter
	// that admits Spec.MaxSpend.
	Call(ctx context.Context, c Call) (Result, error)
}

// Spec describes a tool.
type Spec struct {
	Name        string                       `json:"name"` // letters, digits, _ and -, at most 64
	Description string                       `json:"description,omitempty"`
	Schema      json.RawMessage              `json:"schema,omitempty"`   // JSON schema of the arguments; key order is kept
	Effects     Effects                      `json:"effects,omitempty"`  // what the loop may do with calls
	Fee         cost.Amount                  `json:"fee,omitzero"`       // charged for each call by the loop; 0 = none
	MaxSpend    cost.Amount                  `json:"max_spend,omitzero"` // what metered models may spend inside one call; 0 = nothing
	Latency     time.Duration                `json:"latency,omitempty"`  // typical time of a call; nanoseconds in JSON
	Timeout     time.Duration                `json:"timeout,omitempty"`  // of one call; 0 = the run's own; nanoseconds in JSON
	Sources     []string                     `json:"sources,omitempty"`  // further names that preferences may address
	Choices     []Choice                     `json:"choices,omitempty"`  // values of the "model" argument; nil = the tool is one offer
	Estimate    func(Call) cost.Estimate     `json:"-"`                  // of one call; nil: Fee to Fee + MaxSpend
	Propose     func(Call) []json.RawMessage `json:"-"`                  // complete arguments, best first, for policies that cannot write them; nil = cannot
}

// Choice is one expert that can do a tool's work.
type Choice struct {
	Alias string      `json:"alias"` // what policies see: "answer-1"
	Info  models.Info `json:"info"`
	Names []string    `json:"names,omitempty"` // of the other models that may be asked in its place: see models.Fallback
}

// Effects are promises that a tool makes, as a set of bits. The zero Effects
// promises nothing: calls run one at a time and are never tried again.
type Effects uint8

const (
	// ReadOnly tools change nothing in the world.
	ReadOnly Effects = 1 << iota
	// Idempotent tools may be called again with the same arguments.
	Idempotent
	// Parallel tools may run beside other calls of the same turn.
	Parallel
	// Answers marks tools whose results hold attempts (candidate answers), so
	// that a run can end with what they return.
	Answers
	// NeedsApproval tools are called only after somebody agreed: the run pauses,
	// and Resume takes the reply.
	NeedsApproval
	// ClientSide tools are run by the caller: the run pauses, and Resume takes
	// their results. Their Call is never made.
	ClientSide
)

var effectNames = [...]string{"read_only", "idempotent", "parallel", "answers", "needs_approval", "client_side"}

// String lists the names of the effects, as in trajectories: "read_only,answers".
func (e Effects) String() string {
	var names []string
	for i, n := range effectNames {
		if e&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// MarshalText writes the names.
func (e Effects) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is the inverse of MarshalText. Names of later versions are
// dropped: an unknown promise is none.
func (e *Effects) UnmarshalText(b []byte) error {
	*e = 0
	for n := range strings.SplitSeq(string(b), ",") {
		if i := slices.Index(effectNames[:], n); i >= 0 {
			*e |= 1 << i
		}
	}
	return nil
}

// Call is one call of a tool.
type Call struct {
	ID      string
	Tool    string
	Args    json.RawMessage
	Prompt  string             // the task
	History []models.Message   // the conversation before it
	Work    Workspace          // what the run has gathered
	OnDelta func(models.Delta) // nil, or called with pieces of text that are being generated, until Call returns
}

// Retriever finds documents. Implementations are safe for concurrent use.
type Retriever interface {
	// Name is what preferences call it: "local_search".
	Name() string
	// Retrieve returns at most k documents, best first, and none without an error
	// if nothing fits.
	Retrieve(ctx context.Context, query string, k int) ([]Document, error)
}

// Interpreter runs code. Implementations are safe for concurrent use and bound
// time, memory and output themselves.
type Interpreter interface {
	// Language is the name of the language as in a code fence: "python".
	Language() string
	// Run runs a program. An error of the program is in CodeRun.Err; the error is
	// for programs that could not be run at all.
	Run(ctx context.Context, code string) (CodeRun, error)
}
