package agl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/agl"
)

// A controller plays what a trainer asks for: here one validation task, of a
// server that is played by a few lines.
func ExampleController() {
	server := httptest.NewServer(http.HandlerFunc(agent))
	defer server.Close()
	client, err := agl.NewClient(agl.ClientConfig{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	expert := modeltest.New(models.Info{Name: "expert", Price: cost.Free()}, modeltest.Say("<answer>Paris</answer>"))

	ctx, stop := context.WithCancel(context.Background())
	c, err := agl.New(agl.Config{
		Client:    client,
		GroupSize: 8, // the trainer's actor_rollout_ref.rollout.n
		Play: func(ctx context.Context, j *agl.Job) (*orchestra.Result, bool, error) {
			var row struct{ Answer string }
			if err := j.Decode(&row); err != nil {
				return nil, false, err
			}
			o, err := orchestra.New(orchestra.WithPolicy(j.Policy), orchestra.WithExperts(expert))
			if err != nil {
				return nil, false, err
			}
			res, err := o.Run(ctx, j.Task)
			return res, res.Answer == row.Answer, err
		},
		OnGroup: func(g *agl.Group) {
			for _, m := range g.Members {
				fmt.Println(m.ID, m.State, m.Reward, m.Row.Answer)
			}
			stop()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Run(ctx))
	// Output:
	// r1 succeeded 1 Paris
	// <nil>
}

// agent answers like an agl-server with one rollout in its queue, and a model
// that asks the expert.
func agent(w http.ResponseWriter, r *http.Request) {
	rollout := `{"rollout_id": "r1", "is_train": false, "input": {"task_id": "t1", "prompt": "Capital of France?", "answer": "Paris"}, "status": {"state": "queuing"}}`
	switch r.Method {
	case http.MethodGet:
		fmt.Fprint(w, "["+rollout+"]")
	case http.MethodPatch:
		var in struct {
			Status json.RawMessage `json:"status"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		fmt.Fprintf(w, `{"rollout_id": "r1", "status": %s}`, in.Status)
	default:
		fmt.Fprint(w, `{"choices": [{"text": "<tool_call>{\"name\": \"answer\", \"arguments\": {\"model\": \"answer-1\"}}</tool_call>", "finish_reason": "stop"}]}`)
	}
}
