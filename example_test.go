package toolorchestra_test

import (
	"context"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// The example of the README, with scripted models in the place of paid ones.
func Example() {
	mini := modeltest.New(models.Info{Name: "gpt-5-mini", Price: cost.Tokens(0.25, 2)},
		modeltest.Say(`{"name": "Bergen"}`), // writes the arguments of the tool, since the embedded policy cannot
		modeltest.Say("<answer>Rain.</answer>"))

	type City struct {
		Name string `json:"name" validate:"required" desc:"name of the city"`
	}
	weather, err := tools.New("weather", "Weather of a city today.", func(ctx context.Context, c City) (string, error) {
		return "rain in " + c.Name, nil
	}, tools.WithEffects(tools.ReadOnly))
	if err != nil {
		panic(err)
	}
	o, err := orchestra.New(orchestra.WithExperts(mini), orchestra.WithTools(weather))
	if err != nil {
		panic(err)
	}
	res, err := o.Run(context.Background(), orchestra.Task{
		Prompt: "What is the weather in the city of Bergen today?",
		Budget: cost.Budget{USD: cost.USD(0.02)},
		Prefer: prefs.Vector{Accuracy: 1, Cost: 0.8},
	})
	fmt.Println(res.Answer, res.Stop, err)
	for _, turn := range res.Trajectory.Turns() {
		for _, call := range turn.Done {
			fmt.Println(call.Call.Tool, call.Result.Text)
		}
	}
	fmt.Println(len(res.Ledger), "charges")
	// Output:
	// Rain. answered <nil>
	// weather rain in Bergen
	// answer Rain.
	// 2 charges
}
