package prefs_test

import (
	"errors"
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

func ExampleParse() {
	names := []string{"local_search", "web_search", "gpt-5", "gpt-5-mini", "llama-3.3-70b"}
	v, err := prefs.Parse("Cheap please, prefer local search, never GPT 5. I can wait.", names)
	fmt.Printf("%+v %v\n", v, err)

	// What it does not understand it says, and goes by the rest.
	v, err = prefs.Parse("Be quick, no o3. Write nicely.", names)
	fmt.Printf("%+v\n", v)
	var e *prefs.ParseError
	if errors.As(err, &e) {
		for _, p := range e.Parts {
			fmt.Printf("%q: %v\n", p.Text, p.Err)
		}
	}
	// Output:
	// {Accuracy:1 Cost:1 Latency:0 Use:map[local_search:1] Never:[gpt-5]} <nil>
	// {Accuracy:1 Cost:0.5 Latency:1 Use:map[] Never:[]}
	// "o3": prefs: Never names "o3", which is no tool, model or source of this orchestrator: use one of gpt-5, gpt-5-mini, llama-3.3-70b, local_search, web_search
	// "Write nicely": not understood: write wishes such as "cheap", "speed matters most", "cost does not matter", "prefer NAME" or "never NAME"
}
