package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func metered(t *testing.T, usd float64) (context.Context, *cost.Meter) {
	t.Helper()
	m, err := cost.NewMeter("test", cost.Budget{USD: cost.USD(usd)})
	if err != nil {
		t.Fatal(err)
	}
	return cost.NewContext(context.Background(), m), m
}

func args(s string) json.RawMessage { return json.RawMessage(s) }

// What experts write, and what the tools make of it.
func TestExpertTools(t *testing.T) {
	docs := tools.Workspace{}.With(tools.Result{Documents: []tools.Document{{ID: "a", Title: "A", Text: "alpha"}, {ID: "b", Title: "B", Text: "beta"}}})
	for _, c := range []struct {
		name, reply, answer string
		sources             []string
	}{
		{"tags", "thinking [2] <answer> 42 </answer> bye", "42", []string{"b"}},
		{"the last of several", "<answer>1</answer> no, <answer>2</answer>", "2", nil},
		{"an open tag", "<answer>42", "42", nil},
		{"boxed", `so \boxed{\frac{1}{2}} it is [1]`, `\frac{1}{2}`, []string{"a"}},
		{"plain", "  forty-two\n", "forty-two", nil},
	} {
		tool, err := tools.Answer(scripted(c.reply))
		if err != nil {
			t.Fatal(err)
		}
		ctx, m := metered(t, 1)
		res, err := tool.Call(ctx, tools.Call{Args: args(`{"model":"answer-1"}`), Prompt: "q", Work: docs})
		if err != nil || len(res.Attempts) != 1 || res.Attempts[0].Text != c.answer || !slices.Equal(res.Attempts[0].Sources, c.sources) || m.Spent().USD == 0 {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
	}
	ctx, _ := metered(t, 1)
	empty, _ := tools.Answer(modeltest.New(models.Info{Name: "m", Price: cost.Free()}, modeltest.Step{}))
	if _, err := empty.Call(ctx, tools.Call{Args: args(`{"model":"answer-1"}`)}); err == nil {
		t.Error("no text is an answer")
	}
	var ran []string
	reason, _ := tools.Reason(machine{&ran}, scripted("First\n```js\nno\n```\nthen\n```python\nprint(6*7)\n```"))
	res, err := reason.Call(ctx, tools.Call{Args: args(`{"model":"reasoner-1"}`), Prompt: "q"})
	if err != nil || len(res.Runs) != 1 || res.Runs[0].Output != "42\n" || !slices.Equal(ran, []string{"print(6*7)\n"}) {
		t.Errorf("%+v, %v, ran %q", res, err, ran)
	}
	ran = nil
	cut, _ := tools.Reason(machine{&ran}, modeltest.New(models.Info{Name: "m", Price: cost.Free()}, modeltest.Step{Text: "```python\nprint(1)\n```", Finish: models.FinishLength}))
	if _, err := cut.Call(ctx, tools.Call{Args: args(`{"model":"reasoner-1"}`)}); err == nil || ran != nil {
		t.Errorf("half a program was run: %v, %q", err, ran)
	}
	search, _ := tools.Search(library{}, scripted("I need <query>boiling point of tin</query>"))
	res, err = search.Call(ctx, tools.Call{Args: args(`{"model":"search-1"}`), Prompt: "q"})
	if err != nil || len(res.Documents) != 1 || res.Documents[0].Source != "library" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A tight budget shortens what the expert is shown, down to what the Floor of
// the estimate promises.
func TestExpertShrinksItsContext(t *testing.T) {
	shown := 0
	m := modeltest.Func(models.Info{Name: "m", Price: cost.Tokens(1, 1), MaxOutput: 300, MinOutput: 100}, func(_ context.Context, r *models.Request) (*models.Response, error) {
		shown = len(r.Messages[1].Text)
		return &models.Response{Text: "x", Finish: models.FinishStop, Usage: cost.Usage{Input: 1, Output: 1, Known: true}}, nil
	})
	tool, _ := tools.Answer(m)
	c := tools.Call{Args: args(`{"model":"answer-1"}`), Prompt: "q", Work: tools.Workspace{}.With(tools.Result{Documents: []tools.Document{{ID: "a", Text: strings.Repeat("long ", 20_000)}}})}
	e := tool.Spec().Estimate(c)
	for _, b := range []struct {
		usd      cost.Amount
		min, max int
	}{{e.Worst.USD, 90_000, 110_000}, {e.Floor.USD, 10_000, 20_000}} {
		ctx, _ := metered(t, b.usd.Dollars())
		if _, err := tool.Call(ctx, c); err != nil || shown < b.min || shown > b.max {
			t.Errorf("with %v it was shown %d bytes: %v", b.usd, shown, err)
		}
	}
	ctx, _ := metered(t, e.Floor.USD.Dollars()/2)
	if _, err := tool.Call(ctx, c); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
}

func TestExpertToolsRefuse(t *testing.T) {
	var spec *tools.SpecError
	_, e1 := tools.Answer()
	_, e2 := tools.Answer(nil)
	_, e3 := tools.Reason(nil, scripted("x"))
	_, e4 := tools.Reason(machine{})
	_, e5 := tools.Search(nil)
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if !errors.As(err, &spec) {
			t.Errorf("%d: %v", i+1, err)
		}
	}
	tool, _ := tools.Answer(scripted("x"))
	ctx, _ := metered(t, 1)
	for _, a := range []string{``, `nonsense`, `{"model":"answer-2"}`, `{"model":"ans`, `{}`} {
		var bad *tools.ArgumentsError
		if _, err := tool.Call(ctx, tools.Call{Args: args(a)}); !errors.As(err, &bad) {
			t.Errorf("%q: %v", a, err)
		}
	}
}

func TestWorkspace(t *testing.T) {
	var w tools.Workspace
	one := w.With(tools.Result{Documents: []tools.Document{{ID: "a"}, {ID: "b"}, {ID: "a"}}, Attempts: []tools.Attempt{{Text: "x"}}})
	two := one.With(tools.Result{Documents: []tools.Document{{ID: "c"}, {ID: "a"}}, Attempts: []tools.Attempt{{Text: "y"}}})
	if same := two.With(tools.Result{Text: "only words", Documents: []tools.Document{{ID: "b"}}}); same.Version() != two.Version() {
		t.Error("a result that adds nothing changed the workspace")
	}
	ids := ""
	for _, d := range two.Documents() {
		ids += d.ID
	}
	if a, ok := two.Attempt("attempt-2"); ids != "cab" || !ok || a.Text != "y" {
		t.Errorf("%s, %+v", ids, a)
	}
	if d, r, a := one.Len(); d != 2 || r != 0 || a != 1 {
		t.Errorf("the first workspace has %d, %d, %d", d, r, a)
	}
}
