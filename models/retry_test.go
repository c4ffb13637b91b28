package models_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func TestRetry(t *testing.T) {
	busy := func(after time.Duration) error {
		return &models.Error{Sent: true, Status: 429, Retryable: true, RetryAfter: after}
	}
	final := errors.New("final")
	for _, c := range []struct {
		name     string
		errs     []error // of the attempts, then success
		policy   models.RetryPolicy
		deadline time.Duration
		calls    int
		min, max time.Duration
		err      error
	}{
		{name: "at once", calls: 1},
		{name: "after two", errs: []error{busy(0), busy(0)}, calls: 3, min: 600 * time.Millisecond, max: 3 * time.Second},
		{name: "as long as the server asks", errs: []error{busy(7 * time.Second)}, calls: 2, min: 7 * time.Second, max: 7 * time.Second},
		{name: "longer than we are willing to wait", errs: []error{busy(time.Hour)}, calls: 1, err: busy(time.Hour)},
		{name: "longer than the deadline", errs: []error{busy(7 * time.Second)}, deadline: 5 * time.Second, calls: 1, err: busy(0)},
		{name: "exhausted", errs: []error{busy(0), busy(0), busy(0), busy(0)}, policy: models.RetryPolicy{Attempts: 4}, calls: 4, min: time.Second, max: 10 * time.Second, err: busy(0)},
		{name: "not retryable", errs: []error{&models.Error{Status: 400, Err: final}}, calls: 1, err: final},
		{name: "another kind of error", errs: []error{final}, calls: 1, err: final},
		{name: "a refused budget", errs: []error{&cost.ExceededError{Unit: "USD"}}, calls: 1, err: cost.ErrExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				m := models.Retry(fn{info, func(context.Context, *models.Request) (*models.Response, error) {
					if calls++; calls <= len(c.errs) {
						return nil, c.errs[calls-1]
					}
					return &models.Response{Text: "x"}, nil
				}}, c.policy)
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				_, err := m.Generate(ctx, ask("x"))
				took := time.Since(start)
				var e *models.Error
				if (err == nil) != (c.err == nil) || calls != c.calls || took < c.min || took > c.max {
					t.Errorf("%d calls in %v: %v", calls, took, err)
				}
				if c.err != nil && !errors.Is(err, c.err) && !errors.As(err, &e) {
					t.Errorf("%v is not %v", err, c.err)
				}
			})
		})
	}
}

func TestRetryCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		m := models.Retry(fn{info, func(context.Context, *models.Request) (*models.Response, error) {
			return nil, &models.Error{Status: 503, Retryable: true, RetryAfter: 10 * time.Second}
		}}, models.RetryPolicy{})
		start := time.Now()
		_, err := m.Generate(ctx, ask("x"))
		var e *models.Error
		if took := time.Since(start); took != 2*time.Second || !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A consumer of a stream is told to forget what a failed attempt had sent.
func TestRetryRestartsStreams(t *testing.T) {
	calls := 0
	m := models.Retry(fn{info, func(_ context.Context, r *models.Request) (*models.Response, error) {
		calls++
		r.OnDelta(models.Delta{Text: "half"})
		if calls == 1 {
			return nil, &models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated}
		}
		r.OnDelta(models.Delta{Text: " done"})
		return &models.Response{Text: "half done"}, nil
	}}, models.RetryPolicy{Wait: time.Nanosecond})
	var text strings.Builder
	r := ask("x")
	r.OnDelta = func(d models.Delta) {
		if d.Restart {
			text.Reset()
		}
		text.WriteString(d.Text)
	}
	if _, err := m.Generate(context.Background(), r); err != nil || text.String() != "half done" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

func TestAsLooksThroughWrappers(t *testing.T) {
	inner := fn{info: info}
	if m, ok := models.As[fn](models.Metered(models.Retry(inner, models.RetryPolicy{}))); !ok || m.info.Name != "m" {
		t.Error("As does not find the model")
	}
	if _, ok := models.As[models.Embedder](models.Retry(inner, models.RetryPolicy{})); ok {
		t.Error("As invents an embedder")
	}
	if models.Metered(nil) != nil {
		t.Error("Metered(nil) is not nil")
	}
}
