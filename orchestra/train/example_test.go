package train_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// sums are tasks with known answers, as an application may have recorded.
type sums struct{ asked, answer []string }

func (s sums) Len() int { return len(s.asked) }

// Weights are the user's preferences: here those of nobody in particular.
func (s sums) Weights(int) []float64 { return prefs.Default().Weights(nil) }

// Play runs a task in an orchestrator as the application has it. (Measured time
// makes training go a little differently each time.)
func (s sums) Play(ctx context.Context, task int, p policy.Policy) (train.Metrics, error) {
	mini := modeltest.New(models.Info{Name: "mini", Price: cost.Tokens(1, 4)}, modeltest.Say("<answer>I do not know</answer>"))
	o, err := orchestra.New(orchestra.WithPolicy(p), orchestra.WithExperts(mini), orchestra.WithTools(tools.Calculator()))
	if err != nil {
		return train.Metrics{}, err
	}
	res, err := o.Run(ctx, orchestra.Task{Prompt: s.asked[task]})
	m := train.Metrics{Right: res.Answer == s.answer[task], USD: res.Spent.USD.Dollars(), Seconds: res.Spent.Time.Seconds()}
	if err != nil {
		m.Failed = err.Error()
	}
	return m, ctx.Err()
}

// GRPO improves the shipped policy on tasks of one's own; the file that it writes
// is for policy.WithGeneral.
func ExampleGRPO() {
	tasks := sums{asked: []string{"What is 12 * 7?", "What is 5 percent of 80?"}, answer: []string{"84", "4"}}
	learned, err := train.GRPO(context.Background(), nil, tasks, train.WithSteps(3), train.WithGroups(2, 4), train.WithVersion("sums-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := learned.Write(&file); err != nil {
		fmt.Println(err)
		return
	}
	p, err := policy.Learned(policy.WithGeneral(&file))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := tasks.Play(context.Background(), 0, p)
	fmt.Println(m.Right, m.USD, err)
	// Output:
	// true 0 <nil>
}
