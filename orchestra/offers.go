package orchestra

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// tool is a registered tool, with what does not change from run to run.
type tool struct {
	tools.Tool
	spec    tools.Spec
	names   []string // that preferences see
	choices []choice
	plain   bool // it can be called without arguments
}

// choice is one value of a tool's "model" argument.
type choice struct {
	tools.Choice
	names []string
	args  json.RawMessage
}

func newTool(t tools.Tool, s tools.Spec) tool {
	x := tool{Tool: t, spec: s, names: append([]string{s.Name}, s.Sources...)}
	for _, c := range s.Choices {
		args, _ := json.Marshal(map[string]string{"model": c.Alias}) // strings always marshal
		x.choices = append(x.choices, choice{Choice: c, names: slices.Concat([]string{s.Name, c.Info.Name}, c.Names, s.Sources), args: args})
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		AnyOf      json.RawMessage            `json:"anyOf"`
		OneOf      json.RawMessage            `json:"oneOf"`
		AllOf      json.RawMessage            `json:"allOf"`
		Ref        string                     `json:"$ref"`
	}
	x.plain = len(s.Schema) == 0 || json.Unmarshal(s.Schema, &schema) == nil &&
		len(schema.Properties)+len(schema.AnyOf)+len(schema.OneOf)+len(schema.AllOf)+len(schema.Ref) == 0
	return x
}

// writer is an expert that can write arguments for a policy that cannot.
type writer struct {
	alias string
	model models.Model
	info  models.Info
}

func newWriters(experts []models.Model) []writer {
	var ws []writer
	for i, m := range experts {
		ws = append(ws, writer{alias: "writer-" + strconv.Itoa(i+1), model: models.Metered(m), info: m.Info()})
	}
	return ws
}

// unit is what can become one offer: a tool, a tool with one of its experts, or
// a tool with the expert that writes its arguments.
type unit struct {
	tool     *tool
	choice   *choice
	writer   *writer
	offer    policy.Offer
	why      policy.Why    // it is masked, until the workspace changes
	now      policy.Why    // it is masked this turn
	own      cost.Estimate // of the expert's call alone; without a name if there is none
	money    bool          // it is masked for want of money, tokens or calls
	fails    int
	forever  policy.Why // it is masked for the whole run
	proposed bool       // the arguments come from Propose
	more     []json.RawMessage
}

// newUnits lists what this run could be offered.
func (r *run) newUnits() {
	o := r.o
	r.units = make([]unit, 0, len(o.tools))
	// Through pointers: ten thousand stacks are kept small this way.
	add := func(t *tool, names []string, latency time.Duration) *unit {
		r.units = append(r.units, unit{})
		u := &r.units[len(r.units)-1]
		u.tool = t
		u.offer.Tool, u.offer.Names, u.offer.Latency, u.offer.Effects = t.spec.Name, names, latency, t.spec.Effects
		if !r.task.Prefer.Allows(names...) {
			u.forever = policy.Forbidden
		}
		return u
	}
	for i := range o.tools {
		t := &o.tools[i]
		for j := range t.choices {
			c := &t.choices[j]
			u := add(t, c.names, max(t.spec.Latency, c.Info.Latency))
			u.choice, u.offer.Skill = c, c.Info.Skill
			u.offer.Choice, u.offer.Args = c.Alias, c.args
		}
		switch {
		case len(t.choices) > 0:
		case o.info.Writes:
			add(t, t.names, t.spec.Latency)
		case t.spec.Propose != nil:
			add(t, t.names, t.spec.Latency).proposed = true
		case t.plain:
			add(t, t.names, t.spec.Latency).offer.Args = noArgs
		case len(o.writers) > 0 && t.spec.Effects&(tools.NeedsApproval|tools.ClientSide) == 0: // whoever agrees has to see the arguments
			for j := range o.writers {
				w := &o.writers[j]
				u := add(t, append([]string{w.info.Name}, t.names...), t.spec.Latency+w.info.Latency)
				u.writer, u.offer.Skill, u.offer.Writer = w, w.info.Skill, w.alias
			}
		default:
			if u := add(t, t.names, t.spec.Latency); u.forever == "" {
				u.forever = policy.NoArguments
			}
		}
	}
}

