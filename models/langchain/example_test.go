package langchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/tmc/langchaingo/llms"
	lcopenai "github.com/tmc/langchaingo/llms/openai"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// A model of langchaingo becomes one of ours, with a price.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":2}}`)
	}))
	defer server.Close()

	llm, err := lcopenai.New(lcopenai.WithBaseURL(server.URL), lcopenai.WithToken("a key"), lcopenai.WithModel("gpt-4o-mini"))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := langchain.New(llm, langchain.Config{Info: models.Info{Name: "gpt-4o-mini"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := m.Generate(context.Background(), &models.Request{
		Messages:  []models.Message{{Role: models.User, Text: "Is 7 a prime?"}},
		MaxOutput: 100,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	usd, _, _ := m.Info().Price.Of(r.Usage)
	fmt.Println(r.Text, r.Finish, usd)
	// Output: Yes. stop $0.000003
}

// What a provider of langchaingo would drop is an error, not a surprise.
func ExampleUnsupportedError() {
	llm, err := lcopenai.New(lcopenai.WithToken("a key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := langchain.New(llm, langchain.Config{Info: models.Info{Name: "gpt-4o-mini"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	topP := 0.9
	_, err = m.Generate(context.Background(), &models.Request{Messages: []models.Message{{Role: models.User, Text: "Hi."}}, TopP: &topP})
	fmt.Println(err)
	// Output: models: gpt-4o-mini at openai: langchain: TopP would be dropped: leave it out, use models/openai, or set Config.Honours if the openai provider obeys it
}

// completion is a program for langchaingo: it streams an answer, and then has a
// tool called. It knows nothing of this SDK.
func completion(ctx context.Context, llm llms.Model) error {
	_, err := llms.GenerateFromSinglePrompt(ctx, llm, "Who was the first to walk on the Moon?",
		llms.WithTemperature(0.8), llms.WithStopWords([]string{"Collins"}),
		llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			fmt.Printf("%s|", chunk)
			return nil
		}))
	if err != nil {
		return err
	}
	fmt.Println()

	weather := llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
		Name:        "weather",
		Description: "The weather of a city.",
		Parameters: map[string]any{
			"type":       "object",
			"properties": map[string]any{"city": map[string]any{"type": "string"}},
			"required":   []string{"city"},
		},
	}}
	history := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "Do I need a coat in Bergen?")}
	for {
		resp, err := llm.GenerateContent(ctx, history, llms.WithTools([]llms.Tool{weather}))
		if err != nil {
			return err
		}
		choice := resp.Choices[0]
		if len(choice.ToolCalls) == 0 {
			fmt.Println(choice.Content)
			return nil
		}
		turn := llms.TextParts(llms.ChatMessageTypeAI)
		for _, call := range choice.ToolCalls {
			turn.Parts = append(turn.Parts, call)
		}
		history = append(history, turn)
		for _, call := range choice.ToolCalls {
			var args struct{ City string }
			if err := json.Unmarshal([]byte(call.FunctionCall.Arguments), &args); err != nil {
				return err
			}
			history = append(history, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: "rain in " + args.City},
			}})
		}
	}
}

// A program for langchaingo runs on a model of this SDK with another constructor
// and no other change. Here it runs under a budget, which travels in the context.
func ExampleModel() {
	server := moon()
	defer server.Close()

	m, err := openai.New("qwen3-8b", openai.Config{BaseURL: server.URL, Info: models.Info{Price: cost.Tokens(0.10, 0.30)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	meter, err := cost.NewMeter("chat", cost.Budget{USD: cost.USD(0.01)})
	if err != nil {
		fmt.Println(err)
		return
	}
	llm := langchain.Model(models.Metered(m)) // was: llm, err := openai.New()
	if err := completion(cost.NewContext(context.Background(), meter), llm); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(meter.Spent().Calls, "calls", meter.Spent().USD)
	// Output:
	// Neil |Armstrong.|
	// Yes: rain in Bergen.
	// 3 calls $0.0000063
}

// The budget refuses what it does not allow, in the words of langchaingo.
func ExampleModel_budget() {
	m := modeltest.New(models.Info{Name: "expert", Price: cost.Tokens(1, 2)}, modeltest.Say("42"))
	meter, err := cost.NewMeter("chat", cost.Budget{USD: cost.USD(0.0001)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = llms.GenerateFromSinglePrompt(cost.NewContext(context.Background(), meter), langchain.Model(models.Metered(m)), "What is 6 times 7?")
	fmt.Println(llms.IsQuotaExceededError(err), meter.Spent().USD)
	// Output: true $0
}

// moon is a server that answers the program above.
func moon() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Stream   bool
			Messages []struct {
				Role, Content string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		const usage = `"usage":{"prompt_tokens":15,"completion_tokens":2}`
		last := body.Messages[len(body.Messages)-1]
		switch {
		case body.Stream:
			w.Header().Set("Content-Type", "text/event-stream")
			for _, piece := range []string{"Neil ", "Armstrong."} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece)
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],%s}\n\ndata: [DONE]\n\n", usage)
		case last.Role == "tool":
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"Yes: %s."},"finish_reason":"stop"}],%s}`, last.Content, usage)
		default:
			fmt.Fprintf(w, `{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bergen\"}"}}]},"finish_reason":"tool_calls"}],%s}`, usage)
		}
	}))
}
