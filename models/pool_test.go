package models_test

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// host is a replica that does what answer says, and counts.
type host struct {
	name string
	mu   sync.Mutex
	// asked are the affinities of its requests, oldest first.
	asked  []string
	flight int
	most   int // in flight at once
	answer func(ctx context.Context, r *models.Request) error
}

func (h *host) Info() models.Info {
	return models.Info{Name: h.name, Provider: "cluster", Price: cost.Tokens(1, 1), MaxOutput: 100, Context: 1000}
}

func (h *host) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	h.mu.Lock()
	h.asked = append(h.asked, r.Affinity)
	h.flight++
	h.most = max(h.most, h.flight)
	answer := h.answer
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.flight--
	}()
	if err := ctx.Err(); err != nil {
		return nil, &models.Error{Model: h.name, Err: err}
	}
	if answer != nil {
		if err := answer(ctx, r); err != nil {
			return nil, err
		}
	}
	return &models.Response{Text: "by " + h.name, Finish: models.FinishStop, Usage: cost.Usage{Input: 1, Output: 1, Known: true}}, nil
}

// does changes what the replica does.
func (h *host) does(answer func(ctx context.Context, r *models.Request) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// fails makes the replica fail with err; nil: it is well again.
func (h *host) fails(err error) {
	h.does(func(context.Context, *models.Request) error { return err })
}

// seen is how often it was asked since the last time.
func (h *host) seen() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.asked)
	h.asked = nil
	return n
}

func hosts(names string) (all []*host) {
	for _, name := range strings.Fields(names) {
		all = append(all, &host{name: name})
	}
	return all
}

