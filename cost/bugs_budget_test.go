package cost_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// TestKnownBugsOfBudgets has the mistakes of other libraries that are not in one
// usage and its price. A note says what our API makes impossible, or which test
// shows it instead.
func TestKnownBugsOfBudgets(t *testing.T) {
	price := cost.Tokens(1, 10)
	for _, c := range []struct {
		row, issue string
		note       string
		do         func(t *testing.T)
	}{
		{"35", "openclaw#85858: a model without a price", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.USD(1)})
			p, ok := cost.ListPrice("openai", "a model of next year")
			if _, err := m.Reserve(cost.Estimate{Name: "new", Priced: p.Known()}); ok || !errors.Is(err, cost.ErrUnpriced) {
				t.Error(ok, err)
			}
		}},
		{"37", "BerriAI/litellm#14004, #29912: a free model with the budget spent", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(10))})
			if _, err := mustReserve(t, m, est("a", 10, 10)).Settle(used(10)); err != nil {
				t.Fatal(err)
			}
			u := cost.Usage{Input: 1e6, Output: 1e6, Known: true}
			if row, err := mustReserve(t, m, est("free", 0, 0)).Settle(u, cost.Free(), nil); err != nil || row.USD != 0 || row.Basis != cost.Measured {
				t.Error(row, err)
			}
		}},
		{"38", "BerriAI/litellm#37736: a budget of zero", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(0)})
			if _, err := m.Reserve(est("a", 1, 1)); !errors.Is(err, cost.ErrExceeded) {
				t.Error(err)
			}
		}},
		{"39", "SocialGouv/iterion#473, majiayu000/litellm-rs#831: nobody says what was used", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
			if row, _ := mustReserve(t, m, est("a", 10, 70)).Settle(cost.Usage{}, price, nil); row.USD != micro(70) || row.Basis != cost.Reserved || m.Left().USD != micro(30) {
				t.Errorf("%+v, left %v", row, m.Left().USD)
			}
		}},
		{"41", "BerriAI/litellm#27509: no cap on the output", "Estimate states a cap (DefaultMaxOutput) and Metered sends it, so there is always a bound", func(t *testing.T) {
			e := models.Estimate(modeltest.New(models.Info{Name: "m", Price: price}), &models.Request{Prompt: "hello"})
			if most := price.Bound(100, models.DefaultMaxOutput, 0, 0); e.Worst.USD <= 0 || e.Worst.USD > most {
				t.Errorf("%v is set aside, want at most %v", e.Worst.USD, most)
			}
		}},
		{"42", "BerriAI/litellm#38647: big caps on the output", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
			holds, errs := m.ReserveAll([]cost.Estimate{est("a", 10, 25_000), est("b", 10, 25_000)})
			if errs[0] != nil || errs[1] != nil || holds[0].Granted().USD != micro(50) || holds[1].Granted().USD != micro(50) {
				t.Error("calls are not shrunk to what is there", errs)
			}
		}},
		{"43", "askalf/dario#1378: context that only the server has", "the bound is of what is sent; more is charged in full and shows in Row.Over, and the docs promise no more", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
			if row, _ := mustReserve(t, m, est("a", 10, 70)).Settle(used(90)); row.USD != micro(90) || row.Over != micro(20) {
				t.Errorf("%+v", row)
			}
		}},
		{"49", "BerriAI/litellm#14749, #21816, #39960: a reply from a cache", "the SDK caches no replies; a tool that does spends nothing, and what it paid for besides is charged", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
			outer := mustReserve(t, m, est("cached tool", 10, 70))
			if _, err := mustReserve(t, outer.Meter(), est("guardrail", 2, 2)).Settle(used(2)); err != nil {
				t.Fatal(err)
			}
			outer.Finish()
			if m.Spent().USD != micro(2) || m.Left().USD != micro(98) {
				t.Error(m.Spent(), m.Left())
			}
		}},
		{"50", "BerriAI/litellm#37358: a tool round between two model calls", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.USD(1)})
			for _, s := range []string{"0.0012067", "0.001452"} {
				a := usd(s)
				if _, err := mustReserve(t, m, est("model", 1, 2000)).Settle(cost.Usage{USD: &a, Known: true}, price, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.Ledger().Total().USD; got != usd("0.0026587") || m.Spent().USD != got {
				t.Error(got, m.Spent().USD)
			}
		}},
		{"51", "sjnims/cc-plugin-eval#330, BerriAI/litellm#8810: a retry after a failure that was billed", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.USD(1)})
			u := cost.Usage{Input: 1000, Output: 100, Known: true}
			for _, failure := range []error{errors.New("cut"), nil} {
				if _, err := mustReserve(t, m, est("model", 1, 2000)).Settle(u, price, failure); err != nil {
					t.Fatal(err)
				}
			}
			if rows := m.Ledger(); len(rows) != 2 || rows[0].Err != "cut" || rows.Total().USD != usd("0.004") {
				t.Errorf("%+v", rows)
			}
		}},
		{"54", "maximhq/bifrost#3559, #5243, julep-ai/julep#1332: dollars per token, per thousand", "", func(t *testing.T) {
			if _, err := cost.Load(strings.NewReader(list(`{"id":"m","price":{"input":"0.000001","output":"0.00001"}}`))); err == nil {
				t.Error("a price per token was taken for one per million")
			}
			for _, in := range []string{"0.001", "0.01", "100", "1000"} { // a thousandth, a hundredth and so on of $1
				if _, err := load(t, `{"id":"m","price":{"input":"1","output":"1"}}`).Update(load(t, `{"id":"m","price":{"input":"`+in+`","output":"1"}}`), time.Now(), nil); err == nil {
					t.Errorf("$1 became $%s", in)
				}
			}
		}},
		{"55", "truefoundry/models#765: batch at the ordinary price", "", func(t *testing.T) {
			_, err := load(t, `{"id":"m","price":{"input":"2","output":"8","batch":{"input":"1","output":"4"}}}`).
				Update(load(t, `{"id":"m","price":{"input":"2","output":"8","batch":{"input":"2","output":"8"}}}`), time.Now(), nil)
			var doubts *cost.ChangesError
			if !errors.As(err, &doubts) || len(doubts.Changes) != 1 || doubts.Changes[0].Why != "is no discount any more" {
				t.Error(err)
			}
		}},
		{"57", "fullsend-ai/fullsend#6588: 0.1 + 0.7 against 0.8", "sums of Amounts are exact; TestDollars adds 10,000 times 99.99", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.USD(0.8)})
			for _, f := range []float64{0.1, 0.7} {
				a := cost.Dollars(f)
				if _, err := mustReserve(t, m, cost.Estimate{Name: "a", Priced: true, Floor: cost.Spend{USD: a}, Worst: cost.Spend{USD: a}}).Settle(cost.Usage{USD: &a, Known: true}, price, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.Reserve(cost.Estimate{Name: "a", Priced: true, Floor: cost.Spend{USD: 1}}); m.Left().USD != 0 || !errors.Is(err, cost.ErrExceeded) {
				t.Error(m.Left().USD, err)
			}
		}},
		{"58", "BerriAI/litellm#34896, #38938: a day that begins in Tokyo", "", func(t *testing.T) {
			tokyo := time.FixedZone("Tokyo", 9*3600)
			start, end := cost.Day.Window(time.Date(2026, 1, 1, 16, 0, 0, 0, time.UTC), tokyo)
			if want := time.Date(2026, 1, 1, 15, 0, 0, 0, time.UTC); !start.Equal(want) || !end.Equal(want.Add(24*time.Hour)) {
				t.Error(start, end)
			}
		}},
		{"59", "BerriAI/litellm#17814, #15740: the same reply settled twice", "stores count reports once too: TestReportsCountOnce", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100))})
			h := mustReserve(t, m, est("a", 10, 70))
			_, err := h.Settle(used(40))
			if _, again := h.Settle(used(40)); err != nil || !errors.Is(again, cost.ErrSettled) || m.Spent().USD != micro(40) {
				t.Error(err, again, m.Spent())
			}
		}},
		{"61", "anthropics/claude-agent-sdk-python#1273, nicobailon/pi-subagents#1779: a cap hit inside", "", func(t *testing.T) {
			m := meter(t, cost.Budget{USD: cost.Max(micro(100)), Calls: 150})
			inner := mustReserve(t, m, est("sub-agent", 10, 50)).Meter()
			_, err := inner.Reserve(est("model", 60, 60))
			var exceeded *cost.ExceededError
			if !errors.As(err, &exceeded) || exceeded.Unit != "USD" {
				t.Error(err)
			}
			for range 149 {
				mustReserve(t, m, est("tool", 0, 0)).Finish()
			}
			if _, err := m.Reserve(est("tool", 0, 0)); !errors.As(err, &exceeded) || exceeded.Unit != "calls" {
				t.Error(err)
			}
		}},
		{"62, 63", "maximhq/bifrost#2873, eonseed/perspt#113: a way round the meter", "what is metered refuses without a meter, and what has one is on its ledger", func(t *testing.T) {
			model := models.Metered(modeltest.New(models.Info{Name: "m", Price: price}, modeltest.Forever(modeltest.Say("yes"))))
			if _, err := model.Generate(t.Context(), &models.Request{Prompt: "hello"}); !errors.Is(err, cost.ErrNoMeter) {
				t.Error(err)
			}
			m := meter(t, cost.Budget{USD: cost.USD(1)})
			if _, err := model.Generate(cost.NewContext(t.Context(), m), &models.Request{Prompt: "hello"}); err != nil || len(m.Ledger()) != 1 || m.Spent().USD <= 0 {
				t.Error(err, m.Ledger())
			}
		}},
		{"65", "SWE-bench site data f1176b6: results that contradict their total", "no result set is read by this package; orchestra/eval is where totals are checked", nil},
	} {
		if c.do != nil {
			t.Run("row "+c.row, func(t *testing.T) { t.Log(c.issue, c.note); c.do(t) })
		} else if c.note == "" {
			t.Errorf("row %s shows nothing and says nothing", c.row)
		}
	}
}

// list is a price list with one provider, "p".
func list(models string) string {
	return `{"schema":"toolorchestra.prices/1","source":{"date":"2026-01-01"},"providers":[{"id":"p","models":[` + models + `]}]}`
}

func load(t testing.TB, models string) *cost.Catalog {
	t.Helper()
	c, err := cost.Load(strings.NewReader(list(models)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
