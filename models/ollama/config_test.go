package ollama

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		model string
		c     Config
		field string
		say   string
	}{
		{" ", Config{}, "model", "ollama list"},
		{"m", Config{BaseURL: "localhost:11434"}, "BaseURL", "http://127.0.0.1:11434"},
		{"m", Config{BaseURL: "ftp://x"}, "BaseURL", "no http address"},
		{"m", Config{BaseURL: "http://"}, "BaseURL", "no http address"},
		{"m", Config{BaseURL: "http://x:%"}, "BaseURL", "no http address"},
		{"m", Config{BaseURL: "http://x/v1/"}, "BaseURL", "leave out"},
		{"m", Config{BaseURL: "http://x/api"}, "BaseURL", "leave out"},
		{"m", Config{Context: -1}, "Context", "tokens"},
		{"m", Config{Info: models.Info{MaxOutput: -1}}, "Context", "tokens"},
		{"m", Config{MaxInFlight: -1}, "MaxInFlight", "calls"},
		{"m", Config{LoadTime: -1}, "LoadTime", "end"},
		{"m", Config{Info: models.Info{Price: cost.Tokens(-1, 0)}}, "Info.Price", "Input"},
		{"m", Config{Options: map[string]any{"num_ctx": 1}}, "Options", "Config.Context"},
		{"m", Config{Options: map[string]any{"num_predict": 1}}, "Options", "MaxOutput"},
		{"m", Config{Options: map[string]any{"stop": "x"}}, "Options", "Stop"},
		{"m", Config{Options: map[string]any{"min_p": math.NaN()}}, "Options", "cannot be sent"},
		{"m", Config{Options: map[string]any{"min_p": func() {}}}, "Options", "cannot be sent"},
	} {
		m, err := New(tt.model, tt.c)
		var e *ConfigError
		if m != nil || !errors.As(err, &e) || e.Field != tt.field || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%q %+v: %v", tt.model, tt.c, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	m, err := New("qwen3:8b", Config{})
	if err != nil {
		t.Fatal(err)
	}
	info := m.Info()
	if info.Name != "qwen3:8b" || info.Provider != "ollama" || info.Price != cost.Free() || info.Context != DefaultContext || !info.Raw || !info.Schema || info.Tools {
		t.Errorf("info %+v", info)
	}
	if cap(m.queue.slots) != DefaultMaxInFlight || cap(m.queue.places) != DefaultMaxInFlight+DefaultMaxQueue || m.queue.wait != DefaultQueueTime || m.loads.limit != DefaultLoadTime || m.base.String() != DefaultBaseURL {
		t.Errorf("got %+v", m)
	}
	for _, tt := range []struct{ context, info, window, says int }{
		{0, 0, DefaultContext, DefaultContext}, {4096, 0, 4096, 4096}, {0, 4096, 4096, 4096}, {4096, 40960, 4096, 4096}, {40960, 4096, 40960, 4096},
	} {
		m, err := New("m", Config{Context: tt.context, Info: models.Info{Name: "expert", Provider: "us", Context: tt.info, Price: cost.Price{GPUHour: cost.Per(2)}}})
		if err != nil {
			t.Fatal(err)
		}
		if i := m.Info(); m.context != tt.window || i.Context != tt.says || i.Name != "expert" || i.Provider != "us" || i.Price.GPUHour != cost.Per(2) {
			t.Errorf("%+v: a window of %d, info %+v", tt, m.context, i)
		}
	}
}

// A caller's HTTP client is used and not touched.
func TestOwnHTTP(t *testing.T) {
	h := &http.Client{Transport: failing{errors.New("boom")}, Timeout: time.Minute}
	m, err := New("m", Config{HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	m.Close()
	if _, err := m.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "boom") || h.CheckRedirect != nil {
		t.Errorf("got %v", err)
	}
	if _, err := m.Generate(t.Context(), &models.Request{Prompt: "x"}); !errors.Is(err, errClosed) || typed(t, err).Sent {
		t.Errorf("after Close: %v", err)
	}
}
