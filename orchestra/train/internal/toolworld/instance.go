package toolworld

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/prefs"
	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/code"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

// Instance is a task with what may be used for it.
type Instance struct {
	Seed    uint64
	Held    bool
	Task    Task
	Prefer  prefs.Vector
	Experts []*Expert

	Search     bool
	Written    bool // an expert writes the query
	Reader     bool
	Calculator bool
	Reason     bool
	Customs    []int
	Hopeless   bool // nothing of what is there can solve it
	Down       bool // the custom tools fail, whatever they are asked

	searchSpec, reasonSpec dress
	world                  *World
}

// dress is how a built-in tool is described, and how long it takes.
type dress struct {
	name, about string
	latency     time.Duration
	fee         cost.Amount
}

// World holds the documents of its instances.
type World struct {
	held  bool
	seed  uint64
	index *search.Index
	js    tools.Interpreter
	mu    sync.Mutex
	memo  map[string]tools.CodeRun
	found map[string][]tools.Document
	list  []*Instance
}

// New makes a world of n instances. Held-out worlds have other names, wordings,
// programs and custom tools than others, whatever the seeds. Close frees it.
func New(ctx context.Context, n int, seed uint64, held bool) (*World, error) {
	w := &World{held: held, seed: seed, memo: map[string]tools.CodeRun{}, found: map[string][]tools.Document{}}
	var err error
	if w.js, err = code.JavaScript(code.WithTimeout(5 * time.Second)); err != nil {
		return nil, err
	}
	if w.index, err = search.Open(""); err != nil {
		return nil, err
	}
	var docs []tools.Document
	seen := map[string]bool{}
	for i := range n {
		in, err := w.instance(ctx, uint64(i))
		// Documents about something that another task asks for would replace its own.
		for k := 1; k < redraws && err == nil && in.known(seen); k++ {
			in, err = w.instance(ctx, uint64(i+k*n*len(Kinds)))
		}
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		for _, d := range in.Task.Docs {
			seen[d.ID] = true
		}
		w.list = append(w.list, in)
		docs = append(docs, in.Task.Docs...)
	}
	if err := w.index.Add(ctx, docs...); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// redraws bounds how often a task is drawn anew.
const redraws = 20

// known reports whether a document of the task has an id that was seen.
func (in *Instance) known(seen map[string]bool) bool {
	for _, d := range in.Task.Docs {
		if seen[d.ID] {
			return true
		}
	}
	return false
}

// Close frees the documents.
func (w *World) Close() error { return w.index.Close() }

// Instances are the world's instances.
func (w *World) Instances() []*Instance { return w.list }

// part of the seeds that held-out worlds draw from
const heldOut = 1 << 40

func (w *World) instance(ctx context.Context, i uint64) (*Instance, error) {
	seed := w.seed<<20 + i
	if w.held {
		seed += heldOut
	}
	rng := rand.New(rand.NewPCG(seed, 0x776f726c64))
	in := &Instance{Seed: seed, Held: w.held, world: w}
	in.Task = generate(rng, Kinds[i%uint64(len(Kinds))], w.held)
	if t := &in.Task; t.Answer == "" {
		run, err := w.Run(ctx, t.Code)
		if err != nil || run.Err != "" {
			return nil, fmt.Errorf("toolworld: %q: %w %s", t.Code, err, run.Err)
		}
		t.Answer = strings.TrimSpace(run.Output)
		t.Wrong = t.Answer + "7"
	}
	in.draw(rng)
	return in, nil
}

// draw picks tools, experts, prices, latencies and preferences.
func (in *Instance) draw(rng *rand.Rand) {
	maybe := func(p float64) bool { return rng.Float64() < p }
	needsFact := in.Task.Kind == LookUp || in.Task.Kind == Both
	in.Search, in.Written = needsFact || maybe(0.85), maybe(0.4)
	in.Reader, in.Calculator, in.Reason = maybe(0.5), maybe(0.8), maybe(0.6)
	in.searchSpec = pickDress(rng, searches, in.Held)
	in.reasonSpec = pickDress(rng, runners, in.Held)
	if in.Task.Kind == Custom {
		in.Down = maybe(0.15)
		in.Customs = append(in.Customs, in.Task.Tool)
	}
	for range rng.IntN(3) {
		i := rng.IntN(len(customs))
		used := false
		for _, c := range in.Customs {
			used = used || c == i
		}
		if !used {
			in.Customs = append(in.Customs, i)
		}
	}
	for i := range 1 + rng.IntN(4) {
		q := 0.35 + 0.6*rng.Float64()
		tasks := 50 + rng.IntN(150)
		seen := q + rng.NormFloat64()*math.Sqrt(q*(1-q)/float64(tasks))
		out := 0.2 * math.Exp(3.5*q*rng.Float64()+rng.NormFloat64()*0.4) // USD per million tokens
		e := &Expert{Quality: q, Tokens: 60 + rng.IntN(500), Info: models.Info{Name: fmt.Sprintf("model-%d", i+1), Price: cost.Tokens(out/4, out),
			MaxOutput: 2000, MinOutput: 100, Context: 32000, Latency: pick(rng, latencies[:]),
			Skill: models.Skill{Score: min(max(seen, 0.05), 0.99), Tasks: tasks}}}
		in.Experts = append(in.Experts, e)
	}
	if (in.Task.Kind == LookUp || in.Task.Kind == Arithmetic) && maybe(0.15) {
		in.alone(maybe(0.4))
	}
	in.Prefer = prefs.Vector{Accuracy: 0.8 + 0.2*rng.Float64(), Cost: 0.05 + 0.45*rng.Float64(), Latency: 0.2 * rng.Float64()}
	if len(in.Experts) > 0 && maybe(0.2) {
		in.Prefer.Use = map[string]float64{pick(rng, in.Experts).Info.Name: 0.1 + 0.3*rng.Float64()}
	}
}

// alone leaves tools that work without any expert. Hopeless: no document tells.
func (in *Instance) alone(hopeless bool) {
	in.Experts, in.Written, in.Reason, in.Customs = nil, false, false, nil
	in.Reader, in.Calculator = true, true
	if hopeless && in.Task.Kind == LookUp {
		in.Hopeless, in.Task.Docs = true, nil
	}
}

// pickDress draws a description. The last quarter is for held-out tasks.
func pickDress(rng *rand.Rand, list []dress, held bool) dress {
	d := part(rng, list, held)
	d.latency = pick(rng, []time.Duration{50 * time.Millisecond, time.Second, 3 * time.Second})
	if rng.IntN(3) == 0 {
		d.fee = cost.Dollars(0.0001 * float64(1+rng.IntN(30)))
	}
	return d
}

// dressed is a tool with another description.
type dressed struct {
	tools.Tool
	spec  tools.Spec
	clock *atomic.Int64
}

func (t *dressed) Spec() tools.Spec { return t.spec }

func (t *dressed) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	t.clock.Add(int64(t.spec.Latency))
	return t.Tool.Call(ctx, c)
}

