package search_test

import (
	"context"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

func ExampleIndex() {
	ctx := context.Background()
	index, err := search.Open("") // or a path, to keep it
	if err != nil {
		fmt.Println(err)
		return
	}
	defer index.Close()
	err = index.Add(ctx,
		tools.Document{ID: "tea", Title: "Green tea", Text: "Steep green tea at 80 °C for two minutes."},
		tools.Document{ID: "coffee", Title: "Filter coffee", Text: "Use 60 g of ground coffee for a litre of water."},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	docs, err := index.Retrieve(ctx, "How much coffee do I grind for a litre?", 1)
	fmt.Println(docs[0].ID, err)
	// Output: coffee <nil>
}

func ExampleReader() {
	docs := []tools.Document{
		{ID: "tea", Title: "Green tea", Text: "Green tea comes from China. Steep it at 80 °C for two minutes."},
		{ID: "coffee", Title: "Filter coffee", Text: "Use 60 g of ground coffee for a litre of water."},
	}
	res, err := search.Reader().Call(context.Background(), tools.Call{
		Prompt: "How many minutes is green tea steeped?",
		Work:   tools.Workspace{}.With(tools.Result{Documents: docs}),
	})
	fmt.Println(res.Text, err)
	// Output:
	// Green tea
	// Steep it at 80 °C for two minutes. <nil>
}
