package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// Report is what Local found and did.
type Report struct {
	GPUs     []string // name and memory of each
	Source   string   // what told: "nvml", "nvidia-smi", "sysfs", "macos"; "" = no GPU was found
	Notes    []string // what each way of finding GPUs said
	Plan     []string // what was chosen, and why
	Server   string   // its address
	Version  string   // of the server
	Started  bool     // it is the policy's own and ends with it
	Weights  string   // as Ollama knows them
	Model    string   // the same without a template: what is asked
	Context  int      // tokens
	Size     int64    // bytes of the loaded model
	VRAM     int64    // bytes of it in the GPU's memory
	LoadTime time.Duration
	License  string // of the weights

	stage Stage
}

// String is the report in lines.
func (r Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if len(r.GPUs) == 0 {
		line("GPU", "none was found")
	}
	for _, g := range r.GPUs {
		line("GPU", "%s (by %s)", g, r.Source)
	}
	for _, n := range r.Notes {
		line("", "%s", n)
	}
	for _, n := range r.Plan {
		line("plan", "%s", n)
	}
	if r.Server != "" {
		how := "was running"
		if r.Started {
			how = "started by this program"
		}
		line("server", "%s, Ollama %s, %s", r.Server, r.Version, how)
	}
	if r.Weights != "" {
		line("weights", "%s", r.Weights)
	}
	if r.Size > 0 {
		line("placed", "%s", r.placement())
		line("loaded", "in %s, with %d tokens of context", r.LoadTime.Round(time.Millisecond), r.Context)
	}
	line("licence", "%s", r.License)
	return b.String()
}

func (r Report) placement() string {
	switch {
	case r.VRAM <= 0:
		return fmt.Sprintf("%s, all of it on the processor", bytesText(r.Size))
	case r.VRAM < r.Size:
		return fmt.Sprintf("%s, %d %% of it in the GPU's memory", bytesText(r.Size), 100*r.VRAM/r.Size)
	}
	return fmt.Sprintf("%s, all of it in the GPU's memory", bytesText(r.Size))
}

func (r Report) summary() string { return r.Weights + ": " + r.placement() }

func bytesText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func (r *Report) found(f gpu.Found) {
	r.Source, r.Notes = f.Source, f.Notes
	for _, d := range f.Devices {
		r.GPUs = append(r.GPUs, fmt.Sprintf("%s, %s free of %s", d.Name, bytesText(d.Free), bytesText(d.Total)))
	}
}

func (r *Report) plan(p gpu.Plan) { r.Plan, r.Context = p.Why, p.Context }

func (r *Report) placed(p ollama.Placement) {
	r.Size, r.VRAM = p.Size, p.VRAM
	if p.Context > 0 {
		r.Context = p.Context
	}
}

// LocalError is why Orchestrator-8B does not run here.
type LocalError struct {
	Stage  Stage  // in which it went wrong
	Report Report // what was found until then
	Err    error  // the cause
}

// Error says what happened and what to do about it.
func (e *LocalError) Error() string {
	s := fmt.Sprintf("policy: Orchestrator-8B does not run on this machine (%s): %v", e.Stage, e.Err)
	if len(e.Report.GPUs) == 0 && (e.Stage == StagePlan || e.Stage == StageLoad) && len(e.Report.Notes) > 0 {
		s += " (" + strings.Join(e.Report.Notes, "; ") + ")"
	}
	return s
}

// Unwrap gives the cause.
func (e *LocalError) Unwrap() error { return e.Err }

// ErrNotOnGPU is the cause of errors about a model that runs on the processor,
// wholly or in part, without WithCPU.
var ErrNotOnGPU = errors.New("the model is not in the GPU's memory")

// verify says whether a placement is what was asked for.
func (p *LocalPolicy) verify(where ollama.Placement) error {
	switch {
	case p.cpu, where.OnGPU():
		return nil
	case !where.Loaded:
		return fmt.Errorf("%w: the server unloaded it at once; look for other models that push it out with `ollama ps`", ErrNotOnGPU)
	case where.OnCPU():
		return fmt.Errorf("%w: the server put all %s of it on the processor; free the GPU, repair its driver and restart the server, or allow this with policy.WithCPU",
			ErrNotOnGPU, bytesText(where.Size))
	}
	return fmt.Errorf("%w: only %s of %s fit; free GPU memory, ask for less with policy.WithContext or policy.WithQuantization, or allow this with policy.WithCPU",
		ErrNotOnGPU, bytesText(where.VRAM), bytesText(where.Size))
}

// Report is what Local found and did.
func (p *LocalPolicy) Report() Report { return p.report }

// Decide asks the model. Every other minute it looks whether the model is still
// in the GPU's memory; if it is not, the next decision fails with ErrNotOnGPU
// until it is back.
func (p *LocalPolicy) Decide(ctx context.Context, s *State) (Decision, error) {
	p.mu.Lock()
	lost := p.lost
	p.mu.Unlock()
	if lost != nil { // it may be back
		if err := p.Check(ctx); err != nil {
			return Decision{}, err
		}
	}
	d, err := p.Policy.Decide(ctx, s)
	p.mu.Lock()
	due := !p.cpu && err == nil && time.Since(p.checked) >= recheck
	if due {
		p.checked = time.Now() // others need not
	}
	p.mu.Unlock()
	if due {
		_ = p.Check(ctx) // the next decision tells
	}
	return d, err
}

// Check asks the server where the model is now. The error is a *LocalError: of
// the server, or with ErrNotOnGPU. A model that is not loaded at the moment is
// loaded first.
func (p *LocalPolicy) Check(ctx context.Context) error {
	where, err := p.model.Placement(ctx)
	if err == nil && !where.Loaded {
		where, err = p.model.Load(ctx)
	}
	if err == nil {
		err = p.verify(where)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = time.Now()
	if err == nil {
		p.lost = nil
	} else { // a check that could not be made does not make a lost placement good
		r := p.report
		r.placed(where)
		err = &LocalError{Stage: StageLoad, Report: r, Err: err}
		if errors.Is(err, ErrNotOnGPU) {
			p.lost = err
		}
	}
	return err
}

// Close ends the server if Local started it, with all its processes. A server
// that was there before keeps the model loaded until its own time is over.
func (p *LocalPolicy) Close() error {
	if p == nil {
		return nil
	}
	if p.model != nil {
		p.model.Close()
	}
	if p.server == nil {
		return nil
	}
	return p.server.Close()
}
