package orchestra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// randomModel answers, fails and reports at random. Unless it lies, it uses no
// more input tokens than bytes and no more output tokens than it may.
type randomModel struct {
	info   models.Info
	rng    *lockedRand
	lie    bool
	lied   *atomic.Int64 // what it billed beyond its cap, in pico-USD
	shrunk *atomic.Bool
}

type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) n(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

func (l *lockedRand) f() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Float64()
}

func (m *randomModel) Info() models.Info { return m.info }

func (m *randomModel) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &models.Error{Model: m.info.Name, Err: err}
	}
	if r.MaxOutput < m.info.MaxOutput {
		m.shrunk.Store(true)
	}
	bytes := len(r.Prompt)
	for _, x := range r.Messages {
		bytes += len(x.Text)
	}
	u := cost.Usage{Input: int64(bytes/4 + m.rng.n(bytes*3/4+1)), Output: int64(1 + m.rng.n(r.MaxOutput)), Known: true}
	if m.lie && m.rng.n(3) == 0 {
		u.Output = int64(r.MaxOutput * (2 + m.rng.n(5)))
		beyond, _, _ := m.info.Price.Of(cost.Usage{Output: u.Output - int64(r.MaxOutput)})
		m.lied.Add(int64(beyond) + 1)
	}
	text := strings.Repeat("word ", m.rng.n(20)+1)
	switch m.rng.n(12) {
	case 0:
		return nil, &models.Error{Model: m.info.Name, Sent: false, Retryable: true, Err: errors.New("dial")}
	case 1:
		return nil, &models.Error{Model: m.info.Name, Sent: true, Status: 429, Retryable: true}
	case 2:
		return nil, &models.Error{Model: m.info.Name, Sent: true, Err: models.ErrTruncated, Partial: &models.Response{Text: text}}
	case 3:
		return nil, &models.Error{Model: m.info.Name, Sent: true, Err: models.ErrTruncated, Partial: &models.Response{Text: text, Usage: u}}
	case 4:
		return nil, errors.New("nobody knows what happened")
	case 5:
		return &models.Response{Text: text, Finish: models.FinishStop}, nil // usage missing
	case 6:
		panic("a model with a bug")
	}
	return &models.Response{Text: text, Finish: models.FinishStop, Usage: u}, nil
}

// randomRun plays one random run and reports what it saw.
type randomRun struct {
	budget, spent, over   cost.Amount
	lied                  cost.Amount
	refused, shrunk, done bool
}

