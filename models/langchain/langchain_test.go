package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

func TestConfigsThatCannotWork(t *testing.T) {
	var none *openai.LLM
	named := models.Info{Name: "m"}
	other := langchain.Config{Info: named, Provider: langchain.Other}
	with := func(change func(*langchain.Config)) langchain.Config {
		c := other
		change(&c)
		return c
	}
	option := func(o llms.CallOption) langchain.Config {
		return with(func(c *langchain.Config) { c.Options = []llms.CallOption{o} })
	}
	for name, c := range map[string]struct {
		m     llms.Model
		c     langchain.Config
		field string
	}{
		"nil":              {nil, other, "model"},
		"nil pointer":      {none, other, "model"},
		"unknown type":     {says(), langchain.Config{Info: named}, "Provider"},
		"unknown provider": {says(), langchain.Config{Info: named, Provider: "openia"}, "Provider"},
		"mistral":          {says(), langchain.Config{Info: named, Provider: "mistral"}, "model"},
		"no name":          {says(), langchain.Config{Provider: langchain.Other}, "Info.Name"},
		"price":            {says(), with(func(c *langchain.Config) { c.Info.Price = cost.Tokens(-1, 0) }), "Info.Price"},
		"context":          {says(), with(func(c *langchain.Config) { c.Info.Context = -1 }), "Info"},
		"raw":              {says(), with(func(c *langchain.Config) { c.Info.Raw = true }), "Info"},
		"schema":           {says(), with(func(c *langchain.Config) { c.Info.Schema = true }), "Info"},
		"tools":            {says(), with(func(c *langchain.Config) { c.Info.Tools = true }), "Info.Tools"},
		"temperature":      {says(), with(func(c *langchain.Config) { c.Temperature = ptr(math.NaN()) }), "Temperature"},
		"several answers":  {says(), option(llms.WithN(2)), "Options"},
		"candidates":       {says(), option(llms.WithCandidateCount(2)), "Options"},
		"a stream":         {says(), option(llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })), "Options"},
		"reasoning stream": {says(), option(llms.WithStreamingReasoningFunc(func(context.Context, []byte, []byte) error { return nil })), "Options"},
		"option tools":     {says(), option(llms.WithTools([]llms.Tool{{}})), "Options"},
		"option functions": {says(), option(llms.WithFunctions([]llms.FunctionDefinition{{}})), "Options"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := langchain.New(c.m, c.c)
			var bad *langchain.ConfigError
			if m != nil || !errors.As(err, &bad) || bad.Field != c.field || bad.Fix == "" || !strings.HasPrefix(err.Error(), "langchain: "+c.field+": ") {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	s := serve(t, say(200, openaiReply))
	info := mustNew(t, s.openai(t), langchain.Config{Info: models.Info{Name: "gpt-4o"}}).Info()
	if price, _ := cost.ListPrice("openai", "gpt-4o"); info.Price != price || !price.Known() || info.Provider != "openai" {
		t.Errorf("%+v", info)
	}
	info = mustNew(t, says(), langchain.Config{Provider: langchain.Other, Honours: langchain.Tools, Info: models.Info{Name: "x", Provider: "us", Price: cost.Free()}}).Info()
	if info.Provider != "us" || !info.Tools || info.Price != cost.Free() {
		t.Errorf("%+v", info)
	}
}

// What a provider drops is refused before anything is sent, and can be vouched
// for.
func TestWhatWouldBeDroppedIsRefused(t *testing.T) {
	asks := map[string]struct {
		r       models.Request
		feature langchain.Feature
	}{
		"MaxOutput":   {models.Request{MaxOutput: 5}, langchain.Cap},
		"TopP":        {models.Request{TopP: ptr(0.5)}, langchain.TopP},
		"TopK":        {models.Request{TopK: ptr(5)}, langchain.TopK},
		"Seed":        {models.Request{Seed: ptr(int64(5))}, langchain.Seed},
		"Stop":        {models.Request{Stop: []string{"x"}}, langchain.Stop},
		"Tools":       {models.Request{Tools: []models.ToolDef{addTool}}, langchain.Tools},
		"Tools ":      {models.Request{Messages: turn}, langchain.Tools},
		"Schema":      {models.Request{Schema: json.RawMessage(`{}`)}, 0},
		"Think":       {models.Request{Think: ptr(true)}, 0},
		"Prompt":      {models.Request{Prompt: "x"}, 0},
		"TopP of 0":   {models.Request{TopP: ptr(0.0)}, 0},
		"TopK of 0":   {models.Request{TopK: ptr(0)}, 0},
		"Seed of 0":   {models.Request{Seed: ptr(int64(0))}, 0},
		"Temperature": {models.Request{Temperature: ptr(0.5)}, 0},
	}
	refused := map[langchain.Provider]string{
		langchain.OpenAI:    "TopP TopK",
		langchain.Anthropic: "TopK Seed",
		langchain.Ollama:    "Tools",
		langchain.GoogleAI:  "Seed Tools",
		langchain.Other:     "MaxOutput TopP TopK Seed Stop Tools",
	}
	for provider, fields := range refused {
		for name, c := range asks {
			t.Run(string(provider)+" "+name, func(t *testing.T) {
				field, special, _ := strings.Cut(strings.TrimSpace(name), " ")
				calls := 0
				llm := fake(func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
					calls++
					return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a", StopReason: "stop"}}}, nil
				})
				config := langchain.Config{Provider: provider, Info: models.Info{Name: "gpt-5-x"}}
				r := c.r
				if r.Prompt == "" && r.Messages == nil {
					r.Messages = hello
				}
				always := c.feature == 0 && (field != "Temperature" || provider == langchain.OpenAI)
				if want := always || strings.Contains(fields, field); want {
					got, err := mustNew(t, llm, config).Generate(t.Context(), &r)
					e := typed(t, got, err)
					var bad *langchain.UnsupportedError
					if !errors.As(err, &bad) || bad.Field != field || !errors.Is(err, errors.ErrUnsupported) || errors.Is(err, models.ErrInvalidRequest) || e.Sent || e.Retryable || calls != 0 {
						t.Errorf("%v: %+v", err, e)
					}
				}
				if c.feature == 0 && (always || special != "") {
					config.Honours = 255
					if got, err := mustNew(t, llm, config).Generate(t.Context(), &r); err == nil || calls != 0 {
						t.Errorf("%+v after %d calls", got, calls)
					}
					return
				}
				config.Honours = c.feature
				if _, err := mustNew(t, llm, config).Generate(t.Context(), &r); err != nil || calls != 1 {
					t.Errorf("%v after %d calls", err, calls)
				}
			})
		}
	}
}

