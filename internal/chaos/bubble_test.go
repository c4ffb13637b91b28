package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// direct asks a handler without a connection.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	d.h.ServeHTTP(rec, req)
	resp := rec.Result()
	resp.Body = io.NopCloser(&slices{rec.Body.Bytes()})
	return resp, nil
}

// slices reads as from a connection: a line at most, and of a long one a part.
type slices struct{ b []byte }

func (s *slices) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := bytes.IndexByte(s.b, '\n') + 1
	if n == 0 {
		n = 10
	}
	n = copy(p, s.b[:min(n, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

// newBubble is a world without connections, in which models fail on their own,
// too.
func newBubble(t *testing.T, seed uint64, c chaos.Config) *world {
	w := &world{t: t, plan: chaos.New(seed, c), load: time.Minute, server: &server{served: map[string]int{}}}
	w.plan.Tell(t)
	w.r = w.plan.Rand("world")
	w.model = func(m models.Model) models.Model { return w.plan.Model("model "+m.Info().Name, m) }
	w.way = func(name string) (string, *http.Client) {
		return "http://" + name + ".test", &http.Client{Transport: w.plan.Transport("wire "+name, direct{w.server})}
	}
	return w
}

// journal keeps the events of one run in a writer.
type journal struct {
	mu    sync.Mutex
	w     io.Writer
	asked func() int // how often a server was asked
	first string     // event that could not be kept, "" = none
	then  int        // how often a server had been asked
}

func (j *journal) Append(_ context.Context, _ string, event json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.w.Write(append(bytes.Clone(event), '\n'))
	var head struct{ Event string }
	if bad := json.Unmarshal(event, &head); bad != nil {
		return bad
	}
	if err != nil && j.first == "" {
		j.first, j.then = head.Event, j.asked()
	}
	return err
}

// With models, tools and disks that fail beside the wire, and a clock that
// jumps, a run ends with an answer or a typed error and its whole bill, and holds
// nothing of the budget above it. One that its disk stopped goes on from what
// was kept.
func TestRunsInABubble(t *testing.T) {
	n, answers := 0, 0
	for seed := range chaos.Seeds(t, runs(300)) {
		t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n++; bubble(t, seed) {
					answers++
				}
			})
		})
	}
	if n > 100 && (answers < n/10 || answers > n*9/10) {
		t.Errorf("%d runs of %d have an answer: too few or too many to test both", answers, n)
	}
	t.Logf("%d answers in %d runs", answers, n)
}

// bubble plays one seed, and says whether there was an answer.
func bubble(t *testing.T, seed uint64) bool {
	w := newBubble(t, seed, chaos.Config{Rate: 0.25, Slow: 10 * time.Second, Jump: 2 * time.Hour, Span: 2000})
	var file bytes.Buffer
	opts := []orchestra.Option{orchestra.WithPolicy(w.policy()), orchestra.WithExperts(w.experts()...),
		orchestra.WithTools(w.plan.Tool("calculator", tools.Calculator()))}
	disk := chaos.New(seed, chaos.Config{Rate: 0.06})
	j := &journal{w: disk.Writer("disk", &file), asked: w.server.total}
	o, err := orchestra.New(append(opts, orchestra.WithCheckpoint(j))...)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := cost.NewMeter("tenant", cost.Budget{USD: cost.USD(1000)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := cost.NewContext(t.Context(), tenant)
	b := cost.Budget{USD: cost.USD(budgets[w.r.IntN(len(budgets))]), Time: time.Minute, Turns: 6}
	start := time.Now()
	s := o.Stream(ctx, orchestra.Task{Prompt: "What is six times seven, in words?", Budget: b})
	if w.r.IntN(2) == 0 {
		for range s.Events() {
		}
	}
	res, err := s.Result()
	drawn := w.plan.Drawn()
	if took := time.Since(start); drawn[chaos.Deaf]+drawn[chaos.Jump] == 0 && took > b.Time+2*time.Second {
		t.Errorf("the run took %v of %v", took, b.Time)
	}
	w.verify(res, err)
	w.closed(tenant, res.Spent.USD)
	defer func() {
		// Tools that were given up go on: time passes until they are done.
		time.Sleep(5 * time.Hour)
		w.closed(tenant, res.Spent.USD)
	}()
	if errors.Is(err, chaos.ErrDiskFull) || errors.Is(err, chaos.ErrUnsynced) {
		var stopped *orchestra.CheckpointError
		if j.first == "" || !errors.As(err, &stopped) {
			t.Errorf("with a disk that failed at %q: %v", j.first, err)
		}
	}
	if j.first != "" && j.first != "stopped" && err != nil && !errors.Is(err, chaos.ErrDiskFull) && !errors.Is(err, chaos.ErrUnsynced) {
		t.Errorf("%q was not kept, and the run says: %v", j.first, err)
	}
	if n := w.server.total(); j.first != "" && n > j.then {
		t.Errorf("%q was not kept, and then the servers were asked %d times", j.first, n-j.then)
	}
	if j.first != "" {
		w.resume(file.Bytes(), opts)
	}
	return res.Answer != ""
}

// closed checks that a budget has nothing on hold, and was charged what a run
// says.
func (w *world) closed(tenant *cost.Meter, spent cost.Amount) {
	w.t.Helper()
	if tenant.Spent().USD != spent {
		w.t.Errorf("the run says that it spent %v; the budget above it says %v", spent, tenant.Spent().USD)
	}
	if held := cost.Dollars(1000) - tenant.Spent().USD - tenant.Left().USD; held != 0 {
		w.t.Errorf("%v stay held", held)
	}
}

// resume goes on with a run from what is on its disk.
func (w *world) resume(file []byte, opts []orchestra.Option) {
	t := w.t
	past, err := orchestra.ReadTrajectory(bytes.NewReader(file))
	var torn *orchestra.LineError
	if err != nil && !errors.As(err, &torn) {
		t.Fatalf("reading %q: %v", file, err)
	}
	if bytes.Count(file, []byte("\n")) == 0 {
		return // not even its beginning was kept
	}
	kept := past.Ledger()
	over := past.Result().Stop
	o, err := orchestra.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Resume(t.Context(), past).Result()
	if over != "" {
		if !errors.Is(err, orchestra.ErrOver) {
			t.Errorf("a run that ended with %q was resumed: %v", over, err)
		}
		return
	}
	var re *orchestra.RunError
	if (res.Answer == "") != (err != nil) || err != nil && !errors.As(err, &re) {
		t.Errorf("resumed: answer %q, error %T: %v", res.Answer, err, err)
	}
	w.bill(res)
	if len(res.Ledger) < len(kept) {
		t.Errorf("of %d rows %d are left", len(kept), len(res.Ledger))
	}
	for i, r := range kept {
		if res.Ledger[i].USD != r.USD || res.Ledger[i].Name != r.Name {
			t.Errorf("row %d was %+v and is %+v", i, r, res.Ledger[i])
		}
	}
}
