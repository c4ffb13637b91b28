package agl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

// version of the server that the tests and the fixtures are made for.
const version = "1.0.2"

// realServer starts agl-server, and ends it with the test.
func realServer(t *testing.T, key string) string {
	t.Helper()
	bin := os.Getenv("AGL_SERVER")
	if bin == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, _ := os.UserHomeDir()
			cache = filepath.Join(home, ".cache")
		}
		bin = filepath.Join(cache, "toolorchestra", "agl-"+version, "bin", "agl-server")
	}
	if _, err := os.Stat(bin); err != nil {
		if os.Getenv("AGL_REQUIRED") == "1" {
			t.Fatalf("AGL_REQUIRED is set, and there is no agl-server: %v", err)
		}
		t.Skip("no agl-server here: run .ci/agl, or set AGL_SERVER to its path")
	}
	if testing.Short() {
		t.Skip("starting the server takes seconds")
	}
	dir := t.TempDir()
	cmd := exec.Command(bin, "host=127.0.0.1", "port=0", "key="+key, "default_proxy.model_name=toy",
		"hydra.run.dir="+dir, "hydra.output_subdir=null", "hydra/job_logging=disabled")
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(addr)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(`running on (http://[0-9.:]+)`).FindStringSubmatch(lines.Text()); m != nil {
				addr <- m[1]
			}
		}
	})
	t.Cleanup(func() {
		cmd.Process.Kill()
		wg.Wait()
		cmd.Wait()
	})
	select {
	case a, ok := <-addr:
		if ok {
			return a
		}
		t.Fatal("agl-server ended at once")
	case <-time.After(time.Minute):
		t.Fatal("agl-server does not start")
	}
	return ""
}

// vLLM stands for the server of the model under training: every second rollout
// of a task asks the strong expert, the others the weak one. In a chat it then
// says what the expert said.
func vLLM(t *testing.T) (url string, asked func() []map[string]any) {
	var mu sync.Mutex
	var bodies []map[string]any
	n := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		switch err := json.NewDecoder(r.Body).Decode(&body); {
		case errors.Is(err, io.ErrUnexpectedEOF): // the controller died as it asked
			return
		case err != nil:
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, body)
		key, _ := json.Marshal([]any{body["prompt"], body["messages"]})
		out := call("answer", []string{"answer-1", "answer-2"}[n[string(key)]%2])
		n[string(key)]++
		if bytes.Contains(key, []byte(`"role":"tool"`)) {
			out = "right"
		}
		reply(w, http.StatusOK, completion(body, out))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", func() []map[string]any { mu.Lock(); defer mu.Unlock(); return bodies }
}

// recorder keeps what a server replied, as fixtures.
type recorder struct {
	next http.RoundTripper
	then func(recorded) // may be nil
	mu   sync.Mutex
	list []recorded
}

type recorded struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body"`
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	x := recorded{Method: req.Method, Path: req.URL.RequestURI(), Status: resp.StatusCode, Body: body}
	for _, h := range []string{"Retry-After", "X-Agl-Paused"} {
		if v := resp.Header.Get(h); v != "" {
			if x.Header == nil {
				x.Header = map[string]string{}
			}
			x.Header[h] = v
		}
	}
	if r.then != nil {
		r.then(x)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, x)
	return resp, nil
}

