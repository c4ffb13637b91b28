package models_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// What each kind of failure does: the request moves on or not, and the replica
// is left alone or not.
func TestPoolFailures(t *testing.T) {
	cut := &models.Response{Text: "ha"}
	for _, c := range []struct {
		name        string
		err         error
		moves, left bool
	}{
		{"cannot be reached", &models.Error{Retryable: true, Err: io.EOF}, true, true},
		{"no such host", &models.Error{Err: io.EOF}, true, true},
		{"broke off before it replied", &models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated}, true, true},
		{"cut in mid-stream", &models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated, Partial: cut}, true, false},
		{"500", &models.Error{Sent: true, Status: 500, Retryable: true}, true, true},
		{"503", &models.Error{Sent: true, Status: 503, Retryable: true}, true, true},
		{"503 with Retry-After", &models.Error{Sent: true, Status: 503, Retryable: true, RetryAfter: time.Second}, true, true},
		{"429", &models.Error{Sent: true, Status: 429, Retryable: true}, true, false},
		{"429 with Retry-After", &models.Error{Sent: true, Status: 429, Retryable: true, RetryAfter: time.Second}, true, true},
		{"no quota", &models.Error{Sent: true, Status: 429}, true, true},
		{"key refused", &models.Error{Sent: true, Status: 401}, true, true},
		{"wrong address", &models.Error{Sent: true, Status: 404}, true, true},
		{"redirected", &models.Error{Sent: true, Status: 307}, true, true},
		{"timed out", &models.Error{Sent: true, Status: 408, Retryable: true}, true, false},
		{"makes no sense", &models.Error{Sent: true, Retryable: true, Err: models.ErrMalformed}, true, false},
		{"an error of another kind", errors.New("?"), true, false},
		{"request refused", &models.Error{Sent: true, Status: 400}, false, false},
		{"cannot be done by such a server", &models.Error{Sent: true, Status: 501}, false, false},
		{"a web page", &models.Error{Sent: true, Err: models.ErrMalformed}, false, false},
		{"too long", &models.Error{Sent: true, Status: 400, Err: models.ErrContextOverflow}, false, false},
		{"too long, before it was sent", &models.Error{Err: models.ErrContextOverflow}, false, false},
		{"invalid", &models.Error{Err: models.ErrInvalidRequest}, false, false},
		{"budget", &cost.ExceededError{Unit: "USD"}, false, false},
		{"no meter", cost.ErrNoMeter, false, false},
		{"no price", cost.ErrUnpriced, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosts("a b")
				m := pooled(t, models.PoolPolicy{}, h...)
				id := home(t, m, "a")
				h[0].fails(c.err)
				h[0].seen()
				h[1].seen()
				r := ask("x")
				r.Affinity = id
				resp, err := m.Generate(t.Context(), r)
				if moved := err == nil && resp.Text == "by b"; moved != c.moves || h[0].seen() != 1 {
					t.Fatalf("moved: %v (%v)", moved, err)
				}
				if !c.moves && !errors.Is(err, c.err) {
					t.Errorf("the error is %v", err)
				}
				h[0].fails(nil)
				if left := run(t, m, id) == "b"; left != c.left {
					t.Errorf("left alone: %v", left)
				}
				time.Sleep(time.Second)
				if got := run(t, m, id); got != "a" {
					t.Errorf("a second later the run is at %q", got)
				}
			})
		})
	}
}

