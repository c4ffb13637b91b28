package agl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkReplies goes through the API: against the real server, and against what
// that replied when it was recorded.
func checkReplies(t *testing.T, c *Client, model string) {
	t.Helper()
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	row := json.RawMessage(`{"task_id":"t","prompt":"2+2?"}`)
	list, err := c.Enqueue(ctx, NewRollout{ID: "r1", Input: row, Train: true, Timeout: 90 * time.Second, Metadata: map[string]any{"step": 3}}, NewRollout{ID: "r2", Input: json.RawMessage(`"text"`)})
	must("enqueue", err)
	if len(list) != 2 || list[0].ID != "r1" || !list[0].Train || list[1].Train || list[0].Timeout != 90*time.Second || list[1].Timeout != time.Hour ||
		list[0].State != Queuing || list[0].Attempt != "" || list[0].Created.Year() < 2025 || string(list[1].Input) != `"text"` || !strings.Contains(string(list[0].Metadata), `"step"`) {
		t.Errorf("enqueued %+v", list)
	}
	list, err = c.Rollouts(ctx, 1, Queuing, Running)
	must("list", err)
	if len(list) != 1 || list[0].ID != "r1" {
		t.Errorf("list %+v", list)
	}
	is := func(what string, err error, status int, want error) *Error {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || e.Status != status || want != nil && !errors.Is(err, want) {
			t.Fatalf("%s: %v, want status %d and %v", what, err, status, want)
		}
		return e
	}
	_, err = c.Patch(ctx, "r1", Patch{State: Succeeded})
	is("queuing to succeeded", err, 409, ErrConflict)
	r, err := c.Patch(ctx, "r1", Patch{State: Running, Attempt: "x1"})
	must("claim", err)
	if r.State != Running || r.Attempt != "x1" {
		t.Errorf("claimed %+v", r)
	}
	_, err = c.Patch(ctx, "r1", Patch{State: Running, Attempt: "x2"})
	is("running to running", err, 409, ErrConflict)
	r, err = c.Patch(ctx, "r1", Patch{Attempt: "x2"}) // the newer attempt
	must("take over", err)
	if r.State != Running || r.Attempt != "x2" {
		t.Errorf("taken over %+v", r)
	}
	_, err = c.Patch(ctx, "zz", Patch{State: Running})
	is("unknown rollout", err, 404, ErrGone)
	ask := func(attempt string) (int, http.Header) {
		t.Helper()
		base, err := c.Gateway("r1", attempt, true)
		must("gateway", err)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/completions", strings.NewReader(`{"prompt":"2+2"}`))
		must("request", err)
		req.Header.Set("Authorization", "Bearer secret")
		resp, err := c.http.Do(req)
		must("ask", err)
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Header
	}
	if status, _ := ask("x2"); status != 503 {
		t.Errorf("no model: status %d", status)
	}
	must("register", c.Register(ctx, Server{Model: "toy", Endpoint: model, Version: 2}))
	must("pause", c.call(ctx, http.MethodPost, "/proxy/pause", nil, map[string]any{"retry_after_seconds": 7}, nil))
	if status, h := ask("x2"); status != 429 || retryAfter(h) != 7*time.Second || !isPaused(h) {
		t.Errorf("paused: status %d, %v", status, h)
	}
	must("resume", c.call(ctx, http.MethodPost, "/proxy/resume", nil, nil, nil))
	for _, attempt := range []string{"x1", "x2", "x2"} { // the first is of another attempt, the third has the second's prompt
		if status, _ := ask(attempt); status != 200 {
			t.Errorf("ask: status %d", status)
		}
	}
	must("reward", c.Reward(ctx, "r1", "x2", Reward{Value: 1}))
	must("reward", c.Reward(ctx, "r1", "x2", Reward{Value: 0.25, Source: "s", Reason: "why"}))
	rows, reward, err := c.Triplets(ctx, "r1")
	must("triplets", err)
	if reward == nil || *reward != (Reward{0.25, "s", "why"}) {
		t.Errorf("reward %+v", reward)
	}
	want := bytesOf(call("answer", "answer-1"))
	if len(rows) != 1 || !slices.Equal(rows[0].ResponseIDs, want) || !slices.Equal(rows[0].PromptIDs, bytesOf("2+2")) || len(rows[0].Logprobs) != len(want) ||
		rows[0].Model != "toy" || rows[0].Version != 2 || rows[0].Status != 200 || rows[0].Attempt != "x2" || rows[0].At.Year() < 2025 {
		t.Errorf("triplets %+v", rows)
	}
	if only, err := c.reward(ctx, "r1"); err != nil || only == nil || only.Value != 0.25 {
		t.Errorf("reward %+v, %v", only, err)
	}
	if none, err := c.reward(ctx, "r2"); err != nil || none != nil {
		t.Errorf("reward %+v, %v", none, err)
	}
	r, err = c.Patch(ctx, "r1", Patch{State: Failed, Failure: "why"})
	must("fail", err)
	if r.State != Failed || r.Failure != "why" || !r.State.Over() {
		t.Errorf("failed %+v", r)
	}
	if r, err = c.Rollout(ctx, "r1"); err != nil || r.State != Failed || r.Attempt != "x2" {
		t.Errorf("read %+v, %v", r, err)
	}
	must("unregister", c.Unregister(ctx))
	e := is("no such API", c.call(ctx, http.MethodGet, "/api/nope", nil, nil, nil), 404, ErrGone)
	if !strings.Contains(e.Error(), "is the URL that of an agl-server") {
		t.Errorf("error %v", e)
	}
	wrong := *c
	wrong.key = "wrong"
	_, err = wrong.Rollouts(ctx, 1, Queuing)
	is("another key", err, 401, ErrKey)
}

