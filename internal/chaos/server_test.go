package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// What the models say, which is more than one piece of a stream.
const (
	said     = "Six times seven is forty-two.\n<answer>42</answer>"
	calcArgs = `{"expression": "6*7"}`
)

// server answers as the servers of OpenAI's protocol and Ollama do, obeys output
// caps, tells the truth about usage, and counts what reached it.
type server struct {
	mu     sync.Mutex
	served map[string]int // generations, by model
}

type asked struct {
	Model    string
	Prompt   string
	Messages []struct{ Role string }
	Tools    []any
	Stream   *bool
	Max      int `json:"max_tokens"`
	Options  struct {
		Max int `json:"num_predict"`
	}
}

// line is what is said next: text, or the name of a tool to call.
type line struct {
	text, tool, args string
	in, out          int
	capped           bool
}

// next decides what a model says. Those named thinker speak the trained dialect,
// those named chatter call tools, and all others answer.
func (s *server) next(q *asked, size int) line {
	s.mu.Lock()
	s.served[q.Model]++
	n := s.served[q.Model]
	s.mu.Unlock()
	results := 0
	for _, m := range q.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	l := line{text: said, in: size/4 + 1}
	switch {
	case strings.HasPrefix(q.Model, "thinker") && n%2 == 1:
		l.text = "<think>\nArithmetic.\n</think>\n\n<tool_call>\n{\"name\": \"calculator\", \"arguments\": " + calcArgs + "}\n</tool_call>"
	case strings.HasPrefix(q.Model, "thinker"):
		l.text = "<think>\nEnough.\n</think>\n\n<tool_call>\n{\"name\": \"answer\", \"arguments\": {\"model\": \"answer-1\"}}\n</tool_call>"
	case strings.HasPrefix(q.Model, "chatter") && results == 0 && len(q.Tools) > 0:
		l.text, l.tool, l.args = "", "calculator", calcArgs
	case strings.HasPrefix(q.Model, "chatter") && results == 1 && len(q.Tools) > 0:
		l.text, l.tool, l.args = "", "answer", `{"model": "answer-1"}`
	}
	room := max(q.Max, q.Options.Max)
	if room > 0 && len(l.text) > 4*room {
		l.text, l.capped = l.text[:4*room], true
	}
	l.out = (len(l.text) + len(l.tool) + len(l.args) + 3) / 4
	return l
}

func (s *server) count() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int{}
	for m, n := range s.served {
		all[m] = n
	}
	return all
}

func (s *server) total() (n int) {
	for _, m := range s.count() {
		n += m
	}
	return n
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	var q asked
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(body, &q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch r.URL.Path {
	case "/v1/chat/completions", "/v1/completions":
		s.openai(w, &q, s.next(&q, len(body)), r.URL.Path == "/v1/completions")
	case "/api/generate":
		if q.Prompt == "" {
			fmt.Fprintf(w, `{"model":%q,"created_at":"2026-12-02T05:37:55Z","response":"","done":true,"done_reason":"load"}`, q.Model)
			return
		}
		s.ollama(w, &q, s.next(&q, len(body)), true)
	case "/api/chat":
		s.ollama(w, &q, s.next(&q, len(body)), false)
	case "/api/ps":
		fmt.Fprint(w, `{"models":[]}`)
	default:
		http.NotFound(w, r)
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string can always be written
	}
	return string(b)
}

// pieces cuts a text as a stream does.
func pieces(s string) (all []string) {
	for len(s) > 12 {
		all, s = append(all, s[:12]), s[12:]
	}
	return append(all, s)
}

func (s *server) openai(w http.ResponseWriter, q *asked, l line, raw bool) {
	finish := "stop"
	if l.tool != "" {
		finish = "tool_calls"
	} else if l.capped {
		finish = "length"
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, l.in, l.out, l.in+l.out)
	calls := ""
	if l.tool != "" {
		calls = fmt.Sprintf(`,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]`, l.tool, quote(l.args))
	}
	if q.Stream == nil || !*q.Stream {
		w.Header().Set("Content-Type", "application/json")
		what := fmt.Sprintf(`"message":{"role":"assistant","content":%s%s}`, quote(l.text), calls)
		if raw {
			what = `"text":` + quote(l.text)
		}
		fmt.Fprintf(w, `{"id":"c1","model":%q,"choices":[{"index":0,%s,"finish_reason":%q}],%s}`, q.Model, what, finish, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, p := range pieces(l.text) {
		what := fmt.Sprintf(`"delta":{"content":%s%s}`, quote(p), calls)
		if raw {
			what = `"text":` + quote(p)
		}
		if i > 0 {
			calls = ""
		}
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"model\":%q,\"choices\":[{\"index\":0,%s,\"finish_reason\":null}]}\n\n", q.Model, what)
		w.(http.Flusher).Flush()
	}
	last := `"delta":{}`
	if raw {
		last = `"text":""`
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,%s,\"finish_reason\":%q}]}\n\ndata: {\"choices\":[],%s}\n\ndata: [DONE]\n\n", last, finish, usage)
}

func (s *server) ollama(w http.ResponseWriter, q *asked, l line, raw bool) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	write := func(text, calls, rest string) {
		what := fmt.Sprintf(`"message":{"role":"assistant","content":%s%s}`, quote(text), calls)
		if raw {
			what = `"response":` + quote(text)
		}
		fmt.Fprintf(w, "{\"model\":%q,\"created_at\":\"2026-12-02T05:48:30.304548618Z\",%s,%s}\n", q.Model, what, rest)
		w.(http.Flusher).Flush()
	}
	calls := ""
	if l.tool != "" {
		calls = fmt.Sprintf(`,"tool_calls":[{"function":{"name":%q,"arguments":%s}}]`, l.tool, l.args)
	}
	reason := "stop"
	if l.capped {
		reason = "length"
	}
	end := fmt.Sprintf(`"done":true,"done_reason":%q,"total_duration":310719990,"load_duration":303236,"prompt_eval_count":%d,"prompt_eval_duration":2270298,"eval_count":%d,"eval_duration":4034493`, reason, l.in, l.out)
	if q.Stream != nil && !*q.Stream {
		write(l.text, calls, end)
		return
	}
	for _, p := range pieces(l.text) {
		write(p, calls, `"done":false`)
		calls = ""
	}
	write("", "", end)
}
