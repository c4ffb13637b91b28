package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/langchain"
)

// everything is a provider that may be asked for everything.
var everything = langchain.Config{Provider: langchain.Other, Honours: 255}

func TestRepliesOfUnknownProviders(t *testing.T) {
	call := func(id, name string) llms.ToolCall {
		return llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: name, Arguments: "{}"}}
	}
	usage := map[string]any{"PromptTokens": 9, "CompletionTokens": 4}
	for name, c := range map[string]struct {
		choices []*llms.ContentChoice
		text    string
		finish  models.Finish
		calls   string
		output  int64
	}{
		"one":                      {[]*llms.ContentChoice{{Content: "a", GenerationInfo: usage}}, "a", models.FinishStop, "[]", 4},
		"blocks, usage repeated":   {[]*llms.ContentChoice{nil, {Content: "a", GenerationInfo: usage}, {Content: "b", GenerationInfo: usage}}, "ab", models.FinishStop, "[]", 4},
		"usage of the first":       {[]*llms.ContentChoice{{Content: "a", GenerationInfo: usage}, {Content: "b"}}, "ab", models.FinishStop, "[]", 4},
		"thoughts in the text":     {[]*llms.ContentChoice{{Content: "<thinking>x</thinking>a", GenerationInfo: map[string]any{"ThinkingContent": "x"}}}, "<thinking>x</thinking>a", models.FinishStop, "[]", 0},
		"calls of several choices": {[]*llms.ContentChoice{{ToolCalls: []llms.ToolCall{call("", "f")}}, {ToolCalls: []llms.ToolCall{call("x", "g"), {}}}}, "", models.FinishCalls, "[call_1 f {}] [x g {}] [call_3  ]", 0},
		"a call twice over":        {[]*llms.ContentChoice{{ToolCalls: []llms.ToolCall{call("x", "f")}, FuncCall: &llms.FunctionCall{Name: "f"}}}, "", models.FinishCalls, "[x f {}]", 0},
		"an old function call":     {[]*llms.ContentChoice{{FuncCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}, "", models.FinishCalls, "[call_1 f {}]", 0},
		"the stop reason of one":   {[]*llms.ContentChoice{{Content: "a"}, {Content: "b", StopReason: "max_tokens"}}, "ab", models.FinishLength, "[]", 0},
		"a stop reason of nothing": {[]*llms.ContentChoice{{Content: "a", StopReason: "<nil>"}}, "a", models.FinishStop, "[]", 0},
		"safety":                   {[]*llms.ContentChoice{{Content: "a", StopReason: "FinishReasonSafety"}}, "a", models.FinishFilter, "[]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustNew(t, says(c.choices...), everything).Generate(t.Context(), &models.Request{Messages: hello})
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, c := range got.Calls {
				calls = append(calls, fmt.Sprintf("[%s %s %s]", c.ID, c.Name, c.Args))
			}
			if len(calls) == 0 {
				calls = []string{"[]"}
			}
			if got.Text != c.text || got.Reasoning != "" || got.Finish != c.finish || strings.Join(calls, " ") != c.calls || got.Usage.Output != c.output || got.Usage.Known != (c.output > 0) {
				t.Errorf("%+v, calls %v", got, calls)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	type named int32
	for name, c := range map[string]struct {
		info map[string]any
		want cost.Usage
	}{
		"none":              {nil, cost.Usage{}},
		"zeros":             {map[string]any{"PromptTokens": 0, "CompletionTokens": 0}, cost.Usage{}},
		"half of it":        {map[string]any{"PromptTokens": 0, "CompletionTokens": 4}, cost.Usage{Output: 4}},
		"int32":             {map[string]any{"input_tokens": int32(9), "output_tokens": named(4)}, cost.Usage{Input: 9, Output: 4, Known: true}},
		"unsigned, floats":  {map[string]any{"PromptTokens": uint16(9), "CompletionTokens": 4.9}, cost.Usage{Input: 9, Output: 4, Known: true}},
		"negative":          {map[string]any{"PromptTokens": -9, "CompletionTokens": 4}, cost.Usage{Output: 4}},
		"no numbers":        {map[string]any{"PromptTokens": "9", "CompletionTokens": nil}, cost.Usage{}},
		"NaN":               {map[string]any{"PromptTokens": math.NaN(), "CompletionTokens": math.Inf(1)}, cost.Usage{Output: math.MaxInt64}},
		"too much":          {map[string]any{"InputTokens": uint64(math.MaxUint64), "CacheReadInputTokens": 5, "OutputTokens": 1}, cost.Usage{Input: math.MaxInt64, CacheRead: 5, Output: 1, Known: true}},
		"parts over wholes": {map[string]any{"PromptTokens": 9, "CompletionTokens": 4, "PromptCachedTokens": 90, "ReasoningTokens": 40}, cost.Usage{Input: 9, CacheRead: 9, Output: 4, Reasoning: 4, Known: true}},
		"google":            {map[string]any{"PromptTokens": int32(9), "CompletionTokens": int32(4), "CachedTokens": int32(5), "CacheReadInputTokens": int32(5)}, cost.Usage{Input: 9, CacheRead: 5, Output: 4, Known: true}},
		"cached only":       {map[string]any{"InputTokens": 0, "CacheReadInputTokens": 5, "OutputTokens": 1}, cost.Usage{Input: 5, CacheRead: 5, Output: 1, Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustNew(t, says(&llms.ContentChoice{Content: "a", GenerationInfo: c.info}), everything).Generate(t.Context(), &models.Request{Messages: hello})
			if err != nil {
				t.Fatal(err)
			}
			got.Usage.Wall = 0
			c.want.Requests = 1
			if got.Usage != c.want {
				t.Errorf("got %+v, want %+v", got.Usage, c.want)
			}
		})
	}
}

func TestFailuresOfAnyProvider(t *testing.T) {
	secret := &url.Error{Op: "Post", URL: "https://x.example/v1?key=sk-secret", Err: errors.New("tls: bad certificate")}
	for name, c := range map[string]struct {
		err    error
		is     error
		status int
		retry  bool
	}{
		"neither response nor error": {nil, models.ErrMalformed, 0, false},
		"rate limit, coded":          {llms.NewError(llms.ErrCodeRateLimit, "p", "slow down"), nil, 0, true},
		"unavailable, coded":         {llms.NewError(llms.ErrCodeProviderUnavailable, "p", "gone"), nil, 0, true},
		"quota, coded":               {llms.NewError(llms.ErrCodeQuotaExceeded, "p", "no"), nil, 0, false},
		"tokens, coded":              {llms.NewError(llms.ErrCodeTokenLimit, "p", "no"), models.ErrContextOverflow, 0, false},
		"google":                     {errors.New("googleapi: Error 503: overloaded"), nil, 503, true},
		"status text":                {errors.New("429 Too Many Requests"), nil, 429, true},
		"a number that is none":      {errors.New("the limit is 4096 tokens, 500 left"), nil, 0, false},
		"network":                    {secret, nil, 0, true},
		"timeout of a client":        {errors.New("request timeout: API call exceeded deadline"), nil, 0, true},
		"unknown":                    {errors.New("what?"), nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			llm := fake(func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				return nil, c.err
			})
			got, err := mustNew(t, llm, everything).Generate(t.Context(), &models.Request{Messages: hello})
			e := typed(t, got, err)
			if c.is != nil && !errors.Is(err, c.is) || c.err != nil && !errors.Is(err, c.err) || e.Status != c.status || e.Retryable != c.retry || !e.Sent || e.Partial != nil {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
	t.Run("a long text", func(t *testing.T) {
		llm := fake(func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.New(strings.Repeat("é\x00\xff\n", 1<<18))
		})
		_, err := mustNew(t, llm, everything).Generate(t.Context(), &models.Request{Messages: hello})
		if s := err.Error(); len(s) > 2200 || len(s) < 1000 || strings.ContainsAny(s, "\x00\n") {
			t.Errorf("%d bytes: %.100q", len(s), s)
		}
	})
}

// What a provider streams and what it returns may differ: the consumer ends up
// with what is returned.
func TestDeltasAgreeWithTheReply(t *testing.T) {
	for name, c := range map[string]struct {
		stream []string
		final  string
		want   string
	}{
		"all":             {[]string{"Hel", "", "lo"}, "Hello", "Hel|lo"},
		"none":            {nil, "Hello", "Hello"},
		"a part":          {[]string{"Hel"}, "Hello", "Hel|lo"},
		"something else":  {[]string{`[{"id":"x"}]`}, "Hello", `[{"id":"x"}]|!|Hello`},
		"with more space": {[]string{"Hello", "\n"}, "Hello", "Hello|\n|!|Hello"},
	} {
		t.Run(name, func(t *testing.T) {
			llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				for _, s := range c.stream {
					if err := o.StreamingFunc(ctx, []byte(s)); err != nil {
						return nil, err
					}
				}
				return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: c.final}}}, nil
			})
			var deltas []string
			got, err := mustNew(t, llm, everything).Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(d models.Delta) {
				if d.Restart {
					d.Text = "!"
				}
				deltas = append(deltas, d.Text)
			}})
			if err != nil || got.Text != c.final || strings.Join(deltas, "|") != c.want {
				t.Errorf("%q: %+v, %v", deltas, got, err)
			}
		})
	}
}

