package modeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/conform"
	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	patience = time.Minute            // for an answer
	midway   = 5 * time.Millisecond   // until a deadline strikes
	callers  = 8                      // at the same time
	question = "What is 6 times 7?"   // asked in every check
	system   = "Answer in one word. " // a message before it
)

// Conform tests that a model keeps the contract of models.Model, one subtest a
// rule. It calls mk for a fresh model in every subtest; t is the subtest's, so
// mk can clean up after itself. The model must answer whatever it is asked,
// about thirty times in all, and should stream its answer in several deltas,
// or else cancellation in mid-stream is not tested. Run it with -race.
//
// Calls are made with a meter that does not bound, so metered models can be
// tested too. Within a bubble of testing/synctest use Check.
func Conform(t *testing.T, mk func(t *testing.T) models.Model) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			for _, problem := range c.problems(func() models.Model { return mk(t) }) {
				t.Error(problem)
			}
		})
	}
}

// Check is Conform outside tests: it returns what is wrong with the models that
// mk makes, nil if nothing is. Each problem starts with the name of the rule.
// A model that still runs 30 seconds after its context was cancelled is
// reported and left behind.
func Check(mk func() models.Model) []error {
	var all []error
	for _, c := range checks() {
		for _, problem := range c.problems(mk) {
			all = append(all, fmt.Errorf("%s: %w", c.name, problem))
		}
	}
	return all
}

type check struct {
	name string
	run  func(p *probe, m models.Model)
}

func checks() []check {
	return []check{
		{"info", checkInfo},
		{"answer", checkAnswer},
		{"stream", checkStream},
		{"request is not changed", checkRequest},
		{"invalid request", checkInvalid},
		{"concurrent use", checkConcurrent},
		{"context done before", checkBefore},
		{"cancelled in mid-stream", checkDuring},
		{"deadline", checkDeadline},
	}
}

func (c check) problems(mk func() models.Model) []error {
	var p probe
	m := mk()
	if m == nil {
		return []error{errors.New("there is no model: it is nil")}
	}
	c.run(&p, m)
	return p.Found()
}

// probe gathers problems.
type probe struct {
	conform.Problems
}

// outcome is what Generate returned.
type outcome struct {
	resp *models.Response
	err  error
}

// generate calls the model, with a meter for those that want one.
func generate(ctx context.Context, m models.Model, r *models.Request) (o outcome) {
	o.err = conform.Catch(func() error {
		meter, err := cost.NewMeter("modeltest", cost.Budget{USD: cost.NoLimit(), AllowUnpriced: true})
		if err != nil {
			return err
		}
		o.resp, err = m.Generate(cost.NewContext(ctx, meter), r)
		return err
	})
	return o
}

// ask calls the model and expects a response.
func (p *probe) ask(m models.Model, r *models.Request) *models.Response {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := generate(ctx, m, r)
	switch {
	case o.err != nil:
		p.Errorf("the call failed: %w", o.err)
		p.failure(ctx, o)
	case o.resp == nil:
		p.Errorf("the call returned neither a response nor an error")
	default:
		return o.resp
	}
	return nil
}

// failure checks a call that returned an error.
func (p *probe) failure(ctx context.Context, o outcome) {
	if o.resp != nil {
		p.Errorf("a failed call returned a response too (%q): put what had arrived into the Partial of a *models.Error", o.resp.Text)
	}
	var typed *models.Error
	if conform.IsPanic(o.err) {
		p.Errorf("the call panicked: %w", o.err)
		return
	}
	if ctxErr := ctx.Err(); !errors.As(o.err, &typed) && (ctxErr == nil || !errors.Is(o.err, ctxErr)) {
		p.Errorf("a failed call returned a %T; return a *models.Error, or the context's error: %w", o.err, o.err)
	}
}

// cancelled checks a call that had to fail because its context ended.
func (p *probe) cancelled(ctx context.Context, o outcome) {
	p.failure(ctx, o)
	if !errors.Is(o.err, ctx.Err()) {
		p.Errorf("the error is not the context's: errors.Is(err, %q) is false for %w", ctx.Err(), o.err)
	}
}

// recorder gathers deltas.
type recorder struct {
	conform.Gate
	mu              sync.Mutex
	text, reasoning strings.Builder
	deltas          int
}

func (s *recorder) add(d models.Delta) {
	if !s.Pass() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deltas++
	if d.Restart {
		s.text.Reset()
		s.reasoning.Reset()
	}
	s.text.WriteString(d.Text)
	s.reasoning.WriteString(d.Reasoning)
}
