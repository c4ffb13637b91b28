package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// callExpert is the name that the paper gives to the tool.
const callExpert = "call_expert"

// allowed lists the experts that the preferences leave; the same in every turn.
func (c *conversation) allowed(s *State) []*speaker {
	var all []*speaker
	for i := range c.experts {
		if x := &c.experts[i]; s.Prefer.Allows(x.info.Name) {
			all = append(all, x)
		}
	}
	return all
}

func aliases(experts []*speaker) []string {
	var names []string
	for _, x := range experts {
		names = append(names, x.alias)
	}
	return names
}

// expertTool describes call_expert.
func expertTool(experts []*speaker) models.ToolDef {
	enum := appendJSON(nil, aliases(experts))
	return models.ToolDef{Name: callExpert,
		Description: "Let a stronger model take this turn. It sees the conversation and the tools, and what it calls or answers counts as yours. Call nothing beside it.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"expert":{"type":"string","enum":` + string(enum) + `,"description":"Who takes the turn."}},"required":["expert"],"additionalProperties":false}`)}
}

// handOver lets an expert take the turn, as the policy's decision d wants.
func (c *conversation) handOver(ctx context.Context, s *State, d Decision, call Call) (Decision, error) {
	d.Calls, d.Finish, d.Text = nil, nil, ""
	refuse := func(why error) (Decision, error) {
		said := callExpert + head(string(call.Args), 200) + ": " + why.Error()
		d.Malformed = append(slices.Clip(d.Malformed), said)
		return d, &OutputError{Output: head(said, 2000), Err: fmt.Errorf("%w: no expert took the turn", ErrMalformed)}
	}
	experts := c.allowed(s)
	x, err := chosen(experts, call.Args)
	if err != nil {
		return refuse(err)
	}
	r, err := x.turn(s)
	if err != nil {
		return refuse(err)
	}
	if s.OnDelta != nil { // its turn takes the place of what was streamed
		s.OnDelta(models.Delta{Restart: true})
	}
	o, err := x.generate(ctx, s, r)
	switch {
	case errors.Is(err, cost.ErrExceeded), errors.Is(err, cost.ErrUnpriced), errors.Is(err, models.ErrContextOverflow):
		return refuse(err) // there are other ways to go on
	case err != nil:
		return d, err
	}
	own := d
	d, err = o.decision()
	d.Reasoning, d.Sample, d.By = own.Reasoning, own.Sample, x.info.Name
	return d, err
}

// chosen finds the expert that the arguments name.
func chosen(experts []*speaker, args json.RawMessage) (*speaker, error) {
	var in struct {
		Expert string `json:"expert"`
	}
	v, err := jsonfix.Read(string(args))
	if err == nil && !v.Truncated {
		_ = json.Unmarshal(v.JSON, &in) // what is no string is no alias
	}
	for _, x := range experts {
		if x.alias == in.Expert {
			return x, nil
		}
	}
	return nil, errors.New(`write {"expert": "` + experts[0].alias + `"} with one of ` + strings.Join(aliases(experts), ", "))
}
