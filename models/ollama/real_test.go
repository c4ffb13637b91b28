//go:build unix

package ollama_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// The chat templates that real models come with: the server's own parser works
// on the first (T); a built-in parser replaces it on the second (P).
const chatTemplate = `{{- range .Messages }}<|im_start|>{{ .Role }}
{{ if .Thinking }}<think>{{ .Thinking }}</think>
{{ end }}{{ .Content }}{{ range .ToolCalls }}<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>{{ end }}<|im_end|>
{{ end }}{{ if .Tools }}{{ range .Tools }}{{ .Function }}{{ end }}{{ end }}<|im_start|>assistant
`

// realModel is a model of a real server, on one thread: more of them spin on
// small machines.
func realModel(t testing.TB, s *ollamatest.Server, name string, c ollama.Config) *ollama.Model {
	t.Helper()
	c.BaseURL = s.URL
	if c.Options == nil {
		c.Options = map[string]any{"num_thread": 1}
	}
	m, err := ollama.New(name, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func deadline(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func ask(n int) *models.Request {
	return &models.Request{Prompt: fmt.Sprintf("say [[S%d]]\n", n), MaxOutput: 200}
}

// Raw completions give what the model wrote, byte for byte; what is no answer is
// a typed error.
func TestRealRawScripts(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "raw", ollama.RawTemplate, "")
	m := realModel(t, s, "raw", ollama.Config{Context: 2048})
	for n, script := range ollamatest.Scripts() {
		if n == 0 {
			continue
		}
		streamed := ""
		r := ask(n)
		r.OnDelta = func(d models.Delta) { streamed += d.Text + d.Reasoning }
		resp, err := m.Generate(deadline(t, time.Minute), r)
		var e *models.Error
		switch {
		case script.Loop && n < 25: // the server gives up on one token for ever, and says nothing
			if !errors.As(err, &e) || !errors.Is(err, models.ErrTruncated) || e.Partial == nil || !strings.Contains(e.Partial.Text, "loop9 loop9") {
				t.Errorf("script %d, a loop: %v", n, err)
			}
		case script.Loop: // it does not notice two
			if err != nil || resp.Finish != models.FinishLength || resp.Usage.Output != 200 {
				t.Errorf("script %d, a longer loop: %+v, %v", n, resp, err)
			}
		case script.Text() == "":
			if !errors.As(err, &e) || !errors.Is(err, models.ErrMalformed) {
				t.Errorf("script %d, nothing: %+v, %v", n, resp, err)
			}
		default:
			if err != nil || resp.Text != script.Text() || resp.Finish != models.FinishStop || !resp.Usage.Known || resp.Usage.Output == 0 || resp.Usage.Input == 0 {
				t.Errorf("script %d: %+v, %v, want %q", n, resp, err, script.Text())
			}
			if streamed != script.Text() {
				t.Errorf("script %d: streamed %q", n, streamed)
			}
		}
	}
}

// Whatever the server's templates and parsers make of an output, the result is
// the text, the calls, or a typed error: never an empty success.
func TestRealChat(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "template", chatTemplate, "")
	s.Create(t, "parser", chatTemplate, "qwen3-thinking")
	tool := models.ToolDef{Name: "search", Description: "searches", Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"model":{"type":"string"}}}`)}
	calc := models.ToolDef{Name: "calc", Description: "computes", Schema: json.RawMessage(`{"type":"object","properties":{"expr":{"type":"string"}}}`)}
	for _, name := range []string{"template", "parser"} {
		m := realModel(t, s, name, ollama.Config{Context: 2048, Info: models.Info{Tools: true}})
		seen := map[string]int{}
		for _, n := range slices.Sorted(maps.Keys(ollamatest.Scripts())) {
			for _, think := range []*bool{nil, new(bool)} {
				resp, err := m.Generate(deadline(t, time.Minute), &models.Request{
					Messages: []models.Message{{Role: models.User, Text: fmt.Sprintf("[[S%d]]", n)}}, Tools: []models.ToolDef{tool, calc}, MaxOutput: 200, Think: think,
				})
				var e *models.Error
				switch {
				case err != nil && errors.As(err, &e) && e.Err != nil:
					seen["error"]++
				case err != nil:
					t.Errorf("%s, script %d: an error without a type: %v", name, n, err)
				case resp.Text == "" && len(resp.Calls) == 0 && resp.Finish != models.FinishLength:
					t.Errorf("%s, script %d: an empty success: %+v", name, n, resp)
				case resp.Finish == "":
					t.Errorf("%s, script %d: no reason to stop: %+v", name, n, resp)
				default:
					seen["answer"]++
					for _, c := range resp.Calls {
						if c.Name == "" || !json.Valid(c.Args) || c.ID == "" {
							t.Errorf("%s, script %d: call %+v", name, n, c)
						}
					}
				}
			}
		}
		t.Log(name, seen)
		if seen["answer"] < 10 || seen["error"] < 5 {
			t.Errorf("%s: %v: the scripts hold many of both", name, seen)
		}
	}
}

// What is wrong with a request is a typed error before a token is spent.
func TestRealRefusals(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "raw", ollama.RawTemplate, "")
	m := realModel(t, s, "raw", ollama.Config{Context: 512})
	long := &models.Request{Prompt: strings.Repeat("word ", 1000) + "[[S1]]\n"}
	if _, err := m.Generate(deadline(t, time.Minute), long); !errors.Is(err, models.ErrContextOverflow) {
		t.Errorf("a prompt beyond the context: %v", err)
	}
	if _, err := realModel(t, s, "nope", ollama.Config{}).Generate(deadline(t, time.Minute), ask(1)); !errors.Is(err, ollama.ErrNoModel) || !strings.Contains(err.Error(), "pull") {
		t.Errorf("no such model: %v", err)
	}
	r := ask(1)
	r.Schema = json.RawMessage(`{"type": 5}`)
	var e *models.Error
	if _, err := m.Generate(deadline(t, time.Minute), r); !errors.As(err, &e) || e.Retryable {
		t.Errorf("a schema that is none: %v", err)
	}
	if _, err := m.Generate(deadline(t, time.Minute), ask(1)); err != nil {
		t.Errorf("and after all that: %v", err)
	}
	// A schema forces a call, after a prefix that opens it.
	r = ask(1)
	r.Prompt += "<tool_call>\n"
	r.Schema = json.RawMessage(`{"type":"object","properties":{"name":{"const":"search"}},"required":["name"]}`)
	resp, err := m.Generate(deadline(t, time.Minute), r)
	var call struct{ Name string }
	if err != nil || json.Unmarshal([]byte(resp.Text), &call) != nil || call.Name != "search" {
		t.Errorf("a forced call: %+v, %v", resp, err)
	}
}

// A server or runner that dies, and a caller that leaves, in the middle of a
// reply: typed errors, and the next call works where there is a server.
func TestRealDeath(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "raw", ollama.RawTemplate, "")
	m := realModel(t, s, "raw", ollama.Config{Context: 4096})
	endless := func(ctx context.Context, then func()) error {
		var once sync.Once
		r := ask(25)
		r.MaxOutput = 100_000
		r.OnDelta = func(models.Delta) { once.Do(then) }
		_, err := m.Generate(ctx, r)
		return err
	}
	var e *models.Error
	ctx, cancel := context.WithCancel(context.Background())
	if err := endless(ctx, cancel); !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Partial == nil {
		t.Errorf("cancelled in mid-stream: %v", err)
	}
	if err := endless(deadline(t, time.Minute), func() { s.KillRunner(t) }); !errors.As(err, &e) || !e.Retryable || e.Partial == nil {
		t.Errorf("the runner was killed: %v", err)
	}
	if _, err := m.Generate(deadline(t, time.Minute), ask(1)); err != nil {
		t.Errorf("after the runner's death: %v", err)
	}
	if err := endless(deadline(t, time.Minute), s.Kill); !errors.Is(err, models.ErrTruncated) || !errors.As(err, &e) || !e.Retryable || !e.Sent {
		t.Errorf("the server was killed: %v", err)
	}
	if _, err := m.Generate(deadline(t, time.Minute), ask(1)); !errors.As(err, &e) || e.Sent || !e.Retryable {
		t.Errorf("after the server's death: %v", err)
	}
	if left := s.Runners(); len(left) != 0 {
		t.Errorf("runners are left: %v", left)
	}
}

// A hundred decisions at once: one load, a bounded queue, each is answered or
// refused with a type.
func TestRealHundredAtOnce(t *testing.T) {
	s := ollamatest.Start(t, "OLLAMA_DEBUG=1")
	s.Create(t, "raw", ollama.RawTemplate, "")
	m := realModel(t, s, "raw", ollama.Config{Context: 2048, MaxInFlight: 2, MaxQueue: 60})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var mu sync.Mutex
	answered, refused := 0, 0
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			resp, err := m.Generate(deadline(t, 2*time.Minute), ask(3))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && strings.Contains(resp.Text, "capital"):
				answered++
			case errors.Is(err, ollama.ErrBusy):
				refused++
			default:
				t.Errorf("%+v, %v", resp, err)
			}
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if taken := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && taken > 50<<20 {
		t.Errorf("the client's heap grew by %d MB", taken>>20)
	}
	if answered < 60 || answered+refused != 100 {
		t.Errorf("%d answered, %d refused", answered, refused)
	}
	if n := strings.Count(s.Log(), "starting runner"); n > 1 {
		t.Errorf("%d runners were started", n)
	}
	if len(s.Runners()) != 1 {
		t.Errorf("runners: %v", s.Runners())
	}
	t.Logf("%d answered, %d refused", answered, refused)
}

// Placement tells the truth about a machine without a GPU.
func TestRealPlacement(t *testing.T) {
	s := ollamatest.Start(t)
	s.Create(t, "raw", ollama.RawTemplate, "")
	m := realModel(t, s, "raw", ollama.Config{Context: 1024})
	if p, err := m.Placement(deadline(t, time.Minute)); err != nil || p.Loaded {
		t.Errorf("before: %v, %v", p, err)
	}
	p, err := m.Load(deadline(t, time.Minute))
	if err != nil || !p.Loaded || !p.OnCPU() || p.Context != 1024 || p.Size < 1<<20 {
		t.Errorf("loaded: %+v, %v", p, err)
	}
}

// BenchmarkRealDecision asks a real server for 200 tokens, in turns by the
// client and by nothing but a scanner and encoding/json. "overhead" is how much
// longer the client takes, in percent of a decision.
func BenchmarkRealDecision(b *testing.B) {
	s := ollamatest.Start(b)
	s.Create(b, "raw", ollama.RawTemplate, "")
	m := realModel(b, s, "raw", ollama.Config{Context: 2048})
	ctx := context.Background()
	plain := func() {
		body, err := json.Marshal(map[string]any{"model": "raw", "prompt": ask(25).Prompt, "raw": true, "think": false, "truncate": false, "shift": false,
			"options": map[string]any{"num_thread": 1, "num_ctx": 2048, "num_predict": 200}})
		if err != nil {
			b.Fatal(err)
		}
		r, err := http.Post(s.URL+"/api/generate", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		defer r.Body.Close()
		lines, text := bufio.NewScanner(r.Body), ""
		for lines.Scan() {
			var line struct{ Response string }
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				b.Fatal(err)
			}
			text += line.Response
		}
		if len(text) < 1000 {
			b.Fatalf("%q", text)
		}
	}
	ours := func() {
		r := ask(25)
		r.OnDelta = func(models.Delta) {}
		if resp, err := m.Generate(ctx, r); err != nil || resp.Usage.Output != 200 {
			b.Fatalf("%+v, %v", resp, err)
		}
	}
	timed := func(f func()) time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
	ours()
	plain()
	var a, c []time.Duration
	for b.Loop() {
		a = append(a, timed(ours))
		c = append(c, timed(plain))
	}
	http.DefaultClient.CloseIdleConnections()
	slices.Sort(a)
	slices.Sort(c)
	x, y := a[len(a)/2], c[len(c)/2]
	b.ReportMetric(100*(float64(x)/float64(y)-1), "%overhead")
	b.ReportMetric(float64(x)/1e6, "ms/decision")
}

// Fifty runs over two servers: each sticks to its server, and when one is killed
// all go on at the other within the same request.
func TestRealPool(t *testing.T) {
	servers := []*ollamatest.Server{ollamatest.Start(t), ollamatest.Start(t)}
	var replicas []models.Model
	for i, s := range servers {
		s.Create(t, "raw", ollama.RawTemplate, "")
		replicas = append(replicas, realModel(t, s, "raw", ollama.Config{Context: 2048, Info: models.Info{Name: fmt.Sprintf("replica-%d", i+1)}}))
	}
	pool, err := models.Pool(replicas, models.PoolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 50
	meter, err := cost.NewMeter("pool", cost.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := cost.NewContext(deadline(t, 2*time.Minute), meter)
	m := models.Metered(pool)
	all := func(then func(int)) {
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() {
				r := ask(1)
				r.Affinity = fmt.Sprintf("run-%d", i)
				resp, err := m.Generate(ctx, r)
				if err != nil || resp.Text != "plain answer one" {
					t.Errorf("run %d: %+v, %v", i, resp, err)
				}
				then(i)
			})
		}
		wg.Wait()
	}
	where := func() (n [2]int, failed int) {
		for _, r := range meter.Drain() {
			switch {
			case r.Err != "":
				failed++
			case r.Name == "replica-1":
				n[0]++
			default:
				n[1]++
			}
		}
		return n, failed
	}
	all(func(int) {})
	first, failed := where()
	all(func(int) {})
	second, _ := where()
	if first[0] == 0 || first[1] == 0 || failed != 0 || first[0]+first[1] != runs || second[0]+second[1] != runs {
		t.Errorf("first round %v, second %v, %d failed", first, second, failed)
	}
	// One server dies while all are under way.
	var once sync.Once
	all(func(int) { once.Do(servers[0].Kill) })
	third, failed := where()
	all(func(int) {})
	last, again := where()
	t.Logf("rounds %v %v, killed in %v (%d attempts failed), then %v (%d)", first, second, third, failed, last, again)
	if last[0] != 0 || last[1] != runs || again > 2 {
		t.Errorf("after the death: %v, %d attempts failed", last, again)
	}
}
