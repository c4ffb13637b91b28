package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/conform"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

const (
	patience = time.Minute          // for a result
	midway   = 5 * time.Millisecond // until a call is cancelled
	callers  = 8                    // at the same time
	task     = "What is the capital of the country that won the football world cup of 1998?"
)

// Conform tests that a tool keeps the contract of tools.Tool, one subtest a
// rule. It calls mk for a fresh tool in every subtest; t is the subtest's, so
// mk can clean up after itself. Each of args must be arguments that the tool
// accepts; without args it is called with {}. Run it with -race.
//
// The tool is really called, some dozens of times, with bad arguments too: give
// one that acts on the world a world to play in. Calls are made with a meter
// that admits what the tool asks for, as in a run: the Worst of Spec.Estimate,
// or else Spec.MaxSpend. Prices may be unknown. Within a bubble of
// testing/synctest use Check.
func Conform(t *testing.T, mk func(t *testing.T) tools.Tool, args ...json.RawMessage) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			for _, problem := range c.problems(func() tools.Tool { return mk(t) }, args) {
				t.Error(problem)
			}
		})
	}
}

// Check is Conform outside tests: it returns what is wrong with the tools that
// mk makes, nil if nothing is. Each problem starts with the name of the rule.
// A tool that still runs 30 seconds after its context was cancelled is reported
// and left behind.
func Check(mk func() tools.Tool, args ...json.RawMessage) []error {
	var all []error
	for _, c := range checks() {
		for _, problem := range c.problems(mk, args) {
			all = append(all, fmt.Errorf("%s: %w", c.name, problem))
		}
	}
	return all
}

type check struct {
	name string
	run  func(p *probe)
}

func checks() []check {
	return []check{
		{"spec", checkSpec},
		{"call", checkCall},
		{"bad arguments", checkBad},
		{"arguments are not changed", checkUnchanged},
		{"concurrent use", checkConcurrent},
		{"context done before", checkBefore},
		{"cancelled", checkDuring},
		{"proposals", checkProposals},
	}
}

func (c check) problems(mk func() tools.Tool, args []json.RawMessage) []error {
	p := probe{tool: mk(), args: args}
	if p.tool == nil {
		return []error{errors.New("there is no tool: it is nil")}
	}
	if len(args) == 0 {
		p.args = []json.RawMessage{json.RawMessage("{}")}
	}
	p.spec = p.tool.Spec()
	c.run(&p)
	return p.Found()
}

// probe calls one tool and gathers problems.
type probe struct {
	tool tools.Tool
	spec tools.Spec
	args []json.RawMessage

	conform.Problems
}

// outcome is what Call returned.
type outcome struct {
	result tools.Result
	err    error
}

// allowance is what metered models may spend in a call, as in a run.
func (p *probe) allowance(c tools.Call) cost.Amount {
	usd := p.spec.MaxSpend
	if p.spec.Estimate != nil {
		_ = conform.Catch(func() error { usd = p.spec.Estimate(c).Worst.USD; return nil }) // a panic is reported by estimate
	}
	return usd
}

// call makes one call, as a run would.
func (p *probe) call(ctx context.Context, c tools.Call) (o outcome) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o.err = conform.Catch(func() error {
		meter, err := cost.NewMeter("tooltest", cost.Budget{USD: cost.Max(p.allowance(c)), AllowUnpriced: true})
		if err != nil {
			return fmt.Errorf("what the tool asks to spend: %w", err)
		}
		defer meter.Close()
		o.result, err = p.tool.Call(cost.NewContext(ctx, meter), c)
		return err
	})
	return o
}

// with is a call with those arguments. They are copied, with some bytes behind
// their end, where an append would go unseen.
func (p *probe) with(args json.RawMessage) tools.Call {
	if args != nil {
		args = append(make(json.RawMessage, 0, len(args)+8), args...)
	}
	return tools.Call{ID: "call-1", Tool: p.spec.Name, Args: args, Prompt: task}
}
