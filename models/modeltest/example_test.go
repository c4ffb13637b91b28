package modeltest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

func ask(text string) *models.Request {
	return &models.Request{Messages: []models.Message{{Role: models.User, Text: text}}}
}

func Example() {
	m := modeltest.New(models.Info{Name: "expert", Price: cost.Tokens(1, 2)},
		modeltest.RateLimited(2*time.Second),
		modeltest.CallTool("multiply", `{"a": 6, "b": 7}`),
		modeltest.Say("42"),
	)
	for range 4 {
		resp, err := m.Generate(context.Background(), ask("What is 6 times 7?"))
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Printf("%s: %q, %d calls\n", resp.Finish, resp.Text, len(resp.Calls))
	}
	fmt.Println("asked:", m.Requests()[2].Messages[0].Text)
	// Output:
	// error: models: expert: status 429 (retry after 2s)
	// calls: "", 1 calls
	// stop: "42", 0 calls
	// error: models: expert: modeltest: no steps left: request 4, but the script has 3; add steps, or end it with Forever
	// asked: What is 6 times 7?
}

// A stream that is cut is an error. What had arrived is in its Partial.
func ExampleCut() {
	m := modeltest.New(models.Info{Name: "expert"}, modeltest.Cut("The answer is 42.", 10))
	r := ask("What is 6 times 7?")
	r.OnDelta = func(d models.Delta) { fmt.Printf("delta %q\n", d.Text) }
	_, err := m.Generate(context.Background(), r)

	var failed *models.Error
	if errors.As(err, &failed) {
		fmt.Println(err)
		fmt.Printf("%q, %d output tokens\n", failed.Partial.Text, failed.Partial.Usage.Output)
	}
	// Output:
	// delta "The "
	// delta "answ"
	// delta "er"
	// models: expert: stream ended early
	// "The answer", 3 output tokens
}

// A Check in a step asserts what the model is asked.
func ExampleStep() {
	m := modeltest.New(models.Info{Name: "expert"}, modeltest.Step{
		Text: "Paris",
		Check: func(r *models.Request) error {
			if r.MaxOutput == 0 {
				return errors.New("the request has no output cap")
			}
			return nil
		},
	})
	_, err := m.Generate(context.Background(), ask("The capital of France?"))
	fmt.Println(err)
	// Output:
	// models: expert: modeltest: step check: the request has no output cap
}

// The model claims a usage that is not true.
func ExampleLying() {
	m := modeltest.New(models.Info{Name: "expert"},
		modeltest.Lying(modeltest.Say("yes"), cost.Usage{Input: 1_000_000}))
	resp, err := m.Generate(context.Background(), ask("Really?"))
	fmt.Println(resp.Text, resp.Usage.Input, err)
	// Output: yes 1000000 <nil>
}

// This model returns what had arrived when it was cancelled, as if it were all.
func ExampleCheck() {
	for _, problem := range modeltest.Check(modeltest.Broken()["partial"]) {
		fmt.Println(problem)
	}
	// Output:
	// cancelled in mid-stream: a call that was cancelled in its first delta returned "The " and no error
}

func ExampleFunc() {
	echo := modeltest.Func(models.Info{Name: "echo"}, func(_ context.Context, r *models.Request) (*models.Response, error) {
		return &models.Response{Text: r.Messages[len(r.Messages)-1].Text, Finish: models.FinishStop}, nil
	})
	resp, err := echo.Generate(context.Background(), ask("hello"))
	fmt.Println(resp.Text, err)
	// Output: hello <nil>
}