func TestInvalidRequests(t *testing.T) {
	m := mustNew(t, says(), langchain.Config{Provider: langchain.OpenAI})
	for name, r := range map[string]*models.Request{
		"nil":           nil,
		"empty":         {},
		"role":          {Messages: []models.Message{{Role: "wizard"}}},
		"result":        {Messages: []models.Message{{Role: models.ToolRole}}},
		"nameless tool": {Messages: hello, Tools: []models.ToolDef{{}}},
		"bad schema":    {Messages: hello, Tools: []models.ToolDef{{Name: "x", Schema: json.RawMessage(`{`)}}},
		"null schema":   {Messages: hello, Tools: []models.ToolDef{{Name: "x", Schema: json.RawMessage(`null`)}}},
		"NaN":           {Messages: hello, Temperature: ptr(math.NaN())},
		"infinite":      {Messages: hello, TopP: ptr(math.Inf(1))},
		"negative cap":  {Messages: hello, MaxOutput: -1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := m.Generate(t.Context(), r)
			if e := typed(t, got, err); !errors.Is(err, models.ErrInvalidRequest) || e.Sent {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

// A model that takes less than another is no reason not to ask the other.
func TestFallbackGoesOnAfterARefusal(t *testing.T) {
	first := mustNew(t, says(), langchain.Config{Provider: langchain.Other})
	second := mustNew(t, says(&llms.ContentChoice{Content: "a", StopReason: "stop"}), langchain.Config{Provider: langchain.OpenAI})
	got, err := models.Fallback(first, second).Generate(t.Context(), &models.Request{Messages: hello, MaxOutput: 5})
	if err != nil || got.Text != "a" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Their shapes of a history, where they differ from those on the wire above.
func TestGoogleAIMessages(t *testing.T) {
	var seen []llms.MessageContent
	var tools []llms.Tool
	llm := fake(func(_ context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		seen, tools = m, o.Tools
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a", StopReason: "FinishReasonStop", GenerationInfo: map[string]any{"input_tokens": int32(3), "output_tokens": int32(2)}}}}, nil
	})
	m := mustNew(t, llm, langchain.Config{Provider: langchain.GoogleAI, Honours: langchain.Tools})
	got, err := m.Generate(t.Context(), &models.Request{Messages: turn, Tools: []models.ToolDef{addTool, {Name: "now"}}})
	if err != nil || got.Finish != models.FinishStop || !got.Usage.Known || got.Usage.Input != 3 || got.Usage.Output != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(seen) != 4 || seen[0].Role != llms.ChatMessageTypeSystem || seen[0].Parts[0] != (llms.TextContent{Text: "Be brief.\n\nBe right."}) || len(seen[2].Parts) != 3 {
		t.Errorf("%+v", seen)
	}
	results := seen[3].Parts
	if len(results) != 2 || results[0].(llms.ToolCallResponse).Name != "add" || results[1].(llms.ToolCallResponse).Name != "mul" {
		t.Errorf("%+v", results)
	}
	for i, want := range []int{2, 0} {
		p, ok := tools[i].Function.Parameters.(map[string]any)
		properties, _ := p["properties"].(map[string]any)
		if !ok || p["type"] != "object" || len(properties) != want {
			t.Errorf("parameters %d: %#v", i, tools[i].Function.Parameters)
		}
	}
}
