package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

var hello = []models.Message{{Role: models.User, Text: "Hello."}}

func ptr[T any](v T) *T { return &v }

// fake is a model of langchaingo that is a function.
type fake func(ctx context.Context, messages []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error)

func (f fake) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	return f(ctx, messages, &o)
}

func (f fake) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

// says answers with choices.
func says(choices ...*llms.ContentChoice) fake {
	return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
		return &llms.ContentResponse{Choices: choices}, nil
	}
}

func mustNew(t testing.TB, m llms.Model, c langchain.Config) models.Model {
	t.Helper()
	if c.Info.Name == "" {
		c.Info.Name = "m"
	}
	out, err := langchain.New(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// server answers every request and remembers the bodies.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any
	raw    []string
}

func serve(t testing.TB, h http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(b, &body)
		s.mu.Lock()
		s.bodies, s.raw = append(s.bodies, body), append(s.raw, string(b))
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// body is the only one that came.
func (s *server) body(t testing.TB) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) != 1 {
		t.Fatalf("%d requests came", len(s.bodies))
	}
	return s.bodies[0]
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (s *server) openai(t testing.TB) llms.Model {
	m, err := openai.New(openai.WithBaseURL(s.URL), openai.WithToken("sk-secret"), openai.WithModel("gpt-x"), openai.WithHTTPClient(s.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *server) anthropic(t testing.TB) llms.Model {
	m, err := anthropic.New(anthropic.WithBaseURL(s.URL), anthropic.WithToken("sk-secret"), anthropic.WithModel("claude-x"), anthropic.WithHTTPClient(s.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *server) ollama(t testing.TB) llms.Model {
	m, err := ollama.New(ollama.WithServerURL(s.URL), ollama.WithModel("qwen3"), ollama.WithHTTPClient(s.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// typed asserts that a call failed as *models.Error.
func typed(t testing.TB, got *models.Response, err error) *models.Error {
	t.Helper()
	var e *models.Error
	if got != nil || !errors.As(err, &e) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if e.Model == "" || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("says %v: %+v", err, e)
	}
	return e
}

// encode is v as JSON, for comparisons.
func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// turn is a history with a turn of two calls.
var turn = []models.Message{
	{Role: models.System, Text: "Be brief."},
	{Role: models.System, Text: "Be right."},
	{Role: models.User, Text: "2+3 and 2*3?"},
	{Role: models.Assistant, Text: "I compute.", Calls: []models.ToolCall{
		{ID: "c1", Name: "add", Args: json.RawMessage(`{"b":3,"a":2}`)},
		{ID: "c2", Name: "mul", Args: json.RawMessage(`{"b":3`)},
	}},
	{Role: models.ToolRole, CallID: "c1", Text: "5"},
	{Role: models.ToolRole, CallID: "c2", Text: "bad arguments"},
}

var addTool = models.ToolDef{Name: "add", Description: "Adds.", Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer","enum":[1,2,3]},"a":{"type":"integer"}}}`)}
