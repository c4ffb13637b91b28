package agl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is an agl-server in memory, as far as a controller sees it. before may
// answer a call in its place, by returning true.
type fake struct {
	t      *testing.T
	before func(w http.ResponseWriter, r *http.Request) bool
	sample func(body map[string]any) string // of the model under training: its output; called one at a time
	gate   sync.Mutex                       // of before

	mu      sync.Mutex
	order   []string
	all     map[string]*entry
	calls   []string          // "PATCH r1", …, of those that changed something
	bodies  []map[string]any  // that the gateway was asked
	touched map[string]string // attempt by rollout that asked the gateway
}

type entry struct {
	ID     string          `json:"rollout_id"`
	Input  json.RawMessage `json:"input"`
	Train  bool            `json:"is_train"`
	Config map[string]any  `json:"config"`
	Status struct {
		State   State   `json:"state"`
		Attempt *string `json:"last_attempt_id"`
		Failure *string `json:"error_message"`
		Created float64 `json:"created_at"`
		Updated float64 `json:"updated_at"`
	} `json:"status"`
	rewards map[string][]Reward
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, all: map[string]*entry{}, touched: map[string]string{}}
	f.before = func(http.ResponseWriter, *http.Request) bool { return false }
	f.sample = func(map[string]any) string { return call("answer", "answer-1") }
	return f
}

// call is an output of the policy.
func call(tool, expert string) string {
	return "<think>\nhm\n</think>\n\n<tool_call>\n" + `{"name": "` + tool + `", "arguments": {"model": "` + expert + `"}}` + "\n</tool_call>"
}

// RoundTrip serves a call without a network, so that time can be made up.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.Code == cut {
		return nil, io.ErrUnexpectedEOF
	}
	return w.Result(), nil
}

// cut is the status of a connection that breaks.
const cut = 599

func (f *fake) client() *Client {
	c, err := NewClient(ClientConfig{URL: "http://agl", Key: "secret", HTTP: &http.Client{Transport: f}})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// enqueue puts n rollouts of a task into the queue: task-0, task-1, …
func (f *fake) enqueue(task string, n int, train bool) {
	in, _ := json.Marshal(map[string]any{"task_id": task, "prompt": "What is " + task + "?", "pref_vec": map[string]float64{"accuracy": 1, "cost": 0.5}})
	for i := range n {
		f.add(fmt.Sprintf("%s-%d", task, i), in, train)
	}
}

func (f *fake) add(id string, in json.RawMessage, train bool) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &entry{ID: id, Input: in, Train: train, Config: map[string]any{"timeout_seconds": 60}, rewards: map[string][]Reward{}}
	e.Status.State = Queuing
	f.order, f.all[id] = append(f.order, id), e
	return e
}

