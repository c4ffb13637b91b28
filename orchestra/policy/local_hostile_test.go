//go:build unix

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
)

// fakeOllama has the model, loaded with vram of 9 GiB.
func fakeOllama(t *testing.T, vram *atomic.Int64, fail string, keep *atomic.Value) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == fail {
			http.Error(w, `{"error":"disk full"}`, 500)
			return
		}
		switch r.URL.Path {
		case "/api/version":
			w.Write([]byte(`{"version":"0.17.4"}`))
		case "/api/show":
			w.Write([]byte(`{"template":"{{ .Prompt }}"}`))
		case "/api/create":
			w.Write([]byte(`{"status":"success"}` + "\n"))
		case "/api/tags":
			w.Write([]byte(`{"models":[{"name":"raw-script:latest","model":"raw-script:latest"}]}`))
		case "/api/ps":
			json.NewEncoder(w).Encode(map[string]any{"models": []any{map[string]any{"name": "raw-script:latest", "model": "raw-script:latest", "size": 9 << 30, "size_vram": vram.Load()}}})
		case "/api/generate":
			var in map[string]any
			json.NewDecoder(r.Body).Decode(&in)
			if keep != nil && in["keep_alive"] != nil {
				b, _ := json.Marshal(in["keep_alive"])
				keep.Store(string(b))
			}
			w.Write([]byte(`{"model":"m","response":"hm","done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":1}` + "\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func small(free int64) gpu.Found {
	return gpu.Found{Source: "nvml", Devices: []gpu.Device{{Name: "Test GPU", UUID: "GPU-1", Vendor: "nvidia", Total: 12 << 30, Free: free}}}
}

// A check that was cut off does not make a lost placement good.
func TestLostStaysLost(t *testing.T) {
	var vram atomic.Int64
	vram.Store(9 << 30)
	p, err := Local(minute(t), WithServer(fakeOllama(t, &vram, "", nil)), WithWeights("script"), on(small(11<<30)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	vram.Store(0)
	if err := p.Check(minute(t)); !errors.Is(err, ErrNotOnGPU) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = p.Decide(ctx, scripted("x"))
	if _, err := p.Decide(meteredContext(t), scripted("x")); !errors.Is(err, ErrNotOnGPU) {
		t.Errorf("decided on the processor: %v", err)
	}
}

// The second Local on a server that has the model already.
func TestLoadedAlready(t *testing.T) {
	var vram atomic.Int64
	vram.Store(9 << 30)
	p, err := Local(minute(t), WithServer(fakeOllama(t, &vram, "", nil)), WithWeights("script"), on(small(2<<30)))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
}

func TestStages(t *testing.T) {
	var vram atomic.Int64
	vram.Store(9 << 30)
	for _, path := range []string{"/api/show", "/api/create"} {
		_, err := Local(minute(t), WithServer(fakeOllama(t, &vram, path, nil)), WithWeights("script"), on(small(11<<30)))
		var e *LocalError
		if !errors.As(err, &e) || e.Stage == StagePlan {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Local(ctx, WithBinary("/bin/true"), on(gpu.Found{}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// On another's server the model is kept as long as that one was told, not for
// ever.
func TestNotKeptForEver(t *testing.T) {
	var vram atomic.Int64
	var keep atomic.Value
	vram.Store(9 << 30)
	p, err := Local(minute(t), WithServer(fakeOllama(t, &vram, "", &keep)), WithWeights("script"), on(small(11<<30)))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if k := keep.Load(); k != nil {
		t.Errorf("keep_alive %v was sent", k)
	}
}
