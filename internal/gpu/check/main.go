// Check prints what the SDK finds on a machine: the GPUs, the plan for
// Orchestrator-8B, and, where an Ollama server and the weights are at hand,
// where the model was placed, how long loading took, and how fast prompts are
// read and tokens are written.
//
//	go run ./internal/gpu/check             # discovery and plan only
//	go run ./internal/gpu/check -run        # and everything else; downloads the weights if they are not there
//	go run ./internal/gpu/check -run -cpu   # wherever it fits
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

func main() {
	load := flag.Bool("run", false, "start the model and measure it")
	cpu := flag.Bool("cpu", false, "the processor will do")
	weights := flag.String("weights", policy.Weights, "another model, as Ollama knows it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	discover(ctx, *cpu)
	if *load {
		if err := measure(ctx, *weights, *cpu); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// discover prints the GPUs and the plan.
func discover(ctx context.Context, cpu bool) {
	f := gpu.Discover(ctx, gpu.Sources{})
	for _, n := range f.Notes {
		fmt.Println("looked  ", n)
	}
	for _, d := range f.Devices {
		fmt.Printf("GPU %d    %s %s, %.1f of %.1f GiB free, compute %s, MIG %v, unified %v, driver %s\n",
			d.Index, d.Name, d.UUID, gib(d.Free), gib(d.Total), d.Compute, d.MIG, d.Unified, d.Driver)
	}
	fmt.Printf("memory   %.1f of %.1f GiB available\n", gib(f.MemAvailable), gib(f.MemTotal))
	p, err := gpu.MakePlan(f, gpu.Want{CPU: cpu})
	if err != nil {
		fmt.Println("plan     none:", err)
		return
	}
	fmt.Printf("plan     %s, %d tokens, KV %s, %d at once, %.2f GiB of GPU memory\n", p.Quant, p.Context, p.KV, p.Parallel, gib(p.VRAM))
	for _, w := range p.Why {
		fmt.Println("        ", w)
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

// measure starts the model and times it.
func measure(ctx context.Context, weights string, cpu bool) error {
	opts := []policy.LocalOption{policy.WithWeights(weights), policy.WithProgress(func(p policy.Progress) {
		if p.Total == 0 {
			fmt.Println("...     ", p.Text)
		}
	})}
	if cpu {
		opts = append(opts, policy.WithCPU())
	}
	p, err := policy.Local(ctx, opts...)
	if err != nil {
		return err
	}
	defer p.Close()
	r := p.Report()
	fmt.Print(r)
	m, err := ollama.New(r.Model, ollama.Config{BaseURL: r.Server, Context: r.Context, KeepAlive: -1})
	if err != nil {
		return err
	}
	ask := func(prompt string, tokens int) (*models.Response, time.Duration, error) {
		start := time.Now()
		seed := int64(1)
		resp, err := m.Generate(ctx, &models.Request{Prompt: prompt, MaxOutput: tokens, Seed: &seed})
		return resp, time.Since(start), err
	}
	// A prompt that no cache has, then the same one again with more output: the
	// difference is the writing.
	prompt := fmt.Sprintf("%d ", time.Now().UnixNano()) + strings.Repeat("The quick brown fox jumps over the lazy dog. ", 200) + "\n"
	first, read, err := ask(prompt, 1)
	if err != nil {
		return err
	}
	_, again, err := ask(prompt, 1)
	if err != nil {
		return err
	}
	long, wrote, err := ask(prompt, 201)
	if err != nil {
		return err
	}
	in, out := first.Usage.Input, long.Usage.Output
	if in == 0 || out < 2 {
		return errors.New("the server counted no tokens")
	}
	fmt.Printf("prompt   %d tokens in %s: %.0f tokens/s\n", in, read.Round(time.Millisecond), float64(in)/read.Seconds())
	fmt.Printf("output   %d tokens in %s: %.0f tokens/s\n", out-1, (wrote - again).Round(time.Millisecond), float64(out-1)/(wrote-again).Seconds())
	return p.Check(ctx)
}
