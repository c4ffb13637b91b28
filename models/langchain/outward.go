package langchain

import (
	"context"
	"errors"
	"math"
	"net/http"
	"reflect"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Model makes a model of langchaingo of m, or nil of nil. It is safe for
// concurrent use. The context of a call is passed on, so a metered model charges
// the meter that is in it (cost.NewContext), however deep in a chain the call is
// made.
//
// Every error is an *llms.Error, with m's error as its cause. Parts that are
// neither text nor tool calls and their results, and options that
// models.Request has no word for, are refused with an *UnsupportedError as the
// cause; hints about caching are passed over. WithModel may only name m itself.
// A stream that restarts (models.Retry, models.Fallback) after text was passed
// on is an error, since what was passed on cannot be called back.
//
// The response has one choice, with PromptTokens, CompletionTokens and
// TotalTokens in its GenerationInfo if they are known.
func Model(m models.Model) llms.Model {
	if v := reflect.ValueOf(m); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return &outward{m}
}

type outward struct{ m models.Model }

// Call answers a prompt.
func (o *outward) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, o, prompt, options...)
}

// GenerateContent implements llms.Model.
func (o *outward) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	info := o.m.Info()
	opts := unset()
	for _, set := range options {
		if set != nil {
			set(&opts)
		}
	}
	r, err := request(info, messages, &opts)
	if err != nil {
		return nil, outwardError(info, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stream *listener
	if opts.StreamingFunc != nil || opts.StreamingReasoningFunc != nil {
		stream = &listener{ctx: ctx, stop: cancel, text: opts.StreamingFunc, both: opts.StreamingReasoningFunc}
		r.OnDelta = stream.hear
	}
	resp, err := o.m.Generate(ctx, r)
	if stream != nil {
		if failed := stream.failure(); failed != nil {
			err = failed
		}
	}
	switch {
	case err != nil:
		return nil, outwardError(info, err)
	case resp == nil:
		return nil, outwardError(info, models.ErrMalformed)
	}
	return choice(resp, firstID(r.Messages)), nil
}

// unset are options of which Temperature tells whether it was set: in
// langchaingo 0 is both.
func unset() llms.CallOptions { return llms.CallOptions{Temperature: math.NaN()} }

// errRestarted is a stream that began again.
var errRestarted = errors.New("langchain: the stream restarted after text had been passed on; stream from a model without Retry and Fallback, or do not stream")

// listener passes deltas on to langchaingo's functions, and stops the call when
// one of them returns an error.
type listener struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	text func(context.Context, []byte) error
	both func(ctx context.Context, reasoning, text []byte) error

	mu     sync.Mutex
	spoke  bool
	failed error
}

func (l *listener) hear(d models.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	var err error
	switch {
	case d.Restart && l.spoke:
		err = errRestarted
	case d.Text == "" && d.Reasoning == "":
		return
	}
	if err == nil && l.text != nil && d.Text != "" {
		err = l.text(l.ctx, []byte(d.Text))
	}
	if err == nil && l.both != nil {
		err = l.both(l.ctx, []byte(d.Reasoning), []byte(d.Text))
	}
	l.spoke = true
	if err != nil {
		l.failed = err
		l.stop(err)
	}
}

func (l *listener) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// choice is a response as langchaingo has it, in the words of its OpenAI
// provider.
func choice(r *models.Response, id int) *llms.ContentResponse {
	c := &llms.ContentChoice{Content: r.Text, ReasoningContent: r.Reasoning, StopReason: string(r.Finish), GenerationInfo: map[string]any{}}
	switch r.Finish {
	case models.FinishCalls:
		c.StopReason = "tool_calls"
	case models.FinishFilter:
		c.StopReason = "content_filter"
	}
	for i, call := range r.Calls {
		if call.ID == "" {
			call.ID = callID(id + i)
		}
		c.ToolCalls = append(c.ToolCalls, llms.ToolCall{ID: call.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: string(call.Args)}})
	}
	if len(c.ToolCalls) > 0 {
		c.FuncCall = c.ToolCalls[0].FunctionCall
	}
	if r.Reasoning != "" {
		c.GenerationInfo["ThinkingContent"] = r.Reasoning
	}
	if u := r.Usage; u.Known {
		c.GenerationInfo["PromptTokens"] = int(u.Input)
		c.GenerationInfo["CompletionTokens"] = int(u.Output)
		c.GenerationInfo["TotalTokens"] = int(u.Tokens())
		c.GenerationInfo["PromptCachedTokens"] = int(u.CacheRead)
		c.GenerationInfo["ReasoningTokens"] = int(u.Reasoning)
		c.GenerationInfo["ThinkingTokens"] = int(u.Reasoning)
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{c}}
}

// outwardError is an error of ours in langchaingo's classes.
func outwardError(info models.Info, err error) error {
	code := llms.ErrCodeUnknown
	var e *models.Error
	switch errors.As(err, &e); {
	case errors.Is(err, context.Canceled):
		code = llms.ErrCodeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		code = llms.ErrCodeTimeout
	case errors.Is(err, errors.ErrUnsupported):
		code = llms.ErrCodeNotImplemented
	case errors.Is(err, models.ErrInvalidRequest):
		code = llms.ErrCodeInvalidRequest
	case errors.Is(err, models.ErrContextOverflow):
		code = llms.ErrCodeTokenLimit
	case errors.Is(err, cost.ErrExceeded), errors.Is(err, cost.ErrNoMeter), errors.Is(err, cost.ErrUnpriced):
		code = llms.ErrCodeQuotaExceeded
	case e == nil:
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		code = llms.ErrCodeAuthentication
	case e.Status == http.StatusNotFound:
		code = llms.ErrCodeResourceNotFound
	case e.Status == http.StatusTooManyRequests:
		code = llms.ErrCodeRateLimit
	case e.Status >= 500, e.Retryable:
		code = llms.ErrCodeProviderUnavailable
	case e.Status >= 400:
		code = llms.ErrCodeInvalidRequest
	}
	return llms.NewError(code, info.Provider, err.Error()).WithCause(err)
}
