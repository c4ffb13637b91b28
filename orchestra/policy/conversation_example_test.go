package policy_test

import (
	"context"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// A chat of several questions, each a run with a budget of its own. The scripted
// model stands for any model that calls tools, such as one of models/openai.
func ExampleConversation() {
	model := modeltest.New(models.Info{Name: "gpt-5-mini", Tools: true, Price: cost.Tokens(0.25, 2)},
		modeltest.CallTool("weather", `{"city": "Bergen"}`),
		modeltest.Say("It rains in Bergen."),
		modeltest.CallTool("weather", `{"city": "Oslo"}`),
		modeltest.Say("There it is dry."))

	type City struct {
		City string `json:"city" desc:"name of the city"`
	}
	weather, err := tools.New("weather", "Weather of a city today.", func(_ context.Context, c City) (string, error) {
		if c.City == "Oslo" {
			return "dry", nil
		}
		return "rain", nil
	}, tools.WithEffects(tools.ReadOnly))
	if err != nil {
		panic(err)
	}
	p, err := policy.Conversation(model)
	if err != nil {
		panic(err)
	}
	o, err := orchestra.New(orchestra.WithPolicy(p), orchestra.WithTools(weather), orchestra.WithBudget(cost.Budget{USD: cost.USD(0.05)}))
	if err != nil {
		panic(err)
	}

	chat := []models.Message{{Role: models.System, Text: "Answer in one sentence."}}
	for _, question := range []string{"How is the weather in Bergen?", "And in Oslo?"} {
		res, err := o.Run(context.Background(), orchestra.Task{Prompt: question, Messages: chat})
		if err != nil {
			panic(err)
		}
		for _, turn := range res.Trajectory.Turns() {
			for _, done := range turn.Done {
				fmt.Println(done.Call.Tool, string(done.Call.Args), done.Result.Text)
			}
		}
		fmt.Println(res.Answer)
		chat = append(chat, models.Message{Role: models.User, Text: question}, models.Message{Role: models.Assistant, Text: res.Answer})
	}
	fmt.Println(len(model.Requests()[3].Messages), "messages in the last request")
	// Output:
	// weather {"city": "Bergen"} rain
	// It rains in Bergen.
	// weather {"city": "Oslo"} dry
	// There it is dry.
	// 6 messages in the last request
}
