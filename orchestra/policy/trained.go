package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy/internal/qwen3"
)

// ErrMalformed is the error of policies whose model answered uselessly: asking
// again may help.
var ErrMalformed = errors.New("policy: the model's output has no usable call")

// OutputError is an output of a policy's model that is no decision. It is an
// ErrMalformed.
type OutputError struct {
	Output    string   // as generated, its start only if it is long
	Malformed []string // what was meant as a call and cannot be read
	Truncated bool     // it ended too early: a larger WithMaxOutput may help
	Err       error    // ErrMalformed
}

// Error says what happened, and what to do about it where that is known.
func (e *OutputError) Error() string {
	s := e.Err.Error()
	switch {
	case e.Truncated:
		s += " (it was cut off: allow more output)"
	case len(e.Malformed) > 0:
		s += " (it cannot be read: " + strconv.Quote(head(e.Malformed[0], 200)) + ")"
	}
	return s + ": " + strconv.Quote(head(e.Output, 200))
}

// Unwrap gives the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// TrainedError is a model or an option that Trained cannot work with.
type TrainedError struct {
	Model string // its name, if there is one
	Fix   string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *TrainedError) Error() string {
	if e.Model == "" {
		return "policy: trained: " + e.Fix
	}
	return fmt.Sprintf("policy: trained: model %q %s", e.Model, e.Fix)
}

// TrainedOption varies what Trained makes.
type TrainedOption interface{ apply(*trained) }

type trainedOption func(*trained)

func (f trainedOption) apply(x *trained) { f(x) }

// WithWording picks the prompt's wording. The default is FRAMES.
func WithWording(w Wording) TrainedOption { return trainedOption(func(t *trained) { t.wording = w }) }

// WithSampling sets the temperature (default 1, as in training), and top-p and
// top-k unless they are 0: then the server's defaults count.
func WithSampling(temperature, topP float64, topK int) TrainedOption {
	return trainedOption(func(t *trained) { t.temperature, t.topP, t.topK = temperature, topP, topK })
}

// WithMaxOutput caps a decision's output, thinking included, in tokens. The
// default is 12,000 as in the released evaluation or the model's own cap if
// that is lower, and 8,000 of a model that states none.
func WithMaxOutput(tokens int) TrainedOption {
	return trainedOption(func(t *trained) { t.maxOutput = tokens })
}

// WithTokens asks the model for token ids and log probabilities, for training
// rows (Decision.Sample).
func WithTokens() TrainedOption { return trainedOption(func(t *trained) { t.tokens = true }) }

// WithAllCalls makes all calls of an output, not only the first valid one.
func WithAllCalls() TrainedOption { return trainedOption(func(t *trained) { t.all = true }) }

// WithFreeText takes an output without a call as the answer. The trained
// policy never writes one itself, but other Qwen3 models do.
func WithFreeText() TrainedOption { return trainedOption(func(t *trained) { t.free = true }) }

// WithoutThinking asks for calls without reasoning: faster by an order of
// magnitude, and no better than a fixed rule in the measurements that exist.
func WithoutThinking() TrainedOption { return trainedOption(func(t *trained) { t.noThink = true }) }

