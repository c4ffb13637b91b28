package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

var (
	errReported = errors.New("the server reported an error in its reply")
	errNoKey    = errors.New("no key was sent: set Config.Key")
	errBadKey   = errors.New("the key was refused: check Config.Key, and that it belongs to this server")
	errQuota    = errors.New("the account has no quota left: check its plan and billing")
)

// fail completes an error; a is nil if no reply began.
func (m *client) fail(a *answer, e models.Error) *models.Error {
	e.Model, e.Provider = m.info.Name, m.info.Provider
	if a != nil {
		e.Partial = a.partial()
	}
	return &e
}

// malformed is the error of a reply that makes no sense.
func (m *client) malformed(err error, body []byte) *models.Error {
	e := &models.Error{Retryable: true, Err: fmt.Errorf("%w: %w", models.ErrMalformed, err), Body: m.readable(body)}
	if strings.HasPrefix(e.Body, "<") {
		e.Retryable, e.Err = false, fmt.Errorf("%w: %w", models.ErrMalformed, m.hint())
	}
	return e
}

func (m *client) hint() error {
	return fmt.Errorf("%s://%s%s has no such API: is BaseURL right? it usually ends in /v1", m.base.Scheme, m.base.Host, m.base.Path)
}

// reported is the error that a reply with status 200 holds.
func (m *client) reported(p *reply, body []byte, a *answer) *models.Error {
	if !wire.IsNull(p.Usage) {
		a.about(p)
	}
	c := complain(body)
	e := &models.Error{Body: m.readable(body), Err: errReported}
	code, _ := strconv.Atoi(c.code)
	known := code >= 400 && code <= 599
	misfit := m.misfit(c, code, a.r)
	if known && !a.any {
		e.Status = code
	}
	switch {
	case c.overflow():
		e.Err = m.tooLong(c)
	case c.quota():
		e.Err = errQuota
	case misfit != nil:
		e.Err = misfit
	default:
		e.Retryable = known && wire.Retryable(code) || !known && c.kind != "invalid_request_error"
	}
	return e
}

// status is the error of a reply with another status than success.
func (m *client) status(resp *http.Response, r *models.Request) models.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what there is must do
	h := resp.Header
	e := models.Error{
		Status:     resp.StatusCode,
		Sent:       true,
		Retryable:  wire.Retryable(resp.StatusCode),
		RetryAfter: wire.RetryAfter(h),
		Body:       m.readable(body),
	}
	c := complain(body)
	switch s := resp.StatusCode; {
	case s < 400:
		e.Err = wire.Redirected(h)
	case (s == 400 || s == 413 || s == 422 || s == 500) && c.overflow():
		e.Retryable, e.Err = false, m.tooLong(c)
	case s == 429 && c.quota():
		e.Retryable, e.Err = false, errQuota
	case s == 401 && m.key == "" && m.header.Get("Authorization") == "":
		e.Err = errNoKey
	case s == 401:
		e.Err = errBadKey
	case (s == 404 || s == 405) && (!c.structured || strings.Contains(c.message, "Invalid URL")):
		e.Err = m.hint()
	case s == 400 || s == 404 || s == 422 || s == 500 || s == 501:
		if err := m.misfit(c, s, r); err != nil {
			e.Retryable, e.Err = false, err
		}
	}
	return e
}

// complaint is what an error body says.
type complaint struct {
	message, kind, code string
	structured          bool // it is an error object with a message
}

// fault reports whether a reply is an error.
func (p *reply) fault() bool {
	switch string(p.Error) {
	case "", "null", `""`, "false", "{}":
		return p.Object == "error" // vLLM before 0.10
	}
	return true
}

// complain reads an error body in any of the shapes that servers use; what it
// cannot read becomes the message.
func complain(body []byte) complaint {
	type object struct {
		Message wire.Lenient `json:"message"`
		Type    wire.Lenient `json:"type"`
		Code    wire.Lenient `json:"code"`
	}
	var outer struct {
		object
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(body, &outer)
	o := outer.object
	if len(outer.Error) > 0 && outer.Error[0] == '{' {
		o = object{}
		_ = json.Unmarshal(outer.Error, &o)
	} else if s := wire.Scalar(outer.Error); s != "" {
		o.Message = wire.Lenient(s)
	}
	if o.Message == "" {
		return complaint{message: string(body), kind: string(o.Type), code: string(o.Code)}
	}
	return complaint{string(o.Message), string(o.Type), string(o.Code), true}
}

func (c complaint) quota() bool {
	return c.code == "insufficient_quota" || c.kind == "insufficient_quota"
}

func (c complaint) overflow() bool {
	if c.code == "context_length_exceeded" || c.kind == "exceed_context_size_error" {
		return true
	}
	message := strings.ToLower(c.message)
	return slices.ContainsFunc([]string{"context length", "context size", "context window", "prompt is too long",
		"maximum model length", "exceeds the maximum allowed length", // older vLLM, SGLang
		"should not exceed max_seq_len", "default_max_tokens", "greater than `max_seq_len`"}, // TensorRT-LLM
		func(s string) bool { return strings.Contains(message, s) })
}

// readable makes a text for people of a body, without the key, should the server
// repeat it.
func (m *client) readable(b []byte) string { return wire.Readable(string(b), m.key) }
