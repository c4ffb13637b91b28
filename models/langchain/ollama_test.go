package langchain_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

func ndjson(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, l := range lines {
			_, _ = io.WriteString(w, l+"\n")
			w.(http.Flusher).Flush()
		}
	}
}

func TestOllamaOnTheWire(t *testing.T) {
	s := serve(t, ndjson(`{"message":{"role":"assistant","content":"Hi."},"done":true,"prompt_eval_count":9,"eval_count":4}`))
	m := mustNew(t, s.ollama(t), langchain.Config{})
	if m.Info().Tools {
		t.Error("the provider drops tools")
	}
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello, MaxOutput: 50, TopP: ptr(0.5), TopK: ptr(3), Seed: ptr(int64(7)), Stop: []string{"###"}})
	if err != nil || got.Text != "Hi." || got.Finish != models.FinishStop || got.Usage.Input != 9 || got.Usage.Output != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	body := s.body(t)
	options, _ := body["options"].(map[string]any)
	for name, want := range map[string]any{"num_predict": 50.0, "top_p": 0.5, "top_k": 3.0, "seed": 7.0, "temperature": 0.8} {
		if options[name] != want {
			t.Errorf("%s: sent %v", name, options[name])
		}
	}
	if got := encode(t, body["messages"]); got != `[{"content":"Hello.","role":"user"}]` {
		t.Errorf("messages: %s", got)
	}
}

// langchaingo keeps the stop reason of Ollama to itself.
func TestOllamaAtTheCap(t *testing.T) {
	s := serve(t, ndjson(`{"message":{"content":"Hi."},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":4}`))
	got, err := mustNew(t, s.ollama(t), langchain.Config{}).Generate(t.Context(), &models.Request{Messages: hello, MaxOutput: 4})
	if err != nil || got.Finish != models.FinishLength {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOllamaFailures(t *testing.T) {
	part := func(text string) string { return fmt.Sprintf(`{"message":{"content":%q},"done":false}`, text) }
	for name, c := range map[string]struct {
		status  int
		lines   []string
		is      error
		retry   bool
		partial string // of the stream
	}{
		"cut":             {200, []string{part("Hel")}, nil, true, "Hel"},
		"nothing":         {200, nil, models.ErrMalformed, true, ""},
		"an error":        {200, []string{`{"error":"model runner has stopped"}`}, nil, false, ""},
		"after text":      {200, []string{part("Hel"), `{"error":"server busy, please try again"}`}, nil, true, "Hel"},
		"no such model":   {404, []string{`{"error":"model 'qwen3' not found"}`}, nil, false, ""},
		"a status":        {503, []string{`{}`}, nil, true, ""},
		"not JSON":        {200, []string{`<html>`}, models.ErrMalformed, true, ""},
		"an empty answer": {200, []string{`{"message":{"content":""},"done":true,"prompt_eval_count":9,"eval_count":1}`}, models.ErrMalformed, true, ""},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(c.status)
					ndjson(c.lines...)(w, r)
				})
				r := &models.Request{Messages: hello}
				if stream {
					r.OnDelta = func(models.Delta) {}
				}
				got, err := mustNew(t, s.ollama(t), langchain.Config{}).Generate(t.Context(), r)
				e := typed(t, got, err)
				if c.is != nil && !errors.Is(err, c.is) || e.Retryable != c.retry || !e.Sent {
					t.Errorf("%v: %+v", err, e)
				}
				if stream && c.partial != "" && (e.Partial == nil || e.Partial.Text != c.partial) {
					t.Errorf("partial %+v", e.Partial)
				}
				if stream && name == "cut" && !errors.Is(err, models.ErrTruncated) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
