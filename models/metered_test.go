package models_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// fn is a model made of a function.
type fn struct {
	info models.Info
	f    func(context.Context, *models.Request) (*models.Response, error)
}

func (m fn) Info() models.Info { return m.info }
func (m fn) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	return m.f(ctx, r)
}

var info = models.Info{Name: "m", Price: cost.Tokens(1, 10), MaxOutput: 1000, MinOutput: 100}

func ask(text string) *models.Request {
	return &models.Request{Messages: []models.Message{{Role: models.User, Text: text}}}
}

func withMeter(t testing.TB, b cost.Budget) (context.Context, *cost.Meter) {
	t.Helper()
	m, err := cost.NewMeter("test", b)
	if err != nil {
		t.Fatal(err)
	}
	return cost.NewContext(context.Background(), m), m
}

// What each kind of end costs.
func TestMeteredCharges(t *testing.T) {
	partial := &models.Response{Text: strings.Repeat("word", 20)} // 80 bytes: 20 tokens
	used := cost.Usage{Input: 50, Output: 40, Known: true}
	hold := func(r *models.Request) cost.Amount { return models.Estimate(fn{info: info}, r).Worst.USD }
	for _, c := range []struct {
		name  string
		resp  *models.Response
		err   error
		want  cost.Amount // -1: the whole hold
		basis cost.Basis
	}{
		{"answered", &models.Response{Text: "x", Usage: used}, nil, cost.Dollars(450e-6), cost.Measured},
		{"usage missing", &models.Response{Text: "x"}, nil, -1, cost.Reserved},
		{"usage of zero", &models.Response{Text: "x", Usage: cost.Usage{Known: true}}, nil, 0, cost.Measured},
		{"nothing was sent", nil, &models.Error{Err: io.EOF}, 0, cost.Measured},
		{"an error status", nil, &models.Error{Sent: true, Status: 500}, 0, cost.Measured},
		{"an error status with usage", nil, &models.Error{Sent: true, Status: 500, Partial: &models.Response{Usage: used}}, cost.Dollars(450e-6), cost.Measured},
		{"a cut stream with usage", nil, &models.Error{Sent: true, Err: models.ErrTruncated, Partial: &models.Response{Usage: used}}, cost.Dollars(450e-6), cost.Measured},
		{"a stream with usage that then fails", nil, &models.Error{Sent: true, Err: models.ErrMalformed, Partial: &models.Response{Text: strings.Repeat("word", 30), Usage: cost.Usage{Input: 50, Output: 1, Known: true}}}, cost.Dollars(50e-6 + 30*10e-6), cost.Estimated},
		{"a cut stream", nil, &models.Error{Sent: true, Err: models.ErrTruncated, Partial: partial}, cost.Dollars((100/4+4+8)*1e-6 + 20*10e-6), cost.Estimated},
		{"a cut stream before its first piece", nil, &models.Error{Sent: true, Err: models.ErrTruncated, Partial: &models.Response{}}, cost.Dollars((100/4 + 4 + 8) * 1e-6), cost.Estimated},
		{"no reply", nil, &models.Error{Sent: true, Err: context.DeadlineExceeded}, -1, cost.Reserved},
		{"an error of which nothing is known", nil, errors.New("?"), -1, cost.Reserved},
		{"neither response nor error", nil, nil, -1, cost.Reserved},
	} {
		ctx, m := withMeter(t, cost.Budget{USD: cost.USD(1)})
		r := ask(strings.Repeat("x", 100))
		resp, err := models.Metered(fn{info, func(context.Context, *models.Request) (*models.Response, error) { return c.resp, c.err }}).Generate(ctx, r)
		if (err == nil) != (c.err == nil && c.resp != nil) || (resp == nil) != (err != nil) {
			t.Errorf("%s: %v, %v", c.name, resp, err)
		}
		want := c.want
		if want < 0 {
			want = hold(r)
		}
		row := m.Ledger()[0]
		if m.Spent().USD != want || row.USD != want || row.Basis != c.basis || (row.Err == "") != (err == nil) || m.Left().USD != cost.Dollars(1)-want {
			t.Errorf("%s: spent %v (%v), want %v (%v)", c.name, m.Spent().USD, row.Basis, want, c.basis)
		}
	}
}

func TestMeteredRefuses(t *testing.T) {
	called := false
	m := models.Metered(fn{info, func(context.Context, *models.Request) (*models.Response, error) {
		called = true
		return &models.Response{}, nil
	}})
	if _, err := m.Generate(context.Background(), ask("x")); !errors.Is(err, cost.ErrNoMeter) {
		t.Error(err)
	}
	ctx, _ := withMeter(t, cost.Budget{USD: cost.Max(0)})
	if _, err := m.Generate(ctx, ask("x")); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	ctx, _ = withMeter(t, cost.Budget{})
	if _, err := models.Metered(fn{info: models.Info{Name: "m"}}).Generate(ctx, ask("x")); !errors.Is(err, cost.ErrUnpriced) {
		t.Error(err)
	}
	canceled, cancel := context.WithCancelCause(ctx)
	cancel(io.EOF)
	if _, err := m.Generate(canceled, ask("x")); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if called {
		t.Error("a refused call was made")
	}
}

