package policy_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// thinker stands for a server of raw completions.
type thinker struct{}

func (thinker) Info() models.Info {
	return models.Info{Name: "orchestrator-8b", Raw: true, Price: cost.Free()}
}

func (thinker) Generate(context.Context, *models.Request) (*models.Response, error) {
	return &models.Response{Text: "<think>\nSimple arithmetic.\n</think>\n\n<tool_call>\n{\"name\": \"calc\", \"arguments\": {\"expr\": \"6*7\"}}\n</tool_call>"}, nil
}

func ExampleTrained() {
	p, err := policy.Trained(thinker{})
	if err != nil {
		fmt.Println(err)
		return
	}
	calc := tools.Spec{Name: "calc", Description: "Exact arithmetic.", Schema: json.RawMessage(`{"type":"object","properties":{"expr":{"type":"string"}}}`)}
	meter, err := cost.NewMeter("demo", cost.Budget{USD: cost.USD(0.01)})
	if err != nil {
		fmt.Println(err)
		return
	}
	// An orchestrator does this in every turn.
	d, err := p.Decide(cost.NewContext(context.Background(), meter), &policy.State{
		Turn: 1, Prompt: "What is six times seven?", Tools: []tools.Spec{calc}, Offers: []policy.Offer{{Tool: "calc"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Reasoning)
	fmt.Println(d.Calls[0].Tool, string(d.Calls[0].Args))
	// Output:
	// Simple arithmetic.
	// calc {"expr": "6*7"}
}