func pooled(t testing.TB, p models.PoolPolicy, hosts ...*host) models.Model {
	t.Helper()
	var replicas []models.Model
	for _, h := range hosts {
		replicas = append(replicas, h)
	}
	m, err := models.Pool(replicas, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run asks as a run would and returns which replica answered.
func run(t testing.TB, m models.Model, id string) string {
	t.Helper()
	r := ask("x")
	r.Affinity = id
	resp, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Errorf("run %s: %v", id, err)
		return ""
	}
	return strings.TrimPrefix(resp.Text, "by ")
}

// home finds the id of a run that belongs to the replica of that name.
func home(t testing.TB, m models.Model, name string) string {
	t.Helper()
	for i := range 1000 {
		if id := "run-" + strconv.Itoa(i); run(t, m, id) == name {
			return id
		}
	}
	t.Fatal("no run belongs to " + name)
	return ""
}

func TestPoolNeedsReplicas(t *testing.T) {
	for _, replicas := range [][]models.Model{nil, {}, {named("a"), nil}} {
		if m, err := models.Pool(replicas, models.PoolPolicy{}); err == nil || m != nil {
			t.Errorf("%v: %v, %v", replicas, m, err)
		}
	}
}

func TestPoolInfoIsWhatAllReplicasHave(t *testing.T) {
	of := func(i models.Info) models.Model { return fn{info: i} }
	m, err := models.Pool([]models.Model{
		of(models.Info{Name: "a", Context: 40960, MaxOutput: 0, MinOutput: 10, Raw: true, Tools: true, Schema: true}),
		of(models.Info{Name: "b", Context: 8192, MaxOutput: 500, MinOutput: 20, Raw: true, Schema: true}),
		of(models.Info{Name: "c", Raw: true, Tools: true}),
	}, models.PoolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	i := m.Info()
	if i.Name != "a" || i.Context != 8192 || i.MaxOutput != 500 || i.MinOutput != 20 || !i.Raw || i.Tools || i.Schema {
		t.Errorf("got %+v", i)
	}
}

func TestPoolConforms(t *testing.T) {
	leaf := func() models.Model { return modeltest.New(info, modeltest.Forever(modeltest.Say("a whole sentence"))) }
	for name, p := range map[string]models.PoolPolicy{"plain": {}, "first token": {FirstToken: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			modeltest.Conform(t, func(t *testing.T) models.Model {
				m, err := models.Pool([]models.Model{leaf(), leaf()}, p)
				if err != nil {
					t.Fatal(err)
				}
				return withBudget{models.Metered(m)}
			})
		})
	}
}

// A run stays with its replica, runs spread evenly, another process chooses the
// same replica, and without a replica only its own runs move.
func TestPoolAffinity(t *testing.T) {
	const runs = 300
	h := hosts("a b c")
	m := pooled(t, models.PoolPolicy{}, h...)
	where := map[string]string{}
	counts := map[string]int{}
	for i := range runs {
		id := "run-" + strconv.Itoa(i)
		where[id] = run(t, m, id)
		counts[where[id]]++
		for range 3 {
			if again := run(t, m, id); again != where[id] {
				t.Fatalf("%s went from %s to %s", id, where[id], again)
			}
		}
	}
	for name, n := range counts {
		if n < runs/5 || len(counts) != 3 {
			t.Errorf("%s has %d of %d runs", name, n, runs)
		}
	}
	elsewhere := pooled(t, models.PoolPolicy{}, hosts("c a b")...)
	without := pooled(t, models.PoolPolicy{}, hosts("a c")...)
	for id, was := range where {
		if now := run(t, elsewhere, id); now != was {
			t.Errorf("%s: another process chose %s instead of %s", id, now, was)
		}
		if now := run(t, without, id); was != "b" && now != was {
			t.Errorf("%s went from %s to %s, though %s is still there", id, was, now, was)
		}
	}
	// When it dies at run time, it is the same.
	h[1].fails(&models.Error{Retryable: true, Err: io.EOF})
	moved := map[string]int{}
	for id, was := range where {
		now := run(t, m, id)
		if was != "b" && now != was {
			t.Errorf("%s went from %s to %s, though only b is dead", id, was, now)
		}
		if was == "b" {
			moved[now]++
		}
	}
	if len(moved) != 2 {
		t.Errorf("all runs of the dead replica went to one: %v", moved)
	}
}

// Replicas that nothing tells apart are still told apart.
func TestPoolTwins(t *testing.T) {
	h := hosts("a a a")
	m := pooled(t, models.PoolPolicy{}, h...)
	for i := range 100 {
		run(t, m, strconv.Itoa(i))
	}
	for _, h := range h {
		if n := h.seen(); n < 15 {
			t.Errorf("one of three was asked %d times of 100", n)
		}
	}
}

// hold starts n requests one after the other and leaves them in flight; the
// function it returns ends them. It must be called in a bubble.
func hold(t *testing.T, m models.Model, n int, id string, hosts ...*host) (end func()) {
	stop := make(chan struct{})
	for _, h := range hosts {
		h.does(func(ctx context.Context, _ *models.Request) error {
			select {
			case <-stop:
			case <-ctx.Done():
			}
			return nil
		})
	}
	for range n {
		go run(t, m, id)
		synctest.Wait()
	}
	return func() {
		close(stop)
		synctest.Wait()
		for _, h := range hosts {
			h.does(nil)
		}
	}
}

func TestPoolBoundsLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		id     string
		spread int
		n      int
		hosts  string
		want   []int // in flight, busiest first
	}{
		{"one run alone", "r", 0, 1, "a b", []int{1, 0}},
		{"two requests of a run", "r", 0, 2, "a b", []int{2, 0}},
		{"three: a quarter above the mean, rounded up", "r", 0, 3, "a b", []int{2, 1}},
		{"eight", "r", 0, 8, "a b", []int{5, 3}},
		{"forty, out of balance by no more than 8 and one", "r", 0, 40, "a b", []int{24, 16}},
		{"thirty over three", "r", 0, 30, "a b c", []int{13, 12, 5}},
		{"a narrow spread", "r", 1, 8, "a b", []int{5, 3}},
		{"without affinity: evenly", "", 0, 8, "a b c", []int{3, 3, 2}},
		{"one replica takes all", "r", 0, 20, "a", []int{20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosts(c.hosts)
				end := hold(t, pooled(t, models.PoolPolicy{Spread: c.spread}, h...), c.n, c.id, h...)
				var got []int
				for _, h := range h {
					got = append(got, h.flight)
				}
				slices.Sort(got)
				slices.Reverse(got)
				end()
				if !slices.Equal(got, c.want) {
					t.Errorf("in flight %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestPoolTakesTurns(t *testing.T) {
	m := pooled(t, models.PoolPolicy{}, hosts("a b c")...)
	var got []string
	for range 6 {
		got = append(got, run(t, m, ""))
	}
	if s := strings.Join(got, " "); s != "a b c a b c" {
		t.Errorf("one after the other: %s", s)
	}
}

func TestPoolKeepsItsOwnList(t *testing.T) {
	replicas := []models.Model{named("a", modeltest.Say("x"))}
	m, err := models.Pool(replicas, models.PoolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	replicas[0] = nil
	if _, err := m.Generate(t.Context(), ask("x")); err != nil {
		t.Error(err)
	}
}

func TestPoolEstimate(t *testing.T) {
	cheap, dear := named("a"), modeltest.New(models.Info{Name: "b", Price: cost.Tokens(2, 2), MaxOutput: 100})
	m, err := models.Pool([]models.Model{cheap, dear}, models.PoolPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	e, one := models.Estimate(m, ask("x")), models.Estimate(dear, ask("x"))
	if e.Floor.USD != one.Floor.USD || e.Worst.USD != 2*one.Worst.USD || e.Worst.Tokens != 2*one.Worst.Tokens || e.Worst.Calls != 1 || !e.Priced || e.Name != "a" {
		t.Errorf("got %+v, one is %+v", e, one)
	}
	m, _ = models.Pool([]models.Model{cheap, fn{info: models.Info{Name: "c"}}}, models.PoolPolicy{})
	if models.Estimate(m, ask("x")).Priced {
		t.Error("a pool with a replica of unknown price is priced")
	}
}
