package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
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

// cut is the error of a reply that ended early.
func cut(ctx context.Context, err error) *models.Error {
	if end := ended(ctx); end != nil {
		return &models.Error{Err: end}
	}
	e := &models.Error{Retryable: true, Err: models.ErrTruncated}
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		e.Err = fmt.Errorf("%w: %w", models.ErrTruncated, err)
	}
	return e
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
	if !isNull(p.Usage) {
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
		e.Retryable = known && retryable(code) || !known && c.kind != "invalid_request_error"
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
		Retryable:  retryable(resp.StatusCode),
		RetryAfter: retryAfter(h.Get("Retry-After-Ms"), h.Get("Retry-After"), h.Get("Date")),
		Body:       m.readable(body),
	}
	c := complain(body)
	switch s := resp.StatusCode; {
	case s < 400:
		e.Err = fmt.Errorf("redirected to %q: set BaseURL to where that leads", h.Get("Location"))
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
		Message lenient `json:"message"`
		Type    lenient `json:"type"`
		Code    lenient `json:"code"`
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
	} else if s := scalar(outer.Error); s != "" {
		o.Message = lenient(s)
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

func retryable(status int) bool {
	switch status {
	case 408, 409, 425, 429:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return status >= 500
}

// unsent is the error of a request without a response.
func (m *client) unsent(e *sendError) models.Error {
	err := e.err
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address, whose query may hold a key
	}
	if e.sent {
		return models.Error{Sent: true, Retryable: true, Err: fmt.Errorf("%w: %w", models.ErrTruncated, err)}
	}
	out := models.Error{Retryable: true, Err: err}
	op, isOp := errors.AsType[*net.OpError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isDNS:
		out.Retryable = !dns.IsNotFound
		out.Err = fmt.Errorf("is the host of BaseURL right? %w", err)
	case isOp && op.Op == "dial":
		out.Err = fmt.Errorf("is a server running at %s? %w", m.base.Host, err)
	case errors.Is(err, http.ErrSchemeMismatch) || neverSent(err):
		out.Retryable = false // neither certificates nor protocols change on their own
	}
	return out
}

// neverSent reports whether err arose before a connection was ready.
func neverSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		auth x509.UnknownAuthorityError
		host x509.HostnameError
	)
	return errors.As(err, &dns) || errors.As(err, &cert) || errors.As(err, &rec) || errors.As(err, &auth) || errors.As(err, &host)
}

// retryAfter reads how long a server asks to wait.
func retryAfter(ms, after, date string) time.Duration {
	const longest = 365 * 24 * time.Hour
	number := func(s string, unit time.Duration) (time.Duration, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || math.IsNaN(f) {
			return 0, false
		}
		return time.Duration(min(max(f, 0)*float64(unit), float64(longest))), true
	}
	if d, ok := number(ms, time.Millisecond); ok {
		return d
	}
	if d, ok := number(after, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(date) // the server's own clock, if it tells
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longest)
}

// readable makes a text for people of the start of a body: 2 KB on one line,
// without control characters, and without the key, should the server repeat it.
func (m *client) readable(b []byte) string {
	const longest = 2048
	s := strings.ToValidUTF8(string(b[:min(len(b), 2*longest)]), "\uFFFD")
	if m.key != "" {
		s = strings.ReplaceAll(s, m.key, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
