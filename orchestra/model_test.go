package orchestra_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// An orchestrator is an expert of another one: the bill is the outer run's, with
// the rows of the models that were really asked.
func TestOrchestratorAsModel(t *testing.T) {
	inner := newOrchestra(t, orchestra.WithExperts(expert("inside", "42", cost.Tokens(1, 2))), orchestra.WithBudget(cost.Budget{USD: cost.USD(0.01)}))
	outer := newOrchestra(t, orchestra.WithExperts(inner.Model(models.Info{Name: "team"})))
	res, err := outer.Run(context.Background(), orchestra.Task{Prompt: "six times seven?"})
	if err != nil || res.Answer != "42" {
		t.Fatalf("%q, %v", res.Answer, err)
	}
	if len(res.Ledger) != 1 || res.Ledger[0].Name != "inside" || res.Spent.USD != cost.Dollars(0.00014) {
		t.Errorf("spent %v, ledger %+v", res.Spent.USD, res.Ledger)
	}
	if _, err := outer.Run(context.Background(), orchestra.Task{Prompt: "six times seven?", Budget: cost.Budget{USD: cost.Max(1)}}); !errors.Is(err, cost.ErrExceeded) {
		t.Errorf("with next to no budget: %v", err)
	}
}

func TestModelRequests(t *testing.T) {
	m := newOrchestra(t, orchestra.WithExperts(expert("inside", "a whole answer", cost.Tokens(1, 2)))).Model(models.Info{Name: "team", Raw: true})
	user := func(s string) []models.Message { return []models.Message{{Role: models.User, Text: s}} }
	text := ""
	r, err := m.Generate(context.Background(), &models.Request{Messages: user("well?"), OnDelta: func(d models.Delta) { text += d.Text }})
	if err != nil || r.Text != "a whole answer" || text != r.Text || !r.Usage.Known || r.Usage.Input != 100 || *r.Usage.USD != cost.Dollars(0.00014) {
		t.Errorf("%+v, %v, streamed %q", r, err, text)
	}
	for name, r := range map[string]*models.Request{
		"nil": nil, "raw": {Prompt: "x"}, "tools": {Messages: user("x"), Tools: []models.ToolDef{{Name: "t"}}},
		"schema": {Messages: user("x"), Schema: []byte(`{}`)}, "no user": {Messages: []models.Message{{Role: models.Assistant, Text: "x"}}},
		"empty": {Messages: user("  ")},
	} {
		_, err := m.Generate(context.Background(), r)
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, models.ErrInvalidRequest) || e.Sent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModelConforms(t *testing.T) {
	modeltest.Conform(t, func(t *testing.T) models.Model {
		return newOrchestra(t, orchestra.WithExperts(expert("inside", "a whole sentence", cost.Tokens(1, 2)))).Model(models.Info{Name: "team"})
	})
}
