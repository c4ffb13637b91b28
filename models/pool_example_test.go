package models_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// Three servers of one model as one Model. A run stays with its server, which
// has its prompt in the cache; when the server is gone another takes over.
func ExamplePool() {
	var servers []*httptest.Server
	var replicas []models.Model
	for i := range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"choices":[{"text":"from server %d","finish_reason":"stop"}]}`, i+1)
		}))
		defer s.Close()
		m, err := openai.New("nvidia/Orchestrator-8B", openai.Config{
			BaseURL: s.URL + "/v1",
			Info:    models.Info{Raw: true, Provider: fmt.Sprintf("gpu-%d", i+1)},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		servers, replicas = append(servers, s), append(replicas, m)
	}
	pool, err := models.Pool(replicas, models.PoolPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := func(run string) {
		resp, err := pool.Generate(context.Background(), &models.Request{Prompt: "Next?", Affinity: run})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(run, resp.Text)
	}
	ask("run-1")
	ask("run-2")
	ask("run-1")
	servers[0].Close()
	ask("run-1")
	ask("run-2")
	// Output:
	// run-1 from server 1
	// run-2 from server 2
	// run-1 from server 1
	// run-1 from server 2
	// run-2 from server 2
}
