package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// A decision among twelve offers: experts that two of have answered, or tools of
// an application beside experts. What is allocated is the decision itself: its
// call, and its reason in words.
func BenchmarkDecide(b *testing.B) {
	var infos []models.Info
	for i := range 12 {
		infos = append(infos, skilled(fmt.Sprint("m", i), float64(i)/12, 1, 1))
	}
	asked := expertState(infos...)
	asked.Prompt = strings.Repeat("a word and another, ", 30) + "\nOptions: (A) one (B) two (C) three (D) four"
	reply(asked, 3, "A", 0.001)
	reply(asked, 5, "B", 0.001)

	tooled := expertState(infos[:4]...)
	tooled.Prompt = "How many articles of the spring catalogue are in stock in the store at the harbour?"
	for i, about := range []string{"Search the web for pages about a topic.", "Number of items of an article in stock.", "Weather of a city today.", "Sends a mail to a person.",
		"Evaluates arithmetic exactly.", "Execute code to compute results.", "Status of a customer's order.", "Looks up articles of an encyclopedia."} {
		spec := tools.Spec{Name: fmt.Sprint("tool", i), Description: about, Effects: tools.ReadOnly}
		tooled.Tools = append(tooled.Tools, spec)
		tooled.Offers = append(tooled.Offers, policy.Offer{Tool: spec.Name, Args: []byte("{}"), Names: []string{spec.Name}, Effects: spec.Effects})
	}
	for name, s := range map[string]*policy.State{"experts": asked, "tools": tooled} {
		b.Run(name, func(b *testing.B) {
			p := policy.Embedded()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Decide(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
