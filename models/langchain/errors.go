package langchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// fail completes an error.
func (c *client) fail(e models.Error) *models.Error {
	e.Model, e.Provider = c.info.Name, c.info.Provider
	return &e
}

// panicError is a provider that panicked.
type panicError struct{ value any }

// Error says what happened, and what to do about it where that is known.
func (e *panicError) Error() string { return fmt.Sprintf("the provider panicked: %v", e.value) }

// cause is an error of langchaingo with a text that is fit for people.
type cause struct{ err error }

// Error says what happened, and what to do about it where that is known.
func (e *cause) Error() string { return readable(e.err) }

// Unwrap gives the error as it was.
func (e *cause) Unwrap() error { return e.err }

// statusText finds the HTTP status in the texts of langchaingo's providers and
// of the clients that they use.
var statusText = regexp.MustCompile(`(?i)(?:status(?: code)?:?|http(?: status)?:?|googleapi: error|statuscode:?)\s*([45]\d\d)\b|^([45]\d\d) [A-Z]`)

// classify makes a typed error of one of langchaingo's, of which most are
// plain text. Streamed says that text had come before.
func classify(err error, streamed bool) models.Error {
	e := models.Error{Err: &cause{err}}
	all := err.Error()
	all = all[:min(len(all), wire.Longest)] // what servers say may be long, and this is not free
	text := strings.ToLower(all)
	said := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	as := func(kind error) { e.Err = fmt.Errorf("%w: %w", kind, e.Err) }
	if m := statusText.FindStringSubmatch(all); m != nil {
		e.Status, _ = strconv.Atoi(m[1] + m[2])
	}
	var coded *llms.Error
	var code llms.ErrorCode
	if errors.As(err, &coded) {
		code = coded.Code
	}
	var panicked *panicError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var network net.Error
	switch {
	case errors.As(err, &panicked), said("token too long"):
		as(models.ErrMalformed)
	case code == llms.ErrCodeTokenLimit,
		e.Status != 429 && said("maximum context length", "context length", "context size", "context window", "prompt is too long"):
		as(models.ErrContextOverflow)
	case said("insufficient_quota", "exceeded your current quota"), code == llms.ErrCodeQuotaExceeded: // no wait helps
	case e.Status != 0:
		e.Retryable = wire.Retryable(e.Status)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), streamed && said("empty response", "no response"):
		e.Retryable = true
		as(models.ErrTruncated)
	case errors.As(err, &syntax), errors.As(err, &kind), said("empty response", "no response", "no content in"):
		e.Retryable = true
		as(models.ErrMalformed)
	case code == llms.ErrCodeRateLimit, code == llms.ErrCodeProviderUnavailable, code == llms.ErrCodeTimeout,
		errors.As(err, &network), said("network error", "request timeout", "rate limit", "too many requests", "overloaded", "server busy"):
		e.Retryable = true
	}
	return e
}

// readable makes a text for people of an error: on one line, not too long,
// without control characters and without the query of an address, which may
// hold a key.
func readable(err error) string {
	s := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		if at, _, found := strings.Cut(u.URL, "?"); found {
			s = strings.ReplaceAll(s, u.URL, at)
		}
	}
	return wire.Readable(s, "")
}
