package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/toolworld"
)

// small is a generated world of a few instances.
func small(t testing.TB, n int) *worldTasks {
	t.Helper()
	w, err := toolworld.New(t.Context(), n, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &worldTasks{w.Instances()}
}

// blank weights know nothing.
func blank() *General { return &General{general.New(nil)} }

func bytesOf(t testing.TB, g *General, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGRPOLearns(t *testing.T) {
	if underRace {
		t.Skip("thousands of rollouts")
	}
	tasks := small(t, 48)
	steps := 0
	g, err := GRPO(t.Context(), blank(), tasks, WithSteps(40), WithGroups(8, 8), WithRate(0.1), WithProgress(func(p Progress) { steps = p.Done }))
	if err != nil {
		t.Fatal(err)
	}
	right := func(g *General) float64 {
		p, err := g.Policy()
		if err != nil {
			t.Fatal(err)
		}
		return play(t, tasks.list, func(*toolworld.Instance) policy.Policy { return p })["all"].right
	}
	before, after := right(blank()), right(g)
	t.Logf("right %.0f, then %.0f of %d", before, after, tasks.Len())
	if steps != 40 || after < before+8 {
		t.Errorf("%d steps make %.0f right where it were %.0f", steps, after, before)
	}
}

// The same seed gives the same weights, whatever the number of cores, and so does
// a training that was interrupted.
func TestGRPOIsReproducible(t *testing.T) {
	tasks := small(t, 12)
	var kept [][]byte
	opts := []GRPOOption{WithSteps(5), WithGroups(3, 4), WithSeed(7), WithSnapshots(2, func(b []byte) error { kept = append(kept, bytes.Clone(b)); return nil })}
	train := func(more ...GRPOOption) []byte {
		g, err := GRPO(t.Context(), blank(), tasks, append(opts, more...)...)
		return bytesOf(t, g, err)
	}
	want := train()
	if len(kept) != 3 {
		t.Fatalf("%d snapshots, want those before steps 0, 2 and 4", len(kept))
	}
	snapshots := kept
	for i, s := range snapshots {
		if got := train(WithRestart(s)); !bytes.Equal(got, want) {
			t.Errorf("restarted from snapshot %d it gives other weights", i)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if got := train(); !bytes.Equal(got, want) {
		t.Error("on one core it gives other weights")
	}
	if got := train(WithSeed(8)); bytes.Equal(got, want) {
		t.Error("another seed gives the same weights")
	}
}

// failing are tasks whose Play does something wrong.
type failing struct {
	Tasks
	m   Metrics
	err error
}

func (f failing) Play(context.Context, int, policy.Policy) (Metrics, error) { return f.m, f.err }

func TestGRPORefuses(t *testing.T) {
	tasks := small(t, 6)
	gone := errors.New("gone")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for name, c := range map[string]struct {
		ctx   context.Context
		tasks Tasks
		opts  []GRPOOption
		want  error
	}{
		"no tasks":             {t.Context(), nil, nil, ErrTrain},
		"empty tasks":          {t.Context(), &worldTasks{}, nil, ErrTrain},
		"no steps":             {t.Context(), tasks, []GRPOOption{WithSteps(0)}, ErrTrain},
		"a group of one":       {t.Context(), tasks, []GRPOOption{WithGroups(2, 1)}, ErrTrain},
		"no rate":              {t.Context(), tasks, []GRPOOption{WithRate(math.NaN())}, ErrTrain},
		"a nil option":         {t.Context(), tasks, []GRPOOption{nil}, ErrTrain},
		"no snapshot":          {t.Context(), tasks, []GRPOOption{WithRestart([]byte("{}"))}, ErrTrain},
		"a snapshot's weights": {t.Context(), tasks, []GRPOOption{WithRestart([]byte(`{"schema":"toolorchestra.grpo/1","adam":{},"weights":{}}`))}, policy.ErrWeights},
		"Play fails":           {t.Context(), failing{tasks, Metrics{}, gone}, nil, gone},
		"no metrics":           {t.Context(), failing{tasks, Metrics{}, nil}, nil, ErrGroup},
		"cancelled":            {cancelled, tasks, nil, gone},
		"a keeper that fails":  {t.Context(), tasks, []GRPOOption{WithSnapshots(1, func([]byte) error { return gone })}, gone},
	} {
		if _, err := GRPO(c.ctx, blank(), c.tasks, c.opts...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := ReadGeneral(bytes.NewReader([]byte("{}"))); !errors.Is(err, policy.ErrWeights) {
		t.Error(err)
	}
}

func TestImitate(t *testing.T) {
	if underRace {
		t.Skip("thousands of rollouts")
	}
	tasks := small(t, 240)
	teacher := func(i int) policy.Policy { return toolworld.Oracle{In: tasks.list[i]} }
	start := blank()
	start.w.Reading = read(nil, 1)
	g, err := Imitate(t.Context(), start, tasks, teacher)
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Policy()
	if err != nil {
		t.Fatal(err)
	}
	before, err := start.Policy()
	if err != nil {
		t.Fatal(err)
	}
	oracle := play(t, tasks.list, func(in *toolworld.Instance) policy.Policy { return toolworld.Oracle{In: in} })["all"]
	was := play(t, tasks.list, func(*toolworld.Instance) policy.Policy { return before })["all"]
	is := play(t, tasks.list, func(*toolworld.Instance) policy.Policy { return p })["all"]
	t.Logf("right %.0f before, %.0f after, teacher %.0f of %.0f", was.right, is.right, oracle.right, is.n)
	if is.right < was.right+20 || is.right < 0.9*oracle.right {
		t.Error("it has not learned from its teacher")
	}
	if _, err := Imitate(t.Context(), start, tasks, nil); !errors.Is(err, ErrTrain) {
		t.Error(err)
	}
	few := &worldTasks{tasks.list[:3]}
	if _, err := Imitate(t.Context(), start, few, func(int) policy.Policy { return talker{} }); !errors.Is(err, ErrTrain) {
		t.Error("nothing can be learned from what the embedded policy cannot do:", err)
	}
}

// talker writes its answers itself.
type talker struct{}

func (talker) Info() policy.Info { return policy.Info{Name: "talker"} }
func (talker) Decide(context.Context, *policy.State) (policy.Decision, error) {
	return policy.Decision{Finish: &policy.Finish{Text: "42"}, Calls: []policy.Call{{Tool: "answer"}, {Tool: "answer"}}}, nil
}
