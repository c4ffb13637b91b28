package ollama_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// rawly asks with a Prompt what it is asked with Messages.
type rawly struct{ *ollama.Model }

// The client passes the suite that every model has to, over a real socket, by
// both of its ways.
func TestConform(t *testing.T) {
	serve := func(t *testing.T, info models.Info) *ollama.Model {
		s := httptest.NewServer(http.HandlerFunc(speak))
		t.Cleanup(s.Close)
		m, err := ollama.New("m", ollama.Config{BaseURL: s.URL, Info: info})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return m
	}
	t.Run("chat", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model { return serve(t, models.Info{Tools: true}) })
	})
	t.Run("chat without tools", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model { return serve(t, models.Info{}) })
	})
	t.Run("raw", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model { return rawly{serve(t, models.Info{})} })
	})
}

// speak answers as Ollama 0.17.4 does.
func speak(w http.ResponseWriter, r *http.Request) {
	var in struct{ Prompt string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	const at = `"created_at":"2026-12-02T05:48:30.304548618Z"`
	raw := r.URL.Path == "/api/generate"
	if raw && in.Prompt == "" {
		fmt.Fprint(w, `{"model":"m",`+at+`,"response":"","done":true,"done_reason":"load"}`)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	line := func(text, rest string) {
		if raw {
			fmt.Fprintf(w, "{\"model\":\"m\",%s,\"response\":%q,%s}\n", at, text, rest)
		} else {
			fmt.Fprintf(w, "{\"model\":\"m\",%s,\"message\":{\"role\":\"assistant\",\"content\":%q},%s}\n", at, text, rest)
		}
		w.(http.Flusher).Flush()
	}
	for _, piece := range []string{`"a `, "whole ", `sentence"`} {
		line(piece, `"done":false`)
	}
	line("", `"done":true,"done_reason":"stop","total_duration":310719990,"load_duration":303236197,"prompt_eval_count":9,"prompt_eval_duration":2270298,"eval_count":4,"eval_duration":4034493`)
}

func (m rawly) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	q := *r
	if len(q.Messages) > 0 && q.Prompt == "" {
		for _, msg := range q.Messages {
			q.Prompt += msg.Text + "\n"
		}
		q.Messages = nil
	}
	return m.Model.Generate(ctx, &q)
}