func TestClientReadsWhatTheRealServerSays(t *testing.T) {
	raw, err := os.ReadFile("testdata/agl-" + version + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var list []recorded
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	next := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next == len(list) {
			t.Errorf("one call more: %s %s", r.Method, r.URL)
			return
		}
		x := list[next]
		next++
		if r.Method != x.Method || r.URL.RequestURI() != x.Path {
			t.Errorf("call %d is %s %s, and %s %s was recorded", next, r.Method, r.URL.RequestURI(), x.Method, x.Path)
		}
		for name, v := range x.Header {
			w.Header().Set(name, v)
		}
		w.WriteHeader(x.Status)
		w.Write(x.Body)
	}))
	defer s.Close()
	c, err := NewClient(ClientConfig{URL: s.URL + "/", Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkReplies(t, c, "http://127.0.0.1:8000/v1")
	if next != len(list) {
		t.Errorf("%d of %d calls", next, len(list))
	}
}

func TestClientRefusesWhatItWasGiven(t *testing.T) {
	for url, key := range map[string]string{"": "", "localhost:8080": "", "ftp://x": "", "http://": "", "http://x?a=b": "", "http://x": "a b", "https://x": "é"} {
		var e *ConfigError
		if _, err := NewClient(ClientConfig{URL: url, Key: key}); !errors.As(err, &e) || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q, %q: %v", url, key, err)
		}
	}
	c := (newFake(t)).client()
	for _, id := range []string{"", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "a\nb", strings.Repeat("a", 300), "\xff"} {
		_, err := c.Patch(t.Context(), id, Patch{})
		_, err2 := c.Gateway(id, "0", true)
		_, err3 := c.Gateway("r", id, true)
		err4 := c.Reward(t.Context(), "r", id, Reward{})
		_, _, err5 := c.Triplets(t.Context(), id)
		for i, err := range []error{err, err2, err3, err4, err5} {
			if err == nil || !strings.Contains(err.Error(), "is no id of") {
				t.Errorf("%q, call %d: %v", id, i, err)
			}
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if err := c.Reward(t.Context(), "r", "0", Reward{Value: v}); err == nil || !strings.Contains(err.Error(), "finite") {
			t.Errorf("reward %v: %v", v, err)
		}
	}
}

func TestClientNamesEveryBadReply(t *testing.T) {
	rollout := `{"rollout_id":"a","input":1,"config":{},"status":{"state":"queuing"}}`
	for name, c := range map[string]struct {
		handler   http.HandlerFunc
		err       error
		retryable bool
		says      string
	}{
		"html":                      {say(200, "<html>"), ErrMalformed, true, "<html>"},
		"another shape":             {say(200, `{"a":1}`), ErrMalformed, true, ""},
		"null":                      {say(200, `null`), nil, false, ""},
		"an empty list":             {say(200, `[]`), nil, false, ""},
		"whole":                     {say(200, `[`+rollout+`]`), nil, false, ""},
		"another state":             {say(200, `[`+strings.Replace(rollout, "queuing", "lost", 1)+`]`), ErrMalformed, true, `unknown state "lost"`},
		"no id":                     {say(200, `[{"status":{"state":"running"}}]`), ErrMalformed, true, "no id"},
		"an id that is a path":      {say(200, `[`+strings.Replace(rollout, `"a"`, `"../../models"`, 1)+`]`), ErrMalformed, true, "no id"},
		"an attempt that is a path": {say(200, `[`+strings.Replace(rollout, `"queuing"`, `"running","last_attempt_id":"0/x"`, 1)+`]`), ErrMalformed, true, "no id"},
		"cut JSON":                  {say(200, `[{"rollout_`), ErrMalformed, true, ""},
		"cut connection": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("[{"))
		}, ErrCut, true, ""},
		"no reply": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, ErrUnreachable, true, ""},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 80 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, ErrTooLong, false, ""},
		"busy":             {say(429, `{"error":"gateway paused"}`, "Retry-After", "3", "X-Agl-Paused", "true"), ErrBusy, true, "(retry after 3s)"},
		"broken":           {say(500, "Internal\nServer\x00Error"), nil, true, "Internal Server Error"},
		"not built":        {say(501, ""), nil, false, ""},
		"moved":            {say(307, "", "Location", "https://elsewhere"), nil, false, "https://elsewhere"},
		"unprocessable":    {say(422, `{"detail":[]}`), nil, false, "detail"},
		"a key repeated":   {say(400, `bad key secret`), nil, false, "bad key ***"},
		"a long complaint": {say(400, strings.Repeat("é", 5000)), nil, false, "é"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			client, err := NewClient(ClientConfig{URL: s.URL, Key: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Rollouts(t.Context(), 1, Queuing)
			if c.err == nil && !strings.HasPrefix(name, "an empty") && name != "null" && name != "whole" {
				if err == nil {
					t.Fatal("no error")
				}
			} else if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			var e *Error
			if errors.As(err, &e) {
				if e.Retryable != c.retryable || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 3000 || !strings.HasPrefix(err.Error(), "agl: GET /api/rollouts") {
					t.Errorf("retryable %v: %v", e.Retryable, err)
				}
			}
		})
	}
}

