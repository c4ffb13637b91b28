package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// answering is the address of a listener that sends each caller a text after
// its request, and hangs up.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestProbeServer(t *testing.T) {
	says := func(status int, body string) func(*testing.T) string {
		return func(t *testing.T) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/version" && r.URL.Path != "/behind/api/version" {
					body = `{"version":"of ` + r.URL.Path + `"}`
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
	}
	at := func(url string) func(*testing.T) string { return func(*testing.T) string { return url } }
	raw := func(text string) func(*testing.T) string {
		return func(t *testing.T) string { return answering(t, text) }
	}
	refused := func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return "http://" + l.Addr().String()
	}
	for _, tt := range []struct {
		name string
		url  func(*testing.T) string
		want string
		kind error
	}{
		{"Ollama", says(200, `{"version":"0.17.4"}`), "0.17.4", nil},
		{"with a slash", func(t *testing.T) string { return says(200, `{"version":"0.17.4"}`)(t) + "/" }, "0.17.4", nil},
		{"below a path", func(t *testing.T) string { return says(200, `{"version":"0.17.4"}`)(t) + "/behind" }, "0.17.4", nil},
		{"a build without a version", says(200, `{"version":"0.0.0"}`), "0.0.0", nil},
		{"a page", says(200, "<html>"), "", ErrServerForeign},
		{"other JSON", says(200, `{"object":"list"}`), "", ErrServerForeign},
		{"a version that is none", says(200, `{"version":17}`), "", ErrServerForeign},
		{"an unprintable version", says(200, `{"version":"\u001b[2J"}`), "", ErrServerForeign},
		{"a long version", says(200, `{"version":"`+strings.Repeat("9", 65)+`"}`), "", ErrServerForeign},
		{"an endless answer", says(200, strings.Repeat(" ", 1<<20)+`{"version":"1"}`), "", ErrServerForeign},
		{"nothing", says(200, ""), "", ErrServerForeign},
		{"no such page", says(404, "404 page not found"), "", ErrServerForeign},
		{"a key is needed", says(401, `{"version":"0.17.4"}`), "", ErrServerForeign},
		{"a redirect", says(302, ""), "", ErrServerForeign},
		{"another protocol", raw("220 smtp ready\r\n"), "", ErrServerForeign},
		{"endless headers", raw("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 1<<20)), "", ErrServerForeign},
		{"it hangs up", raw(""), "", ErrServerNotReady},
		{"it hangs up in mid-answer", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "", ErrServerNotReady},
		{"TLS is spoken to it", func(t *testing.T) string { return strings.Replace(says(200, "")(t), "http:", "https:", 1) }, "", ErrServerForeign},
		{"nothing listens", refused, "", ErrServerRefused},
		{"no scheme", at("127.0.0.1:11434"), "", ErrServerConfig},
		{"a name only", at("localhost"), "", ErrServerConfig},
		{"another scheme", at("ftp://127.0.0.1"), "", ErrServerConfig},
		{"empty", at(""), "", ErrServerConfig},
		{"a bad port", at("http://127.0.0.1:port"), "", ErrServerConfig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ProbeServer(t.Context(), tt.url(t))
			if got != tt.want || !errors.Is(err, tt.kind) {
				t.Errorf("ProbeServer = %q, %v; want %q, %v", got, err, tt.want, tt.kind)
			}
			if _, ok := err.(*ServerError); err != nil && !ok {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func TestProbeServerThatHangs(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ProbeServer(ctx, s.URL); !errors.Is(err, ErrServerNotReady) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ProbeServer: %v", err)
	}
}

func TestServerErrorSaysWhatToDo(t *testing.T) {
	err := error(&ServerError{Kind: ErrServerPort, Binary: "/bin/ollama", URL: "http://127.0.0.1:1", Log: "a\nb\n", Err: io.EOF})
	want := "gpu: the server's port is taken: stop what listens there, or leave OLLAMA_HOST unset for a free one (/bin/ollama) (http://127.0.0.1:1): EOF; its log ends:\na\nb"
	if err.Error() != want || !errors.Is(err, io.EOF) || !errors.Is(err, ErrServerPort) {
		t.Errorf("got %q", err)
	}
	if err := (&ServerError{Kind: ErrServerExited}); err.Error() != ErrServerExited.Error() || !errors.Is(err, ErrServerExited) {
		t.Errorf("got %q", err)
	}
}