// A context that ended is the caller's doing.
func TestPoolCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{}, h...)
		id := home(t, m, "a")
		hung := func(ctx context.Context, _ *models.Request) error {
			<-ctx.Done()
			return &models.Error{Sent: true, Retryable: true, Err: fmt.Errorf("%w: %w", models.ErrTruncated, ctx.Err())}
		}
		h[0].does(hung)
		h[1].does(hung)
		h[1].seen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := ask("x")
		r.Affinity = id
		if _, err := m.Generate(ctx, r); !errors.Is(err, context.DeadlineExceeded) || h[1].seen() != 0 {
			t.Errorf("%v; or the other was asked too", err)
		}
		h[0].does(nil)
		if got := run(t, m, id); got != "a" {
			t.Errorf("the replica was blamed: the run is at %s", got)
		}
		h[0].seen()
		h[1].seen()
		if _, err := m.Generate(ctx, r); !errors.Is(err, context.DeadlineExceeded) || h[0].seen()+h[1].seen() != 0 {
			t.Errorf("%v; or one was asked though the time was over", err)
		}
	})
}

// A dead replica is left alone for longer and longer, and given one request at a
// time until one succeeds.
func TestPoolProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{Log: slog.New(slog.NewTextHandler(&log, nil)), MaxDown: 5 * time.Second}, h...)
		id := home(t, m, "a")
		down := &models.Error{Retryable: true, Err: io.EOF}
		h[0].fails(down)
		for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			h[0].seen()
			if run(t, m, id); h[0].seen() != 1 {
				t.Error("it was not probed in time")
			}
			time.Sleep(wait - 1)
			if run(t, m, id); h[0].seen() != 0 {
				t.Errorf("it was asked before %v were over", wait)
			}
			time.Sleep(time.Nanosecond)
		}
		// One at a time.
		probe := make(chan error)
		h[0].does(func(context.Context, *models.Request) error { return <-probe })
		for range 20 {
			go run(t, m, id)
			synctest.Wait()
		}
		if n := h[0].seen(); n != 1 {
			t.Errorf("%d requests probe it at once", n)
		}
		probe <- nil
		synctest.Wait()
		h[0].does(nil)
		for range 20 {
			if got := run(t, m, id); got != "a" {
				t.Fatalf("it is back, but the run is at %s", got)
			}
		}
		// Its past is forgotten.
		h[0].fails(down)
		run(t, m, id)
		h[0].fails(nil)
		time.Sleep(time.Second)
		if got := run(t, m, id); got != "a" {
			t.Errorf("after its first failure it is away for more than a second: the run is at %s", got)
		}
		if s := log.String(); strings.Count(s, "left alone") != 6 || strings.Count(s, "is back") != 2 || !strings.Contains(s, "for=4s") {
			t.Errorf("the log says:\n%s", s)
		}
	})
}

// Many requests that die with their server are one failure, and what one that
// began before says later is old news.
func TestPoolCountsOneDeathOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{}, h...)
		id := home(t, m, "a")
		die, late := make(chan struct{}), make(chan struct{})
		h[0].does(func(_ context.Context, r *models.Request) error {
			if r.MaxOutput == 7 { // this one hears of it later
				<-late
				return &models.Error{Sent: true, Status: 500, Retryable: true}
			}
			<-die
			return &models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated}
		})
		h[1].does(func(context.Context, *models.Request) error { <-die; return nil })
		for i := range 8 {
			r := ask("x")
			r.Affinity = id
			if i == 0 {
				r.MaxOutput = 7
			}
			go m.Generate(t.Context(), r)
			synctest.Wait()
		}
		if h[0].flight < 3 {
			t.Fatalf("%d in flight", h[0].flight)
		}
		close(die)
		synctest.Wait()
		h[0].does(nil)
		time.Sleep(time.Second)
		if got := run(t, m, id); got != "a" {
			t.Errorf("away for more than a second: the run is at %s", got)
		}
		close(late)
		synctest.Wait()
		if got := run(t, m, id); got != "a" {
			t.Errorf("old news counted: the run is at %s", got)
		}
	})
}

func TestPoolRespectsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{MaxDown: time.Second}, h...)
		id := home(t, m, "a")
		for _, c := range []struct {
			status     int
			asks, gets time.Duration
		}{{429, 20 * time.Second, 20 * time.Second}, {503, 20 * time.Second, 20 * time.Second}, {429, 365 * 24 * time.Hour, time.Hour}} {
			h[0].fails(&models.Error{Sent: true, Status: c.status, Retryable: true, RetryAfter: c.asks})
			run(t, m, id)
			h[0].fails(nil)
			h[0].seen()
			time.Sleep(c.gets - 1)
			if run(t, m, id); h[0].seen() != 0 {
				t.Errorf("it was asked before %v were over", c.gets)
			}
			time.Sleep(time.Nanosecond)
			// It is not dead: no probes, all at once.
			end := hold(t, m, 4, id, h...)
			if h[0].flight != 3 {
				t.Errorf("%d of 4 requests came back to it", h[0].flight)
			}
			end()
		}
	})
}

// The longest wish counts, and a dead server may have one too.
func TestPoolRespectsTheLongestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{}, h...)
		id := home(t, m, "a")
		say := make(chan error)
		h[0].does(func(context.Context, *models.Request) error { return <-say })
		for range 2 {
			go run(t, m, id)
			synctest.Wait()
		}
		for _, after := range []time.Duration{20 * time.Second, time.Second} {
			say <- &models.Error{Sent: true, Status: 429, Retryable: true, RetryAfter: after}
			synctest.Wait()
		}
		h[0].fails(&models.Error{Sent: true, Status: 502, Retryable: true, RetryAfter: 30 * time.Second})
		h[0].seen()
		time.Sleep(20*time.Second - 1)
		if run(t, m, id); h[0].seen() != 0 {
			t.Error("it was asked before 20 seconds were over")
		}
		time.Sleep(time.Nanosecond)
		if run(t, m, id); h[0].seen() != 1 {
			t.Error("it was not asked in time")
		}
		time.Sleep(30*time.Second - 1)
		if run(t, m, id); h[0].seen() != 0 {
			t.Error("it was asked before another 30 seconds were over")
		}
	})
}

// Down is the least even where it is longer than the usual most.
func TestPoolDownLongerThanMaxDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{Down: 2 * time.Minute}, h...)
		id := home(t, m, "a")
		h[0].fails(&models.Error{Retryable: true, Err: io.EOF})
		for range 3 {
			h[0].seen()
			if run(t, m, id); h[0].seen() != 1 {
				t.Error("it was not probed in time")
			}
			time.Sleep(2*time.Minute - 1)
			if run(t, m, id); h[0].seen() != 0 {
				t.Error("it was asked too early")
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// A probe's first token shows that the replica is back; its end may be far.
func TestPoolProbeProvesItselfEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{}, h...)
		id := home(t, m, "a")
		h[0].fails(&models.Error{Retryable: true, Err: io.EOF})
		run(t, m, id)
		time.Sleep(time.Second)
		h[0].does(func(_ context.Context, r *models.Request) error {
			if r.OnDelta != nil {
				r.OnDelta(models.Delta{Text: "by a"})
				time.Sleep(time.Minute)
			}
			return nil
		})
		r := ask("x")
		r.Affinity, r.OnDelta = id, func(models.Delta) {}
		var probe sync.WaitGroup
		probe.Go(func() { _, _ = m.Generate(t.Context(), r) })
		synctest.Wait()
		if got := run(t, m, id); got != "a" {
			t.Errorf("the run is at %s", got)
		}
		probe.Wait()
	})
}

// While a probe is under way there is no telling when, but it is not at once.
func TestPoolWaitsForItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a")
		m := pooled(t, models.PoolPolicy{}, h...)
		h[0].fails(&models.Error{Retryable: true, Err: io.EOF})
		_, _ = m.Generate(t.Context(), ask("x"))
		time.Sleep(time.Second)
		end := hold(t, m, 1, "", h[0])
		_, err := m.Generate(t.Context(), ask("x"))
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, models.ErrNoReplica) || e.RetryAfter != time.Second {
			t.Errorf("%v: %+v", err, e)
		}
		end()
		run(t, m, "")
	})
}
