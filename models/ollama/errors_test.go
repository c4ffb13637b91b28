package ollama

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
	"time"

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
		{"too long", 400, `{"error":"the input length exceeds the context length"}`, nil, models.ErrContextOverflow, false, 0, "input length"},
		{"too long, llama-server", 500, `{"error":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"}`, nil, models.ErrContextOverflow, false, 0, "9000"},
		{"no tools", 400, `{"error":"registry.ollama.ai/library/raw:latest does not support tools"}`, nil, errTools, false, 0, "Request.Prompt"},
		{"no reasoning", 400, `{"error":"\"raw\" does not support thinking"}`, nil, errThinking, false, 0, "Request.Think"},
		{"reasoning in words", 400, `{"error":"think value \"medium\" is not supported for this model"}`, nil, errThinking, false, 0, ""},
		{"not made for it", 501, `{"error":"this model does not support embeddings"}`, nil, errAbility, false, 0, "embeddings"},
		{"bad schema", 500, `{"error":"invalid JSON schema in format"}`, nil, errSchema, false, 0, "Request.Schema"},
		{"bad grammar", 500, `{"error":"failed to parse grammar"}`, nil, errSchema, false, 0, ""},
		{"bad option", 500, `{"error":"option \"num_thread\" must be of type integer"}`, nil, errOption, false, 0, "Config.Options"},
		{"no memory", 500, `{"error":"model requires more system memory (5.9 GiB) than is available (2.1 GiB)"}`, nil, ErrMemory, false, 0, "5.9 GiB"},
		{"no memory, GPU", 500, `{"error":"llama runner process has terminated: cudaMalloc failed: out of memory"}`, nil, ErrMemory, false, 0, ""},
		{"queue full", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, []string{"Retry-After", "2"}, ErrBusy, true, 2 * time.Second, "busy"},
		{"queue full, elsewhere", 503, "upstream connect error", nil, ErrBusy, true, 0, "upstream"},
		{"rate", 429, "", []string{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, ErrBusy, true, time.Hour, ""},
		{"no model", 404, `{"error":"model 'm' not found"}`, nil, ErrNoModel, false, 0, "pull it first"},
		{"no model, older", 404, `{"error":"model \"m\" not found, try pulling it first"}`, nil, ErrNoModel, false, 0, ""},
		{"wrong address, plain", 404, "404 page not found", nil, nil, false, 0, "is BaseURL right?"},
		{"wrong address, HTML", 404, "<html><body>nothing</body></html>", nil, nil, false, 0, "is BaseURL right?"},
		{"wrong address, method", 405, "405 method not allowed", nil, nil, false, 0, "is BaseURL right?"},
		{"redirect", 301, "", []string{"Location", "https://me:word@new.example/?key=secret"}, nil, false, 0, `"https://new.example/": set BaseURL`},
		{"sign-in", 401, `{"error":"unauthorized","signin_url":"https://x"}`, nil, errSignIn, false, 0, "ollama signin"},
		{"forbidden", 403, `{"error":"ollama cloud is disabled"}`, nil, nil, false, 0, "cloud is disabled"},
		{"our mistake", 400, `{"error":"json: cannot unmarshal bool into Go struct field"}`, nil, nil, false, 0, "cannot unmarshal bool"},
		{"the model's mistake", 500, `{"error":"failed to parse JSON: unexpected end of JSON input"}`, nil, models.ErrMalformed, true, 0, "unexpected end"},
		{"the model's mistake, XML", 500, `{"error":"XML syntax error on line 3"}`, nil, models.ErrMalformed, true, 0, ""},
		{"the runner died", 500, `{"error":"an error was encountered while running the model: unexpected EOF"}`, nil, errRunner, true, 0, "starts another"},
		{"the load was cancelled by another", 499, `{"error":"request canceled"}`, nil, nil, true, 0, "canceled"},
		{"no word", 500, "", nil, errSilent, true, 0, "see its log"},
		{"no JSON", 502, "bad gateway", nil, nil, true, 0, "bad gateway"},
		{"an error that is none", 500, `{"error":null}`, nil, nil, true, 0, "null"},
		{"not implemented", 501, "", nil, errSilent, false, 0, ""},
		{"timeout", 408, "slow", nil, nil, true, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{}, warm(t, say(tt.status, tt.body, tt.header...)))
			got, err := m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: func(models.Delta) { t.Error("a delta of an error") }})
			e := typed(t, err)
			if got != nil || e.Status != tt.status || !e.Sent || e.Partial != nil || e.Retryable != tt.retry || e.Model != "m" || e.Provider != "ollama" || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %+v", e)
			}
			if d := tt.after - e.RetryAfter; d < 0 || d > 10*time.Second || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("after %s: %v", e.RetryAfter, err)
			}
		})
	}
}

// Nothing listens: nothing was sent, and the text says what to start.
func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	m, err := New("m", Config{BaseURL: "http://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, f := range map[string]func() error{
		"generate": func() error { _, err := m.Generate(t.Context(), &models.Request{Prompt: "x"}); return err },
		"embed":    func() error { _, _, err := m.Embed(t.Context(), []string{"x"}); return err },
		"version":  func() error { _, err := m.Version(t.Context()); return err },
		"pull":     func() error { return m.Pull(t.Context(), "m", nil) },
	} {
		err := f()
		if e := typed(t, err); e.Sent || !e.Retryable || !strings.Contains(err.Error(), "is Ollama running at "+addr+"? start it with `ollama serve`") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// failing is a transport that fails.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestUnsent(t *testing.T) {
	tlsOnly := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsOnly.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsOnly.StartTLS()
	t.Cleanup(tlsOnly.Close)
	for _, tt := range []struct {
		name        string
		url         string
		rt          http.RoundTripper
		sent, retry bool
		say         string
	}{
		{"no such host", "http://x", failing{&net.DNSError{IsNotFound: true, Err: "no such host"}}, false, false, "is the host of BaseURL right?"},
		{"no name server", "http://x", failing{&net.DNSError{IsTemporary: true, Err: "timeout"}}, false, true, ""},
		{"dial", "http://x", failing{&net.OpError{Op: "dial", Err: errors.New("refused")}}, false, true, "ollama serve"},
		{"unknown", "http://x", failing{errors.New("boom")}, true, true, "stream ended early: boom"},
		{"certificate", tlsOnly.URL, nil, false, false, "certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{BaseURL: tt.url}
			if tt.rt != nil {
				c.HTTP = &http.Client{Transport: tt.rt}
			}
			m, err := New("m", c)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			_, err = m.Version(t.Context())
			if e := typed(t, err); e.Sent != tt.sent || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %+v: %v", e, err)
			}
		})
	}
}

// A caller that leaves gets its context's error, whatever was going on.
func TestCancel(t *testing.T) {
	for name, begin := range map[string]string{"before the first line": "", "in mid-stream": chat("a")} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			m := serve(t, Config{}, warm(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(200)
				_, _ = io.WriteString(w, begin)
				w.(http.Flusher).Flush()
				close(arrived)
				<-r.Context().Done()
			}))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-arrived
				cancel(errors.New("enough"))
			}()
			_, err := m.Generate(ctx, &models.Request{Messages: hello})
			e := typed(t, err)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "enough") || !e.Sent || e.Retryable || errors.Is(err, models.ErrTruncated) {
				t.Errorf("got %+v", e)
			}
			if (e.Partial != nil) && e.Partial.Text != "a" {
				t.Errorf("partial %+v", e.Partial)
			}
		})
	}
}
