package orchestra_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

func TestNames(t *testing.T) {
	o := newOrchestra(t, orchestra.WithExperts(expert("mini", "x", cost.Free()), expert("big", "x", cost.Free())), orchestra.WithTools(tools.Calculator()))
	toolNames, modelNames := o.Names()
	if !slices.Contains(toolNames, "calculator") || !slices.Contains(toolNames, "answer") || !slices.Equal(modelNames, []string{"mini", "big"}) {
		t.Errorf("tools %v, models %v", toolNames, modelNames)
	}
	v, err := prefs.Parse("only mini please", slices.Concat(toolNames, modelNames), toolNames, modelNames)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Never, []string{"big"}) {
		t.Errorf("%+v: only the other model is ruled out", v)
	}
	if err := v.Validate(slices.Concat(toolNames, modelNames)); err != nil {
		t.Error(err)
	}
}

// What a user writes, as preferences of a run.
func ExampleOrchestrator_Names() {
	mini, big := expert("gpt-5-mini", "<answer>4</answer>", cost.Free()), expert("gpt-5", "<answer>4</answer>", cost.Free())
	o, err := orchestra.New(orchestra.WithExperts(mini, big), orchestra.WithTools(tools.Calculator()))
	if err != nil {
		fmt.Println(err)
		return
	}
	toolNames, modelNames := o.Names()
	v, err := prefs.Parse("cheap please, never gpt-5", slices.Concat(toolNames, modelNames), toolNames, modelNames)
	fmt.Println(v.Never, v.Cost, err)
	// Output:
	// [gpt-5] 1 <nil>
}
