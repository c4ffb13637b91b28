// Customtool makes a tool of a Go function. The schema comes from the struct, and
// the arguments are checked before the function runs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Parcel is what the tool takes.
type Parcel struct {
	Kilograms float64 `json:"kilograms" validate:"required,gt=0,lte=30" desc:"weight"`
	Country   string  `json:"country" validate:"required,len=2" desc:"ISO code of the country"`
}

// postage computes the price of a parcel.
func postage(_ context.Context, p Parcel) (string, error) {
	if p.Country != "NO" {
		return "", fmt.Errorf("no rates for %s: use NO", p.Country) // told to the policy
	}
	return fmt.Sprintf("A parcel of %.1f kg to %s costs %.2f EUR.", p.Kilograms, p.Country, 9.5+1.2*p.Kilograms), nil
}

func main() {
	tool, err := tools.New("postage", "Computes the postage of a parcel.", postage,
		tools.WithEffects(tools.ReadOnly|tools.Idempotent|tools.Answers),
		// Policies that write (such as Orchestrator-8B) send the arguments, and for
		// others an expert writes them. Proposed here, so that the example needs no model.
		tools.WithPropose(func(tools.Call) []json.RawMessage {
			return []json.RawMessage{[]byte(`{"kilograms": "2.5", "country": "NO"}`)} // a number in quotes is forgiven
		}))
	if err != nil {
		log.Fatal(err)
	}
	o, err := orchestra.New(orchestra.WithTools(tool))
	if err != nil {
		log.Fatal(err)
	}
	res, err := o.Run(context.Background(), orchestra.Task{Prompt: "What is the postage of a parcel of 2.5 kg to Norway?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
	fmt.Println("spent", res.Spent.USD, "in", res.Spent.Turns, "turns")
}
