package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

const (
	maxCalls = 1024 // of tools in one reply
	// A server ends a reply in silence when a token comes more than 30 times in a row.
	maxRepeats = 30
)

var (
	errManyCalls = errors.New("the reply has more than 1024 tool calls")
	errLoop      = errors.New("the model repeated one token until the server gave up: raise Temperature, or set repeat_penalty in Config.Options")
	errLoaded    = errors.New("the server loaded or unloaded the model and answered nothing")
	errUnread    = errors.New("the server left a tool call in the text: try again, or write the prompt yourself (Request.Prompt)")
	errNoJSON    = errors.New("the text is not the JSON that Request.Schema asks for: the server ignored the schema; use Request.Prompt, or Think false")
)

// answer gathers a reply.
type answer struct {
	r     *models.Request
	start time.Time

	any             bool // a line arrived
	model, reason   string
	text, reasoning strings.Builder
	calls           []models.ToolCall
	input, output   int64
	cached          int64
	logprobs        []float32

	last    []byte // the newest piece
	repeats int    // of it
}

// take adds a line and hands on what it brings. end: it was the last one.
func (a *answer) take(l *line) (end bool, e *models.Error) {
	begun := a.text.Len()+a.reasoning.Len()+len(a.calls) > 0
	a.any = true
	if len(l.model) > 0 && a.model == "" {
		a.model = string(l.model)
	}
	a.input, a.output, a.cached = max(a.input, l.input), max(a.output, l.output), max(a.cached, l.cached)
	if l.fault != "" {
		return false, reported(l.fault, begun)
	}
	a.text.Write(l.text)
	a.reasoning.Write(l.thinking)
	a.logprobs = append(a.logprobs, l.logprobs...)
	for _, c := range l.calls {
		a.call(c)
	}
	if len(a.calls) > maxCalls {
		return false, &models.Error{Retryable: true, Err: fmt.Errorf("%w: %w", models.ErrMalformed, errManyCalls)}
	}
	if a.r.OnDelta != nil && len(l.text)+len(l.thinking) > 0 {
		a.r.OnDelta(models.Delta{Text: string(l.text), Reasoning: string(l.thinking)})
	}
	if l.done {
		a.reason = or(l.reason, "stop")
		return true, nil
	}
	a.note(l)
	return false, nil
}

// note counts repeated pieces as servers do.
func (a *answer) note(l *line) {
	piece := bytes.TrimSpace(l.text)
	if len(piece) == 0 {
		piece = bytes.TrimSpace(l.thinking)
	}
	if bytes.Equal(piece, a.last) {
		a.repeats++
		return
	}
	a.last, a.repeats = append(a.last[:0], piece...), 0
}

// call adds a call; one that is sent twice, with its id, counts once.
func (a *answer) call(in callIn) {
	c := models.ToolCall{ID: string(in.ID), Name: string(in.Function.Name)}
	if args := in.Function.Arguments; !wire.IsNull(args) {
		c.Args = args
		if args[0] == '"' { // as OpenAI's protocol has it
			c.Args = json.RawMessage(wire.Scalar(args))
		}
	}
	if c.ID == "" && c.Name == "" && len(c.Args) == 0 {
		return
	}
	for _, had := range a.calls {
		if c.ID != "" && had.ID == c.ID && had.Name == c.Name && bytes.Equal(had.Args, c.Args) {
			return
		}
	}
	a.calls = append(a.calls, c)
}

// response is what has arrived. Whether it is all is not its business.
func (a *answer) response() *models.Response {
	out := &models.Response{
		Text:      a.text.String(),
		Reasoning: a.reasoning.String(),
		Calls:     a.calls,
		Model:     a.model,
		Finish:    models.Finish(a.reason),
		Usage:     cost.Usage{Requests: 1, Wall: time.Since(a.start)},
	}
	if len(a.calls) > 0 && a.reason == "stop" {
		out.Finish = models.FinishCalls
	}
	// A count that is left out is unknown: some servers do so for cached prompts.
	if u := &out.Usage; a.input > 0 && a.output > 0 {
		u.Input, u.Output, u.CacheRead, u.Known = a.input, a.output, min(a.cached, a.input), true
	}
	if a.r.Tokens && len(a.logprobs) > 0 {
		out.Sample = &models.Sample{Prompt: a.r.Prompt, Logprobs: a.logprobs}
	}
	return out
}

// failed completes the error of a reply with what had arrived.
func (a *answer) failed(e *models.Error) *models.Error {
	e.Sent = true
	if errors.Is(e.Err, models.ErrTruncated) && a.repeats >= maxRepeats-1 {
		e.Err = fmt.Errorf("%w: %w", models.ErrTruncated, errLoop)
	}
	if a.any {
		e.Partial = a.response()
	}
	return e
}

// done returns the response after the server said that it is complete, or why
// it is none. The window is what a prompt cannot fill.
func (a *answer) done(window int64) (*models.Response, *models.Error) {
	text := strings.TrimSpace(a.text.String())
	bad := func(err error, retry bool) (*models.Response, *models.Error) {
		return nil, &models.Error{Retryable: retry, Err: fmt.Errorf("%w: %w", models.ErrMalformed, err)}
	}
	switch {
	case a.reason == "load" || a.reason == "unload":
		return bad(errLoaded, true)
	case a.input >= window:
		return nil, &models.Error{Err: fmt.Errorf("%w: %d tokens of %d: it was cut, or leaves no room for an answer; raise Config.Context, or send less", models.ErrContextOverflow, a.input, window)}
	case text == "" && len(a.calls) == 0:
		if err := a.empty(); err != nil {
			return bad(err, a.reason != "length")
		}
	case len(a.r.Tools) > 0 && len(a.calls) == 0 && (strings.Contains(text, "<tool_call>") || strings.Contains(text, "<function=")):
		return bad(errUnread, true)
	case len(a.r.Schema) > 0 && a.reason == "stop" && len(a.calls) == 0 && !json.Valid([]byte(text)):
		return bad(errNoJSON, true)
	}
	return a.response(), nil
}

// empty says why there is neither text nor a call; nil if the output cap was
// reached in mid-reasoning, which Finish says.
func (a *answer) empty() error {
	switch {
	case a.reasoning.Len() > 0 && a.reason == "length":
		return nil
	case a.reasoning.Len() > 0:
		return fmt.Errorf("%w: all went into its reasoning; the model did not go on, or the server took the answer for reasoning: try again, or with Think false", ErrEmpty)
	case a.reason == "length":
		return fmt.Errorf("%w: the output cap was reached before anything could be shown: raise MaxOutput", ErrEmpty)
	case len(a.r.Tools) > 0:
		return fmt.Errorf("%w: %d tokens were written and dropped, as servers do with calls of unknown tools or that they cannot read: try again, or write the prompt yourself (Request.Prompt)", ErrEmpty, a.output)
	}
	return fmt.Errorf("%w: the model ended at once: try again, or look at the prompt's end", ErrEmpty)
}
