// Trainorchestrator plays the rollouts that a trainer asks for, and rewards them:
// it is the Go half of training the 8B policy. README.md describes the other.
//
//	go run ./examples/trainorchestrator -url http://localhost:8080
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/agl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url := flag.String("url", os.Getenv("AGL_URL"), "address of agl-server")
	n := flag.Int("n", 8, "rollouts of a task: the trainer's actor_rollout_ref.rollout.n")
	vllm := flag.String("vllm", "", "to try it without a trainer: a vLLM server, such as http://localhost:8000/v1. The toy tasks are then put into the queue")
	name := flag.String("name", "Qwen/Qwen3-8B", "the model, as agl-server's default_proxy.model_name")
	out := flag.String("out", "trajectories.jsonl", "where to add a line for each rollout")
	flag.Parse()
	if *url == "" {
		fmt.Print(help)
		return
	}
	if err := run(ctx, *url, *n, *vllm, *name, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, n int, vllm, name, out string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client, err := agl.NewClient(agl.ClientConfig{URL: url, Key: os.Getenv("AGL_KEY")})
	if err != nil {
		return err
	}
	defer client.Close()
	left := -1 // groups to play; a trainer never ends
	if vllm != "" {
		if left, err = enqueue(ctx, client, vllm, name, n); err != nil {
			return err
		}
	}
	if _, err := client.Rollouts(ctx, 1); err != nil { // before a file is made
		return err
	}
	file, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	c, err := agl.New(agl.Config{Client: client, GroupSize: n, Play: play, Log: slog.Default(), OnGroup: func(g *agl.Group) {
		fmt.Printf("%s, flat: %v\n", g.Key, g.Flat)
		for _, m := range g.Members {
			fmt.Printf("  %s %-9s reward %.3f  %s\n", m.ID, m.State, m.Reward, m.Failed)
			if m.Row != nil && err == nil { // behind half a line nothing could be read
				err = train.WriteRollouts(file, m.Row)
			}
		}
		if left--; left == 0 || err != nil {
			stop()
		}
	}})
	if err != nil {
		return err
	}
	if e := c.Run(ctx); e != nil {
		return e
	}
	return err // of writing
}

// play is one rollout: the orchestrator as an application would use it, with the
// policy under training, and the judge's word.
func play(ctx context.Context, j *agl.Job) (*orchestra.Result, bool, error) {
	var row task
	if err := j.Decode(&row); err != nil {
		return nil, false, err
	}
	o, err := orchestra.New(orchestra.WithPolicy(j.Policy), orchestra.WithExperts(teacher{}, guesser{}))
	if err != nil {
		return nil, false, err
	}
	res, err := o.Run(ctx, j.Task)
	return res, strings.TrimSpace(res.Answer) == row.Answer, err
}
