package models_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

func named(name string, steps ...modeltest.Step) *modeltest.Model {
	return modeltest.New(models.Info{Name: name, Price: cost.Tokens(1, 1), MaxOutput: 100}, steps...)
}

func TestFallback(t *testing.T) {
	down := errors.New("down")
	a, b, c := named("a", modeltest.Step{Status: 500}), named("b", modeltest.Fail(down)), named("c", modeltest.Say("here"))
	ctx, m := withMeter(t, cost.Budget{})
	resp, err := models.Metered(models.Fallback(a, nil, b, c)).Generate(ctx, ask("x"))
	if err != nil || resp.Text != "here" {
		t.Fatal(resp, err)
	}
	var rows []string
	for _, r := range m.Ledger() {
		rows = append(rows, r.Name)
	}
	if strings.Join(rows, " ") != "a b c" {
		t.Errorf("the ledger names %v", rows)
	}
	// All fail: all their errors are there.
	_, err = models.Fallback(named("a", modeltest.Fail(down)), named("b", modeltest.Step{Status: 503})).Generate(ctx, ask("x"))
	var e *models.Error
	if !errors.Is(err, down) || !errors.As(err, &e) {
		t.Error(err)
	}
	// What is the caller's doing is not tried elsewhere.
	second := named("b", modeltest.Say("no"))
	f := models.Fallback(named("a", modeltest.Say("no")), second)
	if _, err := f.Generate(ctx, &models.Request{}); !errors.Is(err, models.ErrInvalidRequest) {
		t.Error(err)
	}
	poor, _ := withMeter(t, cost.Budget{USD: cost.Max(0)})
	if _, err := models.Metered(f).Generate(poor, ask("x")); !errors.Is(err, cost.ErrExceeded) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Generate(ended, ask("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(second.Requests()); n != 0 {
		t.Errorf("the second was asked %d times", n)
	}
	if models.Fallback(nil) != nil || models.Fallback(nil, second) != models.Model(second) {
		t.Error("nil models count")
	}
}

func TestFallbackRestartsStreams(t *testing.T) {
	var text strings.Builder
	r := ask("x")
	r.OnDelta = func(d models.Delta) {
		if d.Restart {
			text.Reset()
		}
		text.WriteString(d.Text)
	}
	f := models.Fallback(named("a", modeltest.Cut("half an answer", 5)), named("b", modeltest.Say("whole")))
	if _, err := f.Generate(context.Background(), r); err != nil || text.String() != "whole" {
		t.Errorf("%q, %v", text.String(), err)
	}
	// The hold of a call covers both.
	one := models.Estimate(named("a"), ask("x")).Worst.USD
	if both := models.Estimate(f, ask("x")).Worst.USD; both != 2*one {
		t.Errorf("worst %v, want twice %v", both, one)
	}
}
