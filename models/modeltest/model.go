package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// ErrExhausted means that a Model was asked more often than it has steps. It
// is the cause of a *models.Error.
var ErrExhausted = errors.New("modeltest: no steps left")

// Model is a models.Model that follows a script. It takes its steps in order,
// one a request, whatever the request is, and remembers what it was asked. It
// is safe for concurrent use; steps then go to requests in order of arrival.
//
// A request that is invalid or whose context is already done takes no step and
// is not remembered, as it would never have reached a server.
type Model struct {
	info  models.Info
	steps []Step

	mu       sync.Mutex
	at       int // the next step
	again    int // times that the next step was taken already
	taken    int
	calls    int // ids given
	requests []*models.Request
	failures []error // to be told by AssertDone
}

// New makes a Model. Info needs a Name; a Price that is left out is unknown,
// not free, so metered calls are refused: cost.Free() is free.
func New(info models.Info, steps ...Step) *Model {
	m := &Model{info: info}
	for _, s := range steps {
		if s.extra >= 0 {
			s.Calls = copyCalls(s.Calls)
			m.steps = append(m.steps, s)
		}
	}
	return m
}

// Func makes a models.Model of a function, for what no script can say.
func Func(info models.Info, generate func(context.Context, *models.Request) (*models.Response, error)) models.Model {
	return function{info, generate}
}

type function struct {
	info     models.Info
	generate func(context.Context, *models.Request) (*models.Response, error)
}

// Info describes the model.
func (f function) Info() models.Info { return f.info }

// Generate asks the model.
func (f function) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	return f.generate(ctx, r)
}

// Info returns what New was given.
func (m *Model) Info() models.Info { return m.info }

// Generate takes the next step. Every failure is a *models.Error.
func (m *Model) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if r == nil || (len(r.Messages) == 0) == (r.Prompt == "") {
		return nil, m.named(&models.Error{Err: fmt.Errorf("%w: set either Messages or Prompt", models.ErrInvalidRequest)})
	}
	s, err := m.next(ctx, r)
	if err == nil {
		err = m.check(s, r)
	}
	if err != nil {
		return nil, m.named(&models.Error{Err: err})
	}
	resp := &models.Response{Model: m.info.Name}
	if failed := s.play(ctx, r, m.info.MaxOutput, resp); failed != nil {
		if resp.Text != "" || resp.Reasoning != "" {
			resp.Finish = ""
			resp.Usage = s.usage(r, resp)
			resp.Usage.Estimated = resp.Usage.Known && s.Usage == nil
			failed.Partial = resp
		}
		return nil, m.named(failed)
	}
	resp.Usage = s.usage(r, resp)
	return resp, nil
}

// next takes a step and remembers the request.
func (m *Model) next(ctx context.Context, r *models.Request) (Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.at < len(m.steps)
	if err := ctx.Err(); err != nil && !(left && m.steps[m.at].Deaf) {
		return Step{}, err
	}
	m.requests = append(m.requests, copyRequest(r))
	if !left {
		err := fmt.Errorf("%w: request %d, but the script has %d; add steps, or end it with Forever", ErrExhausted, len(m.requests), m.taken)
		m.failures = append(m.failures, err)
		return Step{}, err
	}
	s := m.steps[m.at]
	m.taken++
	if m.again++; s.extra < m.again {
		m.at, m.again = m.at+1, 0
	}
	s.Calls = copyCalls(s.Calls)
	for i := range s.Calls {
		if s.number && s.Calls[i].ID == "" {
			m.calls++
			s.Calls[i].ID = "call-" + strconv.Itoa(m.calls)
		}
	}
	return s, nil
}

// check runs the step's Check. It must not hold the lock: a Check may ask the
// model what it has seen.
func (m *Model) check(s Step, r *models.Request) error {
	if s.Check == nil {
		return nil
	}
	err := s.Check(copyRequest(r))
	if err != nil {
		err = fmt.Errorf("modeltest: step check: %w", err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failures = append(m.failures, err)
	}
	return err
}

func (m *Model) named(e *models.Error) *models.Error {
	if e.Model == "" {
		e.Model, e.Provider = m.info.Name, m.info.Provider
	}
	return e
}

// Requests returns copies of the requests that took a step or found none left,
// oldest first, without their OnDelta.
func (m *Model) Requests() []*models.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*models.Request, len(m.requests))
	for i, r := range m.requests {
		all[i] = copyRequest(r)
	}
	return all
}

// AssertDone fails the test if steps are left, if the model was asked too often,
// or if a Check failed.
func (m *Model) AssertDone(t testing.TB) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range m.failures {
		t.Errorf("model %s: %v", m.info.Name, err)
	}
	left := -m.again
	for _, s := range m.steps[m.at:] {
		if s.extra == math.MaxInt {
			left = max(left, 0)
			break // nothing after it can be reached
		}
		left += s.extra + 1
	}
	if left > 0 {
		t.Errorf("model %s: %d steps of %d were not taken", m.info.Name, left, m.taken+left)
	}
}

func copyRequest(r *models.Request) *models.Request {
	c := *r
	c.OnDelta = nil
	c.Messages = slices.Clone(r.Messages)
	for i := range c.Messages {
		c.Messages[i].Calls = copyCalls(c.Messages[i].Calls)
	}
	c.Tools = slices.Clone(r.Tools)
	for i := range c.Tools {
		c.Tools[i].Schema = slices.Clone(c.Tools[i].Schema)
	}
	c.Schema = slices.Clone(r.Schema)
	c.Stop = slices.Clone(r.Stop)
	c.Temperature, c.TopP, c.TopK = copyOf(r.Temperature), copyOf(r.TopP), copyOf(r.TopK)
	c.Seed, c.Think = copyOf(r.Seed), copyOf(r.Think)
	return &c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copyCalls(calls []models.ToolCall) []models.ToolCall {
	c := slices.Clone(calls)
	for i := range c {
		c[i].Args = json.RawMessage(slices.Clone(c[i].Args))
	}
	return c
}
