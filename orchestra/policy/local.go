package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// Weights is where Local takes Orchestrator-8B from: a GGUF conversion, of which
// Ollama pulls the quantisation that was planned.
const Weights = "hf.co/bartowski/nvidia_Orchestrator-8B-GGUF"

// License is what whoever uses the weights has to know. Local reports it before
// it downloads them, and in Report.
const License = "The weights of Orchestrator-8B are NVIDIA's, under a licence for research and development only; they are not part of this module."

// LocalOption varies what Local does. The options of Trained are such, too.
type LocalOption interface{ applyLocal(*local) }

type localOption func(*local)

func (f localOption) applyLocal(l *local) { f(l) }

// WithServer uses the Ollama server at that address and starts none. Without it,
// Local uses the one at $OLLAMA_HOST if that is set, else one at 127.0.0.1:11434
// if it answers, and else starts one.
func WithServer(url string) LocalOption { return localOption(func(l *local) { l.url = url }) }

// WithBinary is the ollama program that is started if no server answers; ""
// stands for the one on the PATH.
func WithBinary(path string) LocalOption { return localOption(func(l *local) { l.binary = path }) }

// WithWeights uses another model than Orchestrator-8B, or another conversion of
// it, by the name that Ollama knows it by. A name with a tag stands as it is; to
// one of hf.co without a tag the planned quantisation is added.
func WithWeights(name string) LocalOption { return localOption(func(l *local) { l.weights = name }) }

// WithQuantization plans with that quantisation ("Q4_K_M", "Q5_K_M", "Q6_K",
// "Q8_0", "F16") instead of the best that fits.
func WithQuantization(q string) LocalOption { return localOption(func(l *local) { l.quant = q }) }

// WithContext plans with that many tokens of context, prompt and output
// together, and does with less, down to 8,192, only if no more fits. The default
// is 40,960, all that the model was trained for.
func WithContext(tokens int) LocalOption { return localOption(func(l *local) { l.context = tokens }) }

// WithParallel serves that many decisions at once; each takes its own share of
// the GPU's memory. The default is 1: more wait in a queue.
func WithParallel(n int) LocalOption { return localOption(func(l *local) { l.parallel = n }) }

// WithCPU allows the model to run on the processor, wholly or in part, where it
// is slower by one or two orders of magnitude. Without it Local and Decide
// refuse.
func WithCPU() LocalOption { return localOption(func(l *local) { l.cpu = true }) }

// WithRuntime adds options of Ollama's own, such as "num_thread". They stay the
// same for the life of the policy, since changing them makes a server reload.
func WithRuntime(options map[string]any) LocalOption {
	return localOption(func(l *local) { l.runtime = maps.Clone(options) })
}

// WithProgress hears how Local gets on, from the goroutine that called it.
func WithProgress(f func(Progress)) LocalOption {
	return localOption(func(l *local) { l.progress = f })
}

// Progress is how far Local has come.
type Progress struct {
	Stage Stage
	Text  string // what is going on
	Done  int64  // bytes of the download so far
	Total int64  // bytes of the download; 0 outside of it
}

// Stage is a step of Local.
type Stage string

// The stages, in order; StageServer comes again if a server is started.
const (
	StageDiscover Stage = "discover" // which GPUs there are
	StageServer   Stage = "server"   // attach to a server, or start one
	StagePlan     Stage = "plan"     // what fits on the GPUs
	StageLicense  Stage = "license"  // of the weights, before they are downloaded
	StagePull     Stage = "pull"     // download the weights
	StageLoad     Stage = "load"     // into the GPU's memory
	StageReady    Stage = "ready"
)

type local struct {
	url, binary, weights, quant string
	context, parallel           int
	cpu                         bool
	runtime                     map[string]any
	progress                    func(Progress)
	trained                     []TrainedOption
	discover                    func(context.Context) gpu.Found // tests have other machines
}

func (l *local) tell(s Stage, format string, args ...any) {
	if l.progress != nil {
		l.progress(Progress{Stage: s, Text: fmt.Sprintf(format, args...)})
	}
}

// LocalPolicy is Orchestrator-8B on this machine. It is safe for concurrent use
// and must be closed.
type LocalPolicy struct {
	Policy
	report Report
	model  *ollama.Model
	server *gpu.Server // nil: it was there before
	cpu    bool

	mu      sync.Mutex
	checked time.Time // when the placement was last seen
	lost    error     // what was wrong with it then
}

// recheck is how long a placement is believed: models fall off a GPU after a
// suspend, a driver's update, or for another model's sake, and nobody says so.
const recheck = 2 * time.Minute

// Local starts or finds Orchestrator-8B on this machine's GPU and returns the
// policy when it is ready to decide. It looks for GPUs, plans what fits on them,
// attaches to an Ollama server or starts one of its own, pulls the weights if
// they are not there (5 to 16 GB, see WithProgress; an interrupted download goes
// on where it was), loads them, and verifies that they are in the GPU's memory.
//
// The weights are NVIDIA's, for research and development only: see License.
//
// What goes wrong is a *LocalError that says what was found and what to do.
// Nothing runs on the processor unless WithCPU allows it. ctx bounds the wait;
// Close ends the server if Local started it. For vLLM, SGLang and others, give
// Trained a model of models/openai.
func Local(ctx context.Context, opts ...LocalOption) (*LocalPolicy, error) {
	l := &local{weights: Weights, parallel: 1}
	l.discover = func(ctx context.Context) gpu.Found { return gpu.Discover(ctx, gpu.Sources{}) }
	for _, o := range opts {
		if o != nil {
			o.applyLocal(l)
		}
	}
	p := &LocalPolicy{cpu: l.cpu}
	if err := l.start(ctx, p); err != nil {
		_ = p.Close() // what it was started for has failed already
		e := &LocalError{Stage: p.report.stage, Report: p.report, Err: err}
		return nil, e
	}
	l.tell(StageReady, "%s", p.report.summary())
	return p, nil
}