// running makes rollouts those of a controller that is no more.
func (f *fake) running(ids ...string) {
	dead := "dead"
	for _, id := range ids {
		f.all[id].Status.State, f.all[id].Status.Attempt = Running, &dead
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		reply(w, http.StatusUnauthorized, map[string]string{"detail": "Invalid or missing API key"})
		return
	}
	f.gate.Lock()
	done := f.before(w, r)
	f.gate.Unlock()
	if done {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var e *entry
	if len(path) > 2 {
		id := path[2]
		if e = f.all[id]; e == nil {
			reply(w, http.StatusNotFound, map[string]string{"detail": "Rollout not found: " + id})
			return
		}
	}
	switch {
	case path[0] == "proxy":
		f.gateway(w, r, e, path[4])
	case r.Method == http.MethodGet && len(path) == 2:
		list := []*entry{}
		for _, id := range f.order {
			if e := f.all[id]; e != nil && slices.Contains(r.URL.Query()["state_in"], string(e.Status.State)) {
				list = append(list, e)
			}
		}
		var limit int
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		reply(w, http.StatusOK, list[:min(len(list), limit)])
	case r.Method == http.MethodGet && len(path) == 3:
		reply(w, http.StatusOK, map[string]any{"rollout": e, "attempts": []string{}})
	case r.Method == http.MethodPatch:
		f.patch(w, r, e)
	case r.Method == http.MethodPost && path[len(path)-1] == "events":
		var in struct{ Data Reward }
		json.NewDecoder(r.Body).Decode(&in)
		e.rewards[path[4]] = append(e.rewards[path[4]], in.Data)
		f.calls = append(f.calls, "reward "+e.ID)
		reply(w, http.StatusOK, map[string]any{})
	case r.Method == http.MethodGet:
		events := []any{}
		if e.Status.Attempt != nil {
			for _, x := range e.rewards[*e.Status.Attempt] {
				events = append(events, map[string]any{"event_type": "reward", "attempt_id": *e.Status.Attempt, "data": x})
			}
		}
		reply(w, http.StatusOK, events)
	default:
		reply(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	}
}

func (f *fake) patch(w http.ResponseWriter, r *http.Request, e *entry) {
	var in struct {
		Status struct {
			State   State   `json:"state"`
			Attempt *string `json:"last_attempt_id"`
			Failure *string `json:"error_message"`
		} `json:"status"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.t.Error(err)
	}
	s := &e.Status
	switch to := in.Status.State; {
	case to == "", s.State == Queuing && (to == Running || to == Failed), s.State == Running && to.Over():
	default:
		reply(w, http.StatusConflict, map[string]string{"detail": fmt.Sprintf("Rollout %s: cannot transition %s -> %s", e.ID, s.State, to)})
		return
	}
	if in.Status.State != "" {
		s.State = in.Status.State
	}
	if in.Status.Attempt != nil {
		s.Attempt = in.Status.Attempt
	}
	if in.Status.Failure != nil {
		s.Failure = in.Status.Failure
	}
	f.calls = append(f.calls, string(s.State)+" "+e.ID)
	reply(w, http.StatusOK, e)
}

// gateway is the model under training, as vLLM answers for it.
func (f *fake) gateway(w http.ResponseWriter, r *http.Request, e *entry, attempt string) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		f.t.Error(err)
	}
	f.bodies, f.touched[e.ID] = append(f.bodies, body), attempt
	reply(w, http.StatusOK, completion(body, f.sample(body)))
}

// completion is what vLLM says to a raw prompt or a chat, with token ids: here
// one a byte, which only a sampler could know.
func completion(body map[string]any, output string) map[string]any {
	ids, logprobs := []int{}, []float64{}
	for _, b := range []byte(output) {
		ids, logprobs = append(ids, int(b)), append(logprobs, -0.5)
	}
	choice := map[string]any{"index": 0, "finish_reason": "stop", "token_ids": ids}
	out := map[string]any{"id": "x", "model": "toy", "choices": []any{choice}, "usage": map[string]int{"prompt_tokens": 3, "completion_tokens": len(ids), "total_tokens": 3 + len(ids)}}
	if prompt, ok := body["prompt"].(string); ok {
		var tokens []int
		for _, b := range []byte(prompt) {
			tokens = append(tokens, int(b))
		}
		choice["text"], choice["prompt_token_ids"] = output, tokens
		choice["logprobs"] = map[string]any{"token_logprobs": logprobs}
		return out
	}
	list := []any{}
	for _, p := range logprobs {
		list = append(list, map[string]any{"token": "x", "logprob": p})
	}
	choice["message"], choice["logprobs"] = map[string]any{"role": "assistant", "content": output}, map[string]any{"content": list}
	all, _ := json.Marshal(body["messages"])
	var tokens []int
	for _, b := range all {
		tokens = append(tokens, int(b))
	}
	out["prompt_token_ids"] = tokens
	return out
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// until runs a controller until every rollout is over, or for a time at the most.
func (f *fake) until(c *Controller, most time.Duration) error {
	ctx, cancel := context.WithTimeout(f.t.Context(), most)
	defer cancel()
	was := c.onGroup
	c.onGroup = func(g *Group) {
		was(g)
		if f.over() {
			cancel()
		}
	}
	return c.Run(ctx)
}

func (f *fake) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.all {
		if !e.Status.State.Over() {
			return false
		}
	}
	return true
}

// state of a rollout, its newest reward, and why it failed.
func (f *fake) state(id string) (s State, reward *Reward, failure string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.all[id]
	if e.Status.Attempt != nil {
		if rs := e.rewards[*e.Status.Attempt]; len(rs) > 0 {
			reward = &rs[len(rs)-1]
		}
	}
	if e.Status.Failure != nil {
		failure = *e.Status.Failure
	}
	return e.Status.State, reward, failure
}
