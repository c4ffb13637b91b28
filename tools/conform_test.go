package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/tooltest"
)

type library struct{}

func (library) Name() string { return "library" }
func (library) Retrieve(ctx context.Context, q string, k int) ([]tools.Document, error) {
	return []tools.Document{{ID: "d1", Title: "Tin", Text: "Tin boils at 2875 K."}}, ctx.Err()
}

type machine struct{ ran *[]string }

func (machine) Language() string { return "python" }
func (m machine) Run(ctx context.Context, code string) (tools.CodeRun, error) {
	if m.ran != nil {
		*m.ran = append(*m.ran, code)
	}
	return tools.CodeRun{Language: "python", Code: code, Output: "42\n"}, ctx.Err()
}

func scripted(text string) models.Model {
	return modeltest.New(models.Info{Name: "m", Price: cost.Tokens(1, 2), MaxOutput: 500}, modeltest.Forever(modeltest.Say(text)))
}

// All tools that ship pass the suite that every tool has to.
func TestToolsConform(t *testing.T) {
	type in struct {
		City string `json:"city" validate:"required"`
	}
	for name, c := range map[string]struct {
		mk   func() (tools.Tool, error)
		args string
	}{
		"answer":       {func() (tools.Tool, error) { return tools.Answer(scripted("<answer>42</answer>")) }, `{"model":"answer-1"}`},
		"reason":       {func() (tools.Tool, error) { return tools.Reason(machine{}, scripted("```python\nprint(42)\n```")) }, `{"model":"reasoner-1"}`},
		"search":       {func() (tools.Tool, error) { return tools.Search(library{}, scripted("<query>tin</query>")) }, `{"model":"search-1"}`},
		"plain search": {func() (tools.Tool, error) { return tools.Search(library{}) }, `{"query":"tin"}`},
		"calculator":   {func() (tools.Tool, error) { return tools.Calculator(), nil }, `{"expression":"6*7"}`},
		"typed": {func() (tools.Tool, error) {
			return tools.New("weather", "Weather.", func(_ context.Context, c in) (string, error) { return "rain in " + c.City, nil })
		}, `{"city":"Bergen"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.Conform(t, func(t *testing.T) tools.Tool {
				tool, err := c.mk()
				if err != nil {
					t.Fatal(err)
				}
				return tool
			}, json.RawMessage(c.args))
		})
	}
}
