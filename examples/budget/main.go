// Budget runs many tasks at once below one shared budget. None of them can
// overspend it, and each says what became of it.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

func main() {
	// A scripted model in the place of a paid one: 1,000 tokens in, 200 out.
	usage := cost.Usage{Input: 1000, Output: 200, Known: true}
	model := modeltest.New(models.Info{Name: "dear", Price: cost.Tokens(2, 10), MaxOutput: 300},
		modeltest.Forever(modeltest.Step{Text: "<answer>yes</answer>", Usage: &usage}))
	o, err := orchestra.New(orchestra.WithExperts(model))
	if err != nil {
		log.Fatal(err)
	}
	tenant, err := cost.NewMeter("tenant:42", cost.Budget{USD: cost.USD(0.02)})
	if err != nil {
		log.Fatal(err)
	}
	ctx := cost.NewContext(context.Background(), tenant) // a budget travels like a deadline

	var wg sync.WaitGroup
	var mu sync.Mutex
	stops := map[orchestra.Stop]int{}
	for range 20 {
		wg.Go(func() {
			res, _ := o.Run(ctx, orchestra.Task{Prompt: "Is it true?", Budget: cost.Budget{USD: cost.USD(0.01)}})
			mu.Lock()
			defer mu.Unlock()
			stops[res.Stop]++ // the result is never nil
		})
	}
	wg.Wait()
	fmt.Println("answered", stops[orchestra.Answered], "· refused for money", stops[orchestra.OutOfBudget])
	fmt.Println("spent", tenant.Spent().USD, "of $0.02, and the ledger sums to", tenant.Ledger().Total().USD)
}
