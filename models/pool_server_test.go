package models_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// node is a real server of raw completions that streams half an answer, and the
// other half once it may.
type node struct {
	*httptest.Server
	began chan struct{} // one for each request that reached it
	mu    sync.Mutex
	asked map[string]int // by prompt
	may   chan struct{}  // closed: answers come at once
}

func startNode(t *testing.T) *node {
	n := &node{began: make(chan struct{}, 1000), asked: map[string]int{}, may: make(chan struct{})}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.mu.Lock()
		n.asked[string(body)]++
		n.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"half \"}]}\n\n")
		w.(http.Flusher).Flush()
		n.began <- struct{}{}
		select {
		case <-n.may:
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"whole\",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(n.Close)
	return n
}

// kill ends the server as a crash would: connections break and none is taken.
func (n *node) kill() {
	_ = n.Listener.Close()
	n.CloseClientConnections()
}

func (n *node) answer() { close(n.may) }

// requests is how many there were, and of how many prompts.
func (n *node) requests() (all, prompts int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.asked {
		all += k
	}
	return all, len(n.asked)
}

// Two real servers, one killed under 50 concurrent runs: runs stick to their
// server before, none is lost, and each moves within one request.
func TestPoolSurvivesTheDeathOfAServer(t *testing.T) {
	const runs = 50
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * runs}
	t.Cleanup(transport.CloseIdleConnections)
	nodes := []*node{startNode(t), startNode(t)}
	var replicas []models.Model
	for i, n := range nodes {
		m, err := openai.New("policy", openai.Config{
			BaseURL: n.URL + "/v1",
			HTTP:    &http.Client{Transport: transport},
			Info:    models.Info{Name: "policy-" + strconv.Itoa(i), Provider: "cluster", Raw: true, Price: cost.Tokens(1, 1), MaxOutput: 100},
		})
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, m)
	}
	p, err := models.Pool(replicas, models.PoolPolicy{FirstToken: time.Minute, Down: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	m := models.Metered(p)
	ctx, meter := withMeter(t, cost.Budget{USD: cost.NoLimit(), Calls: 1000})
	ids := even(t, runs)

	// All runs in flight: half of them at each server.
	got := make(chan string, 2*runs)
	ask := func(id string) {
		text := ""
		resp, err := m.Generate(ctx, &models.Request{Prompt: id, Affinity: id, OnDelta: func(d models.Delta) {
			if d.Restart {
				text = ""
			}
			text += d.Text
		}})
		switch {
		case err != nil:
			got <- err.Error()
		case resp.Text != text:
			got <- fmt.Sprintf("the stream says %q, the response %q", text, resp.Text)
		default:
			got <- resp.Text
		}
	}
	for i, id := range ids {
		go ask(id)
		<-nodes[i%2].began
	}
	for i, n := range nodes {
		if all, prompts := n.requests(); all != runs/2 || prompts != runs/2 {
			t.Errorf("server %d has %d requests of %d runs", i, all, prompts)
		}
	}

	nodes[0].kill()
	nodes[1].answer()
	for range ids {
		if s := <-got; s != "half whole" {
			t.Errorf("a run was lost: %s", s)
		}
	}
	if all, prompts := nodes[1].requests(); all != runs || prompts != runs {
		t.Errorf("the survivor has %d requests of %d runs", all, prompts)
	}
	cut, rows := 0, meter.Ledger()
	for _, row := range rows {
		if row.Err != "" {
			cut++
			if row.Name != "policy-0" {
				t.Errorf("a failure of %s: %s", row.Name, row.Err)
			}
		}
	}
	if len(rows) != runs+runs/2 || cut != runs/2 {
		t.Errorf("%d attempts, %d of them failed", len(rows), cut)
	}

	// The next requests of the same runs find out that it is gone, and then leave
	// it alone.
	for _, id := range ids {
		ask(id)
		if s := <-got; s != "half whole" {
			t.Errorf("a run was lost: %s", s)
		}
	}
	if again := len(meter.Ledger()) - len(rows) - runs; again != 1 {
		t.Errorf("the dead server was asked %d more times", again)
	}
}

// even finds ids of runs that belong to the two servers by turns.
func even(t *testing.T, n int) (ids []string) {
	h := hosts("policy-0 policy-1")
	p := pooled(t, models.PoolPolicy{}, h...)
	for i := 0; len(ids) < n && i < 100*n; i++ {
		id := "run-" + strconv.Itoa(i)
		if run(t, p, id) == h[len(ids)%2].name {
			ids = append(ids, id)
		}
	}
	if len(ids) < n {
		t.Fatal("too few runs belong to one of them")
	}
	return ids
}
