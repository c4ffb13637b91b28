package ollama

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Whoever leaves, the load goes on, and all who stay share it.
func TestLoadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		l := newLoads(func(ctx context.Context) *models.Error {
			runs.Add(1)
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return &models.Error{Err: context.Cause(ctx)}
			}
		}, time.Hour)
		defer l.close()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				ctx := t.Context()
				if i%2 == 0 {
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				e := l.ready(ctx)
				switch took := time.Since(start); {
				case i%2 == 0 && (e == nil || !errors.Is(e, context.DeadlineExceeded) || e.Sent || took != time.Second || !strings.Contains(e.Error(), "goes on")):
					t.Errorf("a caller with a deadline: %v after %s", e, took)
				case i%2 == 1 && (e != nil || took != time.Minute):
					t.Errorf("a patient caller: %v after %s", e, took)
				}
			})
		}
		wg.Wait()
		if e := l.ready(t.Context()); e != nil || runs.Load() != 1 {
			t.Errorf("afterwards: %v, %d loads", e, runs.Load())
		}
		l.cool()
		if e := l.ready(t.Context()); e != nil || runs.Load() != 2 {
			t.Errorf("when it may be gone: %v, %d loads", e, runs.Load())
		}
	})
}

func TestLoadsEnd(t *testing.T) {
	endless := func(ctx context.Context) *models.Error {
		<-ctx.Done()
		return &models.Error{Err: ctx.Err()}
	}
	t.Run("by their time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLoads(endless, 10*time.Minute)
			start := time.Now()
			e := l.ready(t.Context())
			if e == nil || !e.Retryable || errors.Is(e, context.DeadlineExceeded) || !strings.Contains(e.Error(), "not loaded within 10m0s: raise Config.LoadTime") || time.Since(start) != 10*time.Minute {
				t.Errorf("got %v after %s", e, time.Since(start))
			}
		})
	})
	t.Run("by Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLoads(endless, time.Hour)
			time.AfterFunc(time.Second, l.close)
			if e := l.ready(t.Context()); e == nil || !errors.Is(e, errClosed) || e.Retryable {
				t.Errorf("got %v", e)
			}
			if e := l.ready(t.Context()); e == nil || !errors.Is(e, errClosed) {
				t.Errorf("after Close: %v", e)
			}
			l.close()
		})
	})
	t.Run("in an error that each gets for itself", func(t *testing.T) {
		l := newLoads(func(context.Context) *models.Error {
			return &models.Error{Status: 500, Sent: true, Retryable: true, Err: ErrMemory}
		}, time.Hour)
		defer l.close()
		a, b := l.ready(t.Context()), l.ready(t.Context())
		if a == nil || b == nil || a == b || a.Sent || a.Status != 500 || !a.Retryable || !errors.Is(b, ErrMemory) {
			t.Errorf("got %+v, %+v", a, b)
		}
	})
}

