// Resume keeps a run in files and goes on after a crash.
//
//	go run ./examples/resume -crash   # dies in the middle of the run
//	go run ./examples/resume          # finishes it: what was spent still counts
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

func main() {
	log.SetFlags(0)
	crash := flag.Bool("crash", false, "end the process while the expert is asked")
	flag.Parse()
	files, err := orchestra.NewFileCheckpoint(filepath.Join(os.TempDir(), "toolorchestra-resume"))
	if err != nil {
		log.Fatal(err)
	}
	// A paid model, played: it costs $1 per million tokens in, $2 out.
	info := models.Info{Name: "expert", Price: cost.Tokens(1, 2), MaxOutput: 200}
	expert := modeltest.Func(info, func(context.Context, *models.Request) (*models.Response, error) {
		if *crash {
			os.Exit(1) // as if the machine had lost its power
		}
		return &models.Response{Text: "<answer>42</answer>", Finish: models.FinishStop, Usage: cost.Usage{Input: 90, Output: 8, Known: true}}, nil
	})
	o, err := orchestra.New(orchestra.WithExperts(expert), orchestra.WithCheckpoint(files))
	if err != nil {
		log.Fatal(err)
	}
	unfinished, err := files.Unfinished()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, run := range unfinished {
		past, err := files.Trajectory(run)
		if err != nil {
			log.Fatal(err)
		}
		res, err := o.Resume(ctx, past).Result()
		fmt.Printf("%s goes on: %s for %v, %v\n", run, res.Answer, res.Spent.USD, err)
		for _, r := range res.Ledger {
			fmt.Println("  ", r.Name, r.USD, r.Basis, r.Err)
		}
	}
	if len(unfinished) == 0 {
		res, err := o.Run(ctx, orchestra.Task{Prompt: "What is six times seven?"})
		fmt.Println("a new run:", res.Answer, res.Spent.USD, err)
	}
}
