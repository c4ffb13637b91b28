package cost_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// What a meter knows after Restore is what the meter of the earlier life knew.
func TestRestore(t *testing.T) {
	b := cost.Budget{USD: cost.USD(1), Calls: 5, Tokens: 10_000, PerName: map[string]cost.Sub{
		"ask": {USD: cost.USD(0.5), Calls: 3}, "model": {Calls: 4},
	}}
	m, err := cost.NewMeter("run", b)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{}
	for _, id := range []string{"c1", "c2"} {
		calls[id] = "ask"
		h, err := m.Reserve(cost.Estimate{Name: "ask", ID: id, Priced: true, Fee: cost.Dollars(0.01),
			Floor: cost.Spend{USD: cost.Dollars(0.02), Tokens: 100, Calls: 1}, Worst: cost.Spend{USD: cost.Dollars(0.1), Tokens: 2000}})
		if err != nil {
			t.Fatal(err)
		}
		in, err := cost.FromContext(cost.NewContext(context.Background(), h.Meter())).Reserve(cost.Estimate{Name: "model", Priced: true,
			Floor: cost.Spend{USD: cost.Dollars(0.01), Tokens: 50}, Worst: cost.Spend{USD: cost.Dollars(0.05), Tokens: 500}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Settle(cost.Usage{Input: 100, Output: 20, Known: true}, cost.Tokens(100, 200), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Settle(cost.Usage{Requests: 1, Known: true}, cost.Price{Request: cost.PerAmount(cost.Dollars(0.01))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	again, err := cost.NewMeter("run", b)
	if err != nil {
		t.Fatal(err)
	}
	again.Restore(m.Ledger(), calls)
	if got, want := again.Spent(), m.Spent(); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
	if got, want := again.Left(), m.Left(); got != want {
		t.Errorf("left %+v, want %+v", got, want)
	}
	if again.Ledger() != nil {
		t.Error("the rows are listed again")
	}
	// The limits by name stand where they stood.
	for _, e := range []cost.Estimate{
		{Name: "ask", Priced: true, Floor: cost.Spend{USD: cost.Dollars(0.47)}},
		{Name: "ask", Priced: true, Floor: cost.Spend{USD: cost.Dollars(0.44)}},
		{Name: "model", Priced: true},
	} {
		a, b := m.Check(e, nil), again.Check(e, nil)
		if (a == nil) != (b == nil) {
			t.Errorf("%s %v: before %v, after %v", e.Name, e.Floor.USD, a, b)
		}
	}
	for range 2 {
		x, errX := m.Reserve(cost.Estimate{Name: "model", Priced: true})
		y, errY := again.Reserve(cost.Estimate{Name: "model", Priced: true})
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		x.Finish()
		y.Finish()
	}
	if err := again.Check(cost.Estimate{Name: "model", Priced: true}, nil); !errors.Is(err, cost.ErrExceeded) || m.Check(cost.Estimate{Name: "model", Priced: true}, nil) == nil {
		t.Errorf("a fifth call of the model: %v", err)
	}
	(*cost.Meter)(nil).Restore(nil, nil)
}
