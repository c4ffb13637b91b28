//go:build unix

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// on sets what the machine is said to have.
func on(f gpu.Found) LocalOption {
	return localOption(func(l *local) { l.discover = func(context.Context) gpu.Found { return f } })
}

var oneThread = WithRuntime(map[string]any{"num_thread": 1})

func minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Local attaches to a real server, makes the raw alias, loads it and decides.
func TestLocalAttaches(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "script", "{{ .System }} {{ .Prompt }}", "qwen3-thinking")
	var stages []Stage
	p, err := Local(minute(t), WithServer(s.URL), WithWeights("script"), WithCPU(), WithContext(4096), oneThread, on(gpu.Found{}),
		WithProgress(func(x Progress) { stages = append(stages, x.Stage) }))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	d, err := p.Decide(meteredContext(t), scripted("please [[S31]]"))
	if err != nil || len(d.Calls) != 1 || d.Calls[0].Tool != "search" || d.Reasoning != "I need documents 31." {
		t.Errorf("%+v, %v", d, err)
	}
	r := p.Report()
	if r.Started || r.Server != s.URL || r.Version != ollamatest.Version || r.Size == 0 || r.VRAM != 0 || r.Context != 4096 {
		t.Errorf("report %+v", r)
	}
	for _, want := range []Stage{StageDiscover, StagePlan, StageServer, StageLoad, StageReady} {
		if !strings.Contains(join(stages), string(want)) {
			t.Errorf("stages %v, without %s", stages, want)
		}
	}
	if text := r.String(); !strings.Contains(text, "research and development") || !strings.Contains(text, "on the processor") {
		t.Errorf("the report says\n%s", text)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func join(stages []Stage) string {
	var b strings.Builder
	for _, s := range stages {
		b.WriteString(string(s) + " ")
	}
	return b.String()
}

// Without WithCPU a model on the processor is refused, at the start and later.
func TestLocalRefusesCPU(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "script", ollama.RawTemplate, "")
	big := gpu.Found{Source: "nvml", Devices: []gpu.Device{{Name: "Test GPU", UUID: "GPU-1", Vendor: "nvidia", Total: 24 << 30, Free: 24 << 30}}}
	_, err := Local(minute(t), WithServer(s.URL), WithWeights("script"), oneThread, on(big))
	var e *LocalError
	if !errors.As(err, &e) || !errors.Is(err, ErrNotOnGPU) || e.Stage != StageLoad || !strings.Contains(err.Error(), "WithCPU") {
		t.Errorf("a GPU that the server does not use: %v", err)
	}
	_, err = Local(minute(t), WithServer(s.URL), WithWeights("script"), oneThread, on(gpu.Found{Notes: []string{"nvml: no library"}}))
	if !errors.As(err, &e) || e.Stage != StagePlan || !strings.Contains(err.Error(), "nvml: no library") || !strings.Contains(err.Error(), "WithCPU") {
		t.Errorf("no GPU: %v", err)
	}
}

