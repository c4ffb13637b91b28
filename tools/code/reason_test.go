package code_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

// reasonThenFinish has code written and run, and then ends with what it printed.
type reasonThenFinish struct{}

func (reasonThenFinish) Info() policy.Info { return policy.Info{Name: "scripted", Writes: true} }

func (reasonThenFinish) Decide(_ context.Context, s *policy.State) (policy.Decision, error) {
	if s.Turn == 1 {
		return policy.Decision{Calls: []policy.Call{{Tool: "enhance_reasoning", Args: json.RawMessage(`{"model":"reasoner-1"}`)}}}, nil
	}
	text := "nothing was run"
	for _, r := range s.Work.Runs() {
		text = strings.TrimSpace(r.Output + r.Err)
	}
	return policy.Decision{Finish: &policy.Finish{Text: text}}, nil
}

// The whole way: a model writes a program, it runs here, and the run ends with
// what it computed. Models name the language as they like.
func TestReasoningRunsTheCode(t *testing.T) {
	const program = "let s = 0n;\nfor (let i = 1n; i <= 100n; i++) s += i ** 3n;\nconsole.log(String(s));\n"
	for _, tag := range []string{"javascript", "js", "JS", "JavaScript", "mjs", ""} {
		writer := modeltest.New(models.Info{Name: "writer", Price: cost.Tokens(1, 2), MaxOutput: 500},
			modeltest.Say("The cubes are summed:\n```"+tag+"\n"+program+"```\nThat is all."))
		o, err := orchestra.New(orchestra.WithPolicy(reasonThenFinish{}), orchestra.WithExperts(writer), orchestra.WithCode(interpreter(t)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := o.Run(context.Background(), orchestra.Task{Prompt: "What is the sum of the first hundred cubes?"})
		if err != nil || res.Answer != "25502500" {
			t.Errorf("%q: answer %q, %v", tag, res.Answer, err)
		}
		if asked := writer.Requests(); len(asked) != 1 || !strings.Contains(asked[0].Messages[0].Text+asked[0].Messages[1].Text, "```javascript block") {
			t.Errorf("%q: the model was asked %+v", tag, asked)
		}
	}
}

// A block of another language is not run.
func TestReasoningRunsNoOtherLanguage(t *testing.T) {
	writer := modeltest.New(models.Info{Name: "writer", Price: cost.Tokens(1, 2), MaxOutput: 500}, modeltest.Say("```python\nprint(1)\n```"))
	o, err := orchestra.New(orchestra.WithPolicy(reasonThenFinish{}), orchestra.WithExperts(writer), orchestra.WithCode(interpreter(t)))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := o.Run(context.Background(), orchestra.Task{Prompt: "What?"}); err != nil || res.Answer != "nothing was run" {
		t.Errorf("%q, %v", res.Answer, err)
	}
}