func wear(t tools.Tool, d dress, clock *atomic.Int64) tools.Tool {
	s := t.Spec()
	if d.name != "" {
		s.Name = d.name
	}
	if d.about != "" {
		s.Description = d.about
	}
	if d.latency > 0 {
		s.Latency = d.latency
	}
	s.Fee = d.fee
	return &dressed{t, s, clock}
}

// Outcome is what came of a rollout.
type Outcome struct {
	Right    bool
	Answered bool
	USD      float64
	Seconds  float64 // simulated
	Calls    map[string]int
	Searches int
	Unasked  int // calls that changed something that the task is not about
	Turns    int
	Err      error
	Result   *orchestra.Result
}

// Play runs the instance's task once with a policy.
func (in *Instance) Play(ctx context.Context, p policy.Policy) (Outcome, error) {
	var clock atomic.Int64
	var experts []models.Model
	for _, e := range in.Experts {
		experts = append(experts, &played{Expert: e, in: in, clock: &clock})
	}
	var list []tools.Tool
	if in.Search {
		var writers []models.Model
		if in.Written {
			writers = experts
		}
		t, err := tools.Search((*retriever)(in.world), writers...)
		if err != nil {
			return Outcome{}, err
		}
		list = append(list, wear(t, in.searchSpec, &clock))
	}
	if in.Reader {
		list = append(list, search.Reader())
	}
	if in.Calculator {
		list = append(list, tools.Calculator())
	}
	if in.Reason {
		t, err := tools.Reason((*interpreter)(in.world), experts...)
		if err != nil {
			return Outcome{}, err
		}
		list = append(list, wear(t, in.reasonSpec, &clock))
	}
	for _, i := range in.Customs {
		t := newCustom(i, &in.Task)
		t.down = in.Down
		list = append(list, wear(t, dress{latency: 200 * time.Millisecond}, &clock))
	}
	o, err := orchestra.New(orchestra.WithPolicy(p), orchestra.WithExperts(experts...), orchestra.WithTools(list...))
	if err != nil {
		return Outcome{}, err
	}
	defer o.Close()
	res, err := o.Run(ctx, orchestra.Task{ID: fmt.Sprint(in.Seed), Prompt: in.Task.Prompt, Prefer: in.Prefer, Budget: cost.Budget{USD: cost.USD(0.1), Time: 10 * time.Minute, Turns: 12}})
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	out := Outcome{Answered: err == nil, Err: err, USD: res.Spent.USD.Dollars(), Seconds: time.Duration(clock.Load()).Seconds(), Calls: map[string]int{}, Result: res}
	out.Right = out.Answered && in.right(res.Answer)
	for _, t := range res.Trajectory.Turns() {
		out.Turns++
		for i := range t.Done {
			d := &t.Done[i]
			if d.Call.Tool == in.searchName() {
				out.Searches++
			}
			if in.unasked(d.Call.Tool) {
				out.Right, out.Unasked = false, out.Unasked+1
			}
		}
	}
	for _, row := range res.Ledger {
		out.Calls[row.Name]++
	}
	return out, nil
}

// unasked reports whether a tool changes something that the task is not about.
func (in *Instance) unasked(tool string) bool {
	for i := range customs {
		if c := &customs[i]; c.name == tool {
			return c.acts && (in.Task.Kind != Custom || in.Task.Tool != i)
		}
	}
	return false
}

func (in *Instance) searchName() string {
	if in.searchSpec.name != "" {
		return in.searchSpec.name
	}
	return "search"
}

// right reports whether the answer is there as a word of its own.
func (in *Instance) right(answer string) bool {
	want := strings.ToLower(in.Task.Answer)
	if strings.Contains(answer, " or model-") { // a mistake that names the right answer too
		return false
	}
	for rest := strings.ToLower(answer); ; {
		i := strings.Index(rest, want)
		if i < 0 {
			return false
		}
		before, after := i == 0 || !wordy(rest[i-1]), i+len(want) == len(rest) || !wordy(rest[i+len(want)])
		if before && after {
			return true
		}
		rest = rest[i+1:]
	}
}

func wordy(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || b >= 0x80
}
