package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// runs is how many seeds the ordinary suite plays: CHAOS_SOAK plays 500.
func runs(ordinary int) int {
	if os.Getenv("CHAOS_SOAK") != "" {
		return max(ordinary, 500)
	}
	return ordinary
}

// A world is what one seed runs: a policy, experts and tools that find the server
// behind something that spoils what passes.
type world struct {
	t      *testing.T
	plan   *chaos.Plan
	r      *rand.Rand
	server *server
	way    func(name string) (url string, c *http.Client)
	load   time.Duration // how long a model may load
	model  func(models.Model) models.Model
}

// newWorld has a server on the loopback, and proxies in front of it.
func newWorld(t *testing.T, seed uint64, c chaos.Config) *world {
	t.Helper()
	w := &world{t: t, plan: chaos.New(seed, c), load: 150 * time.Millisecond, server: &server{served: map[string]int{}}}
	w.plan.Tell(t)
	w.r = w.plan.Rand("world")
	w.model = func(m models.Model) models.Model { return m }
	srv := httptest.NewServer(w.server)
	t.Cleanup(srv.Close)
	w.way = func(name string) (string, *http.Client) {
		x, err := w.plan.Proxy(name, srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x.URL(), nil
	}
	return w
}

func info(price cost.Price) models.Info {
	return models.Info{Price: price, MaxOutput: 400, MinOutput: 40, Context: 32_000}
}

func (w *world) openai(name string, raw bool) models.Model {
	i := info(cost.Tokens(1, 4))
	i.Raw = raw
	url, client := w.way(name)
	m, err := openai.New(name, openai.Config{BaseURL: url + "/v1", Info: i, HTTP: client})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.model(typed{m, w.t})
}

func (w *world) ollama(name string, calls bool) models.Model {
	i := info(cost.Tokens(0.5, 1))
	i.Tools = calls
	url, client := w.way(name)
	m, err := ollama.New(name, ollama.Config{BaseURL: url, Info: i, LoadTime: w.load, HTTP: client})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(m.Close)
	return w.model(typed{m, w.t})
}

// typed reports errors that are no *models.Error, and answers beside errors.
type typed struct {
	models.Model
	t *testing.T
}

func (m typed) Unwrap() models.Model { return m.Model }

func (m typed) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	resp, err := m.Model.Generate(ctx, r)
	var e *models.Error
	if (resp == nil) == (err == nil) || err != nil && !errors.As(err, &e) {
		m.t.Errorf("%s: response %v, error %T: %v", m.Info().Name, resp, err, err)
	}
	return resp, err
}

// policy draws one of the policies, with its model.
func (w *world) policy() policy.Policy {
	var p policy.Policy
	var err error
	switch w.r.IntN(5) {
	case 0:
		return policy.Embedded()
	case 1:
		p, err = policy.Conversation(w.openai("chatter", false))
	case 2:
		p, err = policy.Trained(w.openai("thinker", true))
	case 3:
		p, err = policy.Trained(w.ollama("thinker-local", false))
	case 4:
		p, err = policy.Conversation(w.ollama("chatter-local", true))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// experts draws how the experts are composed.
func (w *world) experts() []models.Model {
	mini, local := w.openai("mini", false), w.ollama("local", false)
	retry := models.RetryPolicy{Wait: time.Millisecond, MaxWait: 30 * time.Millisecond}
	switch w.r.IntN(4) {
	case 0:
		return []models.Model{mini, local}
	case 1:
		return []models.Model{models.Retry(mini, retry), local}
	case 2:
		return []models.Model{models.Fallback(mini, local)}
	}
	pool, err := models.Pool([]models.Model{mini, w.openai("mini-2", false)}, models.PoolPolicy{FirstToken: 100 * time.Millisecond, Down: 10 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	return []models.Model{models.Retry(pool, retry), local}
}

var budgets = []float64{0.1, 0.1, 0.02, 0.006}

// Whatever happens on the wire, a run ends with an answer or a typed error, and
// its ledger holds every call that reached a server.
func TestRunsBehindAProxy(t *testing.T) {
	for seed := range chaos.Seeds(t, runs(120)) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, chaos.Config{})
			o, err := orchestra.New(orchestra.WithPolicy(w.policy()), orchestra.WithExperts(w.experts()...), orchestra.WithTools(tools.Calculator()))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if w.r.IntN(5) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(1+w.r.IntN(150))*time.Millisecond)
			}
			defer cancel()
			b := cost.Budget{USD: cost.USD(budgets[w.r.IntN(len(budgets))]), Time: 400 * time.Millisecond, Turns: 6}
			start := time.Now()
			s := o.Stream(ctx, orchestra.Task{Prompt: "What is six times seven, in words?", Budget: b})
			if w.r.IntN(2) == 0 {
				for range s.Events() {
				}
			}
			res, err := s.Result()
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("the run took %v of %v", took, b.Time)
			}
			w.verify(res, err)
		})
	}
}

// verify checks how a run ended and what it says it cost.
func (w *world) verify(res *orchestra.Result, err error) {
	w.t.Helper()
	t := w.t
	if res == nil || res.Trajectory == nil {
		t.Fatal("no result")
	}
	var re *orchestra.RunError
	if (res.Answer == "") != (err != nil) || err != nil && (!errors.As(err, &re) || !errors.Is(err, orchestra.ErrNoAnswer)) {
		t.Errorf("answer %q, error %T: %v", res.Answer, err, err)
	}
	if res.Stop == "" {
		t.Error("the run does not say why it ended")
	}
	w.bill(res)
	w.complete(res)
	derived := res.Trajectory.Result()
	if derived.Spent.USD != res.Spent.USD || len(derived.Ledger) != len(res.Ledger) || derived.Answer != res.Answer {
		t.Errorf("the trajectory says %q for %v in %d rows; the result %q for %v in %d", derived.Answer, derived.Spent.USD, len(derived.Ledger), res.Answer, res.Spent.USD, len(res.Ledger))
	}
}

// complete checks that each call that reached the server has a row.
func (w *world) complete(res *orchestra.Result) {
	w.t.Helper()
	rows := map[string]int{}
	for _, r := range res.Ledger {
		rows[r.Name]++
	}
	for m, n := range w.server.count() {
		if rows[m] < n {
			w.t.Errorf("%d calls of %s reached the server, and %d have a row: %+v", n, m, rows[m], res.Ledger)
		}
	}
}

// bill checks that the ledger is exact, and within the budget but for what a
// spoilt reply claimed.
func (w *world) bill(res *orchestra.Result) {
	w.t.Helper()
	t := w.t
	if total := res.Ledger.Total().USD; total != res.Spent.USD {
		t.Errorf("counter %v, ledger %v", res.Spent.USD, total)
	}
	var over cost.Amount
	sums := false // of rows that were lost: what was over in them is not told
	for _, r := range res.Ledger {
		sums = sums || r.Name == "unlisted"
		over += r.Over
		if r.USD < 0 || !r.USD.Valid() {
			t.Errorf("a row %+v", r)
		}
	}
	limit, _ := res.Trajectory.Task().Budget.USD.Amount()
	drawn := w.plan.Drawn()
	lied := drawn[chaos.Garbage]+drawn[chaos.LyingUsage]+drawn[chaos.Drop] > 0
	if res.Spent.USD > limit+over && !(lied && sums) {
		t.Errorf("spent %v of %v, %v beyond the holds: %+v", res.Spent.USD, limit, over, res.Ledger)
	}
	if over > 0 && !lied {
		t.Errorf("%v beyond the holds, though no reply lied", over)
	}
}
