package langchain_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// The bridge passes the suite that every model has to: over langchaingo's
// providers on a real socket, over a provider that swallows cancellation, and
// there and back.
func TestConform(t *testing.T) {
	info := models.Info{Name: "m", Price: cost.Tokens(1, 2)}
	pieces := []string{"a ", "whole ", "sentence"}
	t.Run("openai", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model {
			stream := sse(delta("a ", ""), delta("whole ", ""), delta("sentence", ""), delta("", "stop"), streamUsage, "[DONE]")
			var s *server
			s = serve(t, func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				asked := strings.Contains(s.raw[len(s.raw)-1], `"stream":true`)
				s.mu.Unlock()
				if asked {
					stream(w, r)
				} else {
					say(200, openaiReply)(w, r)
				}
			})
			return mustNew(t, s.openai(t), langchain.Config{Info: info})
		})
	})
	t.Run("anthropic", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model {
			return mustNew(t, serve(t, say(200, anthropicReply)).anthropic(t), langchain.Config{Info: info})
		})
	})
	t.Run("ollama", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for _, p := range pieces {
					_, _ = io.WriteString(w, `{"message":{"content":"`+p+`"}}`+"\n")
					w.(http.Flusher).Flush()
				}
				_, _ = io.WriteString(w, `{"done":true,"prompt_eval_count":9,"eval_count":4}`+"\n")
			})
			return mustNew(t, s.ollama(t), langchain.Config{Info: info})
		})
	})
	t.Run("partial text and no error", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model {
			llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				var text string
				for _, p := range pieces {
					text += p
					if o.StreamingFunc != nil && o.StreamingFunc(ctx, []byte(p)) != nil {
						break
					}
				}
				return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, StopReason: "stop"}}}, nil
			})
			return mustNew(t, llm, langchain.Config{Info: info, Provider: langchain.Other, Honours: 255})
		})
	})
	t.Run("there and back", func(t *testing.T) {
		modeltest.Conform(t, func(t *testing.T) models.Model {
			script := modeltest.New(info, modeltest.Forever(modeltest.Say("a whole sentence")))
			return mustNew(t, langchain.Model(script), langchain.Config{Info: info, Provider: langchain.Other, Honours: 255})
		})
	})
}

// There and back loses nothing that langchaingo can hold.
func TestThereAndBack(t *testing.T) {
	script := modeltest.New(models.Info{Name: "m", Price: cost.Free()},
		modeltest.Step{Text: "I compute.", Reasoning: "Hm.", Calls: turn[3].Calls},
		modeltest.Step{Err: models.ErrContextOverflow},
		modeltest.Step{Err: &models.Error{Status: 429, Retryable: true, Sent: true}})
	m := mustNew(t, langchain.Model(script), everything)
	r := &models.Request{
		Messages: turn, Tools: []models.ToolDef{addTool}, MaxOutput: 50, Temperature: ptr(0.0), TopP: ptr(0.5), TopK: ptr(3), Seed: ptr(int64(7)), Stop: []string{"###"},
	}
	got, err := m.Generate(t.Context(), r)
	if err != nil || got.Text != "I compute." || got.Reasoning != "Hm." || got.Finish != models.FinishCalls || encode(t, got.Calls) != encode(t, turn[3].Calls) || !got.Usage.Known {
		t.Errorf("%+v, %v", got, err)
	}
	asked := script.Requests()[0]
	want := *r
	want.Messages = append([]models.Message(nil), turn...)
	want.Messages[3].Calls = append([]models.ToolCall(nil), turn[3].Calls...)
	want.Messages[3].Calls[1].Args = []byte(`{"invalid_json":"{\"b\":3"}`)
	want.Tools = []models.ToolDef{addTool}
	want.Tools[0].Schema = []byte(`{"properties":{"a":{"type":"integer"},"b":{"enum":[1,2,3],"type":"integer"}},"type":"object"}`) // a map has no order
	if a, b := encode(t, asked.Messages), encode(t, want.Messages); a != b {
		t.Errorf("messages:\n%s\n%s", a, b)
	}
	asked.Messages, want.Messages = nil, nil
	asked.OnDelta, want.OnDelta = nil, nil
	if a, b := show(asked), show(&want); a != b {
		t.Errorf("asked\n%s\nwant\n%s", a, b)
	}
	got, err = m.Generate(t.Context(), &models.Request{Messages: hello})
	if e := typed(t, got, err); !errors.Is(err, models.ErrContextOverflow) || e.Retryable {
		t.Errorf("%v", err)
	}
	got, err = m.Generate(t.Context(), &models.Request{Messages: hello})
	if e := typed(t, got, err); !e.Retryable || e.Status != 429 {
		t.Errorf("%v: %+v", err, e)
	}
	script.AssertDone(t)
}