// start takes the stages.
func (l *local) start(ctx context.Context, p *LocalPolicy) error {
	r := &p.report
	r.License = License
	stage := func(s Stage, format string, args ...any) {
		r.stage = s
		l.tell(s, format, args...)
	}
	if l.context < 0 || l.parallel < 0 {
		r.stage = StagePlan
		return errors.New("context and parallel are positive numbers, or 0 for the default")
	}
	stage(StageDiscover, "looking for GPUs")
	// Servers of ours whose program was killed may still hold memory.
	_, _ = gpu.KillStale(ctx, "") // what cannot be killed is for the planner to see
	found := l.discover(ctx)
	r.found(found)

	stage(StageServer, "looking for an Ollama server")
	url, attached, err := l.attach(ctx, r)
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // then what was found says nothing
		return context.Cause(ctx)
	}
	stage(StagePlan, "planning")
	plan, err := l.plan(ctx, found, url, attached)
	if err != nil {
		return err
	}
	r.plan(plan)
	if !attached {
		stage(StageServer, "starting an Ollama server")
		if p.server, err = l.launch(ctx, plan); err != nil {
			return err
		}
		url = p.server.URL()
		r.Started, r.Version = true, p.server.Version()
	}
	r.Server = url
	return l.load(ctx, p, plan, stage)
}

// load gets the model and puts it into memory.
func (l *local) load(ctx context.Context, p *LocalPolicy, plan gpu.Plan, stage func(Stage, string, ...any)) error {
	r := &p.report
	r.stage = StageServer
	c, err := ollama.NewClient(r.Server, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := l.fetch(ctx, c, r, plan, stage); err != nil {
		return err
	}
	// Neither the server's template nor its parser may touch the prompt or the
	// output, so the model is used under a name of our own that has none.
	r.stage = StageLoad
	r.Model = rawName(r.Weights)
	if err := c.Create(ctx, r.Model, r.Weights); err != nil {
		return err
	}
	keep := time.Duration(-1) // for the life of our own server
	if p.server == nil {
		keep = 0 // of another's: as it was told
	}
	p.model, err = ollama.New(r.Model, ollama.Config{
		BaseURL:     r.Server,
		Context:     plan.Context,
		Options:     l.runtime,
		KeepAlive:   keep,
		MaxInFlight: max(l.parallel, 1),
		LoadTime:    loadTime,
		Info:        models.Info{Name: l.title(), Context: plan.Context},
	})
	if err != nil {
		return err
	}
	stage(StageLoad, "loading %s with %d tokens of context", r.Weights, plan.Context)
	began := time.Now()
	where, err := p.model.Load(ctx)
	if err != nil {
		return err
	}
	r.LoadTime = time.Since(began)
	r.placed(where)
	if err := p.verify(where); err != nil {
		return err
	}
	p.checked = time.Now()
	p.Policy, err = Trained(p.model, l.trained...)
	return err
}

// fetch makes sure that the server has the weights. A conversion that is not
// published in F16 is taken in Q8_0, which needs less.
func (l *local) fetch(ctx context.Context, c *ollama.Client, r *Report, plan gpu.Plan, stage func(Stage, string, ...any)) error {
	r.Weights = l.name(plan.Quant)
	_, err := c.Show(ctx, r.Weights)
	if !errors.Is(err, ollama.ErrNoModel) {
		return err
	}
	stage(StageLicense, "%s", License)
	for {
		stage(StagePull, "downloading %s", r.Weights)
		err := c.Pull(ctx, r.Weights, func(x ollama.PullProgress) {
			if l.progress != nil {
				l.progress(Progress{Stage: StagePull, Text: x.Status, Done: x.Done, Total: x.Total})
			}
		})
		less := l.name("Q8_0")
		if !errors.Is(err, ollama.ErrNoModel) || plan.Quant != "F16" || l.quant != "" || r.Weights == less {
			return err
		}
		r.Plan = append(r.Plan, r.Weights+" is not published: Q8_0 instead")
		r.Weights = less
	}
}

// loadTime is how long the weights may take into memory, from a slow disk.
const loadTime = 15 * time.Minute

// title is the model's name in ledgers and preferences.
func (l *local) title() string {
	if l.weights == Weights {
		return "orchestrator-8b"
	}
	return l.weights
}

// name is the model that Ollama is asked for.
func (l *local) name(quant string) string {
	name := l.weights
	if strings.HasPrefix(name, "hf.co/") && !strings.Contains(name, ":") && quant != "" {
		name += ":" + quant
	}
	return name
}

// rawName is our own name for the same weights.
func rawName(model string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, model)
	if len(clean) > 70 { // Ollama takes 80 characters
		clean = clean[len(clean)-70:]
	}
	return "raw-" + strings.TrimLeft(clean, "-._")
}
