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

	"github.com/toolorchestra/toolorchestra-go/cost"
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

// replay serves the reply of an OpenAI-compatible server to every streamed
// request, and an error in OpenAI's form to requests that contain refuse.
func replay(t *testing.T, calls *atomic.Int64, body, refuse string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || !bytes.Contains(b, []byte(`"stream":true`)) {
			http.NotFound(w, r)
			return
		}
		if refuse != "" && bytes.Contains(b, []byte(refuse)) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"message":"this key may not do that","type":"invalid_request_error","param":null,"code":null}}`)
			return
		}
		calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

const miniReply = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"content":"<query>first president</query>"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{"content":" <answer>Eanes, I believe</answer>"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764640000,"model":"gpt-5-mini-2025-08-07","choices":[],"usage":{"prompt_tokens":412,"completion_tokens":37,"total_tokens":449,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":12}}}

data: [DONE]

`

// With two endpoints configured both are used, within the budget: one writes the
// query and is not allowed to answer, so the other does. The counter and the sum
// of the ledger are the bill, to the last digit.
func TestTwoEndpoints(t *testing.T) {
	var mini, big atomic.Int64
	bigReply := strings.NewReplacer("412", "1903", "449", "1940", "gpt-5-mini", "gpt-5", "Eanes, I believe", "Eanes").Replace(miniReply)
	env := map[string]string{
		"ORCHESTRA_MODELS": "mini=0.25/2@" + replay(t, &mini, miniReply, "final answer") + ", big=1.25/10@" + replay(t, &big, bigReply, ""),
		"ORCHESTRA_BUDGET": "0.05",
	}
	out, err := output(t, []string{"Who was elected president of Portugal in 1976?"}, env)
	if err != nil || !strings.Contains(out, "Answer: Eanes\n") || mini.Load() != 1 || big.Load() != 1 {
		t.Fatalf("%v, %d and %d calls\n%s", err, mini.Load(), big.Load(), out)
	}
	bill := cost.Dollars(412*0.25e-6+37*2e-6) + cost.Dollars(1903*1.25e-6+37*10e-6)
	if !strings.Contains(out, "Spent: "+bill.String()+" ") || !strings.Contains(out, "rows sum to "+bill.String()+"\n") {
		t.Errorf("the bill is not %v\n%s", bill, out)
	}
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
