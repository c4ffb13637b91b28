package models_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

func TestPoolFirstToken(t *testing.T) {
	const limit = 3 * time.Second
	silent := func(ctx context.Context, _ *models.Request) error {
		<-ctx.Done()
		return &models.Error{Sent: true, Err: context.Cause(ctx)}
	}
	for _, c := range []struct {
		name   string
		answer func(context.Context, *models.Request) error
		tools  bool
		by     string
		took   time.Duration
	}{
		{"silent", silent, false, "b", limit},
		{"silent, and says something else about it", func(ctx context.Context, _ *models.Request) error {
			<-ctx.Done()
			return io.ErrUnexpectedEOF
		}, false, "b", limit},
		{"slow after its first token", func(ctx context.Context, r *models.Request) error {
			time.Sleep(limit - 1)
			r.OnDelta(models.Delta{Reasoning: "hm"})
			time.Sleep(time.Hour)
			return ctx.Err()
		}, false, "a", limit - 1 + time.Hour},
		{"calls of tools are not seen", func(ctx context.Context, r *models.Request) error {
			if r.OnDelta != nil {
				return errors.New("streamed")
			}
			time.Sleep(2 * limit)
			return ctx.Err()
		}, true, "a", 2 * limit},
		{"once it has begun, nothing ends it", func(ctx context.Context, r *models.Request) error {
			r.OnDelta(models.Delta{Text: "h"})
			time.Sleep(2 * limit)
			return ctx.Err()
		}, false, "a", 2 * limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosts("a b")
				m := pooled(t, models.PoolPolicy{FirstToken: limit}, h...)
				r := ask("x")
				r.Affinity = home(t, m, "a")
				if c.tools {
					r.Tools = []models.ToolDef{{Name: "f"}}
				}
				h[0].does(c.answer)
				start := time.Now()
				resp, err := m.Generate(t.Context(), r)
				if err != nil || resp.Text != "by "+c.by || time.Since(start) != c.took {
					t.Fatalf("%v, %v after %v", resp, err, time.Since(start))
				}
				if r.OnDelta != nil {
					t.Error("the caller's request was changed")
				}
				if c.tools { // even if they are streamed
					h[0].does(func(ctx context.Context, _ *models.Request) error { time.Sleep(2 * limit); return ctx.Err() })
					r.OnDelta = func(models.Delta) {}
					if _, err := m.Generate(t.Context(), r); err != nil {
						t.Error(err)
					}
				}
				h[0].does(nil)
				if got := run(t, m, r.Affinity); got != c.by {
					t.Errorf("then the run is at %s", got)
				}
			})
		})
	}
}

// When all are silent it is not the caller whose context ended, and a retry may
// help.
func TestPoolAllSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{FirstToken: time.Second}, h...)
		for _, h := range h {
			h.does(func(ctx context.Context, _ *models.Request) error {
				<-ctx.Done()
				return &models.Error{Err: fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))}
			})
		}
		_, err := m.Generate(t.Context(), ask("x"))
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, models.ErrNoReplica) || errors.Is(err, context.Canceled) || !e.Retryable || e.Sent || !strings.Contains(err.Error(), "FirstToken allows (1s)") {
			t.Errorf("%v: %+v", err, e)
		}
	})
}

func TestPoolRestartsStreams(t *testing.T) {
	var text strings.Builder
	r := ask("x")
	r.OnDelta = func(d models.Delta) {
		if d.Restart {
			text.Reset()
		}
		text.WriteString(d.Text)
	}
	m, err := models.Pool([]models.Model{named("a", modeltest.Cut("half an answer", 5)), named("b", modeltest.Say("whole"))}, models.PoolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), r); err != nil || text.String() != "whole" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// When all are out the error says until when, and Retry obeys.
func TestPoolWithoutReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{Down: 4 * time.Second}, h...)
		h[0].fails(&models.Error{Model: "a", Retryable: true, Err: io.ErrClosedPipe})
		h[1].fails(&models.Error{Model: "b", Sent: true, Status: 429, Retryable: true, RetryAfter: 3 * time.Second})
		check := func(asked int, after time.Duration, sent bool) {
			t.Helper()
			_, err := m.Generate(t.Context(), ask("x"))
			var e *models.Error
			if !errors.As(err, &e) || !errors.Is(err, models.ErrNoReplica) || !errors.Is(err, io.ErrClosedPipe) || !e.Retryable || e.RetryAfter != after || e.Sent != sent {
				t.Errorf("%v: %+v", err, e)
			}
			if n := h[0].seen() + h[1].seen(); n != asked || !strings.Contains(err.Error(), fmt.Sprintf("%d of 2 were asked", asked)) {
				t.Errorf("%d were asked: %v", n, err)
			}
		}
		check(2, 3*time.Second, true)
		time.Sleep(time.Second)
		check(0, 2*time.Second, false)
		h[1].fails(nil)
		start := time.Now()
		if resp, err := models.Retry(m, models.RetryPolicy{}).Generate(t.Context(), ask("x")); err != nil || resp.Text != "by b" || time.Since(start) != 2*time.Second {
			t.Errorf("%v, %v after %v", resp, err, time.Since(start))
		}
	})
}

// What will not change on its own is not worth a retry.
func TestPoolAllMisconfigured(t *testing.T) {
	h := hosts("a b")
	m := pooled(t, models.PoolPolicy{}, h...)
	for _, h := range h {
		h.fails(&models.Error{Sent: true, Status: 401, Err: io.ErrClosedPipe})
	}
	for range 2 {
		_, err := m.Generate(t.Context(), ask("x"))
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, models.ErrNoReplica) || !errors.Is(err, io.ErrClosedPipe) || e.Retryable {
			t.Errorf("%v: %+v", err, e)
		}
	}
}

// Of an error of which nothing is known, nobody can say that a retry helps.
func TestPoolUnknownErrors(t *testing.T) {
	h := hosts("a b")
	m := pooled(t, models.PoolPolicy{}, h...)
	for _, h := range h {
		h.fails(io.ErrClosedPipe)
	}
	_, err := m.Generate(t.Context(), ask("x"))
	var e *models.Error
	if !errors.As(err, &e) || !errors.Is(err, io.ErrClosedPipe) || e.Retryable || !e.Sent {
		t.Errorf("%v: %+v", err, e)
	}
}

// A final error does not hide what failed before.
func TestPoolTellsAllFailures(t *testing.T) {
	h := hosts("a b")
	m := pooled(t, models.PoolPolicy{}, h...)
	h[0].fails(&models.Error{Retryable: true, Err: io.ErrClosedPipe})
	h[1].fails(&models.Error{Sent: true, Status: 400, Err: io.ErrShortWrite})
	if _, err := m.Generate(t.Context(), ask("x")); !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, io.ErrShortWrite) || errors.Is(err, models.ErrNoReplica) {
		t.Error(err)
	}
}

func TestPoolAttempts(t *testing.T) {
	h := hosts("a b c")
	m := pooled(t, models.PoolPolicy{Attempts: 2}, h...)
	for _, h := range h {
		h.fails(&models.Error{Sent: true, Retryable: true, Err: models.ErrTruncated, Partial: &models.Response{}})
	}
	if _, err := m.Generate(t.Context(), ask("x")); !errors.Is(err, models.ErrNoReplica) || h[0].seen()+h[1].seen()+h[2].seen() != 2 {
		t.Errorf("%v; or not two were asked", err)
	}
}

// Metering the pool again and again keeps what it knows; rows name who was asked.
func TestPoolMetered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts("a b")
		m := pooled(t, models.PoolPolicy{}, h...)
		id := home(t, m, "a")
		h[0].fails(&models.Error{Sent: true, Status: 500, Retryable: true})
		ctx, meter := withMeter(t, cost.Budget{})
		r := ask("x")
		r.Affinity = id
		for range 3 {
			if _, err := models.Metered(m).Generate(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		var rows []string
		for _, row := range meter.Ledger() {
			rows = append(rows, row.Name)
		}
		if s := strings.Join(rows, " "); s != "a b b b" {
			t.Errorf("the ledger names %s", s)
		}
		// A refusal is not looked for elsewhere, and blames nobody.
		time.Sleep(time.Second)
		h[0].fails(nil)
		poor, _ := withMeter(t, cost.Budget{USD: cost.Max(0)})
		if _, err := models.Metered(m).Generate(poor, r); !errors.Is(err, cost.ErrExceeded) || errors.Is(err, models.ErrNoReplica) {
			t.Error(err)
		}
		if got := run(t, m, id); got != "a" {
			t.Errorf("the run is at %s", got)
		}
	})
}