func say(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestRolloutsHaveDefaults(t *testing.T) {
	for in, want := range map[string]Rollout{
		`{"rollout_id":"a","status":{"state":"queuing"}}`:                                                                         {ID: "a", Train: true, Timeout: time.Hour, State: Queuing},
		`{"rollout_id":"a","is_train":null,"config":null,"status":{"state":"failed","last_attempt_id":null,"created_at":-1e99}}`:  {ID: "a", Train: true, Timeout: time.Hour, State: Failed},
		`{"rollout_id":"a","is_train":false,"config":{"timeout_seconds":0.5},"status":{"state":"running","last_attempt_id":"1"}}`: {ID: "a", Timeout: time.Second / 2, State: Running, Attempt: "1"},
		`{"rollout_id":"a","config":{"timeout_seconds":1e300},"status":{"state":"running"}}`:                                      {ID: "a", Train: true, Timeout: 1000 * time.Hour, State: Running},
		`{"rollout_id":"a","config":{"timeout_seconds":-5},"status":{"state":"running"}}`:                                         {ID: "a", Train: true, Timeout: time.Hour, State: Running},
	} {
		var r Rollout
		if err := json.Unmarshal([]byte(in), &r); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if want.Created, want.Updated = time.Unix(0, 0), time.Unix(0, 0); !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v", in, r)
		}
	}
}

