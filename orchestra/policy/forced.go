package policy

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy/internal/qwen3"
)

const (
	// forcedOutput caps a forced try, in tokens. Grammars for JSON admit white
	// space without end, so nothing else bounds it.
	forcedOutput = 2048
	// forcedThought is how much of its thinking the model is shown again, in
	// estimated tokens: the end of it.
	forcedThought = 4000
	// forcedBytes bounds forcedThought in bytes, for estimates.
	forcedBytes = 6 * forcedThought
)

// WithoutForcing leaves out the forced try: an output without a call is an
// OutputError at once, as it always is where the model obeys no schema
// (models.Info.Schema).
func WithoutForcing() TrainedOption {
	return trainedOption(func(t *trained) { t.noForce = true })
}

// canForce reports whether the model can be held to a grammar, and there is
// something to call.
func (t *trained) canForce(s *State) bool {
	return !t.noForce && t.info.Schema && len(s.Offers) > 0
}

// mustForce decides whether a useless output gets another try at once. Thinking
// that plans a call and never makes it is a habit of Qwen3 (QwenLM/Qwen3#1817)
// that asking again may not cure. A call that cannot be read is usually a slip,
// so only the second in a row counts.
func (t *trained) mustForce(s *State, o *output) bool {
	if !t.canForce(s) {
		return false
	}
	return len(o.Malformed) == 0 || len(s.Turns) > 0 && useless(&s.Turns[len(s.Turns)-1])
}

// useless reports whether the turn's decision was none.
func useless(t *Turn) bool { return len(t.Decision.Calls) == 0 && t.Decision.Finish == nil }

// estimate is what a decision costs: one call at the least, and at the most a
// forced one after it.
func (t *trained) estimate(s *State) cost.Estimate {
	r := t.request(s)
	e := models.Estimate(t.model, r)
	if t.canForce(s) {
		// Thinking that is not known yet is digits, of which tokenizers make the most
		// tokens.
		two := models.Estimate(t.model, t.forcedRequest(s, r, strings.Repeat("0123456789", forcedBytes/10)))
		e.Worst = e.Worst.Add(two.Worst)
	}
	return e
}

// forcedRequest goes on where r's output should have: behind what the model
// thought, which must be neutral, with a call begun and a grammar for the rest.
func (t *trained) forcedRequest(s *State, r *models.Request, thought string) *models.Request {
	q := *r
	if !t.noThink { // else the prompt ends with an empty thought already
		q.Prompt += qwen3.Thought(thought)
	}
	q.Prompt += qwen3.CallBegin
	q.Schema = callSchema(s)
	q.MaxOutput = min(forcedOutput, t.maxOutput)
	return &q
}

// forced asks once more for a call, held to a grammar. Servers may ignore the
// grammar, so what comes back is read like any other output.
func (t *trained) forced(ctx context.Context, s *State, r *models.Request, first *output) (*output, error) {
	thought := first.Reasoning
	if thought == "" {
		thought = first.Text
	}
	room := forcedThought
	if t.info.Context > 0 {
		room = min(room, t.info.Context-forcedOutput-estimate(r.Prompt)-32) // for the tags
	}
	thought = tail(qwen3.Neutralise(thought), max(room, 0))
	if s.OnDelta != nil { // the begin that the model does not write itself
		s.OnDelta(models.Delta{Text: "\n" + qwen3.CallBegin})
	}
	o, err := t.generate(ctx, s, t.forcedRequest(s, r, thought), qwen3.CallBegin)
	if err != nil {
		return nil, err
	}
	if len(o.Calls) > 0 {
		o.Calls = firstValid(s, o.Calls)
		if spec(s, o.Calls[0].Name) != nil {
			return o, nil
		}
	}
	return nil, o.malformed()
}

// callSchema is the JSON schema of a call of what is offered.
func callSchema(s *State) json.RawMessage {
	b := []byte(`{"anyOf":[`)
	for i := range s.Tools {
		sp := &s.Tools[i]
		aliases, offered := offeredAliases(s, sp)
		if !offered {
			continue
		}
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = append(b, `{"type":"object","properties":{"name":{"const":`...)
		b = append(appendJSON(b, sp.Name), `},"arguments":`...)
		schema := sp.Schema
		if len(sp.Choices) > 0 {
			schema = withAliases(schema, aliases)
		}
		b = append(appendShape(b, schema), `},"required":["name","arguments"],"additionalProperties":false}`...)
	}
	return append(b, "]}"...)
}
