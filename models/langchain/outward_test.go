package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// show is a request with its pointers followed.
func show(r *models.Request) string {
	b, err := json.Marshal(struct {
		Messages                        []models.Message
		Tools                           []models.ToolDef
		Schema                          json.RawMessage
		MaxOutput                       int
		Temperature, TopP               *float64
		TopK                            *int
		Seed                            *int64
		Stop                            []string
		Think                           *bool
		Prompt, Affinity                string
		Tokens, Streams, MinOutputIsSet bool
	}{r.Messages, r.Tools, r.Schema, r.MaxOutput, r.Temperature, r.TopP, r.TopK, r.Seed, r.Stop, r.Think, r.Prompt, r.Affinity, r.Tokens, r.OnDelta != nil, r.MinOutput != 0})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func outward(steps ...modeltest.Step) (llms.Model, *modeltest.Model) {
	script := modeltest.New(models.Info{Name: "m", Provider: "us", Price: cost.Free(), Schema: true}, steps...)
	return langchain.Model(script), script
}

var user = []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "Hello.")}

func TestModelOfNothing(t *testing.T) {
	var none *modeltest.Model
	if langchain.Model(nil) != nil || langchain.Model(none) != nil {
		t.Error("there is a model of nil")
	}
}

func TestTheirOptionsBecomeARequest(t *testing.T) {
	for name, c := range map[string]struct {
		options []llms.CallOption
		want    models.Request
	}{
		"none":             {nil, models.Request{}},
		"temperature of 0": {[]llms.CallOption{llms.WithTemperature(0), nil}, models.Request{Temperature: ptr(0.0)}},
		"all": {[]llms.CallOption{llms.WithModel("m"), llms.WithMaxTokens(5), llms.WithTemperature(0.5), llms.WithTopP(0.25), llms.WithTopK(3), llms.WithSeed(7), llms.WithStopWords([]string{"x"}), llms.WithN(1), llms.WithToolChoice("auto"), llms.WithPromptCaching(true)},
			models.Request{MaxOutput: 5, Temperature: ptr(0.5), TopP: ptr(0.25), TopK: ptr(3), Seed: ptr(int64(7)), Stop: []string{"x"}}},
		"tools": {[]llms.CallOption{
			llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "F.", Parameters: map[string]any{"type": "object"}}}}),
			llms.WithFunctions([]llms.FunctionDefinition{{Name: "g", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}, {Name: "h"}}),
		}, models.Request{Tools: []models.ToolDef{{Name: "f", Description: "F.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "g", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}, {Name: "h"}}}},
		"no tools":   {[]llms.CallOption{llms.WithTools([]llms.Tool{{}}), llms.WithToolChoice("none")}, models.Request{}},
		"JSON":       {[]llms.CallOption{llms.WithJSONMode()}, models.Request{Schema: json.RawMessage(`{"type":"object"}`)}},
		"JSON type":  {[]llms.CallOption{llms.WithResponseMIMEType("application/json")}, models.Request{Schema: json.RawMessage(`{"type":"object"}`)}},
		"plain type": {[]llms.CallOption{llms.WithResponseMIMEType("text/plain")}, models.Request{}},
		"thinking":   {[]llms.CallOption{llms.WithThinkingMode(llms.ThinkingModeLow)}, models.Request{Think: ptr(true)}},
		"no thought": {[]llms.CallOption{llms.WithThinkingMode(llms.ThinkingModeNone)}, models.Request{Think: ptr(false)}},
		"a struct":   {[]llms.CallOption{llms.WithOptions(llms.CallOptions{MaxTokens: 5})}, models.Request{MaxOutput: 5, Temperature: ptr(0.0)}},
	} {
		t.Run(name, func(t *testing.T) {
			m, script := outward(modeltest.Say("Hi."))
			if _, err := m.GenerateContent(t.Context(), user, c.options...); err != nil {
				t.Fatal(err)
			}
			c.want.Messages = hello
			if got, want := show(script.Requests()[0]), show(&c.want); got != want {
				t.Errorf("asked\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestTheirOptionsThatCannotBeMeant(t *testing.T) {
	for name, c := range map[string]llms.CallOption{
		"model":         llms.WithModel("another"),
		"several":       llms.WithN(2),
		"candidates":    llms.WithCandidateCount(2),
		"min length":    llms.WithMinLength(2),
		"max length":    llms.WithMaxLength(2),
		"repetition":    llms.WithRepetitionPenalty(0.5),
		"frequency":     llms.WithFrequencyPenalty(0.5),
		"presence":      llms.WithPresencePenalty(0.5),
		"type":          llms.WithResponseMIMEType("image/png"),
		"choice":        llms.WithToolChoice(llms.ToolChoice{Type: "function"}),
		"map of choice": llms.WithToolChoice(map[string]any{"type": "function"}),
		"behaviour":     llms.WithFunctionCallBehavior("f"),
		"metadata":      llms.WithMetadata(map[string]any{"user": 7}),
		"kind of tool":  llms.WithTools([]llms.Tool{{Type: "retrieval", Function: &llms.FunctionDefinition{}}}),
		"no function":   llms.WithTools([]llms.Tool{{Type: "function"}}),
	} {
		t.Run(name, func(t *testing.T) {
			m, script := outward()
			_, err := m.GenerateContent(t.Context(), user, c)
			var bad *langchain.UnsupportedError
			if !errors.As(err, &bad) || bad.Field == "" || !llms.IsNotImplementedError(err) || len(script.Requests()) != 0 {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("JSON of a model without schemas", func(t *testing.T) {
		_, err := langchain.Model(modeltest.New(models.Info{Name: "m"})).GenerateContent(t.Context(), user, llms.WithJSONMode())
		if !llms.IsNotImplementedError(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("parameters", func(t *testing.T) {
		m, _ := outward()
		_, err := m.GenerateContent(t.Context(), user, llms.WithFunctions([]llms.FunctionDefinition{{Name: "f", Parameters: func() {}}}))
		if !llms.IsInvalidRequestError(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestTheirMessages(t *testing.T) {
	call := func(id string) llms.ToolCall {
		return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "f" + id, Arguments: `{}`}}
	}
	ours := func(ids ...string) (out []models.ToolCall) {
		for _, id := range ids {
			out = append(out, models.ToolCall{ID: id, Name: "f" + id, Args: json.RawMessage(`{}`)})
		}
		return out
	}
	message := func(role llms.ChatMessageType, parts ...llms.ContentPart) llms.MessageContent {
		return llms.MessageContent{Role: role, Parts: parts}
	}
	text := func(s string) llms.ContentPart { return llms.TextContent{Text: s} }
	ai, tool := llms.ChatMessageTypeAI, llms.ChatMessageTypeTool
	want := []models.Message{
		{Role: models.Assistant, Text: "Hm.", Calls: ours("1", "2")},
		{Role: models.ToolRole, CallID: "1", Text: "a"}, {Role: models.ToolRole, CallID: "2", Text: "b"},
	}
	for name, c := range map[string]struct {
		in   []llms.MessageContent
		want []models.Message
	}{
		"roles": {[]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "s"), llms.TextParts(llms.ChatMessageTypeHuman, "a", "b"), llms.TextParts(llms.ChatMessageTypeGeneric, "c"), llms.TextParts(ai, "d"), llms.TextParts(ai, "e")},
			[]models.Message{{Role: models.System, Text: "s"}, {Role: models.User, Text: "a\nb"}, {Role: models.User, Text: "c"}, {Role: models.Assistant, Text: "d"}, {Role: models.Assistant, Text: "e"}}},
		"a turn in one message": {[]llms.MessageContent{message(ai, text("Hm."), call("1"), call("2")), message(tool, llms.ToolCallResponse{ToolCallID: "1", Content: "a"}, llms.ToolCallResponse{ToolCallID: "2", Content: "b"})}, want},
		"a message a part":      {[]llms.MessageContent{message(ai, text("Hm.")), message(ai, call("1")), message(ai, call("2")), message(tool, llms.ToolCallResponse{ToolCallID: "1", Content: "a"}), message(tool, llms.ToolCallResponse{ToolCallID: "2", Content: "b"})}, want},
		"functions":             {[]llms.MessageContent{message(ai, text("Hm."), call("1"), call("2")), message(llms.ChatMessageTypeFunction, llms.ToolCallResponse{Name: "f1", Content: "a"}), message(llms.ChatMessageTypeFunction, llms.ToolCallResponse{Name: "f2", Content: "b"})}, want},
		"cached":                {[]llms.MessageContent{message(llms.ChatMessageTypeHuman, llms.WithCacheControl(text("a"), &llms.CacheControl{Type: "ephemeral"}))}, []models.Message{{Role: models.User, Text: "a"}}},
		"a call of nothing":     {[]llms.MessageContent{message(ai, llms.ToolCall{ID: "1"})}, []models.Message{{Role: models.Assistant, Calls: []models.ToolCall{{ID: "1"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, script := outward(modeltest.Say("Hi."))
			if _, err := m.GenerateContent(t.Context(), c.in); err != nil {
				t.Fatal(err)
			}
			if got, want := encode(t, script.Requests()[0].Messages), encode(t, c.want); got != want {
				t.Errorf("asked\n%s\nwant\n%s", got, want)
			}
		})
	}
	for name, c := range map[string]struct {
		in llms.MessageContent
		is error
	}{
		"role":                {message("wizard", text("a")), models.ErrInvalidRequest},
		"image":               {message(llms.ChatMessageTypeHuman, llms.ImageURLContent{URL: "x"}), errors.ErrUnsupported},
		"binary":              {message(llms.ChatMessageTypeHuman, llms.BinaryContent{}), errors.ErrUnsupported},
		"nil part":            {message(llms.ChatMessageTypeHuman, nil), errors.ErrUnsupported},
		"text of a tool":      {message(tool, text("a")), models.ErrInvalidRequest},
		"text with a result":  {message(tool, text("a"), llms.ToolCallResponse{}), models.ErrInvalidRequest},
		"result of a user":    {message(llms.ChatMessageTypeHuman, llms.ToolCallResponse{}), models.ErrInvalidRequest},
		"call of a user":      {message(llms.ChatMessageTypeHuman, call("1")), models.ErrInvalidRequest},
		"empty tool message":  {message(tool), models.ErrInvalidRequest},
		"cached image":        {message(llms.ChatMessageTypeHuman, llms.WithCacheControl(llms.BinaryContent{}, nil)), errors.ErrUnsupported},
		"call beside results": {message(tool, call("1"), llms.ToolCallResponse{}), models.ErrInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			m, script := outward()
			if _, err := m.GenerateContent(t.Context(), []llms.MessageContent{c.in}); !errors.Is(err, c.is) || len(script.Requests()) != 0 {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOurResponseBecomesTheirs(t *testing.T) {
	m, _ := outward(
		modeltest.Step{Text: "I compute.", Reasoning: "Hm.", Calls: []models.ToolCall{{Name: "f", Args: json.RawMessage(`{}`)}, {ID: "x", Name: "g"}},
			Usage: &cost.Usage{Input: 9, Output: 4, CacheRead: 5, Reasoning: 2, Known: true}},
		modeltest.NoUsage(modeltest.Step{Text: "", Finish: models.FinishFilter}),
		modeltest.Step{Text: "a", Finish: models.FinishLength})
	got, err := m.GenerateContent(t.Context(), user)
	if err != nil || len(got.Choices) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	c := got.Choices[0]
	if c.Content != "I compute." || c.ReasoningContent != "Hm." || c.StopReason != "tool_calls" || len(c.ToolCalls) != 2 || c.FuncCall != c.ToolCalls[0].FunctionCall {
		t.Errorf("%+v", c)
	}
	var calls []string
	for _, call := range c.ToolCalls {
		calls = append(calls, fmt.Sprint(call.ID, call.Type, *call.FunctionCall))
	}
	if fmt.Sprint(calls) != "[call_1function{f {}} xfunction{g }]" {
		t.Errorf("calls %v", calls)
	}
	if info := fmt.Sprint(c.GenerationInfo); info != "map[CompletionTokens:4 PromptCachedTokens:5 PromptTokens:9 ReasoningTokens:2 ThinkingContent:Hm. ThinkingTokens:2 TotalTokens:13]" {
		t.Errorf("info %s", info)
	}
	for _, want := range []string{"content_filter", "length"} {
		got, err = m.GenerateContent(t.Context(), user)
		if err != nil || got.Choices[0].StopReason != want || (len(got.Choices[0].GenerationInfo) == 0) != (want == "content_filter") {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
}

func TestOurErrorsBecomeTheirs(t *testing.T) {
	for name, c := range map[string]struct {
		step modeltest.Step
		is   func(error) bool
	}{
		"rate":        {modeltest.RateLimited(time.Second), llms.IsRateLimitError},
		"key":         {modeltest.Step{Status: 401}, llms.IsAuthenticationError},
		"no model":    {modeltest.Step{Status: 404}, func(err error) bool { return errors.Is(err, &llms.Error{Code: llms.ErrCodeResourceNotFound}) }},
		"bad request": {modeltest.Step{Status: 400}, llms.IsInvalidRequestError},
		"server":      {modeltest.Step{Status: 503}, llms.IsProviderUnavailableError},
		"cut":         {modeltest.Cut("Hello", 2), llms.IsProviderUnavailableError},
		"overflow":    {modeltest.Fail(models.ErrContextOverflow), llms.IsTokenLimitError},
		"budget":      {modeltest.Fail(cost.ErrExceeded), llms.IsQuotaExceededError},
		"no meter":    {modeltest.Fail(cost.ErrNoMeter), llms.IsQuotaExceededError},
		"cancelled":   {modeltest.Fail(context.Canceled), llms.IsCanceledError},
		"deadline":    {modeltest.Fail(context.DeadlineExceeded), llms.IsTimeoutError},
		"another":     {modeltest.Fail(errors.New("what?")), func(err error) bool { return errors.Is(err, &llms.Error{Code: llms.ErrCodeUnknown}) }},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := outward(c.step)
			got, err := m.GenerateContent(t.Context(), user)
			var ours *models.Error
			var theirs *llms.Error
			if got != nil || !c.is(err) || !errors.As(err, &ours) || !errors.As(err, &theirs) || theirs.Provider != "us" {
				t.Errorf("%+v, %v", got, err)
			}
			if c.step.Err != nil && !errors.Is(err, c.step.Err) {
				t.Errorf("lost its cause: %v", err)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		none := modeltest.Func(models.Info{Name: "m"}, func(context.Context, *models.Request) (*models.Response, error) { return nil, nil })
		if got, err := langchain.Model(none).GenerateContent(t.Context(), user); got != nil || !errors.Is(err, models.ErrMalformed) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("no messages", func(t *testing.T) {
		m, _ := outward()
		if _, err := m.GenerateContent(t.Context(), nil); !llms.IsInvalidRequestError(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestOurStreamBecomesTheirs(t *testing.T) {
	m, _ := outward(modeltest.Step{Text: "Hello you", Reasoning: "Hm."})
	var text, both string
	_, err := m.GenerateContent(t.Context(), user,
		llms.WithStreamingFunc(func(_ context.Context, b []byte) error { text += string(b) + "|"; return nil }),
		llms.WithStreamingReasoningFunc(func(_ context.Context, r, b []byte) error { both += string(r) + string(b) + "|"; return nil }))
	if err != nil || text != "Hell|o yo|u|" || both != "Hm.|Hell|o yo|u|" {
		t.Errorf("%q %q, %v", text, both, err)
	}
}

func TestCall(t *testing.T) {
	m, script := outward(modeltest.Say("Hi."))
	//lint:ignore SA1019 langchaingo's interface still has it
	got, err := m.Call(t.Context(), "Hello.", llms.WithMaxTokens(5))
	if err != nil || got != "Hi." || script.Requests()[0].MaxOutput != 5 {
		t.Errorf("%q, %v", got, err)
	}
}

// A call that its consumer stopped fails, though the model hears it too late.
func TestTheirStreamingFuncStopsTheCall(t *testing.T) {
	enough := errors.New("enough")
	m, _ := outward(modeltest.Step{Text: "Hello you", Deaf: true})
	calls := 0
	got, err := m.GenerateContent(t.Context(), user, llms.WithStreamingFunc(func(context.Context, []byte) error { calls++; return enough }))
	if got != nil || !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%+v, %v after %d calls", got, err, calls)
	}
}

func TestTheirStreamingFuncEndsTheContext(t *testing.T) {
	enough := errors.New("enough")
	var cause error
	m := modeltest.Func(models.Info{Name: "m"}, func(ctx context.Context, r *models.Request) (*models.Response, error) {
		r.OnDelta(models.Delta{Text: "Hel"})
		cause = context.Cause(ctx)
		return nil, ctx.Err()
	})
	_, err := langchain.Model(m).GenerateContent(t.Context(), user, llms.WithStreamingFunc(func(context.Context, []byte) error { return enough }))
	if !errors.Is(err, enough) || cause != enough {
		t.Errorf("%v, %v", err, cause)
	}
}

// What was passed on cannot be called back.
func TestAStreamThatRestartsIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		first modeltest.Step
		fails bool
	}{"after text": {modeltest.Cut("Hello you", 6), true}, "before": {modeltest.RateLimited(0), false}} {
		t.Run(name, func(t *testing.T) {
			script := modeltest.New(models.Info{Name: "m"}, c.first, modeltest.Say("Hello"))
			m := langchain.Model(models.Retry(script, models.RetryPolicy{Wait: 1}))
			var text string
			_, err := m.GenerateContent(t.Context(), user, llms.WithStreamingFunc(func(_ context.Context, b []byte) error { text += string(b); return nil }))
			if (err != nil) != c.fails || !c.fails && text != "Hello" || c.fails && text != "Hello " {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
