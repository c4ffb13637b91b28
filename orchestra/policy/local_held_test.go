package policy

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
)

// What a server that is there holds already, our own model from the last run
// first of all, is its own to use again: a second start must not be refused for
// the memory that the first one took.
func TestLocalAgain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/version":
			fmt.Fprint(w, `{"version":"0.17.4"}`)
		case "/api/ps":
			fmt.Fprint(w, `{"models":[{"name":"raw-x:latest","model":"raw-x:latest","size":11450000000,"size_vram":11450000000,"context_length":40960}]}`)
		default:
			http.Error(w, `{"error":"the plan was made"}`, http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	taken := gpu.Found{Source: "nvml", Devices: []gpu.Device{{Name: "Test GPU", UUID: "GPU-1", Vendor: "nvidia", Total: 12 << 30, Free: 1 << 30}}}
	_, err := Local(minute(t), WithServer(s.URL), on(taken))
	var fit *gpu.NoFitError
	if errors.As(err, &fit) || err == nil || !strings.Contains(err.Error(), "the plan was made") {
		t.Errorf("%v", err)
	}
}