func TestTripletsKeepTheRewardThatCounts(t *testing.T) {
	for in, want := range map[string]*Reward{
		`[]`: nil,
		`[{"event_type":"reward","data":{"value":1}},{"event_type":"else","data":5}]`:                                    {Value: 1},
		`[{"event_type":"reward","data":{"value":1}},{"event_type":"reward","data":{"value":0.5}}]`:                      {Value: 0.5},
		`[{"event_type":"reward","data":{"value":1}},{"event_type":"reward","data":{"value":null,"source":"unlikely"}}]`: nil,
	} {
		var ts triplets
		if err := json.Unmarshal([]byte(in), &ts); err != nil || !reflect.DeepEqual(ts.reward, want) {
			t.Errorf("%s: %+v, %v", in, ts.reward, err)
		}
	}
	for _, in := range []string{`[{"event_type":"reward","data":{"value":"x"}}]`, `[{"event_type":"model_request","data":{"prompt_token_ids":["x"]}}]`, `{}`} {
		var ts triplets
		if err := json.Unmarshal([]byte(in), &ts); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func TestClientObeysItsContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(cause)
		<-r.Context().Done()
	}))
	defer s.Close()
	c, err := NewClient(ClientConfig{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var e *Error
	if _, err := c.Rollouts(ctx, 1, Queuing); !errors.Is(err, cause) || !errors.As(err, &e) || e.Retryable {
		t.Errorf("error %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	for v, want := range map[string]time.Duration{"": 0, "5": 5 * time.Second, " 0.5 ": 500 * time.Millisecond, "-1": 0, "0": 0, "NaN": 0, "soon": 0, "1e300": time.Hour, "inf": time.Hour,
		"Mon, 01 Jan 2001 00:00:00 GMT": 0, "Fri, 01 Jan 2100 00:00:00 GMT": time.Hour} {
		if got := retryAfter(http.Header{"Retry-After": {v}}); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

func FuzzReplies(f *testing.F) {
	raw, err := os.ReadFile("testdata/agl-" + version + ".json")
	if err != nil {
		f.Fatal(err)
	}
	var list []recorded
	if err := json.Unmarshal(raw, &list); err != nil {
		f.Fatal(err)
	}
	for _, x := range list {
		f.Add([]byte(x.Body))
	}
	f.Add([]byte(`[{"event_type":"reward","data":{"value":"x"}},{"event_type":"model_request","data":{}}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var rs []Rollout
		if json.Unmarshal(b, &rs) == nil {
			for _, r := range rs {
				if r.Timeout <= 0 || r.ID == "" && len(b) > 0 && r.State != "" || r.Attempt != "" && strings.ContainsAny(r.Attempt, "/?#") {
					t.Errorf("read %+v", r)
				}
				_ = groupKey(&r)
				_, _ = readInput(r.Input)
			}
		}
		var ts triplets
		if json.Unmarshal(b, &ts) == nil && ts.reward != nil && (math.IsNaN(ts.reward.Value) || math.IsInf(ts.reward.Value, 0)) {
			t.Errorf("read the reward %v", ts.reward.Value)
		}
		if s := readable(b, "key"); strings.ContainsAny(s, "\n\r\x00") || strings.Contains(s, "key") || len(s) > 4*2048 {
			t.Errorf("readable %q", s)
		}
		if in, err := readInput(b); err == nil && in.prefer.Validate(nil) == nil {
			_ = fmt.Sprint(in)
		}
	})
}
