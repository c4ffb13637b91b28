//go:build unix

package ollamatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The real server answers each marker with its script, byte for byte, and the
// highest of several markers counts.
func TestScripts(t *testing.T) {
	s := Start(t)
	s.Create(t, "script", "{{ .Prompt }}", "")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(prompt string) string {
		body, _ := json.Marshal(map[string]any{"model": "script", "raw": true, "stream": false, "prompt": prompt, "options": map[string]any{"num_thread": 1, "temperature": 1}})
		r, err := client.Post(s.URL+"/api/generate", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var out struct{ Response, Error string }
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil || out.Error != "" {
			t.Fatalf("%q: %v %s", prompt, err, out.Error)
		}
		return out.Response
	}
	for n, script := range Scripts() {
		if script.Loop {
			continue
		}
		prompt := "no marker\n"
		if n > 0 {
			prompt = fmt.Sprintf("x [[S%d]] y\n", n)
			if n > 1 {
				prompt = fmt.Sprintf("x [[S%d]] y [[S%d]]\n", n, n-1)
			}
		}
		if got := ask(prompt); got != script.Text() {
			t.Errorf("script %d: got %q, want %q", n, got, script.Text())
		}
	}
	if len(s.Runners()) != 1 {
		t.Errorf("runners %v, want one", s.Runners())
	}
	if !strings.Contains(s.Log(), "Listening") {
		t.Errorf("the log is %q", s.Log())
	}
}
