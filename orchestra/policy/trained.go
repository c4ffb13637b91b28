package policy

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	Forced    error    // why the forced try failed too; nil = there was none
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
	s += ": " + strconv.Quote(head(e.Output, 200))
	if e.Forced != nil {
		s += "; and when forced to a call: " + head(e.Forced.Error(), 600)
	}
	return s
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

// TrainedOption varies what Trained makes, and what Local does.
type TrainedOption interface {
	LocalOption
	apply(*trained)
}

type trainedOption func(*trained)

func (f trainedOption) apply(x *trained)    { f(x) }
func (f trainedOption) applyLocal(l *local) { l.trained = append(l.trained, f) }

// WithWording picks the prompt's wording. The default is FRAMES.
func WithWording(w Wording) TrainedOption { return trainedOption(func(t *trained) { t.wording = w }) }

// WithAllCalls makes all calls of an output, not only the first valid one.
func WithAllCalls() TrainedOption { return trainedOption(func(t *trained) { t.all = true }) }

// WithFreeText takes an output without a call as the answer. The trained
// policy never writes one itself, but other Qwen3 models do.
func WithFreeText() TrainedOption { return trainedOption(func(t *trained) { t.free = true }) }

// Trained is the policy of the paper: Orchestrator-8B, or another Qwen3 model,
// in the dialect that it was trained in. Each turn is one fresh prompt of the
// task, what was gathered and the tools, with experts under aliases beside
// their price and latency. The prompt is rendered and the output parsed here,
// so m must take raw prompts (models.Info.Raw); nil and other models are a
// *TrainedError.
//
// An output without a usable call is an *OutputError. If m obeys schemas
// (models.Info.Schema), it is first made to call: an output without any call, or
// with one that cannot be read for the second turn in a row, is asked for once
// more within the same decision, behind its own thinking and held to a grammar
// of what is offered, with at most 2,048 tokens. Decision.Forced shows it, both
// requests are charged, and WithoutForcing turns it off.
//
// A call of a tool that Answers ends the run with what it returns. Untrusted
// text cannot forge the format's control tokens. The policy is safe for
// concurrent use.
func Trained(m models.Model, opts ...TrainedOption) (Policy, error) {
	if m == nil {
		return nil, &TrainedError{Fix: "the model is nil: pass one that takes raw prompts"}
	}
	t := &trained{info: m.Info(), model: models.Metered(m), sampling: sampling{temperature: 1}}
	for _, o := range opts {
		if o != nil {
			o.apply(t)
		}
	}
	bad := func(fix string) (Policy, error) { return nil, &TrainedError{Model: t.info.Name, Fix: fix} }
	switch {
	case !t.info.Raw:
		return bad("takes no raw prompts (Info.Raw is false): serve it with a completions endpoint and set Info.Raw, as in openai.Config{Info: models.Info{Raw: true}}")
	case t.check() != "":
		return bad(t.check())
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
	sampling
	model   models.Model
	info    models.Info
	wording Wording
	all     bool
	free    bool
	noForce bool
}

// Info describes the model.
func (t *trained) Info() Info {
	return Info{
		Name:     t.info.Name,
		Version:  "trained/" + wordings[t.wording].name,
		Writes:   true,
		Estimate: t.estimate,
	}
}

// request renders s.
func (t *trained) request(s *State) *models.Request {
	seed := seedOf(s)
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

// seedOf is the seed of a turn, in 31 bits: servers differ in what they take.
func seedOf(s *State) int64 {
	return int64(mix(s.Seed+uint64(s.Turn)*0x9e3779b97f4a7c15) >> 33)
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
	o, err := t.generate(ctx, s, r, "")
	if err != nil {
		return Decision{Sample: &models.Sample{Prompt: r.Prompt}}, err
	}
	d := Decision{Reasoning: o.Reasoning, Malformed: o.Malformed, Sample: o.sample}
	switch {
	case len(o.Calls) > 0:
		if !t.all {
			o.Calls = firstValid(s, o.Calls)
		}
	case t.free && o.Text != "" && len(o.Malformed) == 0 && !o.cut:
		d.Finish = &Finish{Text: o.Text}
		return d, nil
	default:
		bad := o.malformed()
		if !t.mustForce(s, o) {
			return d, bad
		}
		d.Forced = true
		if o, err = t.forced(ctx, s, r, o); err != nil {
			if ctx.Err() != nil {
				return d, err
			}
			bad.Forced = err
			return d, bad
		}
		d.Sample = o.sample
	}
	for _, c := range o.Calls {
		d.Calls = append(d.Calls, Call{ID: c.ID, Tool: c.Name, Args: c.Args})
		if answers(spec(s, c.Name)) {
			d.Finish = &Finish{}
		}
	}
	return d, nil
}

// output is what the model wrote, taken apart.
type output struct {
	qwen3.Parsed
	raw    string
	cut    bool          // it ended too early
	finish models.Finish // of a conversation's turn
	sample *models.Sample
}

// generate asks the model. Begun is the part of the output that the prompt ends
// with.
func (t *trained) generate(ctx context.Context, s *State, r *models.Request, begun string) (*output, error) {
	resp, err := t.model.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	o := readRaw(s, resp, begun)
	o.sample = sampleOf(resp, r)
	return o, nil
}

// readRaw takes a raw completion apart. Some servers parse it, or parts of it,
// all the same.
func readRaw(s *State, resp *models.Response, begun string) *output {
	o := &output{raw: begun + resp.Text}
	switch {
	case resp.Reasoning == "":
	case begun == "":
		o.raw = "<think>\n" + resp.Reasoning + "\n</think>\n\n" + resp.Text
	case resp.Text == "": // the call was taken for thinking
		o.raw += resp.Reasoning
	}
	o.Parsed = qwen3.Parse(o.raw, func(name string) bool { return spec(s, name) != nil })
	if len(o.Calls) == 0 {
		o.Calls = resp.Calls
	}
	o.cut = o.Truncated || resp.Finish == models.FinishLength
	return o
}

// sampleOf is the sample of a response to r; nil if there is nothing to keep.
func sampleOf(resp *models.Response, r *models.Request) *models.Sample {
	var sample models.Sample
	switch {
	case resp.Sample != nil:
		sample = *resp.Sample
	case r.Prompt == "":
		return nil
	}
	sample.Prompt = r.Prompt
	return &sample
}

// malformed is the error of an output without a usable call.
func (o *output) malformed() *OutputError {
	return &OutputError{Output: head(o.raw, 2000), Malformed: o.Malformed, Truncated: o.cut, Err: ErrMalformed}
}
