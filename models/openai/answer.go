package openai

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

const (
	maxReply = 64 << 20 // bytes of a plain body, or of what a stream delivers
	maxCalls = 1024     // of tools in one reply
)

var (
	errTooLong  = errors.New("the reply is longer than 64 MiB")
	errManyCall = errors.New("the reply has more than 1024 tool calls")
	errNoChoice = errors.New("the reply has no choice")
	errContent  = errors.New("the reply's content is neither text nor a list of parts")
	errGaveUp   = errors.New("the server gave up on the reply")
)

// answer gathers a reply, whole or in chunks.
type answer struct {
	r     *models.Request
	start time.Time

	any     bool // something arrived
	choice  bool // so did a choice
	model   string
	usage   cost.Tally
	finish  string // as the server said it; "" = not yet
	refused bool

	text, reasoning strings.Builder
	calls           joiner
	listed          []models.ToolCall // of a whole message
	size            int               // bytes kept

	promptIDs, outputIDs []int32
	logprobs             []float32
}

// take adds a chunk, or a whole body, and hands on what it brings. Of several
// choices the first is taken: nobody asked for alternatives.
func (a *answer) take(p *reply, whole bool) error {
	a.about(p)
	for i := range p.Choices {
		if n, _ := integer(p.Choices[i].Index); n == 0 || whole {
			return a.takeChoice(&p.Choices[i])
		}
	}
	return nil
}

// about notes what is beside the choices.
func (a *answer) about(p *reply) {
	a.any = true
	if p.Model != "" {
		a.model = string(p.Model)
	}
	a.usage.Counts(p.Usage)
	a.usage.Served(string(p.Service))
	if a.r.Tokens && a.promptIDs == nil {
		a.promptIDs = ids(p.PromptIDs)
	}
}

func (a *answer) takeChoice(c *choice) error {
	a.choice = true
	a.usage.Counts(c.Usage)
	if c.Finish != "" {
		a.finish = string(c.Finish)
	}
	if a.r.Tokens {
		if a.promptIDs == nil {
			a.promptIDs = ids(c.PromptIDs)
		}
		a.outputIDs = append(a.outputIDs, ids(c.TokenIDs)...)
		a.logprobs = append(a.logprobs, logprobs(c.Logprobs)...)
		a.size += len(c.TokenIDs) + len(c.Logprobs)
	}
	d := models.Delta{Text: c.Text}
	switch m := c.Delta; {
	case m != nil:
		if err := a.takeContent(m, &d); err != nil {
			return err
		}
		if f := m.FunctionCall; f != nil && len(m.Calls) == 0 {
			a.size += a.calls.add([]callIn{{Function: *f}})
		}
		a.size += a.calls.add(m.Calls)
	case c.Message != nil && a.text.Len() == 0 && len(a.calls.calls) == 0:
		if err := a.takeContent(c.Message, &d); err != nil {
			return err
		}
		a.listed = whole(c.Message)
	}
	a.text.WriteString(d.Text)
	a.reasoning.WriteString(d.Reasoning)
	a.size += len(d.Text) + len(d.Reasoning)
	switch {
	case a.size > maxReply:
		return errTooLong
	case len(a.calls.calls) > maxCalls || len(a.listed) > maxCalls:
		return errManyCall
	}
	if a.r.OnDelta != nil && d != (models.Delta{}) {
		a.r.OnDelta(d)
	}
	return nil
}

// takeContent adds a message's words to d.
func (a *answer) takeContent(m *content, d *models.Delta) error {
	text, reasoning, ok := texts(m.Content)
	if !ok {
		return errContent
	}
	// Some servers send both spellings with the same words.
	more := wire.Scalar(m.ReasoningContent)
	if more == "" {
		more = wire.Scalar(m.Reasoning)
	}
	d.Text += text + string(m.Refusal)
	d.Reasoning += reasoning + more
	a.refused = a.refused || m.Refusal != ""
	return nil
}

// response is what has arrived. Whether it is all is not its business.
func (a *answer) response() *models.Response {
	u := a.usage.Usage()
	u.Requests, u.Wall = 1, time.Since(a.start)
	out := &models.Response{Text: a.text.String(), Reasoning: a.reasoning.String(), Model: a.model, Usage: u}
	if out.Calls = a.listed; out.Calls == nil {
		out.Calls = a.calls.list()
	}
	out.Finish = finish(a.finish, a.refused, len(out.Calls) > 0)
	if a.promptIDs != nil || a.outputIDs != nil || a.logprobs != nil {
		out.Sample = &models.Sample{Prompt: a.r.Prompt, PromptIDs: a.promptIDs, OutputIDs: a.outputIDs, Logprobs: a.logprobs}
		if a.outputIDs != nil && len(a.outputIDs) != len(a.logprobs) {
			out.Sample.Logprobs = nil // nobody knows which belongs to which
		}
	}
	return out
}

// partial is what has arrived of a reply that failed, or nil.
func (a *answer) partial() *models.Response {
	if !a.any {
		return nil
	}
	r := a.response()
	if a.finish == "" {
		r.Finish = ""
	}
	return r
}

// done returns the response after the server said that it is complete, or why
// it is not.
func (a *answer) done() (*models.Response, error) {
	switch {
	case !a.choice:
		return nil, fmt.Errorf("%w: %w", models.ErrMalformed, errNoChoice)
	case a.finish == "abort" || a.finish == "error": // vLLM and SGLang, OpenRouter
		return nil, fmt.Errorf("%w: %w (%s)", models.ErrTruncated, errGaveUp, a.finish)
	}
	return a.response(), nil
}

func finish(said string, refused, calls bool) models.Finish {
	switch {
	case refused:
		return models.FinishFilter
	case said == "tool_calls", said == "function_call":
		return models.FinishCalls
	case said == "content_filter":
		return models.FinishFilter
	case said == "model_length", said == "insufficient_system_resource": // Mistral and DeepSeek: the text is cut, too
		return models.FinishLength
	case said == "", said == "stop", said == "eos": // Together says eos
		if calls { // some servers say stop
			return models.FinishCalls
		}
		return models.FinishStop
	}
	return models.Finish(said)
}
