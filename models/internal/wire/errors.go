package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Longest is how much of a server's words is shown, in bytes.
const Longest = 2048

// Retryable reports whether another try may get past a status.
func Retryable(status int) bool {
	switch status {
	case 408, 409, 425, 429:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return status >= 500
}

// Cut is the error of a reply that ended early.
func Cut(ctx context.Context, err error) *models.Error {
	if end := Ended(ctx); end != nil {
		return &models.Error{Err: end}
	}
	e := &models.Error{Retryable: true, Err: models.ErrTruncated}
	if err != io.EOF && err != io.ErrUnexpectedEOF {
		e.Err = fmt.Errorf("%w: %w", models.ErrTruncated, err)
	}
	return e
}

// Unsent is the error of a request without a response. dial says what to do if
// nobody listens.
func Unsent(err error, sent bool, dial string) models.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address, whose query may hold a key
	}
	if sent {
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
		out.Err = fmt.Errorf("%s %w", dial, err)
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

// RetryAfter reads how long a server, or a proxy before it, asks to wait.
func RetryAfter(h http.Header) time.Duration {
	const longest = 365 * 24 * time.Hour
	number := func(name string, unit time.Duration) (time.Duration, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(h.Get(name)), 64)
		if err != nil || math.IsNaN(f) {
			return 0, false
		}
		return time.Duration(min(max(f, 0)*float64(unit), float64(longest))), true
	}
	if d, ok := number("Retry-After-Ms", time.Millisecond); ok {
		return d
	}
	if d, ok := number("Retry-After", time.Second); ok {
		return d
	}
	at, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date")) // the server's own clock, if it tells
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longest)
}

// Readable makes a text for people of the start of one: at most Longest bytes on
// one line, without control characters, and without the secret, should it be
// repeated there.
func Readable(s, secret string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 2*Longest)], "\uFFFD")
	if secret != "" {
		s = strings.ReplaceAll(s, secret, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > Longest {
		s = strings.ToValidUTF8(s[:Longest], "") + "…"
	}
	return s
}

// Redirected is the error of a reply that names another address. That may repeat
// the key of a base URL, which does not belong into an error's text.
func Redirected(h http.Header) error {
	to := "another address"
	if u, err := url.Parse(h.Get("Location")); err == nil && u.Path+u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		to = strconv.Quote(u.String())
	}
	return fmt.Errorf("redirected to %s: set BaseURL to where that leads", to)
}
