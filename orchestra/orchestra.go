package orchestra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Orchestrator runs tasks with one policy and one set of tools. It is immutable
// and safe for concurrent use.
type Orchestrator struct {
	policy  policy.Policy
	info    policy.Info
	tools   []tool
	specs   []tools.Spec // of tools, as policies see them
	writers []writer     // experts that can write arguments
	names   []string     // that preferences may use
	budget  cost.Budget
	prefer  prefs.Vector
	log     *slog.Logger

	checkpoint Checkpoint
}

// Option configures New.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	policy    policy.Policy
	policySet bool
	experts   []models.Model
	tools     []tools.Tool
	search    tools.Retriever
	searchSet bool
	code      tools.Interpreter
	codeSet   bool
	budget    cost.Budget
	prefer    prefs.Vector
	log       *slog.Logger

	checkpoint Checkpoint
}

// WithPolicy sets the policy; the default is policy.Embedded.
func WithPolicy(p policy.Policy) Option {
	return optionFunc(func(c *config) { c.policy, c.policySet = p, true })
}

// WithExperts adds models that can be called as tools: to answer, to write
// search queries (WithSearch), to reason with code (WithCode) and to write the
// arguments of tools for policies that cannot. Their calls are metered.
//
// Each request is a fresh chat: a system message that says what to write
// (<answer>…</answer>, <query>…</query>, a fenced program, or a JSON object of
// arguments, once more if that was refused), and one with what was gathered and the
// problem. An answer without its marks counts as it is; without a query, the
// problem itself is looked for.
func WithExperts(m ...models.Model) Option {
	return optionFunc(func(c *config) { c.experts = append(c.experts, m...) })
}

// WithTools adds tools, in the order in which policies see them.
func WithTools(t ...tools.Tool) Option {
	return optionFunc(func(c *config) { c.tools = append(c.tools, t...) })
}

// WithSearch adds the tool "search" over r.
func WithSearch(r tools.Retriever) Option {
	return optionFunc(func(c *config) { c.search, c.searchSet = r, true })
}

// WithCode adds the tool "enhance_reasoning" over i; it needs experts.
func WithCode(i tools.Interpreter) Option {
	return optionFunc(func(c *config) { c.code, c.codeSet = i, true })
}

// WithBudget sets the budget of runs whose Task does not set its own, field by
// field.
func WithBudget(b cost.Budget) Option { return optionFunc(func(c *config) { c.budget = b }) }

// WithPreferences sets the preferences of runs whose Task sets none.
func WithPreferences(v prefs.Vector) Option { return optionFunc(func(c *config) { c.prefer = v }) }

// WithLogger has l told what is worth a look, such as the stack of a tool that
// panicked. The default is silence.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(c *config) { c.log = l }) }

// InvalidError is something that New or Run was given and cannot use.
type InvalidError struct {
	Field string // "Task.Prompt", "WithExperts[1]", …
	Fix   string // what is wrong and what to do about it
	Err   error  // the cause, where there is one
}

