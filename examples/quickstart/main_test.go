package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// output runs the program and returns what it prints.
func output(t *testing.T, questions []string, env map[string]string) (string, error) {
	t.Helper()
	if testing.Short() || race {
		t.Skip("indexes the standard library: not with -short or -race")
	}
	var b bytes.Buffer
	err := run(t.Context(), &b, func(k string) string { return env[k] }, questions)
	return b.String(), err
}

func TestQuestions(t *testing.T) {
	out, err := output(t, questions, nil)
	if err != nil {
		t.Fatal(err, out)
	}
	parts := strings.Split(out, "━━ ")[1:]
	for i, want := range []string{"Answer: func hmac.Equal(", "Answer: 409.5", "Answer: 1024 "} {
		if !strings.Contains(parts[i], want) {
			t.Errorf("%s lacks %q", parts[i], want)
		}
	}
}

func TestUnanswerable(t *testing.T) {
	out, err := output(t, []string{"Who won the football match in Lisbon yesterday?"}, nil)
	if err == nil || !strings.Contains(out, "No answer") {
		t.Errorf("%v\n%s", err, out)
	}
}

// replay serves one recorded reply of an OpenAI-compatible server to every
// streamed request.
func replay(t *testing.T, calls *atomic.Int64, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); r.URL.Path != "/v1/chat/completions" || !bytes.Contains(b, []byte(`"stream":true`)) {
			http.NotFound(w, r)
			return
		}
		calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

const recorded = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"content":"<query>first president</query>"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"content":" <answer>Eanes, I believe</answer>"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[],"usage":{"prompt_tokens":412,"completion_tokens":37,"total_tokens":449,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":12}}}

data: [DONE]

`

// With two endpoints configured they are used, within the budget; the counter
// and the sum of the ledger agree.
func TestTwoEndpoints(t *testing.T) {
	var mini, big atomic.Int64
	env := map[string]string{
		"ORCHESTRA_MODELS": "mini=0.25/2@" + replay(t, &mini, recorded) + ", big=1.25/10@" + replay(t, &big, recorded),
		"ORCHESTRA_BUDGET": "0.05",
	}
	out, err := output(t, []string{"Who was elected president of Portugal in 1976?"}, env)
	if err != nil || !strings.Contains(out, "Answer: Eanes") {
		t.Fatal(err, out)
	}
	if mini.Load() < 2 || !strings.Contains(out, "Experts: mini, big.") {
		t.Errorf("mini was called %d times, big %d times\n%s", mini.Load(), big.Load(), out)
	}
	usd := 412*0.25e-6 + 37*2e-6
	want := fmt.Sprintf("$%.6f", usd*float64(mini.Load()))
	if big.Load() == 0 && (!strings.Contains(out, "Spent: "+strings.TrimRight(want, "0")+" ") || !strings.Contains(out, "rows sum to "+strings.TrimRight(want, "0")+"\n")) {
		t.Errorf("the bill is not %s\n%s", want, out)
	}
	t.Log(out)
	// A dead server is an answer not given and a bill of nothing, not a crash.
	env["ORCHESTRA_MODELS"] = "gone=1/1@http://127.0.0.1:1/v1"
	if out, err := output(t, []string{"Who was elected president of Portugal in 1976?"}, env); err == nil || !strings.Contains(out, "Spent: $0 ") {
		t.Errorf("%v\n%s", err, out)
	}
	env["ORCHESTRA_MODELS"] = "m=cheap"
	if _, err := output(t, questions, env); err == nil || !strings.Contains(err.Error(), "USD per million") {
		t.Error(err)
	}
}
