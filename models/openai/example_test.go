package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// A stream from a server; here one that plays back a recording.
func Example() {
	server := playback("testdata/openrouter.sse")
	defer server.Close()

	m, err := openai.New("qwen/qwen3-32b", openai.Config{
		BaseURL: server.URL + "/v1",
		Info:    models.Info{Price: cost.Tokens(0.10, 0.30)},
		Extra:   map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"low"`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := m.Generate(context.Background(), &models.Request{
		Messages:  []models.Message{{Role: models.User, Text: "Is 7 a prime?"}},
		MaxOutput: 100,
		OnDelta:   func(d models.Delta) { fmt.Printf("%s%s|", d.Reasoning, d.Text) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println()
	fmt.Println(r.Finish, r.Usage.Input, r.Usage.Output, r.Usage.USD)
	// Output:
	// Hm.|Yes.|
	// stop 194 12 $0.000095
}

// Errors say whether another try may help, and keep what had arrived.
func ExampleNew_errors() {
	server := playback("testdata/ollama_midstream_error.sse")
	defer server.Close()

	m, err := openai.New("qwen3:8b", openai.Config{BaseURL: server.URL + "/v1", Info: models.Info{Provider: "ollama"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Generate(context.Background(), &models.Request{Messages: []models.Message{{Role: models.User, Text: "Hi"}}})
	fmt.Println(err)
	if e, ok := errors.AsType[*models.Error](err); ok {
		fmt.Println(errors.Is(err, models.ErrTruncated), e.Retryable, e.Partial.Text)
	}
	// Output:
	// models: qwen3:8b at ollama: stream ended early
	// true true Hel
}

func playback(path string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		b, _ := os.ReadFile(path)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(b)
	}))
}
