package tooltest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/tooltest"
)

// This tool answers, it says, but its result holds no attempt.
func ExampleCheck() {
	for _, problem := range tooltest.Check(tooltest.Broken()["evasive"], json.RawMessage(`{"text": "hello"}`)) {
		fmt.Println(problem)
	}
	// Output:
	// call: the tool promises tools.Answers, but the result for {"text": "hello"} has no attempt with a text
}

func ExampleFunc() {
	shout := tooltest.Func(tools.Spec{Name: "shout"}, func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Result{Text: strings.ToUpper(string(c.Args))}, nil
	})
	r, err := shout.Call(context.Background(), tools.Call{Args: json.RawMessage(`"hello"`)})
	fmt.Println(r.Text, err)
	// Output: "HELLO" <nil>
}
