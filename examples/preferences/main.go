// Preferences shows one task under different preference vectors: who is asked,
// and what it costs.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// expert is a scripted model with a measured skill.
func expert(name string, in, out, skill float64) models.Model {
	return modeltest.New(models.Info{Name: name, Price: cost.Tokens(in, out), MaxOutput: 1000, Skill: models.Skill{Score: skill, Tasks: 100}},
		modeltest.Forever(modeltest.Say("<answer>by "+name+"</answer>")))
}

func main() {
	o, err := orchestra.New(orchestra.WithExperts(expert("small", 0.1, 0.4, 0.55), expert("large", 3, 15, 0.85)))
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range []prefs.Vector{
		{Accuracy: 1}, // whatever it costs
		{Accuracy: 0.3, Cost: 1},
		{Accuracy: 1, Never: []string{"large"}},
		{Accuracy: 0.3, Cost: 1, Use: map[string]float64{"large": 1}},
	} {
		res, err := o.Run(context.Background(), orchestra.Task{Prompt: "Who answers?", Prefer: v})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-10s %-12v %s\n", res.Answer, res.Spent.USD, v.Describe())
	}
	// A name that does not exist is an error that says what may have been meant.
	_, err = o.Run(context.Background(), orchestra.Task{Prompt: "x", Prefer: prefs.Vector{Never: []string{"lage"}}})
	fmt.Println(err)
}