// Trained is the policy of the paper: Orchestrator-8B, or another Qwen3 model,
// in the dialect that it was trained in. Each turn is one fresh prompt of the
// task, what was gathered and the tools, with experts under aliases beside
// their price and latency. The prompt is rendered and the output parsed here,
// so m must take raw prompts (models.Info.Raw); nil and other models are a
// *TrainedError.
//
// An output without a usable call is an *OutputError. A call of a tool that
// Answers ends the run with what it returns. Untrusted text cannot forge the
// format's control tokens. The policy is safe for concurrent use.
func Trained(m models.Model, opts ...TrainedOption) (Policy, error) {
	if m == nil {
		return nil, &TrainedError{Fix: "the model is nil: pass one that takes raw prompts"}
	}
	t := &trained{info: m.Info(), model: models.Metered(m), temperature: 1}
	for _, o := range opts {
		if o != nil {
			o.apply(t)
		}
	}
	bad := func(fix string) (Policy, error) { return nil, &TrainedError{Model: t.info.Name, Fix: fix} }
	switch {
	case !t.info.Raw:
		return bad("takes no raw prompts (Info.Raw is false): serve it with a completions endpoint and set Info.Raw, as in openai.Config{Info: models.Info{Raw: true}}")
	case math.IsNaN(t.temperature) || t.temperature < 0 || math.IsNaN(t.topP) || t.topP < 0 || t.topP > 1 || t.topK < 0:
		return bad(fmt.Sprintf("cannot sample with temperature %v, top-p %v, top-k %d: use 0 or more, and top-p up to 1", t.temperature, t.topP, t.topK))
	case t.maxOutput < 0:
		return bad(fmt.Sprintf("cannot write %d tokens: use a positive number, or 0 for the default", t.maxOutput))
	case int(t.wording) >= len(wordings):
		return bad("has no such wording: use FRAMES, HLE or Training")
	}
	if t.maxOutput == 0 {
		t.maxOutput = 8000
		if t.info.MaxOutput > 0 {
			t.maxOutput = min(12000, t.info.MaxOutput)
		}
	}
	return t, nil
}

type trained struct {
	model       models.Model
	info        models.Info
	wording     Wording
	temperature float64
	topP        float64
	topK        int
	maxOutput   int
	tokens      bool
	all         bool
	free        bool
	noThink     bool
}

// Info describes the model.
func (t *trained) Info() Info {
	return Info{
		Name:     t.info.Name,
		Version:  "trained/" + wordings[t.wording].name,
		Writes:   true,
		Estimate: func(s *State) cost.Estimate { return models.Estimate(t.model, t.request(s)) },
	}
}

// request renders s.
func (t *trained) request(s *State) *models.Request {
	seed := int64(mix(s.Seed+uint64(s.Turn)*0x9e3779b97f4a7c15) >> 33) // 31 bits: servers differ in what they take
	r := &models.Request{
		Prompt:      t.prompt(s),
		MaxOutput:   t.maxOutput,
		Temperature: &t.temperature,
		Seed:        &seed,
		Tokens:      t.tokens,
		Affinity:    s.Run,
		OnDelta:     s.OnDelta,
	}
	if t.topP > 0 {
		r.TopP = &t.topP
	}
	if t.topK > 0 {
		r.TopK = &t.topK
	}
	return r
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Decide asks the model. With an *OutputError, the Decision still holds the
// reasoning, what was malformed and the sample.
func (t *trained) Decide(ctx context.Context, s *State) (Decision, error) {
	r := t.request(s)
	d := Decision{Sample: &models.Sample{Prompt: r.Prompt}}
	resp, err := t.model.Generate(ctx, r)
	if err != nil {
		return d, err
	}
	if resp.Sample != nil {
		sample := *resp.Sample
		sample.Prompt = r.Prompt
		d.Sample = &sample
	}
	output := resp.Text
	if resp.Reasoning != "" { // a server that parses raw output too
		output = "<think>\n" + resp.Reasoning + "\n</think>\n\n" + resp.Text
	}
	known := func(name string) bool { return spec(s, name) != nil }
	p := qwen3.Parse(output, known)
	if len(p.Calls) == 0 {
		p.Calls = resp.Calls
	}
	d.Reasoning, d.Malformed = p.Reasoning, p.Malformed
	cut := p.Truncated || resp.Finish == models.FinishLength
	switch {
	case len(p.Calls) > 0:
		if !t.all {
			p.Calls = firstValid(s, p.Calls)
		}
		for _, c := range p.Calls {
			d.Calls = append(d.Calls, Call{ID: c.ID, Tool: c.Name, Args: c.Args})
			if answers(spec(s, c.Name)) {
				d.Finish = &Finish{}
			}
		}
		return d, nil
	case t.free && p.Text != "" && len(p.Malformed) == 0 && !cut:
		d.Finish = &Finish{Text: p.Text}
		return d, nil
	}
	return d, &OutputError{Output: head(output, 2000), Malformed: p.Malformed, Truncated: cut, Err: ErrMalformed}
}
