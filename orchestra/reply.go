package orchestra

import (
	"encoding/json"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Pending is a call that waits for a reply.
type Pending struct {
	ID   string        `json:"id"`
	Call policy.Call   `json:"call"`
	Why  tools.Effects `json:"why"` // NeedsApproval, ClientSide, or both
}

// Reply is what a paused run is told by Resume.
type Reply struct {
	kind   replyKind
	id     string
	reason string
	result tools.Result
	budget cost.Budget
}

type replyKind string

const (
	approve   replyKind = "approve"
	refuse    replyKind = "refuse"
	provide   replyKind = "provide"
	addBudget replyKind = "budget"
)

// Approve lets the call with that id be made.
func Approve(id string) Reply { return Reply{kind: approve, id: id} }

// Refuse tells the policy that the call with that id may not be made, and why.
func Refuse(id, reason string) Reply { return Reply{kind: refuse, id: id, reason: brief(reason)} }

// Provide gives the result of a call that the caller made: of a ClientSide
// tool. It implies approval.
func Provide(id string, r tools.Result) Reply {
	return Reply{kind: provide, id: id, result: bounded(r)}
}

// AddBudget adds b to the run's budget; its zero fields add nothing.
func AddBudget(b cost.Budget) Reply { return Reply{kind: addBudget, budget: b} }

type replyJSON struct {
	Reply  replyKind     `json:"reply"`
	ID     string        `json:"id,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Result *tools.Result `json:"result,omitempty"`
	Budget *cost.Budget  `json:"budget,omitempty"`
}

// MarshalJSON writes the reply, as in trajectories.
func (r Reply) MarshalJSON() ([]byte, error) {
	j := replyJSON{Reply: r.kind, ID: r.id, Reason: r.reason}
	switch r.kind {
	case provide:
		j.Result = &r.result
	case addBudget:
		j.Budget = &r.budget
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Reply) UnmarshalJSON(b []byte) error {
	var j replyJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Reply{kind: j.Reply, id: j.ID, reason: j.Reason}
	if j.Result != nil {
		r.result = *j.Result
	}
	if j.Budget != nil {
		r.budget = *j.Budget
	}
	return nil
}
