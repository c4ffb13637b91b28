package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy/internal/qwen3"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// ConversationError is a model, an option or a State that Conversation cannot
// work with.
type ConversationError struct {
	Model string // its name, if there is one
	Fix   string // what is wrong and what to do about it
	Err   error  // the cause, where it has a name: tools.ErrDuplicate, models.ErrContextOverflow
}

// Error says what happened, and what to do about it where that is known.
func (e *ConversationError) Error() string {
	if e.Model == "" {
		return "policy: conversation: " + e.Fix
	}
	return fmt.Sprintf("policy: conversation: model %q %s", e.Model, e.Fix)
}

// Unwrap gives the cause.
func (e *ConversationError) Unwrap() error { return e.Err }

// ConversationOption varies what Conversation makes.
type ConversationOption interface{ converse(*conversation) }

type conversationOption func(*conversation)

func (f conversationOption) converse(c *conversation) { f(c) }

// WithCallExpert adds the tool "call_expert", as in the paper's function-calling
// tasks: the expert that the policy names takes this turn in its place. It sees
// the conversation (the chat's own system message, the task, what was called)
// and the tools, and the calls or the answer that it writes are the turn's:
// Decision.By says so. Its call is metered, within what is held for the
// decision. Experts are called expert-1, expert-2, … in this order; those that
// preferences forbid are left out of a run. Give them to orchestra.WithExperts
// too if preferences or budgets are to name them.
func WithCallExpert(experts ...models.Model) ConversationOption {
	return conversationOption(func(c *conversation) { c.given = append(c.given, experts...) })
}

// Conversation is a policy for chats, by any model that calls tools. It keeps
// the chat history that Trained has none of: a system message (preferences,
// budget, what experts cost), Task.Messages, the task, and then each turn's
// calls and results, refused and failed ones included. A reply without a call is
// the answer. Several calls of one reply are all made.
//
// Models with Info.Tools are called natively. Raw models without it are taken
// for Qwen3: the prompt is rendered and the output parsed here, and untrusted
// text cannot forge the format's control tokens. Other models, and nil, are a
// *ConversationError.
//
// The system message and the tools stay the same for a whole run, so that
// servers can reuse the prefix: a tool or expert that preferences forbid is
// never shown, and one that may not be called just now stays and is refused by
// the loop. What is left, and what may not be called, stands at the end of the
// newest message. If the conversation does not fit into Info.Context, by
// estimate, the oldest turns lose their reasoning and most of their results
// first, never the newest; if that is not enough, the error wraps
// models.ErrContextOverflow, before anything is spent.
//
// An output that is neither a call nor an answer is an *OutputError. The policy
// is safe for concurrent use.
func Conversation(m models.Model, opts ...ConversationOption) (Policy, error) {
	if m == nil {
		return nil, &ConversationError{Fix: "the model is nil: pass one that calls tools, or a Qwen3 model that takes raw prompts"}
	}
	c := &conversation{speaker: newSpeaker(m)}
	for _, o := range opts {
		if o != nil {
			o.converse(c)
		}
	}
	if bad := c.check(); bad != "" {
		return nil, &ConversationError{Model: c.info.Name, Fix: bad}
	}
	if err := c.ready(); err != nil {
		return nil, err
	}
	for i, x := range c.given {
		if x == nil {
			return nil, &ConversationError{Fix: fmt.Sprintf("WithCallExpert[%d] is nil: check the error of its constructor", i)}
		}
		sp := newSpeaker(x)
		if err := sp.ready(); err != nil {
			return nil, err
		}
		sp.alias = "expert-" + strconv.Itoa(i+1)
		sp.defaults()
		c.experts = append(c.experts, sp)
	}
	c.defaults()
	c.given = nil
	return c, nil
}

type conversation struct {
	speaker
	given   []models.Model // by WithCallExpert
	experts []speaker
}

// speaker is a model that takes turns: the policy's own, or an expert.
type speaker struct {
	sampling
	model models.Model
	info  models.Info
	alias string // "expert-1"; "" for the policy's own
}

func newSpeaker(m models.Model) speaker {
	return speaker{model: models.Metered(m), info: m.Info()}
}

func (sp *speaker) ready() error {
	if sp.info.Tools || sp.info.Raw {
		return nil
	}
	return &ConversationError{Model: sp.info.Name, Fix: "neither takes tools (Info.Tools) nor raw prompts (Info.Raw): set what it can do in its Info, or use another"}
}

// defaults fills in what no option says.
func (sp *speaker) defaults() {
	if sp.maxOutput == 0 {
		sp.maxOutput = 8000
		if sp.info.MaxOutput > 0 {
			sp.maxOutput = min(sp.maxOutput, sp.info.MaxOutput)
		}
		if sp.info.Context > 0 {
			sp.maxOutput = min(sp.maxOutput, max(sp.info.Context/3, 1))
		}
	}
	if !sp.chosen && !sp.info.Tools { // as Qwen3's authors advise
		sp.temperature, sp.topP, sp.topK, sp.chosen = 0.6, 0.95, 20, true
		if sp.noThink {
			sp.temperature, sp.topP = 0.7, 0.8
		}
	}
}

// Info describes the model.
func (c *conversation) Info() Info {
	return Info{Name: c.info.Name, Version: "conversation/1", Writes: true, Estimate: c.estimate}
}