// A deadline that is too short for a load does not keep the model from being
// loaded, and a model is loaded once, not once a call.
func TestDeadlineInLoad(t *testing.T) {
	var loads, calls atomic.Int32
	release := make(chan struct{})
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if isLoad(t, r) {
			loads.Add(1)
			select {
			case <-release:
				_, _ = io.WriteString(w, loaded)
			case <-r.Context().Done():
				t.Error("the load was cut")
			}
			return
		}
		calls.Add(1)
		_, _ = io.WriteString(w, file(t, "raw.ndjson"))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := m.Generate(ctx, &models.Request{Prompt: "x"})
	if e := typed(t, err); !errors.Is(err, context.DeadlineExceeded) || e.Sent || calls.Load() != 0 {
		t.Errorf("got %+v", e)
	}
	close(release)
	for range 3 {
		if _, err := m.Generate(t.Context(), &models.Request{Prompt: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if loads.Load() != 1 || calls.Load() != 3 {
		t.Errorf("%d loads and %d calls", loads.Load(), calls.Load())
	}
}

// A call that was cut before its first word may have been a load: the next call
// loads first.
func TestLoadAgain(t *testing.T) {
	var loads atomic.Int32
	var mu sync.Mutex
	status := 200
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if isLoad(t, r) {
			loads.Add(1)
			_, _ = io.WriteString(w, loaded)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		say(status, file(t, "raw.ndjson"))(w, r)
	})
	for i, tt := range []struct {
		status int
		loads  int32
	}{{200, 1}, {400, 1}, {200, 1}, {500, 1}, {200, 2}, {404, 2}, {200, 3}} {
		mu.Lock()
		status = tt.status
		mu.Unlock()
		_, err := m.Generate(t.Context(), &models.Request{Prompt: "x"})
		if (err == nil) != (tt.status == 200) || loads.Load() != tt.loads {
			t.Errorf("call %d: %v, %d loads", i, err, loads.Load())
		}
	}
}

// One load for a hundred callers, a bounded queue, and each answered or refused.
func TestHundredCallers(t *testing.T) {
	var loads, now, most atomic.Int32
	m := serve(t, Config{MaxInFlight: 2, MaxQueue: 40}, func(w http.ResponseWriter, r *http.Request) {
		if isLoad(t, r) {
			loads.Add(1)
			_, _ = io.WriteString(w, loaded)
			return
		}
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		_, _ = io.WriteString(w, file(t, "raw.ndjson"))
	})
	var answered, refused atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			r, err := m.Generate(t.Context(), &models.Request{Prompt: "x"})
			switch {
			case err == nil && r.Text == "plain answer one":
				answered.Add(1)
			case errors.Is(err, ErrBusy) && typed(t, err).Retryable && !typed(t, err).Sent:
				refused.Add(1)
			default:
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if answered.Load() < 42 || answered.Load()+refused.Load() != 100 || loads.Load() != 1 || most.Load() > 2 {
		t.Errorf("%d answered, %d refused, %d loads, at most %d at a time", answered.Load(), refused.Load(), loads.Load(), most.Load())
	}
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name         string
		status       int
		body         string
		is           error
		retry        bool
		say          string
		embeddingToo bool
	}{
		{"loaded", 200, loaded, nil, false, "", false},
		{"not done", 200, `{"done":false}`, models.ErrMalformed, true, "is that Ollama?", false},
		{"an error in the body", 200, `{"error":"model requires more system memory (9 GiB) than is available (2 GiB)"}`, ErrMemory, false, "smaller Config.Context", false},
		{"no memory", 500, `{"error":"model requires more system memory (9 GiB) than is available (2 GiB)"}`, ErrMemory, false, "9 GiB", false},
		{"no model", 404, `{"error":"model 'm' not found"}`, ErrNoModel, false, "pull it first", false},
		{"busy", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, ErrBusy, true, "", false},
		{"for embeddings", 400, `{"error":"\"m\" does not support generate"}`, nil, false, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			embedded := false
			m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/generate":
					say(tt.status, tt.body)(w, r)
				case "/api/embed":
					embedded = true
					say(200, `{"model":"m","embeddings":[]}`)(w, r)
				case "/api/tags":
					say(200, `{"models":[{"name":"m:latest","digest":"d1"}]}`)(w, r)
				case "/api/ps":
					say(200, `{"models":[{"name":"m:latest","digest":"d1","size":100,"size_vram":100,"context_length":4096,"expires_at":"2026-12-02T05:42:55Z"}]}`)(w, r)
				default:
					t.Errorf("asked %s", r.URL.Path)
				}
			})
			p, err := m.Load(t.Context())
			if tt.is == nil {
				if err != nil || !p.OnGPU() || p.Context != 4096 || m.window() != 4096 || embedded != tt.embeddingToo {
					t.Errorf("got %+v, %v, a window of %d", p, err, m.window())
				}
				return
			}
			if e := typed(t, err); !errors.Is(err, tt.is) || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.say) || p != (Placement{}) {
				t.Errorf("got %+v, %+v", p, e)
			}
		})
	}
	m := serve(t, Config{}, say(500, "asked in spite of it"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Load(ctx); !errors.Is(err, context.Canceled) || typed(t, err).Sent {
		t.Errorf("with a context that is over: %v", err)
	}
}