// The output cap is lowered to what the money pays for, down to MinOutput.
func TestMeteredShrinks(t *testing.T) {
	var most int
	m := models.Metered(fn{info, func(_ context.Context, r *models.Request) (*models.Response, error) {
		most = r.MaxOutput
		return &models.Response{Text: "x", Usage: cost.Usage{Input: 1, Output: int64(r.MaxOutput), Known: true}}, nil
	}})
	r := ask("hello")
	worst := models.Estimate(m, r).Worst.USD
	for _, c := range []struct {
		budget   cost.Amount
		min, max int
	}{
		{worst, 1000, 1000},
		{worst / 2, 400, 500},
		{models.Estimate(m, r).Floor.USD, 98, 100},
	} {
		ctx, meter := withMeter(t, cost.Budget{USD: cost.Max(c.budget)})
		if _, err := m.Generate(ctx, r); err != nil || most < c.min || most > c.max || meter.Spent().USD > c.budget || r.MaxOutput != 0 {
			t.Errorf("budget %v: cap %d, spent %v, %v", c.budget, most, meter.Spent().USD, err)
		}
	}
	ctx, _ := withMeter(t, cost.Budget{Tokens: 400})
	if _, err := m.Generate(ctx, r); err != nil || most >= 400 || most < 100 {
		t.Errorf("400 tokens: cap %d, %v", most, err)
	}
}

func TestMeteredChargesAPanic(t *testing.T) {
	ctx, m := withMeter(t, cost.Budget{})
	func() {
		defer func() { _ = recover() }()
		_, _ = models.Metered(fn{info, func(context.Context, *models.Request) (*models.Response, error) { panic("a bug") }}).Generate(ctx, ask("x"))
	}()
	if row := m.Ledger()[0]; row.Basis != cost.Reserved || row.USD == 0 {
		t.Errorf("%+v", row)
	}
}

// A model that is priced by time gets the time that was paid for.
func TestMeteredByTheSecond(t *testing.T) {
	in := info
	in.Price = cost.Price{Second: cost.Per(0.01)}
	var deadline time.Duration
	m := models.Metered(fn{in, func(ctx context.Context, r *models.Request) (*models.Response, error) {
		d, _ := ctx.Deadline()
		deadline = time.Until(d)
		return &models.Response{Usage: cost.Usage{Known: true, Wall: 500 * time.Millisecond}}, nil
	}})
	ctx, meter := withMeter(t, cost.Budget{USD: cost.USD(0.02)})
	if _, err := m.Generate(ctx, ask("x")); err != nil || deadline > 2*time.Second || meter.Spent().USD != cost.Dollars(0.005) {
		t.Errorf("%v to go, spent %v, %v", deadline, meter.Spent().USD, err)
	}
}

// Metered goes to the leaves of composites: each attempt is a row.
func TestMeteredRetry(t *testing.T) {
	n := 0
	flaky := fn{info, func(context.Context, *models.Request) (*models.Response, error) {
		if n++; n < 3 {
			return nil, &models.Error{Sent: true, Status: 503, Retryable: true}
		}
		return &models.Response{Text: "x", Usage: cost.Usage{Input: 10, Known: true}}, nil
	}}
	ctx, m := withMeter(t, cost.Budget{})
	model := models.Metered(models.Retry(models.Metered(flaky), models.RetryPolicy{Wait: time.Nanosecond}))
	if _, err := model.Generate(ctx, ask("x")); err != nil || len(m.Ledger()) != 3 || m.Spent().USD != cost.Dollars(10e-6) {
		t.Errorf("%v, %+v", err, m.Ledger())
	}
}

// A model that is priced by time gets all the time that is paid for, up to the
// cap.
func TestMeteredTimeIsWhatWasGranted(t *testing.T) {
	in := info
	in.Price = cost.Price{Second: cost.Per(0.001)}
	for usd, want := range map[float64]time.Duration{0.5: 500 * time.Second, 5: models.MaxWall} {
		var got time.Duration
		m := models.Metered(fn{in, func(ctx context.Context, _ *models.Request) (*models.Response, error) {
			d, _ := ctx.Deadline()
			got = time.Until(d)
			return nil, &models.Error{Sent: true, Err: models.ErrTruncated, Partial: &models.Response{Usage: cost.Usage{Known: true, Wall: time.Hour}}}
		}})
		ctx, meter := withMeter(t, cost.Budget{USD: cost.USD(usd)})
		_, _ = m.Generate(ctx, ask("x"))
		if got < want-time.Second || got > want || meter.Ledger()[0].Over != 0 {
			t.Errorf("$%v paid for %v, over %v", usd, got, meter.Ledger()[0].Over)
		}
	}
}

// A failure that was billed leaves room for the next attempt, and if the budget
// does not, the error says what failed.
func TestRetryWithinAHold(t *testing.T) {
	n := 0
	reset := errors.New("connection reset")
	m := models.Metered(models.Retry(fn{info, func(context.Context, *models.Request) (*models.Response, error) {
		if n++; n < 3 {
			return nil, &models.Error{Sent: true, Retryable: true, Err: reset}
		}
		return &models.Response{Text: "x", Usage: cost.Usage{Known: true}}, nil
	}}, models.RetryPolicy{Wait: time.Nanosecond}))
	_, meter := withMeter(t, cost.Budget{USD: cost.USD(1)})
	hold, err := meter.Reserve(models.Estimate(m, ask("x")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(cost.NewContext(context.Background(), hold.Meter()), ask("x")); err != nil {
		t.Error(err)
	}
	n = 0
	one := models.Estimate(fn{info: info}, ask("x")).Worst.USD
	ctx, _ := withMeter(t, cost.Budget{USD: cost.Max(one)})
	if _, err := m.Generate(ctx, ask("x")); !errors.Is(err, cost.ErrExceeded) || !errors.Is(err, reset) {
		t.Error(err)
	}
	if models.Retry(nil, models.RetryPolicy{}) != nil {
		t.Error("Retry(nil) is a model")
	}
}
