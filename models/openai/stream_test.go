package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// transport answers every request with a stream, without a network.
type transport func() io.Reader

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(f()), Request: r}, nil
}

func overReader(t testing.TB, f func() io.Reader) models.Model {
	t.Helper()
	m, err := New("m", Config{BaseURL: "http://x/v1", HTTP: &http.Client{Transport: transport(f)}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// checkCut checks what became of a stream that was cut after n bytes: never a
// success with less than the whole text and calls.
func checkCut(t *testing.T, n int, whole, got *models.Response, err error, mayEnd bool) {
	t.Helper()
	if err == nil {
		if !mayEnd {
			t.Fatalf("cut after %d: success without an end", n)
		}
		if got.Text != whole.Text || got.Reasoning != whole.Reasoning || fmt.Sprint(got.Calls) != fmt.Sprint(whole.Calls) || got.Finish != whole.Finish {
			t.Fatalf("cut after %d: success with %+v", n, got)
		}
		return
	}
	var e *models.Error
	if !errors.As(err, &e) || !errors.Is(err, models.ErrTruncated) || !e.Sent || !e.Retryable {
		t.Fatalf("cut after %d: %#v", n, err)
	}
	if mayEnd {
		t.Fatalf("cut after %d: the end had been seen: %v", n, err)
	}
	if p := e.Partial; p != nil && (!strings.HasPrefix(whole.Text, p.Text) || !strings.HasPrefix(whole.Reasoning, p.Reasoning) || len(p.Calls) > len(whole.Calls)) {
		t.Fatalf("cut after %d: partial %+v", n, p)
	}
}

// ends reports whether a piece of a stream says that it is complete: by [DONE],
// or, if it ends cleanly, by a reason in a chunk whose JSON is whole.
func ends(piece string, clean bool) bool {
	if strings.Contains(piece, "data: [DONE]") {
		return true
	}
	for line := range strings.Lines(piece) {
		line = strings.TrimRight(line, "\r\n")
		if clean && strings.Contains(line, `"finish_reason":"`) && strings.HasSuffix(line, "}") && strings.Count(line, "{")-strings.Count(line, "}") == 0 {
			return true
		}
	}
	return false
}

func TestCutAtEveryByte(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if strings.Contains(name, "error") {
			continue // these have no end
		}
		t.Run(name, func(t *testing.T) {
			full := file(t, name)
			r := models.Request{Messages: hello, OnDelta: func(models.Delta) {}}
			whole, err := overReader(t, func() io.Reader { return iotest.OneByteReader(strings.NewReader(full)) }).Generate(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(full) {
				for _, clean := range []bool{true, false} {
					end := io.ErrUnexpectedEOF
					if clean {
						end = io.EOF
					}
					m := overReader(t, func() io.Reader { return io.MultiReader(strings.NewReader(full[:n]), iotest.ErrReader(end)) })
					got, err := m.Generate(t.Context(), &r)
					checkCut(t, n, whole, got, err, ends(full[:n], clean))
				}
			}
		})
	}
}

// The same over a real connection: closed cleanly, too early, or reset.
func TestCutConnection(t *testing.T) {
	full := file(t, "openai_tools.sse")
	var mu sync.Mutex // the server reads what the test writes
	var n int
	var how string
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		n, how := n, how
		mu.Unlock()
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
		if how == "close" {
			fmt.Fprint(buf, "Connection: close\r\n\r\n")
		} else {
			fmt.Fprintf(buf, "Content-Length: %d\r\n\r\n", len(full))
		}
		fmt.Fprint(buf, full[:n])
		_ = buf.Flush()
		if how == "reset" {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
	})
	r := models.Request{Messages: hello, OnDelta: func(models.Delta) {}}
	cut := func(after int, by string) (*models.Response, error) {
		mu.Lock()
		n, how = after, by
		mu.Unlock()
		return m.Generate(t.Context(), &r)
	}
	whole, err := cut(len(full), "close")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(full); n += 7 {
		for _, how := range []string{"close", "early", "reset"} {
			got, err := cut(n, how)
			if how == "reset" && err != nil { // what had been written may be lost
				var e *models.Error
				if !errors.As(err, &e) || !errors.Is(err, models.ErrTruncated) || !e.Sent || !e.Retryable {
					t.Fatalf("cut after %d: %#v", n, err)
				}
				continue
			}
			checkCut(t, n, whole, got, err, ends(full[:n], how == "close"))
		}
	}
}

func TestStreamFailures(t *testing.T) {
	some := chunk(`{"model":"x","choices":[{"delta":{"content":"Half"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
	for _, tt := range []struct {
		name   string
		body   string
		is     error // nil: the server's own words
		retry  bool
		status int
		say    string
		text   string // of Partial
		known  bool   // so is its usage
	}{
		{"Ollama gives up without a word", file(t, "ollama_midstream_error.sse"), models.ErrTruncated, true, 0, "ended early", "Hel", false},
		{"OpenRouter", file(t, "openrouter_error.sse"), nil, true, 0, "Provider disconnected", "Half an ans", false},
		{"nothing", ": hi\n\n", models.ErrTruncated, true, 0, "", "", false},
		{"only [DONE]", done, models.ErrMalformed, true, 0, "no choice", "", false},
		{"cut, with usage", some, models.ErrTruncated, true, 0, "", "Half", true},
		{"error, then [DONE]", some + chunk(`{"error":{"message":"EngineCore died","type":"InternalServerError","code":500}}`) + done, nil, true, 0, "EngineCore", "Half", true},
		{"error first", chunk(`{"error":{"message":"busy","code":503}}`) + done, nil, true, 503, "busy", "", false},
		{"error first, for good", chunk(`{"error":{"message":"no such thing","code":400}}`), nil, false, 400, "no such thing", "", false},
		{"error as text", some + chunk(`{"error":"it broke"}`), nil, true, 0, "it broke", "Half", true},
		{"error as an event", some + "event: error\ndata: {\"message\":\"it broke\"}\n\n", nil, true, 0, "it broke", "Half", true},
		{"error as an event, not JSON", some + "event: error\ndata: it broke\n\n", nil, true, 0, "it broke", "Half", true},
		{"error without an event", some + `{"error":"it broke"}` + "\n", nil, true, 0, "it broke", "Half", true},
		{"error of old vLLM", some + chunk(`{"object":"error","message":"it broke","type":"X","code":400}`), nil, false, 0, "it broke", "Half", true},
		{"error with usage", chunk(`{"error":{"code":502,"message":"x"},"usage":{"prompt_tokens":5}}`), nil, true, 0, "x", "", true},
		{"context", chunk(`{"error":{"message":"Context size has been exceeded.","type":"server_error","code":500}}`), models.ErrContextOverflow, false, 500, "", "", false},
		{"quota", some + chunk(`{"error":{"message":"x","type":"insufficient_quota"}}`), nil, false, 0, "quota", "Half", true},
		{"bad request", some + chunk(`{"error":{"message":"x","type":"invalid_request_error"}}`), nil, false, 0, "", "Half", true},
		{"vLLM aborts", some + chunk(`{"choices":[{"delta":{},"finish_reason":"abort"}]}`) + done, models.ErrTruncated, true, 0, "gave up", "Half", true},
		{"not JSON", some + "data: {oops\n\n" + done, models.ErrMalformed, true, 0, "{oops", "Half", true},
		{"JSON of another kind", some + chunk(`[1]`) + done, models.ErrMalformed, true, 0, "", "Half", true},
		{"content of another kind", some + chunk(`{"choices":[{"delta":{"content":{"a":1}}}]}`) + done, models.ErrMalformed, true, 0, "content", "Half", true},
		{"calls of another kind", some + chunk(`{"choices":[{"delta":{"tool_calls":7}}]}`) + done, models.ErrMalformed, true, 0, "", "Half", true},
		{"too many calls", some + strings.Repeat(chunk(`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`), 1100) + done, models.ErrMalformed, true, 0, "1024", "Half", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{}, say(200, tt.body, "Content-Type", "text/event-stream"))
			var h heard
			got, err := m.Generate(t.Context(), &models.Request{Messages: hello, OnDelta: h.add})
			var e *models.Error
			if got != nil || !errors.As(err, &e) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || !e.Sent || e.Retryable != tt.retry || e.Status != tt.status || !strings.Contains(err.Error(), tt.say) || e.Model != "m" || e.Provider == "" {
				t.Errorf("got %v: %+v", err, e)
			}
			p := e.Partial
			if p == nil {
				p = new(models.Response)
			}
			if p.Text != tt.text || h.text.String() != tt.text || p.Usage.Known != tt.known {
				t.Errorf("partial %+v, heard %q", p, h.text.String())
			}
		})
	}
}

// A reply without end is stopped.
func TestEndlessReply(t *testing.T) {
	m := overReader(t, func() io.Reader { return endless('x') })
	if _, err := m.Generate(t.Context(), &models.Request{Messages: hello}); !errors.Is(err, models.ErrMalformed) || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("got %.200v", err)
	}
	if e := m.(*client).plain(t.Context(), &http.Response{Body: io.NopCloser(endless('x'))}, &answer{}); e == nil || !errors.Is(e.Err, errTooLong) {
		t.Errorf("got %+v", e)
	}
	// As a stream, 64 MiB would take long.
	for _, delta := range []string{`{"content":"0123456789"}`, `{"reasoning":"0123456789"}`, `{"refusal":"0123456789"}`, `{"tool_calls":[{"function":{"arguments":"0123456789"}}]}`, `{"function_call":{"name":"0123456789"}}`} {
		a := &answer{r: new(models.Request), size: maxReply - 9}
		resp := &http.Response{Body: io.NopCloser(strings.NewReader(chunk(`{"choices":[{"delta":`+delta+`}]}`) + done))}
		if e := m.(*client).stream(t.Context(), resp, a); e == nil || !errors.Is(e.Err, errTooLong) {
			t.Errorf("%s: got %+v", delta, e)
		}
	}
}

var errEnough = errors.New("enough")

func TestCancelInStream(t *testing.T) {
	gone := make(chan struct{})
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk(`{"model":"x","choices":[{"delta":{"content":"Half"}}]}`))
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client hangs up
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	got, err := m.Generate(ctx, &models.Request{Messages: hello, OnDelta: func(models.Delta) { cancel(errEnough) }})
	var e *models.Error
	if got != nil || !errors.As(err, &e) || !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled) || !e.Sent || e.Retryable || e.Partial == nil || e.Partial.Text != "Half" {
		t.Errorf("got %+v, %v: %+v", got, err, e)
	}
	<-gone
}

func TestCancelInPlainBody(t *testing.T) {
	begun := make(chan struct{})
	m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"choices":[`)
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(errEnough)
	}()
	_, err := m.Generate(ctx, &models.Request{Messages: hello})
	var e *models.Error
	if !errors.As(err, &e) || !errors.Is(err, errEnough) || !e.Sent || e.Retryable || errors.Is(err, models.ErrTruncated) {
		t.Errorf("got %v: %+v", err, e)
	}
}

// What is already in the buffers does not turn a cancelled call into a success.
func TestCancelBeatsBuffers(t *testing.T) {
	full := chunk(`{"choices":[{"delta":{"content":"a"}}]}`) + chunk(`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}`) + done
	m := overReader(t, func() io.Reader { return strings.NewReader(full) })
	ctx, cancel := context.WithCancel(t.Context())
	_, err := m.Generate(ctx, &models.Request{Messages: hello, OnDelta: func(models.Delta) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// silent is a server that never answers, or stops in the middle.
type silent struct{ after string }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.after == "" {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(io.MultiReader(strings.NewReader(s.after), until{r.Context()}))}, nil
}

type until struct{ context.Context }

func (u until) Read([]byte) (int, error) { <-u.Done(); return 0, u.Err() }

func TestDeadline(t *testing.T) {
	for _, after := range []string{"", chunk(`{"choices":[{"delta":{"content":"a"}}]}`)} {
		synctest.Test(t, func(t *testing.T) {
			m := mustNew(t, "m", Config{HTTP: &http.Client{Transport: silent{after}}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := m.Generate(ctx, &models.Request{Messages: hello})
			var e *models.Error
			if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !e.Sent || e.Retryable || time.Since(start) != time.Minute {
				t.Errorf("got %v after %s", err, time.Since(start))
			}
			if after != "" && (e.Partial == nil || e.Partial.Text != "a" || e.Partial.Usage.Wall != time.Minute) {
				t.Errorf("partial %+v", e.Partial)
			}
		})
	}
}

// A server that keeps the connection open after [DONE] delays nobody.
func TestDoneIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mustNew(t, "m", Config{HTTP: &http.Client{Transport: silent{chunk(`{"choices":[{"delta":{"content":"a"}}]}`) + done}}})
		start := time.Now()
		got, err := m.Generate(t.Context(), &models.Request{Messages: hello})
		if err != nil || got.Text != "a" || got.Usage.Wall != 0 || time.Since(start) > 50*time.Millisecond {
			t.Errorf("got %+v, %v after %s", got, err, time.Since(start))
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"openai_tools.sse", "vllm_reasoning.sse", "openrouter_error.sse", "ollama_tools.sse"} {
		f.Add(file(f, name))
	}
	f.Add(chunk(`{"choices":[{"delta":{"content":[{"thinking":[[null]]}],"tool_calls":[{"index":-1}]}}],"usage":{"cost":"1e9"}}`))
	m := overReader(f, nil).(*client)
	f.Fuzz(func(t *testing.T, body string) {
		var h heard
		a := &answer{r: &models.Request{Messages: hello, Tokens: true, OnDelta: h.add}, usage: cost.Tally{Flavor: cost.Chat}}
		e := m.stream(context.Background(), &http.Response{Body: io.NopCloser(strings.NewReader(body))}, a)
		got, err := a.done()
		if e != nil || err != nil {
			if got = a.partial(); got == nil {
				return
			}
		}
		if got.Text != h.text.String() || got.Reasoning != h.reasoning.String() {
			t.Errorf("heard %q, got %q", h.text.String(), got.Text)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	full := strings.Repeat(chunk(`{"id":"chatcmpl-L","object":"chat.completion.chunk","created":1764662400,"model":"m","choices":[{"finish_reason":null,"index":0,"delta":{"content":"word "}}]}`), 1000) + done
	m := overReader(b, func() io.Reader { return strings.NewReader(full) })
	r := models.Request{Messages: hello, OnDelta: func(models.Delta) {}}
	b.SetBytes(int64(len(full)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), &r); err != nil {
			b.Fatal(err)
		}
	}
}
