package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/cost/sqlite"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// A tenant has five cents, for all runs of all processes that open the file.
// Each run leases one cent.
func Example() {
	dir, err := os.MkdirTemp("", "budget")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(filepath.Join(dir, "budget.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	shared, err := cost.Share(store, []cost.Scope{{Name: "tenant:42", Budget: cost.Budget{USD: cost.USD(0.05)}}})
	if err != nil {
		log.Fatal(err)
	}
	// A scripted model in the place of a paid one: 1,000 tokens in, 200 out.
	usage := cost.Usage{Input: 1000, Output: 200, Known: true}
	o, err := orchestra.New(orchestra.WithExperts(modeltest.New(models.Info{Name: "dear", Price: cost.Tokens(3, 10), MaxOutput: 300},
		modeltest.Forever(modeltest.Step{Text: "<answer>yes</answer>", Usage: &usage}))))
	if err != nil {
		log.Fatal(err)
	}
	run := func(ctx context.Context) error {
		lease, err := shared.Lease(ctx, cost.Budget{USD: cost.USD(0.01)}, cost.WithWait(time.Second))
		if err != nil {
			return err
		}
		defer lease.Close()
		_, err = o.Run(lease.Context(ctx), orchestra.Task{Prompt: "Is it true?"})
		return errors.Join(err, lease.Close())
	}
	runs := 0
	for err = nil; err == nil; runs++ {
		err = run(context.Background())
	}
	fmt.Println(runs-1, "runs, then", errors.Is(err, cost.ErrExceeded))
	b, err := shared.Balances(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("spent", b[0].Spent.USD, "and held", b[0].Held.USD)
	// Output:
	// 9 runs, then true
	// spent $0.045 and held $0
}
