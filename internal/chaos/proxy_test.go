package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
)

// whole is longer than the pieces that Repeat and Drop count, however a busy
// machine joins what is sent.
var whole = strings.Repeat("0123456789 ", 180) + "the end"

// got is what an HTTP client sees.
type got struct {
	status int
	after  string
	body   string
	err    error
}

func get(ctx context.Context, c *http.Client, url string) (g got) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return got{err: err}
	}
	resp, err := c.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header.Get("Retry-After"), string(b), err}
}

// inHead reports whether a reply ended within its head: net/http then tells what
// it had read, not why there was no more.
func inHead(g got) bool {
	return g.err != nil && (strings.Contains(g.err.Error(), "malformed") || strings.Contains(g.err.Error(), "unexpected EOF"))
}

// Each fault does to a client what its name says, by either way.
func TestWireFaults(t *testing.T) {
	timeUp := func(g got) bool { return errors.Is(g.err, context.DeadlineExceeded) }
	reset := func(g got) bool {
		return errors.Is(g.err, syscall.ECONNRESET) || errors.Is(g.err, syscall.ECONNREFUSED)
	}
	for _, c := range []struct {
		kind   chaos.Kind
		served bool
		seen   func(got) bool
	}{
		{"", true, func(g got) bool { return g.status == 200 && g.body == whole && g.err == nil }},
		{chaos.Refuse, false, reset},
		{chaos.Silence, false, timeUp},
		{chaos.Lost, true, func(g got) bool { return reset(g) && g.status == 0 }},
		{chaos.SlowHeader, true, func(g got) bool { return g.body == whole && g.err == nil }},
		{chaos.SlowBody, true, func(g got) bool { return g.body == whole && g.err == nil }},
		{chaos.Stall, true, func(g got) bool { return timeUp(g) && len(g.body) < len(whole) }},
		{chaos.Cut, true, func(g got) bool {
			return (errors.Is(g.err, io.ErrUnexpectedEOF) || errors.Is(g.err, io.EOF) || inHead(g)) && len(g.body) < len(whole)
		}},
		{chaos.End, true, func(g got) bool {
			return (g.err == nil || inHead(g) || errors.Is(g.err, io.EOF)) && len(g.body) < len(whole)
		}},
		{chaos.Reset, true, func(g got) bool { return (reset(g) || inHead(g)) && len(g.body) < len(whole) }},
		{chaos.Garbage, true, func(g got) bool { return g.err != nil || g.body != whole }},
		{chaos.Repeat, true, func(g got) bool { return g.err == nil && len(g.body) > len(whole) }},
		{chaos.Drop, true, func(g got) bool { return g.err == nil && len(g.body) < len(whole) }},
		{chaos.Status, false, func(g got) bool { return g.status >= 429 && strings.Contains(g.body, fmt.Sprint(g.status)) }},
		{chaos.Portal, false, func(g got) bool { return g.status == 200 && strings.HasPrefix(g.body, "<!DOCTYPE") }},
		{chaos.Empty, false, func(g got) bool { return g.status == 200 && g.body == "" }},
	} {
		seeds := 4
		if c.kind == chaos.Garbage {
			seeds = 1 // others strike where this client does not look
		}
		for seed := range uint64(seeds) {
			for _, way := range []string{"proxy", "transport"} {
				t.Run(fmt.Sprint(c.kind, " ", way, " ", seed+1), func(t *testing.T) {
					g, served := through(t, way, seed+1, c.kind)
					if !c.seen(g) || (served == 1) != c.served {
						t.Errorf("served %d times, seen %+v: %v", served, g, g.err)
					}
				})
			}
		}
	}
}

// through gets whole with one kind of fault, by way of a proxy or a transport.
func through(t *testing.T, way string, seed uint64, kind chaos.Kind) (g got, served int) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		w.Header().Set("Content-Type", "text/plain")
		for i := range len(whole) {
			_, _ = io.WriteString(w, whole[i:i+1])
			if i%400 == 0 {
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		}
	})
	conf := chaos.Config{Rate: 1, Only: []chaos.Kind{kind}, Span: 45, Slow: 5 * time.Millisecond}
	switch {
	case kind == "":
		conf = chaos.Config{Rate: -1}
	case way == "proxy" && kind != chaos.Garbage:
		conf.Span = 130 // with the head
	}
	plan := chaos.New(seed, conf)
	plan.Tell(t)
	url, client := "http://a.test", &http.Client{Transport: plan.Transport("a", direct{h})}
	if way == "proxy" {
		s := httptest.NewServer(h)
		defer s.Close()
		x, err := plan.Proxy("a", s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		url, client = x.URL(), &http.Client{Transport: tr}
	}
	ctx := t.Context()
	if kind == chaos.Stall || kind == chaos.Silence {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		ctx = short
	}
	return get(ctx, client, url), served
}