// A provider is told at once that nobody listens any more.
func TestCancelInADeltaStopsTheProvider(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var told error
	llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		told = o.StreamingFunc(ctx, []byte("Hel"))
		return nil, told
	})
	got, err := mustNew(t, llm, everything).Generate(ctx, &models.Request{Messages: hello, OnDelta: func(models.Delta) { cancel() }})
	if typed(t, got, err); !errors.Is(told, context.Canceled) {
		t.Errorf("told %v", told)
	}
}

// A provider that streams on after the call is over reaches nobody, and its
// context has ended.
func TestNoDeltaAfterTheReturn(t *testing.T) {
	var late func() error
	var inner context.Context
	llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		inner = ctx
		late = func() error { return o.StreamingFunc(ctx, []byte("late")) }
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a"}}}, nil
	})
	var deltas []models.Delta
	_, err := mustNew(t, llm, everything).Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(d models.Delta) { deltas = append(deltas, d) }})
	if err != nil || late() == nil || len(deltas) != 1 || inner.Err() == nil {
		t.Errorf("%v, %v, %v", deltas, err, inner.Err())
	}
}

// A provider that streams on after it was told to stop is told again.
func TestEndlessStreamIsStopped(t *testing.T) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		for {
			if o.StreamingFunc(ctx, chunk) != nil && o.StreamingFunc(ctx, []byte("!")) != nil {
				return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "all is well"}}}, nil
			}
		}
	})
	got, err := mustNew(t, llm, everything).Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(models.Delta) {}})
	if e := typed(t, got, err); !errors.Is(err, models.ErrMalformed) || e.Partial == nil || len(e.Partial.Text) != 64<<20 {
		t.Errorf("%v", err)
	}
}

