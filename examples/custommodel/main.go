// Custommodel makes an expert of anything that answers: two methods.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// shouter answers with the question in capitals.
type shouter struct{}

func (shouter) Info() models.Info {
	return models.Info{Name: "shouter", Price: cost.Tokens(1, 2), MaxOutput: 500}
}

func (shouter) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &models.Error{Model: "shouter", Err: err} // nothing was sent, so nothing is billed
	}
	_, question, _ := strings.Cut(r.Messages[len(r.Messages)-1].Text, "Problem: ")
	text := "<answer>" + strings.ToUpper(question) + "</answer>"
	if r.OnDelta != nil {
		r.OnDelta(models.Delta{Text: text}) // a real model sends many pieces
	}
	return &models.Response{
		Text:   text,
		Finish: models.FinishStop,
		Usage:  cost.Usage{Input: 40, Output: 10, Known: true}, // what you were charged for
	}, nil
}

func main() {
	o, err := orchestra.New(orchestra.WithExperts(models.Retry(shouter{}, models.RetryPolicy{Attempts: 3})))
	if err != nil {
		log.Fatal(err)
	}
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "is anybody there?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
	for _, row := range res.Ledger {
		fmt.Println(row.Name, row.USD, row.Basis)
	}
}