// estimate is what a decision costs: one call at the least, and at the most the
// dearest expert's after it.
func (c *conversation) estimate(s *State) cost.Estimate {
	r, err := c.request(s)
	if err != nil { // Decide says it
		return cost.Estimate{Name: c.info.Name, Priced: true}
	}
	e := models.Estimate(c.model, r)
	var most cost.Spend
	for _, x := range c.allowed(s) {
		if q, err := x.turn(s); err == nil {
			w := models.Estimate(x.model, q).Worst
			most.USD, most.Tokens, most.GPU = max(most.USD, w.USD), max(most.Tokens, w.Tokens), max(most.GPU, w.GPU)
		}
	}
	e.Worst = e.Worst.Add(most)
	return e
}

// Decide asks the model and, if it wants so, an expert. With an *OutputError,
// the Decision still holds the reasoning, what was malformed and the sample.
func (c *conversation) Decide(ctx context.Context, s *State) (Decision, error) {
	if err := c.checkState(s); err != nil {
		return Decision{}, err
	}
	r, err := c.request(s)
	if err != nil {
		return Decision{}, err
	}
	o, err := c.generate(ctx, s, r)
	if err != nil {
		return Decision{Sample: sampleOf(&models.Response{}, r)}, err
	}
	d, err := o.decision()
	d.Sample = o.sample
	for _, call := range d.Calls {
		if len(c.allowed(s)) > 0 && call.Tool == callExpert {
			return c.handOver(ctx, s, d, call)
		}
	}
	return d, err
}

// generate asks for a turn.
func (sp *speaker) generate(ctx context.Context, s *State, r *models.Request) (*output, error) {
	resp, err := sp.model.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	var o *output
	if sp.info.Tools {
		o = readChat(s, resp)
	} else {
		o = readRaw(s, resp, "")
	}
	o.finish, o.sample = resp.Finish, sampleOf(resp, r)
	return o, nil
}

// readChat takes a reply of a chat server apart. Servers that lack the right
// parser leave calls and thinking in the text.
func readChat(s *State, resp *models.Response) *output {
	o := &output{raw: resp.Text, cut: resp.Finish == models.FinishLength}
	o.Text, o.Reasoning, o.Calls = strings.TrimSpace(resp.Text), resp.Reasoning, resp.Calls
	known := func(name string) bool { return spec(s, name) != nil || name == callExpert }
	marked := strings.HasPrefix(o.Text, "<think>") || strings.HasPrefix(o.Text, "<tool_call>")
	if len(o.Calls) > 0 && !marked {
		return o
	}
	p := qwen3.Parse(resp.Text, known)
	foreign := slices.ContainsFunc(p.Calls, func(call models.ToolCall) bool { return !known(call.Name) })
	if !marked && (len(p.Calls) == 0 || foreign) {
		return o // an answer may well speak of markup
	}
	if o.Reasoning != "" && p.Reasoning != "" {
		p.Reasoning = "\n\n" + p.Reasoning
	}
	p.Reasoning = o.Reasoning + p.Reasoning
	if len(o.Calls) > 0 {
		p.Calls, p.Malformed, p.Truncated = o.Calls, nil, false
	}
	o.Parsed = p
	o.cut = o.cut || p.Truncated
	return o
}

// decision is what an output means: calls, or an answer.
func (o *output) decision() (Decision, error) {
	d := Decision{Reasoning: o.Reasoning, Malformed: o.Malformed}
	for i, call := range o.Calls {
		// Of a call that was cut off, nobody knows what it was going to say.
		half := o.finish == models.FinishLength && i == len(o.Calls)-1 && !json.Valid(call.Args)
		if call.Name == "" || half {
			d.Malformed = append(slices.Clip(d.Malformed), call.Name+head(string(call.Args), 400))
			continue
		}
		d.Calls = append(d.Calls, Call{ID: call.ID, Tool: call.Name, Args: call.Args})
	}
	switch {
	case len(d.Calls) > 0:
		d.Text = o.Text
		return d, nil
	case o.Text != "" && len(d.Malformed) == 0 && !o.Truncated && o.finish != models.FinishFilter:
		d.Finish = &Finish{Text: o.Text, Truncated: o.cut}
		return d, nil
	}
	bad := o.malformed()
	bad.Malformed = d.Malformed
	if o.finish == models.FinishFilter {
		bad.Err = fmt.Errorf("%w: the provider withheld it", ErrMalformed)
	}
	return d, bad
}

// checkState refuses what no server could make sense of.
func (c *conversation) checkState(s *State) error {
	seen := map[string]bool{callExpert: len(c.experts) > 0}
	for i := range s.Tools {
		if n := s.Tools[i].Name; seen[n] {
			return &ConversationError{Model: c.info.Name, Fix: fmt.Sprintf("would see two tools named %q: rename one of them", n), Err: tools.ErrDuplicate}
		} else {
			seen[n] = true
		}
	}
	for i, m := range s.Messages {
		switch m.Role {
		case models.System, models.User, models.Assistant, models.ToolRole:
		default:
			return &ConversationError{Model: c.info.Name, Fix: fmt.Sprintf("would see a message of the role %q (Task.Messages[%d]): use system, user, assistant or tool", m.Role, i), Err: models.ErrInvalidRequest}
		}
	}
	return nil
}
