package train

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/toolworld"
)

// worldTasks are the instances of a generated world as tasks of GRPO.
type worldTasks struct{ list []*toolworld.Instance }

func (w *worldTasks) Len() int { return len(w.list) }

// expertNames are what preferences of an instance may address.
func expertNames(in *toolworld.Instance) (list []string) {
	for _, e := range in.Experts {
		list = append(list, e.Info.Name)
	}
	return list
}

// stretched is what weights of cost and latency count in training: eq. 2
// stretches the differences within a group to 0 … 1, however small they are.
const stretched = 0.6

func (w *worldTasks) Weights(i int) []float64 {
	p := w.list[i].Prefer.Weights(expertNames(w.list[i]))
	p[len(p)-2] *= stretched
	p[len(p)-1] *= stretched
	return p
}

func (w *worldTasks) Play(ctx context.Context, i int, p policy.Policy) (Metrics, error) {
	in := w.list[i]
	out, err := in.Play(ctx, p)
	if err != nil {
		return Metrics{}, err
	}
	m := Metrics{Right: out.Right, USD: out.USD, Seconds: out.Seconds}
	for _, n := range expertNames(in) {
		m.Calls = append(m.Calls, float64(out.Calls[n]))
	}
	if !out.Answered {
		m.Failed = fmt.Sprint(out.Err)
	}
	return m, nil
}

// tally is what a policy came to on some instances.
type tally struct{ n, right, usd, searched, turns, unasked float64 }

func play(t testing.TB, list []*toolworld.Instance, p func(*toolworld.Instance) policy.Policy) map[toolworld.Kind]tally {
	sums := map[toolworld.Kind]tally{}
	for _, in := range list {
		out, err := in.Play(t.Context(), p(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []toolworld.Kind{in.Task.Kind, "all"} {
			s := sums[k]
			s.n++
			if out.Right {
				s.right++
			}
			if out.Searches > 0 {
				s.searched++
			}
			s.usd += out.USD
			s.unasked += float64(out.Unasked)
			s.turns += float64(out.Turns)
			sums[k] = s
		}
	}
	return sums
}

func show(t testing.TB, got, oracle map[toolworld.Kind]tally) {
	for _, k := range append(slices.Clone(toolworld.Kinds), "all") {
		g, o := got[k], oracle[k]
		t.Logf("%-10s %4.0f tasks: right %.3f (oracle %.3f: %.1f %%), $%.6f each (%.2f of the oracle's), %3.0f searched (%3.0f), %.1f turns (%.1f), %.0f unasked",
			k, g.n, g.right/g.n, o.right/o.n, 100*g.right/o.right, g.usd/g.n, g.usd/o.usd, g.searched, o.searched, g.turns/g.n, o.turns/o.n, g.unasked)
	}
}

const aboutTools = "Learned on generated tasks over the built-in tools, with simulated experts: imitation of a plan that knows what each task needs, then GRPO. " +
	"The reading was fitted to generated texts, 824 questions of FRAMES (google/frames-benchmark, Apache-2.0) and 1,041 of MMLU-Pro (TIGER-AI-Lab, Apache-2.0)."

func TestTune(t *testing.T) {
	if os.Getenv("TRAIN_TOOLS") == "" {
		t.Skip("trains the general weights: set TRAIN_TOOLS=1")
	}
	steps, _ := strconv.Atoi(os.Getenv("TRAIN_TOOLS"))
	w, err := toolworld.New(t.Context(), 3000, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	start := &General{general.New(nil)}
	start.w.Reading = read(realTexts(t), 1)
	start.w.Version = "zero"
	begin := time.Now()
	start, err = Imitate(t.Context(), start, &worldTasks{w.Instances()[:1200]}, func(i int) policy.Policy { return toolworld.Oracle{In: w.Instances()[i]} })
	if err != nil {
		t.Fatal(err)
	}
	t.Log("imitated in", time.Since(begin), start.w.Facts)
	tell(t, start)
	g := start
	if steps > 0 {
		g, err = GRPO(t.Context(), start, &worldTasks{w.Instances()}, WithSteps(steps), WithVersion("tools-1"), WithAbout(aboutTools), WithRate(0.03), WithAdvantage(Advantage{Undivided: true}), WithMinStd(0), WithProgress(func(p Progress) {
			if p.Done%20 == 0 {
				t.Logf("%+v", p)
			}
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("trained in", time.Since(begin))
	tell(t, g)
	if out := os.Getenv("TRAIN_OUT"); out != "" {
		f, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Write(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func tell(t *testing.T, g *General) {
	t.Helper()
	for i, v := range g.w.Layers[0].Weights[0] {
		t.Logf("%-14s %+.2f", general.Names[i], v)
	}
	p, err := g.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for _, held := range []bool{false, true} {
		v, err := toolworld.New(t.Context(), 1200, 77, held)
		if err != nil {
			t.Fatal(err)
		}
		oracle := play(t, v.Instances(), func(in *toolworld.Instance) policy.Policy { return toolworld.Oracle{In: in} })
		got := play(t, v.Instances(), func(*toolworld.Instance) policy.Policy { return p })
		t.Log("held out:", held)
		show(t, got, oracle)
		v.Close()
	}
}