// Local starts a server where none is, and leaves no process behind.
func TestLocalStarts(t *testing.T) {
	bin, models := ollamatest.Binary(t), seeded(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("OLLAMA_MODELS", models)
	p, err := Local(minute(t), WithBinary(bin), WithWeights("script"), WithCPU(), WithContext(2048), oneThread, on(gpu.Found{}))
	if err != nil {
		t.Fatal(err)
	}
	r := p.Report()
	if !r.Started {
		t.Errorf("report %+v", r)
	}
	if d, err := p.Decide(meteredContext(t), scripted("[[S33]]")); err != nil || len(d.Calls) != 1 || d.Finish == nil {
		t.Errorf("%+v, %v", d, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(r.Server, "http://"), time.Second); err == nil {
		t.Error("the server is still there")
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// seeded is a directory of models that has the script model.
func seeded(t *testing.T) string {
	dir := t.TempDir()
	s := ollamatest.Start(t, "OLLAMA_MODELS="+dir)
	s.Create(t, "script", ollama.RawTemplate, "")
	s.Kill()
	return dir
}

// What cannot work says in which stage, and what to do.
func TestLocalErrors(t *testing.T) {
	notFound := httptest.NewServer(http.NotFoundHandler())
	defer notFound.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		opts  []LocalOption
		stage Stage
	}{
		{"nobody there", context.Background(), []LocalOption{WithServer(gone.URL)}, StageServer},
		{"something else there", context.Background(), []LocalOption{WithServer(notFound.URL)}, StageServer},
		{"no address", context.Background(), []LocalOption{WithServer("::")}, StageServer},
		{"no program", context.Background(), []LocalOption{WithBinary("/nowhere/ollama"), WithCPU()}, StageServer},
		{"negative context", context.Background(), []LocalOption{WithContext(-1)}, StagePlan},
		{"ended", ctx, []LocalOption{WithServer(gone.URL)}, StageServer},
		{"nil option", context.Background(), []LocalOption{nil, WithServer(gone.URL)}, StageServer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Local(tt.ctx, append(tt.opts, on(gpu.Found{}))...)
			var e *LocalError
			if p != nil || !errors.As(err, &e) || e.Stage != tt.stage || e.Err == nil {
				t.Errorf("%v, stage %v", err, e)
			}
		})
	}
}

// A name that cannot be pulled is one clear error. (This machine's server may
// have no network: then that is what it says.)
func TestLocalPullFails(t *testing.T) {
	s := ollamatest.Start(t, "HTTPS_PROXY=http://127.0.0.1:9")
	licensed := false
	_, err := Local(minute(t), WithServer(s.URL), WithCPU(), on(gpu.Found{}), WithProgress(func(p Progress) {
		licensed = licensed || p.Stage == StageLicense && strings.Contains(p.Text, "research")
	}))
	var e *LocalError
	if !errors.As(err, &e) || e.Stage != StagePull || !licensed {
		t.Errorf("%v, licence shown: %v", err, licensed)
	}
}

// A quantisation that is not published is replaced by the next, unless it was
// asked for.
func TestLocalFallsBack(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch r.URL.Path {
		case "/api/version":
			fmt.Fprint(w, `{"version":"0.17.4"}`)
		case "/api/ps", "/api/tags":
			fmt.Fprint(w, `{"models":[]}`)
		case "/api/pull":
			asked = append(asked, in.Model)
			fmt.Fprintln(w, `{"error":"pull model manifest: file does not exist"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"error":"model '%s' not found"}`, in.Model)
		}
	}))
	defer s.Close()
	big := gpu.Found{Devices: []gpu.Device{{Name: "Test GPU", Vendor: "nvidia", Total: 80 << 30, Free: 80 << 30}}}
	for _, tt := range []struct {
		opt  LocalOption
		want int
	}{{nil, 2}, {WithQuantization("F16"), 1}, {WithQuantization("Q4_K_M"), 1}} {
		asked = nil
		_, err := Local(minute(t), WithServer(s.URL), on(big), tt.opt)
		if !errors.Is(err, ollama.ErrNoModel) || len(asked) != tt.want || tt.want == 2 && asked[1] != Weights+":Q8_0" {
			t.Errorf("%v, asked for %v", err, asked)
		}
	}
}

func TestHostURL(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0": "http://127.0.0.1:11434", ":8080": "http://127.0.0.1:8080", "gpu.example": "http://gpu.example:11434", "10.0.0.5:99": "http://10.0.0.5:99",
		"http://h": "http://h:80", "https://h/": "https://h:443", "https://h:1/p/": "https://h:1/p", "[::]:5": "http://[::1]:5", "[::1]": "http://[::1]:11434", " h ": "http://h:11434",
	} {
		if got := hostURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// scripted is a state whose prompt holds a marker of the script model.
func scripted(marker string) *State {
	s := paperState()
	s.Prompt = marker
	return s
}

func meteredContext(t testing.TB) context.Context {
	m, err := cost.NewMeter("test", cost.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	return cost.NewContext(minute(t), m)
}