// offer brings State up to date: what was gathered, what is left, what may be
// called.
func (r *run) offer() {
	s := &r.state
	changed := r.offered != s.Work.Version()
	if changed {
		for i := range r.units {
			r.refresh(&r.units[i])
		}
		r.offered = s.Work.Version()
	}
	r.setAside(true)
	s.Left, s.Spent = r.meter.Left(), r.meter.Spent()
	s.Spent.Turns, s.Spent.Time = s.Turn-1, r.active()
	if b := r.task.Budget; b.Turns > 0 {
		s.Left.Turns = b.Turns - s.Turn + 1
	}
	if d, ok := r.ctx.Deadline(); ok {
		s.Left.Time = max(time.Until(d), 0)
	}
	n := 0
	for i := range r.units {
		u := &r.units[i]
		for u.proposed && u.why == "" && r.repeated(u.tool, u.offer.Args) && u.next() {
			u.offer.Estimate = r.estimate(u.tool, u.offer.Args, nil)
			changed = true
		}
		was := u.now
		if u.now = r.mask(u); u.now != was {
			changed = true
		}
		if u.now == "" {
			n++
		}
	}
	if !changed && (s.Offers != nil || s.Masked != nil) {
		return // events of earlier turns share these lists
	}
	s.Offers, s.Masked = make([]policy.Offer, 0, n), nil
	for i := range r.units {
		u := &r.units[i]
		if u.now == "" {
			s.Offers = append(s.Offers, u.offer)
		} else {
			s.Masked = append(s.Masked, policy.Masked{Tool: u.offer.Tool, Choice: u.offer.Choice, Why: u.now})
		}
	}
}

// refresh works out a unit's arguments and estimate for the workspace.
func (r *run) refresh(u *unit) {
	u.why = u.forever
	if u.why != "" {
		return
	}
	if u.proposed {
		u.more = r.propose(u.tool)
		if !u.next() {
			u.offer.Args, u.why = nil, policy.NoArguments
			return
		}
	}
	u.offer.Estimate = r.estimate(u.tool, u.offer.Args, u.writer)
	switch {
	case u.writer != nil:
		u.own = models.Estimate(u.writer.model, r.writing(u.tool, ""))
		u.own.Name = u.writer.info.Name
	case u.choice != nil:
		u.own = u.offer.Estimate
		u.own.Name, u.own.Fee, u.own.Floor.USD = u.choice.Info.Name, 0, u.own.Floor.USD-u.own.Fee
	}
}

// next takes the next of the proposed arguments, in the form in which events are
// written: a policy that compares them with those of earlier calls must know them
// again after Resume. What is not JSON is no proposal.
func (u *unit) next() bool {
	for len(u.more) > 0 {
		given := u.more[0]
		u.more = u.more[1:]
		if args, err := json.Marshal(given); err == nil && given != nil { // nil would be null
			u.offer.Args = args
			return true
		}
	}
	return false
}

// propose asks a tool for arguments. A tool that panics has none.
func (r *run) propose(t *tool) (args []json.RawMessage) {
	defer r.caught("Spec.Propose of "+t.spec.Name, func() { args = nil })
	return t.spec.Propose(r.call("", t, nil))
}

// caught, deferred, keeps the panic of a user's function from the caller of
// Run.
func (r *run) caught(where string, then func()) {
	if p := recover(); p != nil {
		if r.blown {
			panic(p) // the consumer's own, on its way to the consumer
		}
		r.o.log.Error("orchestra: "+where+" panicked", "run", r.state.Run, "panic", p, "stack", stack())
		then()
	}
}

// mask says why a unit may not be called now, or "".
func (r *run) mask(u *unit) policy.Why {
	switch {
	case u.why != "":
		return u.why
	case u.fails >= brokenAfter:
		return policy.Broken
	case u.offer.Args != nil && r.repeated(u.tool, u.offer.Args):
		return policy.Repeated
	case u.offer.Latency > 0 && r.state.Left.Time > 0 && u.offer.Latency > r.state.Left.Time:
		return policy.TooSlow
	}
	err := r.meter.Check(u.offer.Estimate, r.freed(u.tool))
	if err == nil {
		err = r.limited(u)
	}
	u.money = errors.Is(err, cost.ErrExceeded)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, cost.ErrUnpriced):
		return policy.NoPrice
	default:
		return policy.Unaffordable
	}
}

// limited says whether a limit by name leaves no room for the unit's expert.
func (r *run) limited(u *unit) error {
	if u.own.Name == "" {
		return nil
	}
	var exceeded *cost.ExceededError
	if err := r.meter.Check(u.own, r.freed(u.tool)); errors.As(err, &exceeded) && exceeded.Sub {
		return err
	}
	return nil
}

