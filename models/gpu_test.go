package models_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

func gpus(t testing.TB, n int) *cost.GPUs {
	t.Helper()
	g, err := cost.NewGPUs(n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// idle fails the test if a call on g was not stopped: the next one would have to
// share with it for ever.
func idle(t testing.TB, g *cost.GPUs) {
	t.Helper()
	u := g.Start()
	time.Sleep(time.Second)
	if got, want := u.Stop(), time.Duration(g.Count())*time.Second; got != want {
		t.Errorf("a call that is alone for a second gets %v, want %v: another was not stopped", got, want)
	}
}

var local = models.Info{Name: "local", Price: cost.Free(), MaxOutput: 1000, MinOutput: 100}

// takes is a model that answers after a time.
func takes(d time.Duration, u cost.Usage) fn {
	return fn{local, func(ctx context.Context, r *models.Request) (*models.Response, error) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return &models.Response{Text: "x", Usage: u}, nil
		case <-ctx.Done():
			return nil, &models.Error{Sent: true, Err: context.Cause(ctx), Partial: &models.Response{Text: "some"}}
		}
	}}
}

func TestOnGPUsMeasuresTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gpus(t, 2)
		short, long := models.OnGPUs(takes(2*time.Second, cost.Usage{Known: true}), g), models.OnGPUs(takes(3*time.Second, cost.Usage{Known: true}), g)
		var wg sync.WaitGroup
		for m, want := range map[models.Model]time.Duration{short: 2 * time.Second, long: 4 * time.Second} {
			wg.Go(func() {
				resp, err := m.Generate(t.Context(), ask("x"))
				if err != nil || resp.Usage.GPU != want {
					t.Errorf("%+v, %v; want %v", resp, err, want)
				}
			})
		}
		wg.Wait()
		idle(t, g)
	})
}

// However a call ends, its GPUs are given back, once, and what was measured is
// where the usage is.
func TestOnGPUsStopsOnEveryPath(t *testing.T) {
	shared := &models.Response{Text: "shared", Usage: cost.Usage{Known: true}}
	sharedErr := &models.Error{Err: models.ErrTruncated, Partial: shared}
	after := func(f func() (*models.Response, error)) fn {
		return fn{local, func(context.Context, *models.Request) (*models.Response, error) {
			time.Sleep(time.Second)
			return f()
		}}
	}
	partial := func(err error) time.Duration {
		var e *models.Error
		if errors.As(err, &e) && e.Partial != nil {
			return e.Partial.Usage.GPU
		}
		return -1
	}
	for _, c := range []struct {
		name  string
		m     models.Model
		limit time.Duration // of the context
		check func(resp *models.Response, err error, panicked any) bool
	}{
		{"an answer", after(func() (*models.Response, error) { return shared, nil }), 0, func(r *models.Response, err error, _ any) bool {
			return err == nil && r.Text == "shared" && r.Usage.GPU == 3*time.Second
		}},
		{"one that says it itself", takes(time.Second, cost.Usage{GPU: 7, Known: true}), 0, func(r *models.Response, err error, _ any) bool {
			return err == nil && r.Usage.GPU == 7
		}},
		{"one that lies", takes(time.Second, cost.Usage{GPU: -7, Known: true}), 0, func(r *models.Response, err error, _ any) bool {
			return err == nil && r.Usage.GPU == 3*time.Second
		}},
		{"a cut stream", after(func() (*models.Response, error) { return nil, sharedErr }), 0, func(_ *models.Response, err error, _ any) bool {
			return errors.Is(err, models.ErrTruncated) && partial(err) == 3*time.Second
		}},
		{"a cut stream within others", after(func() (*models.Response, error) { return nil, errors.Join(sharedErr) }), 0, func(_ *models.Response, err error, _ any) bool {
			return errors.Is(err, models.ErrTruncated) && partial(err) == 0
		}},
		{"cancelled", takes(time.Hour, cost.Usage{}), 2 * time.Second, func(_ *models.Response, err error, _ any) bool {
			return errors.Is(err, context.DeadlineExceeded) && partial(err) == 6*time.Second
		}},
		{"an error", after(func() (*models.Response, error) { return nil, models.ErrMalformed }), 0, func(r *models.Response, err error, _ any) bool {
			return r == nil && err == models.ErrMalformed
		}},
		{"a nil error of ours", after(func() (*models.Response, error) { return nil, (*models.Error)(nil) }), 0, func(r *models.Response, err error, _ any) bool {
			return r == nil && err != nil
		}},
		{"nothing at all", after(func() (*models.Response, error) { return nil, nil }), 0, func(r *models.Response, err error, _ any) bool {
			return r == nil && err == nil
		}},
		{"a panic", after(func() (*models.Response, error) { panic("oops") }), 0, func(_ *models.Response, _ error, panicked any) bool {
			return panicked == "oops"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gpus(t, 3)
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				var resp *models.Response
				var err error
				panicked := func() (p any) {
					defer func() { p = recover() }()
					resp, err = models.OnGPUs(c.m, g).Generate(ctx, ask("x"))
					return nil
				}()
				if !c.check(resp, err, panicked) {
					t.Errorf("%+v, %v, %v", resp, err, panicked)
				}
				if shared.Usage.GPU != 0 || sharedErr.Partial != shared {
					t.Error("the model's own response was changed")
				}
				idle(t, g)
			})
		})
	}
}

