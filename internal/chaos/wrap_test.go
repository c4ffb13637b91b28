package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func only(kind chaos.Kind) chaos.Config {
	return chaos.Config{Rate: 1, Only: []chaos.Kind{kind}, Slow: 10 * time.Second, Jump: time.Hour}
}

// caught turns a panic into an error.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// Each fault of a model is what its name says.
func TestModelFaults(t *testing.T) {
	whole := modeltest.Step{Text: "The answer is forty-two.", Calls: []models.ToolCall{{ID: "a", Name: "f", Args: []byte(`{"x":1}`)}, {ID: "b", Name: "f", Args: []byte(`{"x":2}`)}}}
	failed := func(err error) *models.Error { e, _ := errors.AsType[*models.Error](err); return e }
	for kind, seen := range map[chaos.Kind]func(resp *models.Response, err error, took time.Duration) bool{
		chaos.Failure: func(_ *models.Response, err error, _ time.Duration) bool { return err != nil && failed(err) == nil },
		chaos.Status: func(_ *models.Response, err error, _ time.Duration) bool {
			return failed(err) != nil && failed(err).Status >= 429
		},
		chaos.Hang: func(_ *models.Response, err error, took time.Duration) bool {
			return errors.Is(err, context.DeadlineExceeded) && took == time.Second
		},
		chaos.Deaf: func(resp *models.Response, _ error, took time.Duration) bool {
			return resp != nil && took > time.Second
		},
		chaos.Jump: func(_ *models.Response, err error, took time.Duration) bool {
			return errors.Is(err, context.DeadlineExceeded) && took > time.Minute
		},
		chaos.Panic: func(_ *models.Response, err error, _ time.Duration) bool {
			return err != nil && strings.HasPrefix(err.Error(), "panic")
		},
		chaos.Nothing: func(resp *models.Response, err error, _ time.Duration) bool { return resp == nil && err == nil },
		chaos.Truncate: func(_ *models.Response, err error, _ time.Duration) bool {
			return errors.Is(err, models.ErrTruncated) && failed(err).Partial != nil && len(failed(err).Partial.Text) < len(whole.Text)
		},
		chaos.NoUsage:    func(resp *models.Response, _ error, _ time.Duration) bool { return !resp.Usage.Known },
		chaos.LyingUsage: func(resp *models.Response, _ error, _ time.Duration) bool { return resp.Usage.Output >= 6000 },
		chaos.BadArgs:    func(resp *models.Response, _ error, _ time.Duration) bool { return string(resp.Calls[0].Args) == `{"x` },
		chaos.SameIDs: func(resp *models.Response, _ error, _ time.Duration) bool {
			return resp.Calls[0].ID == resp.Calls[1].ID
		},
		chaos.InvalidText: func(resp *models.Response, _ error, _ time.Duration) bool { return !utf8.ValidString(resp.Text) },
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := chaos.New(2, only(kind)).Model("m", modeltest.New(models.Info{Name: "m", Price: cost.Free()}, whole))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var resp *models.Response
				var streamed strings.Builder
				start := time.Now()
				err := caught(func() (err error) {
					r := models.Request{Prompt: "x", OnDelta: func(d models.Delta) { streamed.WriteString(d.Text) }}
					resp, err = m.Generate(ctx, &r)
					return err
				})
				if took := time.Since(start); !seen(resp, err, took) {
					t.Errorf("after %v: %+v, %v", took, resp, err)
				}
				if e := failed(err); e != nil && e.Partial != nil && e.Partial.Text != streamed.String() {
					t.Errorf("streamed %q, partial %q", streamed.String(), e.Partial.Text)
				}
			})
		})
	}
}

// Each fault of a tool is what its name says.
func TestToolFaults(t *testing.T) {
	for kind, seen := range map[chaos.Kind]func(r tools.Result, err error, took time.Duration) bool{
		chaos.Failure: func(_ tools.Result, err error, _ time.Duration) bool { return err != nil && !tools.IsFatal(err) },
		chaos.Fatal:   func(_ tools.Result, err error, _ time.Duration) bool { return tools.IsFatal(err) },
		chaos.Hang: func(_ tools.Result, err error, took time.Duration) bool {
			return errors.Is(err, context.DeadlineExceeded) && took == time.Second
		},
		chaos.Deaf: func(r tools.Result, _ error, took time.Duration) bool { return took > time.Second },
		chaos.Jump: func(r tools.Result, _ error, took time.Duration) bool { return took > time.Minute },
		chaos.Panic: func(_ tools.Result, err error, _ time.Duration) bool {
			return err != nil && strings.HasPrefix(err.Error(), "panic")
		},
		chaos.InvalidText: func(r tools.Result, _ error, _ time.Duration) bool { return !utf8.ValidString(r.Text) },
		chaos.Huge:        func(r tools.Result, _ error, _ time.Duration) bool { return len(r.Text) > 1<<20 },
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := chaos.New(2, only(kind)).Tool("t", tools.Calculator())
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var r tools.Result
				start := time.Now()
				err := caught(func() (err error) {
					r, err = x.Call(ctx, tools.Call{Args: []byte(calcArgs)})
					return err
				})
				if took := time.Since(start); !seen(r, err, took) {
					t.Errorf("after %v: %.100q, %v", took, r.Text, err)
				}
			})
		})
	}
}

// A full disk stays full, and the write that found it full left a half.
func TestDiskFaults(t *testing.T) {
	var b bytes.Buffer
	w := chaos.New(1, only(chaos.DiskFull)).Writer("w", &b)
	for i, want := range []int{2, 0, 0} {
		if n, err := w.Write([]byte("line")); n != want || !errors.Is(err, syscall.ENOSPC) || b.String() != "li" {
			t.Errorf("write %d: %d bytes, %v, on disk %q", i, n, err, b.String())
		}
	}
	b.Reset()
	j := &journal{w: &b, asked: func() int { return 0 }}
	for kind, want := range map[chaos.Kind]string{chaos.DiskFull: "", chaos.Unsynced: `{"event":"x"}` + "\n"} {
		b.Reset()
		err := chaos.New(1, only(kind)).Checkpoint("c", j).Append(t.Context(), "run", []byte(`{"event":"x"}`))
		if err == nil || b.String() != want {
			t.Errorf("%s: kept %q, %v", kind, b.String(), err)
		}
	}
}
