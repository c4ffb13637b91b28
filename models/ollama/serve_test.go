package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
)

const loaded = `{"model":"m","created_at":"2026-12-02T05:37:55.84760495Z","response":"","done":true,"done_reason":"load"}`

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// serve returns a model behind a server on the loopback.
func serve(t testing.TB, c Config, h http.HandlerFunc) *Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c.BaseURL = srv.URL
	m, err := New("m", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// isLoad reports whether a request does nothing but load the model, and puts its
// body back.
func isLoad(t testing.TB, r *http.Request) bool {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return false // the caller left
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	var in struct{ Prompt string }
	if r.URL.Path != "/api/generate" {
		return false
	}
	if err := json.Unmarshal(b, &in); err != nil {
		t.Errorf("a body that is not JSON: %s", b)
	}
	return in.Prompt == ""
}

// warm answers loads, and leaves the rest to h.
func warm(t testing.TB, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if isLoad(t, r) {
			_, _ = io.WriteString(w, loaded)
			return
		}
		h(w, r)
	}
}

// say answers with a body.
func say(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// typed returns err as the error that all calls return.
func typed(t testing.TB, err error) *models.Error {
	t.Helper()
	var e *models.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %#v, want a *models.Error", err)
	}
	return e
}

var (
	hello = []models.Message{{Role: models.User, Text: "hi"}}
	tools = []models.ToolDef{{Name: "search"}}
)