// A provider's panic is an error; one of the caller's own goes through.
func TestPanics(t *testing.T) {
	llm := fake(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		if o.StreamingFunc != nil {
			_ = o.StreamingFunc(ctx, []byte("Hel"))
		}
		panic("index out of range")
	})
	m := mustNew(t, llm, everything)
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello})
	if e := typed(t, got, err); !errors.Is(err, models.ErrMalformed) || !strings.Contains(err.Error(), "index out of range") || !e.Sent {
		t.Errorf("%v: %+v", err, e)
	}
	defer func() {
		if v := recover(); v != "mine" {
			t.Errorf("recovered %v", v)
		}
	}()
	_, err = m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(models.Delta) { panic("mine") }})
	t.Errorf("returned %v", err)
}

// A provider that writes into its options does not write into the request.
func TestTheRequestIsKept(t *testing.T) {
	llm := fake(func(_ context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		o.StopWords[0], o.Tools[0].Function.Name, m[0].Role = "y", "y", "y"
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a"}}}, nil
	})
	r := &models.Request{Messages: append([]models.Message(nil), hello...), Stop: []string{"x"}, Tools: []models.ToolDef{addTool}}
	before := show(r)
	if _, err := mustNew(t, llm, everything).Generate(t.Context(), r); err != nil || show(r) != before {
		t.Errorf("%s, %v", show(r), err)
	}
}

// A deadline that strikes is the error, whatever the provider says, and with the
// cause that the caller gave.
func TestDeadline(t *testing.T) {
	for name, end := range map[string]func() (*llms.ContentResponse, error){
		"an error of its own": func() (*llms.ContentResponse, error) { return nil, errors.New("request cancelled") },
		"a partial reply": func() (*llms.ContentResponse, error) {
			return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "Hel"}}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				llm := fake(func(ctx context.Context, _ []llms.MessageContent, _ *llms.CallOptions) (*llms.ContentResponse, error) {
					<-ctx.Done()
					return end()
				})
				why := errors.New("the user went home")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
				defer cancel()
				got, err := mustNew(t, llm, everything).Generate(ctx, &models.Request{Messages: hello})
				e := typed(t, got, err)
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || !e.Sent || (e.Partial != nil) != (name == "a partial reply") {
					t.Errorf("%v: %+v", err, e)
				}
			})
		})
	}
}

// A metered model of langchaingo is charged once, and a cut stream for what came.
func TestMetered(t *testing.T) {
	meter, err := cost.NewMeter("test", cost.Budget{USD: cost.USD(1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := cost.NewContext(t.Context(), meter)
	info := models.Info{Name: "m", Price: cost.Tokens(1, 2)}
	s := serve(t, say(200, anthropicReply))
	if _, err := models.Metered(mustNew(t, s.anthropic(t), langchain.Config{Info: info})).Generate(ctx, &models.Request{Messages: hello}); err != nil {
		t.Fatal(err)
	}
	cut := serve(t, sse(delta("Hello wo", "")))
	_, err = models.Metered(mustNew(t, cut.openai(t), langchain.Config{Info: info})).Generate(ctx, &models.Request{Messages: hello, OnDelta: func(models.Delta) {}})
	if !errors.Is(err, models.ErrTruncated) {
		t.Fatal(err)
	}
	rows := meter.Ledger()
	if len(rows) != 2 || rows[0].USD != cost.Dollars(130e-6+14e-6) || rows[0].Basis != cost.Measured || rows[1].Basis != cost.Estimated || rows[1].Usage.Output != 2 {
		t.Errorf("%+v", rows)
	}
}
