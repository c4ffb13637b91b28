package openai

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/models"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		header []string
		is     error
		retry  bool
		after  time.Duration
		say    string
	}{
		{"parameter", 400, file(t, "error_400_openai.json"), nil, nil, false, 0, "Unknown parameter: 'foo'."},
		{"context, vLLM", 400, file(t, "error_400_context.json"), nil, models.ErrContextOverflow, false, 0, "40960"},
		{"context, llama-server", 400, file(t, "error_400_llamaserver.json"), nil, models.ErrContextOverflow, false, 0, "25837"},
		{"context, by code", 400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, nil, models.ErrContextOverflow, false, 0, ""},
		{"context, llama-server with 500", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, nil, models.ErrContextOverflow, false, 0, ""},
		{"context, SGLang", 400, `{"object":"error","message":"The input (9 tokens) is longer than the model's context length (8 tokens).","code":400}`, nil, models.ErrContextOverflow, false, 0, ""},
		{"key", 401, file(t, "error_401.json"), nil, errBadKey, false, 0, "Incorrect API key provided: [key]."},
		{"payment", 402, `{"error":{"message":"Insufficient Balance"}}`, nil, nil, false, 0, "Insufficient"},
		{"wrong address", 404, file(t, "error_404.html"), nil, nil, false, 0, "/v1 has no such API: is BaseURL right? it usually ends in /v1: <!DOCTYPE html> <html>"},
		{"wrong address, plain", 404, "404 page not found", nil, nil, false, 0, "is BaseURL right?"},
		{"wrong address, FastAPI", 404, `{"detail":"Not Found"}`, nil, nil, false, 0, "is BaseURL right?"},
		{"wrong address, OpenAI", 404, `{"error":{"message":"Invalid URL (POST /chat/completions)","type":"invalid_request_error"}}`, nil, nil, false, 0, "is BaseURL right?"},
		{"timeout", 408, "", nil, nil, true, 0, "408"},
		{"conflict", 409, "", nil, nil, true, 0, ""},
		{"too early", 425, "", nil, nil, true, 0, ""},
		{"rate", 429, file(t, "error_429.json"), []string{"Retry-After", "20"}, nil, true, 20 * time.Second, "RPM"},
		{"rate, ms", 429, file(t, "error_429.json"), []string{"Retry-After", "20", "Retry-After-Ms", "1500.5"}, nil, true, 1500500 * time.Microsecond, ""},
		{"rate, date", 429, "", []string{"Date", "Tue, 02 Dec 2025 08:00:00 GMT", "Retry-After", "Tue, 02 Dec 2025 08:01:30 GMT"}, nil, true, 90 * time.Second, ""},
		{"quota", 429, file(t, "error_429_quota.json"), nil, errQuota, false, 0, "billing"},
		{"server", 500, file(t, "error_500_ollama.json"), nil, nil, true, 0, "unexpected EOF"},
		{"not implemented", 501, "", nil, nil, false, 0, ""},
		{"gateway", 502, "", nil, nil, true, 0, ""},
		{"busy", 503, file(t, "error_503.txt"), []string{"Retry-After", "0.5"}, nil, true, 500 * time.Millisecond, "upstream connect error"},
		{"redirect", 301, "", []string{"Location", "https://me:word@new.example/v1/chat/completions?key=secret"}, nil, false, 0, `"https://new.example/v1/chat/completions": set BaseURL`},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				m := serve(t, Config{Key: "sk-secret-key"}, say(tt.status, tt.body, tt.header...))
				r := models.Request{Messages: hello}
				if stream {
					r.OnDelta = func(models.Delta) { t.Error("a delta of an error") }
				}
				got, err := m.Generate(t.Context(), &r)
				var e *models.Error
				if got != nil || !errors.As(err, &e) {
					t.Fatalf("got %+v, %v", got, err)
				}
				if e.Status != tt.status || !e.Sent || e.Partial != nil || e.Retryable != tt.retry || e.RetryAfter != tt.after || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("got %+v", e)
				}
				if !strings.Contains(err.Error(), tt.say) || strings.Contains(err.Error(), "sk-secret") {
					t.Errorf("says %s", err)
				}
			})
		}
	}
	t.Run("a model that is not there", func(t *testing.T) {
		_, err := serve(t, Config{}, say(404, file(t, "error_404_model.json"))).Generate(t.Context(), &models.Request{Messages: hello})
		if err == nil || strings.Contains(err.Error(), "BaseURL") || !strings.Contains(err.Error(), "`nope`") {
			t.Errorf("says %v", err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		_, err := serve(t, Config{}, say(401, "{}")).Generate(t.Context(), &models.Request{Messages: hello})
		if !errors.Is(err, errNoKey) {
			t.Errorf("says %v", err)
		}
	})
	t.Run("a long body", func(t *testing.T) {
		_, err := serve(t, Config{}, say(500, strings.Repeat("é\x00\xff", 1<<20))).Generate(t.Context(), &models.Request{Messages: hello})
		var e *models.Error
		if !errors.As(err, &e) || len(e.Body) > 2060 || len(e.Body) < 1000 || !utf8.ValidString(e.Body) || strings.Contains(e.Body, "\x00") {
			t.Errorf("%d bytes: %.100q", len(e.Body), e.Body)
		}
	})
}

func TestPlainFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		body  string
		is    error
		retry bool
		say   string
	}{
		{"empty", "", models.ErrTruncated, true, "ended early"},
		{"cut", `{"choices":[{"message":{"content":"a`, models.ErrTruncated, true, "ended early"},
		{"a web page", "<html>Welcome</html>", models.ErrMalformed, false, "is BaseURL right?"},
		{"not JSON", "hello", models.ErrMalformed, true, "hello"},
		{"no choices", `{"choices":[]}`, models.ErrMalformed, true, "no choice"},
		{"another kind of choices", `{"choices":"x"}`, models.ErrMalformed, true, ""},
		{"error", `{"error":{"message":"it broke","code":502}}`, errReported, true, "it broke"},
		{"gave up", `{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}`, models.ErrTruncated, true, "gave up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serve(t, Config{}, say(200, tt.body)).Generate(t.Context(), &models.Request{Messages: hello})
			var e *models.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.is) || !e.Sent || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %v: %+v", err, e)
			}
		})
	}
	t.Run("usage of a reply that makes no sense", func(t *testing.T) {
		_, err := serve(t, Config{}, say(200, `{"choices":7,"usage":{"prompt_tokens":5}}`)).Generate(t.Context(), &models.Request{Messages: hello})
		var e *models.Error
		if !errors.As(err, &e) || e.Partial == nil || !e.Partial.Usage.Known {
			t.Errorf("got %v: %+v", err, e)
		}
	})
}

