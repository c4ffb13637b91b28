package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// Failures of Ollama's own kind. They are the cause (errors.Is) of a
// *models.Error.
var (
	// ErrNoModel means that the server, or the registry it pulls from, has no such
	// model, or does not show it.
	ErrNoModel = errors.New("no such model: check its name, and pull it first")
	// ErrBusy means that too many calls wait, here or in the server.
	ErrBusy = errors.New("the server is busy")
	// ErrMemory means that the model does not fit into the machine's memory.
	ErrMemory = errors.New("the model does not fit into memory: use a smaller Config.Context, a smaller model or quantisation, or unload others")
	// ErrEmpty means that a reply was done but held neither text nor calls. It
	// comes with models.ErrMalformed.
	ErrEmpty = errors.New("the reply is done but empty")
)

var (
	errReported = errors.New("the server reported an error")
	errSilent   = errors.New("the server did not say why: see its log")
	errRunner   = errors.New("the process that runs the model failed: the server starts another at the next call")
	errTools    = errors.New("the model has no template for tools: write them into Request.Prompt, or use a model that has one")
	errThinking = errors.New("the model cannot be asked to reason, or not so: leave Request.Think unset")
	errAbility  = errors.New("the model is not made for that")
	errSchema   = errors.New("the server cannot use Request.Schema: simplify it")
	errOption   = errors.New("fix Config.Options")
	errSignIn   = errors.New("the server wants a sign-in: run `ollama signin`, or use a local model")
	errCall     = errors.New("the model wrote a tool call that the server cannot read: try again, or write the prompt yourself (Request.Prompt)")
)

// verdicts say what an error's message means, the first that fits. Servers have
// no codes, so the words are all there is.
var verdicts = []struct {
	words []string // any of them
	err   error
	retry bool
}{
	{[]string{"context length", "context size", "context window"}, models.ErrContextOverflow, false},
	{[]string{"does not support tools"}, errTools, false},
	{[]string{"does not support thinking", "think value"}, errThinking, false},
	{[]string{"does not support"}, errAbility, false},
	{[]string{"in format", "invalid format", "grammar"}, errSchema, false},
	{[]string{"must be of type", "must be an array"}, errOption, false},
	{[]string{"system memory", "out of memory", "not enough memory", "insufficient memory", "unable to allocate"}, ErrMemory, false},
	{[]string{"server busy", "maximum pending requests"}, ErrBusy, true},
}

// misread are the words of a parser that failed on what the model wrote. In a
// reply with status 400 they are about the request.
var misread = []string{"failed to parse json", "unexpected end of json input", "invalid character", "cannot unmarshal", "parsing tool call", "looks like object", "xml syntax error"}

// crashed are the words for a process that died.
var crashed = []string{"unexpected eof", "runner", "connection reset", "forcibly closed"}

func contains(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// judge finds the cause that a message stands for; nil if it is unknown.
func judge(message string, ours bool) (err error, retry bool) {
	s := strings.ToLower(message)
	for _, v := range verdicts {
		if contains(s, v.words) {
			return v.err, v.retry
		}
	}
	switch {
	case ours:
	case contains(s, misread):
		return fmt.Errorf("%w: %w", models.ErrMalformed, errCall), true
	case contains(s, crashed):
		return errRunner, true
	}
	return nil, false
}

// reported is the error that a reply with status 200 holds; midway if an answer
// had begun.
func reported(message string, midway bool) *models.Error {
	e := &models.Error{Body: wire.Readable(message, "")}
	e.Err, e.Retryable = judge(message, false)
	if e.Err == nil {
		e.Err, e.Retryable = errReported, true
	}
	if midway && (e.Err == errReported || e.Err == errRunner) {
		e.Err = fmt.Errorf("%w: %w", models.ErrTruncated, e.Err)
	}
	return e
}

// status is the error of a reply with another status than success.
func (c *Client) status(resp *http.Response) models.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what there is must do
	e := models.Error{
		Status:     resp.StatusCode,
		Sent:       true,
		RetryAfter: wire.RetryAfter(resp.Header),
	}
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(body, &object) // what is none stays a text
	message := said(object.Error)
	structured := message != ""
	if !structured {
		message = string(body)
	}
	e.Body = wire.Readable(message, "")
	s := resp.StatusCode
	cause, retry := judge(message, s < 500)
	switch {
	case s < 400:
		e.Err = wire.Redirected(resp.Header)
	case cause != nil:
		e.Err, e.Retryable = cause, retry
	case s == 404 && structured:
		e.Err = ErrNoModel
	case s == 404 || s == 405:
		e.Err = c.hint()
	case s == 401:
		e.Err = errSignIn
	default:
		e.Retryable = retryable(s)
		if s == 503 || s == 429 {
			e.Err = ErrBusy
		} else if e.Body == "" {
			e.Err = errSilent
		}
	}
	return e
}

// retryable: 499 is that somebody cancelled the load that was waited for.
func retryable(status int) bool { return status == 499 || wire.Retryable(status) }

// malformed is the error of a reply that makes no sense.
func (c *Client) malformed(err error, body []byte) *models.Error {
	e := &models.Error{Retryable: true, Err: fmt.Errorf("%w: %w", models.ErrMalformed, err), Body: wire.Readable(string(body), "")}
	if strings.HasPrefix(e.Body, "<") || strings.HasPrefix(e.Body, "Ollama is running") {
		e.Retryable, e.Err = false, fmt.Errorf("%w: %w", models.ErrMalformed, c.hint())
	}
	return e
}

func (c *Client) hint() error {
	return fmt.Errorf("%s://%s%s is not Ollama's API: is BaseURL right? it ends before /api or /v1", c.base.Scheme, c.base.Host, c.base.Path)
}
