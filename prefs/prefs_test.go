package prefs_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

var names = []string{"answer", "search", "local_search", "web_search", "gpt-5", "gpt-5-mini"}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		v     prefs.Vector
		field string   // "" = valid
		near  []string // of an unknown name
	}{
		{v: prefs.Vector{}},
		{v: prefs.Default()},
		{v: prefs.Vector{Use: map[string]float64{"gpt-5": 1}, Never: []string{"search"}}},
		{v: prefs.Vector{Accuracy: 1.1}, field: "Accuracy"},
		{v: prefs.Vector{Cost: -0.1}, field: "Cost"},
		{v: prefs.Vector{Latency: math.NaN()}, field: "Latency"},
		{v: prefs.Vector{Use: map[string]float64{"gpt-5": math.Inf(1)}}, field: `Use["gpt-5"]`},
		{v: prefs.Vector{Never: []string{"gpt5"}}, field: "Never", near: []string{"gpt-5", "gpt-5-mini"}},
		{v: prefs.Vector{Use: map[string]float64{"Local Search": 1}}, field: "Use", near: []string{"local_search"}},
		{v: prefs.Vector{Never: []string{"zzz"}}, field: "Never"},
	} {
		err := c.v.Validate(names)
		var unknown *prefs.UnknownNameError
		var out *prefs.RangeError
		switch {
		case c.field == "":
			if err != nil {
				t.Errorf("%+v: %v", c.v, err)
			}
		case errors.As(err, &unknown):
			if unknown.Field != c.field || len(c.near) > 0 && !slices.Equal(unknown.Near[:min(len(unknown.Near), len(c.near))], c.near) || len(c.near) == 0 && len(unknown.Near) > 0 {
				t.Errorf("%+v: %v", c.v, err)
			}
		case !errors.As(err, &out) || out.Field != c.field:
			t.Errorf("%+v: %v", c.v, err)
		}
	}
}

func TestAllowsAndWeighs(t *testing.T) {
	v := prefs.Vector{Use: map[string]float64{"web_search": 0.4, "gpt-5": 1}, Never: []string{"local_search"}}
	if v.Allows("search", "local_search") || !v.Allows("search", "web_search") || !v.Allows() {
		t.Error("Never does not mask")
	}
	if v.Weight("answer", "gpt-5") != 1 || v.Weight("web_search") != 0.4 || v.Weight("answer") != 0 {
		t.Error("Use does not weigh")
	}
	if got := v.Weights([]string{"gpt-5", "answer"}); !slices.Equal(got, []float64{1, 0, 1, 0.5, 0.2}) {
		t.Error(got)
	}
	if d := (prefs.Vector{Never: []string{"x"}}).OrDefault(); d.Accuracy != 1 || len(d.Never) != 1 {
		t.Errorf("%+v", d)
	}
}

func ExampleVector_Describe() {
	v := prefs.Vector{Accuracy: 1, Cost: 0.9, Latency: 0.1, Use: map[string]float64{"local_search": 1, "gpt-5-mini": 0.3}, Never: []string{"gpt-5"}}
	fmt.Println(v.Describe())
	// Output: An accurate answer matters very much, low cost very much, a quick answer a little. Prefer local_search. If in doubt, prefer gpt-5-mini. Never use gpt-5.
}