// Nothing reached a server: nothing can have been billed.
func TestNotSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	_ = ln.Close()
	plain := httptest.NewServer(say(200, "{}"))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(say(200, "{}"))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	dns := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}
	}}}
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		c     Config
		retry bool
		say   string
	}{
		{"nobody listens", t.Context(), Config{BaseURL: "http://" + closed}, true, "is a server running at " + closed},
		{"no such host", t.Context(), Config{BaseURL: "http://x", HTTP: dns}, false, "is the host of BaseURL right?"},
		{"unknown certificate", t.Context(), Config{BaseURL: secure.URL}, false, "certificate"},
		{"TLS to a plain server", t.Context(), Config{BaseURL: "https" + strings.TrimPrefix(plain.URL, "http")}, false, "HTTP response to HTTPS client"},
		{"cancelled before", over, Config{BaseURL: plain.URL}, false, "canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Key = "sk-secret-key"
			m := mustNew(t, "m", tt.c)
			_, err := m.Generate(tt.ctx, &models.Request{Messages: hello})
			var e *models.Error
			if !errors.As(err, &e) || e.Sent || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %v: %+v", err, e)
			}
		})
	}
}

// A connection that breaks before the reply may have cost something.
func TestSentWithoutReply(t *testing.T) {
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	_, err := m.Generate(t.Context(), &models.Request{Messages: hello})
	var e *models.Error
	if !errors.As(err, &e) || !errors.Is(err, models.ErrTruncated) || !e.Sent || !e.Retryable || strings.Contains(err.Error(), "http://") {
		t.Errorf("got %v: %+v", err, e)
	}
}

func TestCancelWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		// net/http does not cancel dials: another request may use the connection.
		slow := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-stop
			return nil, net.ErrClosed
		}}
		m := mustNew(t, "m", Config{HTTP: &http.Client{Transport: slow}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Generate(ctx, &models.Request{Messages: hello})
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || e.Sent {
			t.Errorf("got %v: %+v", err, e)
		}
	})
}