// priceless reports whether nothing can answer because of money.
func (r *run) priceless() bool {
	money := false
	for i := range r.units {
		if u := &r.units[i]; u.answers() {
			money = money || u.now == policy.Unaffordable && u.money
			if u.now == "" {
				return false
			}
		}
	}
	return money
}

// brokenAfter failures an offer is not made again.
const brokenAfter = 2

// freed is the hold that a call of the tool may use: the answer reserve, if it
// makes an attempt.
func (r *run) freed(t *tool) *cost.Hold {
	if t.spec.Effects&tools.Answers != 0 {
		return r.reserve
	}
	return nil
}

// call is a tool call as the tool sees it.
func (r *run) call(id string, t *tool, args json.RawMessage) tools.Call {
	return tools.Call{ID: id, Tool: t.spec.Name, Args: args, Prompt: r.task.Prompt, History: r.task.Messages, Work: r.state.Work}
}

// estimate is what one call takes from the budget: the tool's own word, its fee,
// and the writing of its arguments.
func (r *run) estimate(t *tool, args json.RawMessage, w *writer) (e cost.Estimate) {
	s := &t.spec
	if s.Estimate != nil {
		defer r.caught("Spec.Estimate of "+s.Name, func() { e = unaffordable(s.Name) })
		e = s.Estimate(r.call("", t, args))
	} else {
		e.Priced = true
		e.Mean.USD, e.Worst.USD, e.Worst.Tokens = s.MaxSpend/2, s.MaxSpend, cost.AnyTokens
	}
	if w != nil {
		one := models.Estimate(w.model, r.writing(t, ""))
		e.Floor, e.Mean, e.Worst = e.Floor.Add(one.Floor), e.Mean.Add(one.Mean), e.Worst.Add(one.Worst).Add(one.Worst) // with one retry
		e.Worst.Tokens = min(e.Worst.Tokens, cost.AnyTokens)
		e.Priced = e.Priced && one.Priced
	}
	if !plausible(e.Floor) || !plausible(e.Mean) || !plausible(e.Worst) {
		r.o.log.Error("orchestra: an estimate is negative or no number", "run", r.state.Run, "tool", s.Name, "estimate", e)
		e = unaffordable(s.Name)
	}
	fee := cost.Spend{USD: s.Fee}
	e.Floor, e.Mean, e.Worst = e.Floor.Add(fee), e.Mean.Add(fee), e.Worst.Add(fee)
	e.Worst.USD, e.Worst.Tokens, e.Fee = max(e.Worst.USD, e.Floor.USD), max(e.Worst.Tokens, e.Floor.Tokens), s.Fee
	e.Worst.GPU = max(e.Worst.GPU, e.Floor.GPU)
	e.Floor.Calls, e.Mean.Calls, e.Worst.Calls = 1, 1, 1
	e.Name = s.Name
	return e
}

// unaffordable is the estimate of what cannot be estimated.
func unaffordable(name string) cost.Estimate {
	most := cost.Spend{USD: cost.MaxAmount}
	return cost.Estimate{Name: name, Floor: most, Mean: most, Worst: most, Priced: true}
}

func plausible(s cost.Spend) bool {
	return s.USD >= 0 && s.Tokens >= 0 && s.Calls >= 0 && s.Time >= 0 && s.GPU >= 0
}

// seenCall is a call that was made, on a version of the workspace.
type seenCall struct {
	tool    *tool
	args    json.RawMessage
	version int
}

// repeated reports whether the call was made since the workspace last changed.
// Only tools that promise to change nothing, or to do it once, are held to it:
// calling others again may be the point, as in polling.
func (r *run) repeated(t *tool, args json.RawMessage) bool {
	if t.spec.Effects&(tools.ReadOnly|tools.Idempotent) == 0 {
		return false
	}
	for i := len(r.seen) - 1; i >= 0 && r.seen[i].version == r.state.Work.Version(); i-- {
		if s := &r.seen[i]; s.tool == t && sameJSON(s.args, args) {
			return true
		}
	}
	return false
}

// sameJSON compares arguments whatever their spacing and the order of their
// keys.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errA := canonical(a)
	y, errB := canonical(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// canonical sorts keys and drops spaces; numbers stay as they are written.
func canonical(args json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