// What a call may take is reserved before it, charged after it, and cut off.
func TestMeteredOnGPUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gpus(t, 4)
		m := models.Metered(models.OnGPUs(takes(5*time.Second, cost.Usage{Input: 3, Known: true}), g))
		e := models.Estimate(m, ask("x"))
		if e.Floor.GPU != 4*time.Second || e.Mean.GPU != 4*time.Second || e.Worst.GPU != 4*models.MaxWall || e.Worst.USD != 0 {
			t.Errorf("%+v", e)
		}
		ctx, meter := withMeter(t, cost.Budget{GPU: 50 * time.Second})
		for range 2 {
			if _, err := m.Generate(ctx, ask("x")); err != nil {
				t.Fatal(err)
			}
		}
		if s := meter.Spent(); s.GPU != 40*time.Second || meter.Ledger().Total().GPU != s.GPU {
			t.Errorf("%+v", s)
		}
		// 10 s are left: 2.5 s of four GPUs.
		start := time.Now()
		if _, err := m.Generate(ctx, ask("x")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		var exceeded *cost.ExceededError
		if _, err := m.Generate(ctx, ask("x")); !errors.As(err, &exceeded) || exceeded.Unit != "GPU" || meter.Spent().GPU != 50*time.Second || meter.Left().GPU != 0 {
			t.Errorf("%v, spent %+v", err, meter.Spent())
		}
		idle(t, g)
	})
}

// What comes after the time that was granted is not charged; a model that goes
// on is charged for what it was asked.
// Whatever a model says of its context's end, the error tells that its time was
// over, and why, once.
func TestMeteredSaysWhyItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gpus(t, 2)
		plain := fn{local, func(ctx context.Context, r *models.Request) (*models.Response, error) {
			<-ctx.Done()
			return nil, &models.Error{Model: "local", Sent: true, Err: ctx.Err(), Partial: &models.Response{Text: "some"}}
		}}
		for name, m := range map[string]models.Model{"its context's error": plain, "the cause": takes(time.Hour, cost.Usage{})} {
			for budget, want := range map[time.Duration]string{6 * time.Second: "stopped after 3s, which its budget granted", 0: "stopped after 10m0s, the most that such a call may take"} {
				ctx, _ := withMeter(t, cost.Budget{GPU: budget})
				_, err := models.Metered(models.OnGPUs(m, g)).Generate(ctx, ask("x"))
				var e *models.Error
				if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), want) != 1 {
					t.Errorf("%s, %v: %v, want %q once", name, budget, err, want)
				}
			}
		}
	})
}

func TestMeteredOnGPUsThatDoNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, own := range []time.Duration{0, 40 * time.Second} { // measured, or reported
			deaf := fn{local, func(context.Context, *models.Request) (*models.Response, error) {
				time.Sleep(20 * time.Second)
				return &models.Response{Usage: cost.Usage{GPU: own, Known: true}}, nil
			}}
			m := models.Metered(models.OnGPUs(deaf, gpus(t, 2)))
			ctx, meter := withMeter(t, cost.Budget{GPU: 10 * time.Second})
			if _, err := m.Generate(ctx, ask("x")); err != nil || meter.Spent().GPU != 10*time.Second {
				t.Errorf("%v, %+v", err, meter.Spent())
			}
		}
	})
}

func TestMeteredByTheGPUHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := takes(10*time.Second, cost.Usage{Known: true})
		slow.info.Price = cost.Price{GPUHour: cost.Per(3.6)} // a tenth of a cent a second
		for name, c := range map[string]struct {
			m    models.Model
			usd  float64
			took time.Duration
		}{
			"one GPU": {slow, 0.01, 10 * time.Second},
			"four":    {models.OnGPUs(slow, gpus(t, 4)), 0.04, 40 * time.Second},
		} {
			ctx, meter := withMeter(t, cost.Budget{USD: cost.USD(0.05)})
			_, err := models.Metered(c.m).Generate(ctx, ask("x"))
			if s := meter.Spent(); err != nil || s.USD != cost.Dollars(c.usd) || s.GPU != c.took || meter.Ledger()[0].Over != 0 {
				t.Errorf("%s: %v, %+v", name, err, meter.Ledger())
			}
		}
		// A call that does not end is cut when its money is used up, and one that
		// goes on all the same is charged no more.
		for name, m := range map[string]models.Model{
			"cut": models.OnGPUs(fn{slow.info, takes(time.Hour, cost.Usage{}).f}, gpus(t, 4)),
			"deaf": fn{slow.info, func(context.Context, *models.Request) (*models.Response, error) {
				time.Sleep(time.Hour)
				return &models.Response{Usage: cost.Usage{Known: true}}, nil
			}},
		} {
			ctx, meter := withMeter(t, cost.Budget{USD: cost.USD(0.05)})
			_, err := models.Metered(m).Generate(ctx, ask("x"))
			if s := meter.Spent(); s.USD > cost.Dollars(0.05) || s.USD < cost.Dollars(0.0499) || s.GPU > 50*time.Second || s.GPU < 49*time.Second || meter.Ledger()[0].Over != 0 {
				t.Errorf("%s: %v, %+v", name, err, meter.Ledger())
			}
		}
		// What was never sent took no time of anybody's.
		unsent := fn{slow.info, func(context.Context, *models.Request) (*models.Response, error) {
			time.Sleep(time.Second)
			return nil, &models.Error{Err: errors.New("connection refused")}
		}}
		ctx, meter := withMeter(t, cost.Budget{})
		if _, err := models.Metered(unsent).Generate(ctx, ask("x")); err == nil || meter.Spent().GPU != 0 || meter.Spent().USD != 0 {
			t.Errorf("%v, %+v", err, meter.Spent())
		}
	})
}

func TestOnGPUsWrapsLeavesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, other := gpus(t, 1), gpus(t, 8)
		leaf := takes(time.Second, cost.Usage{Known: true})
		for name, m := range map[string]models.Model{
			"plain":    models.OnGPUs(leaf, g),
			"twice":    models.OnGPUs(models.OnGPUs(leaf, other), g),
			"retry":    models.OnGPUs(models.Retry(leaf, models.RetryPolicy{}), g),
			"fallback": models.OnGPUs(models.Fallback(leaf, leaf), g),
			"metered":  models.OnGPUs(models.Metered(models.OnGPUs(leaf, other)), g),
			"no g":     models.OnGPUs(models.OnGPUs(leaf, g), nil),
			"inside":   models.Metered(models.Retry(models.OnGPUs(leaf, g), models.RetryPolicy{})),
		} {
			ctx, meter := withMeter(t, cost.Budget{})
			if resp, err := models.Metered(m).Generate(ctx, ask("x")); err != nil || resp.Usage.GPU != time.Second || meter.Spent().GPU != time.Second || len(meter.Ledger()) != 1 {
				t.Errorf("%s: %+v, %v, %+v", name, resp, err, meter.Spent())
			}
			if m.Info().Name != "local" {
				t.Errorf("%s: %+v", name, m.Info())
			}
		}
		n := 0 // each attempt is measured, and is a row
		flaky := fn{local, func(context.Context, *models.Request) (*models.Response, error) {
			time.Sleep(time.Second)
			if n++; n == 1 {
				return nil, &models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated, Partial: &models.Response{Text: "some"}}
			}
			return &models.Response{Text: "x", Usage: cost.Usage{Known: true}}, nil
		}}
		ctx, meter := withMeter(t, cost.Budget{})
		m := models.Metered(models.OnGPUs(models.Retry(flaky, models.RetryPolicy{Wait: time.Hour, MaxWait: time.Hour}), g))
		if _, err := m.Generate(ctx, ask("x")); err != nil || len(meter.Ledger()) != 2 || meter.Spent().GPU != 2*time.Second {
			t.Errorf("%v, %+v", err, meter.Ledger())
		}
		if models.OnGPUs(nil, g) != nil {
			t.Error("OnGPUs(nil) is a model")
		}
	})
}

func TestOnGPUsConforms(t *testing.T) {
	for name, wrap := range map[string]func(m models.Model, g *cost.GPUs) models.Model{
		"plain": models.OnGPUs,
		"metered": func(m models.Model, g *cost.GPUs) models.Model {
			return withBudget{models.Metered(models.OnGPUs(m, g))}
		},
		"retry": func(m models.Model, g *cost.GPUs) models.Model {
			return models.OnGPUs(models.Retry(m, models.RetryPolicy{}), g)
		},
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Conform(t, func(t *testing.T) models.Model {
				return wrap(modeltest.New(info, modeltest.Forever(modeltest.Say("a whole sentence"))), gpus(t, 2))
			})
		})
	}
}

func ExampleOnGPUs() {
	g, _ := cost.NewGPUs(2)
	qwen := modeltest.New(models.Info{Name: "qwen", Price: cost.Free(), Latency: 3 * time.Second}, modeltest.Say("yes"))
	m := models.Metered(models.OnGPUs(qwen, g))
	r := &models.Request{Messages: []models.Message{{Role: models.User, Text: "Is it free?"}}}
	fmt.Println("at least", models.Estimate(m, r).Floor.GPU)

	run, _ := cost.NewMeter("run", cost.Budget{GPU: 5 * time.Second})
	_, err := m.Generate(cost.NewContext(context.Background(), run), r)
	fmt.Println(err)
	// Output:
	// at least 6s
	// cost: budget exceeded: qwen needs at least 6s of GPU time, and of 5s in "run" 0s are spent and 0s held: raise Budget.GPU or allow something cheaper
}