func playRandom(t testing.TB, seed uint64, lie, reserve bool) randomRun {
	rng := &lockedRand{r: rand.New(rand.NewPCG(seed, 7))}
	logUniform := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.f()) }
	var shrunk atomic.Bool
	var lied atomic.Int64
	var experts []models.Model
	for i := range 1 + rng.n(3) {
		most := 20 + rng.n(2000)
		var m models.Model = &randomModel{rng: rng, lie: lie, lied: &lied, shrunk: &shrunk, info: models.Info{
			Name: fmt.Sprintf("m%d", i), Price: cost.Tokens(logUniform(0.05, 30), logUniform(0.05, 100)), MaxOutput: most, MinOutput: 1 + rng.n(most)}}
		if !reserve {
			m = afterwards{m}
		}
		experts = append(experts, m)
	}
	inner := models.Metered(experts[0])
	spender := fnTool{tools.Spec{Name: "spender", Effects: tools.Parallel, MaxSpend: cost.Dollars(logUniform(1e-5, 1e-1)), Fee: cost.Dollars(logUniform(1e-7, 1e-2))},
		func(ctx context.Context, c tools.Call) (tools.Result, error) {
			var wg sync.WaitGroup
			for range rng.n(4) { // more than MaxSpend allows, and at once
				wg.Go(func() {
					defer func() { _ = recover() }()
					_, _ = inner.Generate(ctx, &models.Request{Messages: []models.Message{{Role: models.User, Text: c.Prompt}}})
				})
			}
			wg.Wait()
			return tools.Result{Text: "ok"}, nil
		}}
	fee := fnTool{tools.Spec{Name: "fee", Effects: tools.Parallel, Fee: cost.Dollars(logUniform(1e-6, 1e-2))},
		func(ctx context.Context, c tools.Call) (tools.Result, error) {
			if rng.n(4) == 0 {
				return tools.Result{}, errors.New("no luck")
			}
			return tools.Result{Documents: []tools.Document{{ID: c.ID, Text: strings.Repeat("text ", rng.n(300))}}}, nil
		}}
	names := []string{"spender", "fee", "answer"}
	p := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		var d policy.Decision
		for range 1 + rng.n(4) {
			c := policy.Call{Tool: names[rng.n(3)], Args: json.RawMessage(`{}`)}
			if c.Tool == "answer" {
				c.Args = json.RawMessage(fmt.Sprintf(`{"model":"answer-%d"}`, 1+rng.n(len(experts))))
			}
			d.Calls = append(d.Calls, c)
		}
		if rng.n(6) == 0 {
			d.Finish = &policy.Finish{}
		}
		return d, nil
	})
	budget := cost.Dollars(logUniform(2e-5, 0.3))
	o := newOrchestra(t, orchestra.WithPolicy(p), orchestra.WithExperts(experts...), orchestra.WithTools(spender, fee))
	tenant, err := cost.NewMeter("tenant", cost.Budget{USD: cost.NoLimit()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(cost.NewContext(context.Background(), tenant))
	defer cancel()
	run := o.Stream(ctx, orchestra.Task{Prompt: strings.Repeat("why ", 1+rng.n(200)), Budget: cost.Budget{USD: cost.Max(budget), Turns: 8, Failures: cost.Unlimited}})
	stopAfter := rng.n(200)
	var got randomRun
	for e := range run.Events() {
		switch e := e.(type) {
		case orchestra.Decided:
			for _, m := range e.Masked {
				got.refused = got.refused || m.Why == policy.Unaffordable
			}
		case orchestra.Returned:
			got.refused = got.refused || e.Err != nil && errors.Is(e.Err, cost.ErrExceeded)
		}
		if stopAfter--; stopAfter == 0 {
			if seed%2 == 0 {
				break
			}
			cancel()
		}
	}
	res, err := run.Result()
	if res == nil || (err == nil) != (res.Answer != "") || res.Stop == "" {
		t.Fatalf("seed %d: result %+v, error %v", seed, res, err)
	}
	got.refused = got.refused || errors.Is(err, cost.ErrExceeded)
	got.budget, got.spent, got.shrunk, got.done = budget, res.Spent.USD, shrunk.Load(), err == nil
	got.lied = cost.Amount(lied.Load())
	var sum cost.Amount
	for _, row := range res.Ledger {
		sum += row.USD
		got.over += row.Over
	}
	if sum != got.spent || tenant.Spent().USD != got.spent {
		t.Fatalf("seed %d: counter %v, tenant %v, sum of rows %v", seed, got.spent, tenant.Spent().USD, sum)
	}
	if held := cost.MaxAmount - tenant.Left().USD; held != 0 {
		t.Fatalf("seed %d: a hold of %v is stuck", seed, held)
	}
	return got
}

// afterwards meters as most SDKs do: it counts when the bill is there.
type afterwards struct{ models.Model }

func (m afterwards) Map(func(models.Model) models.Model) models.Model { return m }
func (m afterwards) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	h, err := cost.FromContext(ctx).Reserve(cost.Estimate{Name: m.Info().Name, Priced: true})
	if err != nil {
		return nil, err
	}
	defer h.Release()
	q := *r
	q.MaxOutput = m.Info().MaxOutput
	resp, err := m.Model.Generate(ctx, &q)
	if err == nil {
		_, _ = h.Settle(resp.Usage, m.Info().Price, nil)
	}
	return resp, err
}

// A run cannot cost more than its budget: random prices, parallel calls, faults,
// cancellation, tools that spend more than they said.
func TestBudgetHolds(t *testing.T) {
	runs := 10_000
	if testing.Short() {
		runs = 1000
	}
	refused, shrunk, done := 0, 0, 0
	for seed := range uint64(runs) {
		got := playRandom(t, seed, false, true)
		if got.spent > got.budget || got.over > 0 {
			t.Fatalf("seed %d: spent %v of %v, %v beyond holds", seed, got.spent, got.budget, got.over)
		}
		count := func(n *int, b bool) {
			if b {
				*n++
			}
		}
		count(&refused, got.refused)
		count(&shrunk, got.shrunk)
		count(&done, got.done)
	}
	t.Logf("%d runs: %d hit a refusal, %d a shrunken output cap, %d ended with an answer", runs, refused, shrunk, done)
	if refused < runs*30/100 || shrunk < runs*10/100 || done < runs*20/100 {
		t.Error("the runs are too easy to show anything")
	}
}

// A provider that bills more than was agreed overshoots by no more than that, and
// it shows.
func TestBudgetWithLies(t *testing.T) {
	lies := 0
	for seed := range uint64(1000) {
		got := playRandom(t, seed, true, true)
		if got.spent > got.budget+got.lied || got.over > got.lied || got.spent-got.budget > got.over {
			t.Fatalf("seed %d: spent %v of %v; lies of %v, %v marked as over", seed, got.spent, got.budget, got.lied, got.over)
		}
		if got.over > 0 {
			lies++
		}
	}
	if lies < 100 {
		t.Errorf("only %d runs saw a lie", lies)
	}
}

// The control: without reservations the same runs overspend.
func TestBudgetNeedsReservations(t *testing.T) {
	overspent := 0
	for seed := range uint64(1000) {
		if got := playRandom(t, seed, false, false); got.spent > got.budget {
			overspent++
		}
	}
	if overspent < 50 {
		t.Errorf("only %d of 1000 runs overspent: the property test proves little", overspent)
	}
}
