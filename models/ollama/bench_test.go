package ollama

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// decision is a reply of 200 tokens, one a line, as from /api/generate.
func decision() []byte {
	var b bytes.Buffer
	for range 200 {
		b.WriteString(`{"model":"m","created_at":"2026-12-02T05:37:55.017873781Z","response":"\u003ctok","done":false}` + "\n")
	}
	b.WriteString(`{"model":"m","created_at":"2026-12-02T05:37:55.021767754Z","response":"","done":true,"done_reason":"stop","total_duration":310719990,"load_duration":303236197,"prompt_eval_count":2000,"prompt_eval_duration":2270298,"eval_count":200,"eval_duration":4034493}` + "\n")
	return b.Bytes()
}

var prompt = strings.Repeat("one of the words of a prompt ", 300)

// The client beside the least that could be done, bufio and encoding/json over
// the same HTTP, and beside the client of package api: a decision of 200 tokens
// over the loopback.
func BenchmarkGenerate(b *testing.B) {
	body := decision()
	s := httptest.NewServer(warm(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(body)
	}))
	b.Cleanup(s.Close)
	b.Run("model", func(b *testing.B) {
		m, err := New("m", Config{BaseURL: s.URL})
		if err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		b.ReportAllocs()
		for b.Loop() {
			if r, err := m.Generate(b.Context(), &models.Request{Prompt: prompt}); err != nil || len(r.Text) != 800 {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		h := wire.NewHTTP(false)
		defer h.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			if n, err := bare(h, s.URL); err != nil || n != 800 {
				b.Fatal(err)
			}
		}
	})
	b.Run("api", func(b *testing.B) {
		h := wire.NewHTTP(false)
		defer h.CloseIdleConnections()
		base, _ := address(s.URL)
		c := api.NewClient(base, h)
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			if err := c.Generate(b.Context(), &api.GenerateRequest{Model: "m", Prompt: prompt, Raw: true}, func(r api.GenerateResponse) error {
				n += len(r.Response)
				return nil
			}); err != nil || n != 800 {
				b.Fatal(err)
			}
		}
	})
}

// bare is what one would write by hand.
func bare(h *http.Client, url string) (n int, err error) {
	in, err := json.Marshal(map[string]any{"model": "m", "prompt": prompt, "raw": true})
	if err != nil {
		return 0, err
	}
	resp, err := h.Post(url+"/api/generate", "application/json", bytes.NewReader(in))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		var l struct {
			Response string `json:"response"`
			Done     bool   `json:"done"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return 0, err
		}
		n += len(l.Response)
	}
}

// A call allocates a fiftieth of what package api's client allocates, at most.
func TestAllocations(t *testing.T) {
	full := decision()
	m := overReader(t, func() io.Reader { return bytes.NewReader(full) })
	base, err := address(DefaultBaseURL)
	if err != nil {
		t.Fatal(err)
	}
	c := api.NewClient(base, &http.Client{Transport: transport(func() io.Reader { return bytes.NewReader(full) })})
	ours := allocated(t, func() error {
		_, err := m.Generate(t.Context(), &models.Request{Prompt: prompt})
		return err
	})
	theirs := allocated(t, func() error {
		return c.Generate(t.Context(), &api.GenerateRequest{Model: "m", Prompt: prompt}, func(api.GenerateResponse) error { return nil })
	})
	if ours*50 > theirs {
		t.Errorf("a call allocates %d bytes, package api's client %d", ours, theirs)
	}
}

// allocated is what a call of f allocates, in bytes.
func allocated(t *testing.T, f func() error) uint64 {
	const calls = 10
	var before, after runtime.MemStats
	for i := range calls + 1 {
		if i == 1 { // the first one fills pools
			runtime.ReadMemStats(&before)
		}
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / calls
}