// Error says what happened, and what to do about it where that is known.
func (e *InvalidError) Error() string {
	s := "orchestra: " + e.Field
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// New makes an orchestrator. It does no I/O. Tools are offered in this order:
// enhance_reasoning, search and answer, as far as they are configured, then
// those of WithTools. The error is an *InvalidError that names the option, the
// tool or the price. Whether a task can be answered at all (by these tools, at this
// budget, with these preferences) is found out by Run, before it spends anything.
func New(opts ...Option) (*Orchestrator, error) {
	var c config
	for i, o := range opts {
		if o == nil {
			return nil, &InvalidError{Field: fmt.Sprintf("New: option %d", i+1), Fix: "it is nil: leave it out"}
		}
		o.apply(&c)
	}
	named := map[string]bool{}
	for i, m := range c.experts {
		field := fmt.Sprintf("WithExperts[%d]", i)
		if m == nil {
			return nil, &InvalidError{Field: field, Fix: "the model is nil: check the error of its constructor"}
		}
		if n := m.Info().Name; named[n] {
			return nil, &InvalidError{Field: field, Fix: fmt.Sprintf("a second expert is named %q: budgets and preferences could not tell them apart, so set models.Info.Name", n)}
		} else {
			named[n] = true
		}
	}
	o := &Orchestrator{policy: c.policy, budget: c.budget, prefer: c.prefer, log: c.log, writers: newWriters(c.experts), checkpoint: c.checkpoint}
	switch {
	case !c.policySet:
		o.policy = policy.Embedded()
	case c.policy == nil:
		return nil, &InvalidError{Field: "WithPolicy", Fix: "the policy is nil: check the error of its constructor, or leave the option out"}
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	o.info = o.policy.Info()
	if err := c.budget.Validate(); err != nil {
		return nil, &InvalidError{Field: "WithBudget", Err: err}
	}
	all, err := c.assemble()
	if err != nil {
		return nil, err
	}
	if err := o.register(all); err != nil {
		return nil, err
	}
	if err := c.prefer.Validate(o.names); err != nil {
		return nil, &InvalidError{Field: "WithPreferences", Err: err}
	}
	if err := o.known(c.budget); err != nil {
		return nil, &InvalidError{Field: "WithBudget", Err: err}
	}
	return o, nil
}

// Names lists what preferences may use, in two groups: tools with their sources,
// and models. They are what prefs.Parse takes:
//
//	tools, models := o.Names()
//	v, err := prefs.Parse(text, slices.Concat(tools, models), tools, models)
func (o *Orchestrator) Names() (toolNames, modelNames []string) {
	for i := range o.tools {
		for _, c := range o.tools[i].choices {
			for _, n := range append([]string{c.Info.Name}, c.Names...) {
				if !slices.Contains(modelNames, n) {
					modelNames = append(modelNames, n)
				}
			}
		}
	}
	for _, w := range o.writers {
		if !slices.Contains(modelNames, w.info.Name) {
			modelNames = append(modelNames, w.info.Name)
		}
	}
	for _, n := range o.names {
		if !slices.Contains(modelNames, n) {
			toolNames = append(toolNames, n)
		}
	}
	return toolNames, modelNames
}

// known checks the names that a budget limits: a limit on a name that does not
// exist limits nothing.
func (o *Orchestrator) known(b cost.Budget) error {
	if len(b.PerName) == 0 {
		return nil
	}
	names := prefs.Vector{Never: slices.Sorted(maps.Keys(b.PerName))}
	err := names.Validate(append(slices.Clone(o.names), policyName))
	var unknown *prefs.UnknownNameError
	if errors.As(err, &unknown) {
		unknown.Field = "Budget.PerName"
	}
	return err
}

// policyName is the policy's in budgets by name.
const policyName = "policy"

// assemble makes the expert tools and puts all tools in order.
func (c *config) assemble() ([]tools.Tool, error) {
	var all []tools.Tool
	add := func(option string, t tools.Tool, err error) error {
		if err != nil {
			return &InvalidError{Field: option, Err: err}
		}
		all = append(all, t)
		return nil
	}
	if c.codeSet {
		t, err := tools.Reason(c.code, c.experts...)
		if err := add("WithCode", t, err); err != nil {
			return nil, err
		}
	}
	if c.searchSet {
		t, err := tools.Search(c.search, c.experts...)
		if err := add("WithSearch", t, err); err != nil {
			return nil, err
		}
	}
	if len(c.experts) > 0 {
		t, err := tools.Answer(c.experts...)
		if err := add("WithExperts", t, err); err != nil {
			return nil, err
		}
	}
	for i, t := range c.tools {
		if t == nil {
			return nil, &InvalidError{Field: fmt.Sprintf("WithTools[%d]", i), Fix: "the tool is nil: check the error of its constructor"}
		}
		all = append(all, t)
	}
	return all, nil
}

// register checks the tools and fixes what does not change from run to run.
func (o *Orchestrator) register(all []tools.Tool) error {
	seen := map[string]bool{}
	name := func(n string) {
		if n != "" && !seen["name:"+n] {
			seen["name:"+n] = true
			o.names = append(o.names, n)
		}
	}
	for _, t := range all {
		spec := t.Spec()
		if err := tools.Check(spec); err != nil {
			return &InvalidError{Field: fmt.Sprintf("tool %q", spec.Name), Err: err}
		}
		if seen["tool:"+spec.Name] {
			return &InvalidError{Field: fmt.Sprintf("tool %q", spec.Name), Fix: "rename one of them", Err: tools.ErrDuplicate}
		}
		seen["tool:"+spec.Name] = true
		o.tools = append(o.tools, newTool(t, spec))
		o.specs = append(o.specs, spec)
		name(spec.Name)
		for _, s := range spec.Sources {
			name(s)
		}
		for _, c := range spec.Choices {
			for _, score := range append(slices.Collect(maps.Values(c.Info.Skill.ByDomain)), c.Info.Skill.Score) {
				if !(score >= 0 && score <= 1) {
					return &InvalidError{Field: fmt.Sprintf("the Skill of %q", c.Info.Name), Fix: "a Score is a share of tasks solved, from 0 to 1"}
				}
			}
			if err := c.Info.Price.Validate(); err != nil {
				return &InvalidError{Field: fmt.Sprintf("the price of %q", c.Info.Name), Err: err}
			}
			name(c.Info.Name)
			for _, n := range c.Names {
				name(n)
			}
		}
	}
	return nil
}

// Run runs a task to its end. It is Stream(ctx, t).Result().
func (o *Orchestrator) Run(ctx context.Context, t Task) (*Result, error) {
	return o.Stream(ctx, t).Result()
}

// Stream prepares a run, which begins with Events or Result.
func (o *Orchestrator) Stream(ctx context.Context, t Task) *Stream {
	return &Stream{o: o, ctx: ctx, task: t}
}

// Close releases what the orchestrator holds, such as a local model server that
// its policy started. Runs that are under way may fail.
func (o *Orchestrator) Close() error {
	if c, ok := o.policy.(interface{ Close() error }); ok {
		if err := c.Close(); err != nil {
			return errors.Join(errors.New("orchestra: closing the policy"), err)
		}
	}
	return nil
}