func TestRealServer(t *testing.T) {
	url := realServer(t, "secret")
	model, asked := vLLM(t)
	c, err := NewClient(ClientConfig{URL: url, Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.Register(ctx, Server{Model: "toy", Endpoint: model, Version: 7}); err != nil {
		t.Fatal(err)
	}
	var jobs []NewRollout
	for _, task := range []string{"a", "b"} {
		for range 4 {
			jobs = append(jobs, NewRollout{Train: true, Timeout: time.Minute,
				Input: json.RawMessage(`{"task_id":"` + task + `","prompt":"What is ` + task + `?","pref_vec":{"accuracy":1,"cost":0.5}}`)})
		}
	}
	jobs = append(jobs, NewRollout{Train: false, Input: json.RawMessage(`{"task_id":"c","question":"What is c?"}`)})
	queued, err := c.Enqueue(ctx, jobs...)
	if err != nil || len(queued) != 9 || queued[0].Timeout != time.Minute || queued[8].Timeout != DefaultTimeout || queued[8].Train {
		t.Fatalf("%v: %+v", err, queued)
	}
	// A controller that dies when its first rollout has sampled something.
	dying, die := context.WithCancel(ctx)
	dead, err := New(Config{Client: c, GroupSize: 4, Play: func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
		_, err := j.Model.Generate(ctx, &models.Request{Prompt: "lost"})
		die()
		<-ctx.Done()
		return nil, false, errors.Join(err, ctx.Err())
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Run(dying); err != nil {
		t.Fatal(err)
	}
	if left, err := c.Rollouts(ctx, 100, Running); err != nil || len(left) == 0 {
		t.Fatalf("%d rollouts run: %v", len(left), err)
	}
	// The next finds the gateway paused; it goes on once it was told so.
	if err := c.call(ctx, http.MethodPost, "/proxy/pause", nil, map[string]any{"retry_after_seconds": 1}, nil); err != nil {
		t.Fatal(err)
	}
	gate := &recorder{next: c.http.Transport}
	gate.then = func(x recorded) {
		if x.Status == http.StatusTooManyRequests {
			if err := c.call(ctx, http.MethodPost, "/proxy/resume", nil, nil, nil); err != nil {
				t.Error(err)
			}
		}
	}
	live := *c
	live.http = &http.Client{Transport: gate}
	rows := map[string]Member{}
	running, stop := context.WithCancel(ctx)
	ctl, err := New(Config{Client: &live, GroupSize: 4, Play: func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
		if !j.Rollout.Train { // the gateway takes chats as well
			chat, err := policy.Conversation(j.Model)
			if err != nil {
				return nil, false, err
			}
			j.Policy = chat
		}
		return toy(ctx, j)
	}, OnGroup: func(g *Group) {
		for _, m := range g.Members {
			rows[m.ID] = m
		}
		if len(rows) == len(queued) {
			stop()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Run(running); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%d rollouts in two minutes", len(rows))
	}
	if !slices.ContainsFunc(gate.list, func(x recorded) bool { return x.Status == http.StatusTooManyRequests && x.Header["Retry-After"] == "1" }) {
		t.Error("no rollout met the pause")
	}
	over, err := c.Rollouts(ctx, 100, Succeeded)
	if err != nil || len(over) != 9 {
		t.Fatalf("%d rollouts succeeded: %v", len(over), err)
	}
	rewards := map[string][]float64{}
	for _, r := range over {
		m := rows[r.ID]
		trips, reward, err := c.Triplets(ctx, r.ID)
		if err != nil || reward == nil || reward.Value != m.Reward || reward.Source != source || r.Attempt != m.Attempt {
			t.Fatalf("%s: reward %+v, want %v: %v", r.ID, reward, m.Reward, err)
		}
		rewards[m.Row.Task] = append(rewards[m.Row.Task], reward.Value)
		// What the trainer reads is what was sampled, token for token.
		if len(trips) != len(m.Row.Turns) || r.Train != (len(trips) == 1) || trips[0].Status != 200 || trips[0].Version != 7 || trips[0].Attempt != m.Attempt {
			t.Fatalf("%s: triplets %+v", r.ID, trips)
		}
		x := trips[0]
		turn := m.Row.Turns[0]
		if len(x.ResponseIDs) == 0 || len(x.PromptIDs) == 0 || len(x.Logprobs) != len(x.ResponseIDs) {
			t.Errorf("%s: %d prompt ids, %d response ids, %d logprobs", r.ID, len(x.PromptIDs), len(x.ResponseIDs), len(x.Logprobs))
		}
		if r.Train && (!slices.Equal(x.ResponseIDs, turn.ResponseIDs) || !slices.Equal(x.PromptIDs, turn.PromptIDs)) {
			t.Errorf("%s: the row's token ids are not those of the trainer", r.ID)
		}
		if want := call("answer", map[bool]string{true: "answer-1", false: "answer-2"}[m.Row.Right]); !slices.Equal(x.ResponseIDs, bytesOf(want)) {
			t.Errorf("%s: response %q", r.ID, x.ResponseIDs)
		}
	}
	for task, want := range map[string][]float64{"a": {0, 0, 1, 1}, "b": {0, 0, 1, 1}, "c": {1}} {
		slices.Sort(rewards[task])
		if !slices.Equal(rewards[task], want) {
			t.Errorf("%s: rewards %v, want %v", task, rewards[task], want)
		}
	}
	lost := 0
	for _, b := range asked() {
		if b["prompt"] == "lost" { // by the first controller; the triplets above are the second's alone
			lost++
			continue
		}
		if b["model"] != "toy" || b["return_token_ids"] != true {
			t.Errorf("asked %v", b)
		}
		if prompt, ok := b["prompt"].(string); ok && (b["temperature"] != 1.0 || !strings.HasPrefix(prompt, "<|im_start|>system\n")) {
			t.Errorf("asked %v", b)
		}
	}
	if lost == 0 {
		t.Error("the first controller sampled nothing")
	}
}

// TestRealReplies checks the fixtures against the server, and with AGL_RECORD=1
// writes them.
func TestRealReplies(t *testing.T) {
	url := realServer(t, "secret")
	model, _ := vLLM(t)
	rec := &recorder{next: &http.Transport{}}
	c, err := NewClient(ClientConfig{URL: url, Key: "secret", HTTP: &http.Client{Transport: rec}})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.next.(*http.Transport).CloseIdleConnections()
	checkReplies(t, c, model)
	for i := range rec.list { // what differs from run to run
		for pattern, with := range map[string]string{`http://127\.0\.0\.1:\d+`: "http://127.0.0.1:8000", `("(?:created_at|updated_at|timestamp)": ?)[0-9.]+`: "${1}1796202396.5"} {
			rec.list[i].Body = regexp.MustCompile(pattern).ReplaceAll(rec.list[i].Body, []byte(with))
		}
	}
	got, err := json.MarshalIndent(rec.list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/agl-" + version + ".json"
	if os.Getenv("AGL_RECORD") == "1" {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(want), got) {
		t.Errorf("the server's replies are not those of %s: record them with AGL_RECORD=1 and look at what changed", file)
	}
}
