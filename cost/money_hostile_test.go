package cost_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// What cannot be added must not lift the bound.
func TestPlusOfWhatCannotBeMeantIsRefused(t *testing.T) {
	b := cost.Budget{USD: cost.USD(1), Tokens: 10, Calls: 3, GPU: time.Second, PerName: map[string]cost.Sub{"x": {USD: cost.USD(1), Calls: 2}}}
	for name, more := range map[string]cost.Budget{
		"NaN dollars":          {USD: cost.USD(math.NaN())},
		"negative dollars":     {USD: cost.USD(-1)},
		"negative tokens":      {Tokens: -5},
		"negative calls":       {Calls: -5},
		"negative GPU time":    {GPU: -time.Second},
		"NaN dollars by name":  {PerName: map[string]cost.Sub{"x": {USD: cost.USD(math.NaN())}}},
		"negative calls of it": {PerName: map[string]cost.Sub{"x": {Calls: -5}}},
	} {
		var invalid *cost.InvalidError
		if sum := b.Plus(more); !errors.As(sum.Validate(), &invalid) {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

// A provider that states a charge for a call whose price is unknown has gone
// beyond what was held as any other.
func TestChargeOfUnpricedCallIsOver(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.Max(micro(100)), AllowUnpriced: true})
	h := mustReserve(t, m, cost.Estimate{Name: "x", Floor: cost.Spend{Calls: 1}, Worst: cost.Spend{Calls: 1}})
	usd := micro(500)
	row, err := h.Settle(cost.Usage{USD: &usd}, cost.Price{}, nil)
	if err != nil || row.Basis != cost.Provider || row.Over != usd {
		t.Errorf("%+v, %v: %v of 100 are spent, and the row is not marked", row, err, m.Spent().USD)
	}
}

// A budget of tokens or of GPU time that a server goes beyond shows in the row
// as one of money does.
func TestTokensAndGPUTimeBeyondTheHoldShow(t *testing.T) {
	m := meter(t, cost.Budget{Tokens: 100, GPU: time.Minute})
	h := mustReserve(t, m, cost.Estimate{Name: "x", Worst: cost.Spend{Tokens: 100, GPU: time.Minute}, Priced: true})
	row, _ := h.Settle(cost.Usage{Input: 50, Output: 950, GPU: time.Hour, Known: true}, cost.Free(), nil)
	if row.OverTokens != 900 || row.OverGPU != 59*time.Minute || row.Over != 0 {
		t.Errorf("%+v", row)
	}
	h = mustReserve(t, meter(t, cost.Budget{Tokens: 100, GPU: time.Minute}), cost.Estimate{Name: "x", Worst: cost.Spend{Tokens: 100, GPU: time.Minute}, Priced: true})
	if row, _ = h.Settle(cost.Usage{Input: 50, Output: 50, GPU: time.Minute, Known: true}, cost.Free(), nil); row.OverTokens != 0 || row.OverGPU != 0 {
		t.Errorf("%+v", row)
	}
}

// The tokens that count are those that are priced.
func TestTokensCountWhatIsPriced(t *testing.T) {
	u := cost.Usage{Input: 0, CacheRead: 1000, CacheWrite: 10, CacheWrite1h: 1, Output: 5, Known: true}
	m := meter(t, cost.Budget{})
	row, _ := mustReserve(t, m, est("x", 1e6/100, 1e6/100)).Settle(u, cost.Tokens(1, 1), nil)
	if !row.Inconsistent || row.USD != micro(1016) || m.Spent().Tokens != 1016 {
		t.Errorf("%+v: %+v", row, m.Spent())
	}
}

// A row can always be kept, whatever a model says it was charged.
func TestRowOfInvalidChargeCanBeKept(t *testing.T) {
	m := meter(t, cost.Budget{})
	usd := cost.Dollars(math.NaN())
	row, _ := mustReserve(t, m, est("x", 100, 100)).Settle(cost.Usage{Input: 1, Known: true, USD: &usd}, cost.Tokens(1, 1), nil)
	if _, err := json.Marshal(row); err != nil {
		t.Error(err)
	}
}

// What is held for a name is held once, however many calls of that name are
// within each other: an orchestrator in an orchestrator has the same tools.
func TestNameWithinItselfCountsOnce(t *testing.T) {
	m := meter(t, cost.Budget{USD: cost.USD(1), PerName: map[string]cost.Sub{"answer": {USD: cost.Max(micro(100))}}})
	outer := mustReserve(t, m, est("answer", 60, 60))
	run, err := outer.Meter().Child("run", cost.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := run.Reserve(est("answer", 50, 50))
	if err != nil {
		t.Fatal(err)
	}
	pay(t, inner.Meter(), 30)
	inner.Finish()
	pay(t, outer.Meter(), 5)
	outer.Finish()
	if _, err := m.Reserve(est("answer", 65, 65)); err != nil {
		t.Error(err)
	}
	if _, err := m.Reserve(est("answer", 1, 1)); !errors.Is(err, cost.ErrExceeded) {
		t.Errorf("35 are spent, 65 held, of 100: %v", err)
	}
}

// With a key of the user's own, what the provider took is unknown where it is
// not stated, and never made less by a negative number.
func TestOwnKeyWithoutTheProvidersPart(t *testing.T) {
	const counts = `"prompt_tokens":1000,"completion_tokens":1000`
	for body, want := range map[string]string{
		`"cost":0,"is_byok":true`: "none",
		`"cost":0,"is_byok":true,"cost_details":{"upstream_inference_cost":null}`: "none",
		`"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":-1}`: "none",
		`"cost":-5,"is_byok":true,"cost_details":{"upstream_inference_cost":5}`:   "none",
		`"cost":-5`:                "none",
		`"cost":0,"is_byok":false`: "$0",
		`"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":1}`: "$1.5",
	} {
		u, err := cost.Extract(cost.Chat, []byte(`{"usage":{`+counts+`,`+body+`}}`))
		got := "none"
		if u.USD != nil && *u.USD >= 0 {
			got = u.USD.String()
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", body, got, err, want)
		}
	}
}

// A tally without a flavor says nothing, and does not panic.
func TestCutWithoutFlavor(t *testing.T) {
	var tally cost.Tally
	if u := tally.Cut(10, 20); u.Input != 10 || u.Output != 20 || !u.Estimated {
		t.Errorf("%+v", u)
	}
}

// A usage of which a part was said is unknown, and costs what was held: no less,
// and no more tokens either.
func TestHalfKnownUsageCostsTheHold(t *testing.T) {
	for _, body := range []string{`{"usage":{"completion_tokens":50}}`, `{"usage":{"prompt_tokens":null,"completion_tokens":50}}`, `{"usage":{"prompt_tokens":[9],"completion_tokens":50}}`} {
		u, err := cost.Extract(cost.Chat, []byte(body))
		if err != nil || u.Known {
			t.Errorf("%s: %+v, %v", body, u, err)
		}
		m := meter(t, cost.Budget{USD: cost.USD(1), Tokens: 100})
		h := mustReserve(t, m, cost.Estimate{Name: "x", Worst: cost.Spend{USD: micro(70), Tokens: 100}, Priced: true})
		row, _ := h.Settle(u, cost.Tokens(1, 1), nil)
		if s := m.Spent(); s.USD != micro(70) || s.Tokens != 100 || row.Basis != cost.Reserved {
			t.Errorf("%+v: %+v", row, s)
		}
	}
}
