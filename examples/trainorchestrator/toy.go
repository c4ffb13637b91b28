package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/agl"
)

const help = `No agl-server to work for. Start one (Python 3.12, pip install agentlightning==1.0.2):
	agl-server key=secret default_proxy.model_name=Qwen/Qwen3-8B
then this, and the trainer (see README.md for its hardware):
	AGL_KEY=secret go run ./examples/trainorchestrator -url http://localhost:8080
	AGL_KEY=secret python train.py
With -vllm http://localhost:8000/v1 in place of the trainer, the toy tasks are played once.
`

// task is a row of the data set, as train.py gives it to the trainer.
type task struct {
	ID     string             `json:"task_id"`
	Prompt string             `json:"prompt"`
	Answer string             `json:"answer"`
	Prefer map[string]float64 `json:"pref_vec"`
}

//go:embed tasks.jsonl
var tasks string

// enqueue does what a trainer would: each task n times.
func enqueue(ctx context.Context, c *agl.Client, vllm, name string, n int) (groups int, err error) {
	if err := c.Register(ctx, agl.Server{Model: name, Endpoint: vllm}); err != nil {
		return 0, err
	}
	for line := range strings.Lines(tasks) {
		for range n {
			if _, err := c.Enqueue(ctx, agl.NewRollout{Input: json.RawMessage(line), Train: true}); err != nil {
				return 0, err
			}
		}
		groups++
	}
	return groups, nil
}

// teacher multiplies, for a cent. A real expert is models/openai's or
// models/ollama's.
type teacher struct{}

func (teacher) Info() models.Info {
	return models.Info{Name: "teacher", Price: cost.Price{Input: cost.Per(5), Output: cost.Per(15), Request: cost.Per(0.01)}, MaxOutput: 100}
}

func (teacher) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	return multiply(ctx, r, func(a, b int) int { return a * b })
}

// guesser is cheap, and right only of small numbers.
type guesser struct{}

func (guesser) Info() models.Info {
	return models.Info{Name: "guesser", Price: cost.Price{Input: cost.Per(0.1), Output: cost.Per(0.3), Request: cost.Per(0.0005)}, MaxOutput: 100}
}

func (guesser) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	return multiply(ctx, r, func(a, b int) int {
		if a > 12 || b > 12 {
			return a*b + 10
		}
		return a * b
	})
}

func multiply(ctx context.Context, r *models.Request, f func(a, b int) int) (*models.Response, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text := "<answer>?</answer>"
	var a, b int
	_, question, _ := strings.Cut(r.Messages[len(r.Messages)-1].Text, "What is ")
	if _, err := fmt.Sscanf(question, "%d times %d", &a, &b); err == nil {
		text = fmt.Sprintf("<answer>%d</answer>", f(a, b))
	}
	return &models.Response{Text: text, Finish: models.FinishStop, Usage: cost.Usage{Input: 50, Output: 10, Requests: 1, Known: true}}, nil
}
