package langchain

import (
	"fmt"
	"reflect"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Config says what a model of langchaingo is.
type Config struct {
	// Info describes the model. It needs a Name: langchaingo's models do not tell
	// theirs. An empty Provider becomes the provider's name. A Price that is not
	// stated is the provider's list price (cost.ListPrice) where there is one, and
	// else stays unknown. Tools is set where the provider has them; Raw and Schema
	// are refused, as langchaingo has neither.
	Info models.Info
	// Provider is where the model comes from. Empty: as its type says. It has to be
	// stated for types that are not langchaingo's own, such as wrappers: Other, or
	// what is within.
	Provider Provider
	// Honours adds to what the provider is known to obey. A request that asks for
	// more is refused.
	Honours Feature
	// Temperature is for requests that set none, since langchaingo sends 0 for
	// "unset". Nil: 1 at OpenAI and Anthropic, 0.8 at Ollama, which are the servers'
	// own defaults, and nothing elsewhere.
	Temperature *float64
	// Options are for every call, before what the request asks for, such as
	// openai.WithLegacyMaxTokensField() or llms.WithThinkingBudget(2048). Those that
	// ask for several answers, or set what the bridge sets, are refused by New. They
	// must be safe for concurrent use.
	Options []llms.CallOption
}

// ConfigError is a Config that cannot work.
type ConfigError struct {
	Field string // of Config, or "model"
	Fix   string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *ConfigError) Error() string { return fmt.Sprintf("langchain: %s: %s", e.Field, e.Fix) }

type client struct {
	llm         llms.Model
	info        models.Info
	provider    Provider
	traits      traits
	temperature *float64
	options     []llms.CallOption
}

// New makes a models.Model of a model of langchaingo. It does no I/O. Errors are
// *ConfigError. The Model is safe for concurrent use if m is. It is not retried
// and has no time limit but the context of a call: see models.Retry.
//
// Every error of Generate is a *models.Error. What the provider would drop is
// refused with an *UnsupportedError. OnDelta is called from Generate's goroutine
// by the known providers; a provider whose Streams only Config.Honours vouches
// for may call it from another, one call at a time and never after the return.
func New(m llms.Model, c Config) (models.Model, error) {
	bad := func(field, format string, args ...any) (models.Model, error) {
		return nil, &ConfigError{Field: field, Fix: fmt.Sprintf(format, args...)}
	}
	if v := reflect.ValueOf(m); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return bad("model", "is nil; pass the value that its constructor returned, and check its error")
	}
	found := detect(m)
	if found == "mistral" || c.Provider == "mistral" {
		return bad("model", "langchaingo's mistral provider ignores its context and drops the ids of tool calls; use models/openai with the BaseURL https://api.mistral.ai/v1")
	}
	if c.Provider == "" {
		c.Provider = Provider(found)
	}
	t, ok := providers[c.Provider]
	if !ok {
		return bad("Provider", "%T comes from no provider that is known (%q); set Provider to langchain.Other and Honours to what it obeys, or to the provider within", m, c.Provider)
	}
	t.honours |= c.Honours
	if c.Honours&Streams != 0 {
		t.plainTools = false
	}
	info := c.Info
	if err := info.Price.Validate(); err != nil {
		return bad("Info.Price", "%v", err)
	}
	switch {
	case info.Name == "":
		return bad("Info.Name", "is empty; ledgers, budgets and preferences need one, and langchaingo's models do not tell theirs")
	case min(info.Context, info.MaxOutput, info.MinOutput) < 0:
		return bad("Info", "Context, MaxOutput and MinOutput are numbers of tokens; use 0 for unknown")
	case info.Raw || info.Schema:
		return bad("Info", "Raw and Schema cannot be had from langchaingo; use models/openai for them")
	case info.Tools && t.honours&Tools == 0:
		return bad("Info.Tools", "langchaingo's %s provider drops tools or garbles them; use models/openai, or set Honours if yours does not", c.Provider)
	}
	info.Tools = t.honours&Tools != 0
	if info.Provider == "" && c.Provider != Other {
		info.Provider = string(c.Provider)
	}
	if !info.Price.Known() {
		info.Price, _ = cost.ListPrice(info.Provider, info.Name)
	}
	x := &client{llm: m, info: info, provider: c.Provider, traits: t, temperature: copyOf(c.Temperature)}
	for _, o := range c.Options {
		if o != nil {
			x.options = append(x.options, o)
		}
	}
	if field := reserved(x.options); field != "" {
		return bad("Options", "set %s, which is set by the bridge or changes how a reply is read; leave it out", field)
	}
	if x.temperature == nil && t.temperature != 0 {
		x.temperature = &t.temperature
	}
	if x.temperature != nil && !finite(*x.temperature) {
		return bad("Temperature", "is not a number; leave it out for the default")
	}
	return x, nil
}

// reserved names an option that a Config must not set, or "".
func reserved(options []llms.CallOption) string {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	switch {
	case o.N > 1:
		return "N"
	case o.CandidateCount > 1:
		return "CandidateCount"
	case o.StreamingFunc != nil:
		return "StreamingFunc"
	case o.StreamingReasoningFunc != nil:
		return "StreamingReasoningFunc"
	case len(o.Tools) > 0:
		return "Tools"
	case len(o.Functions) > 0:
		return "Functions"
	}
	return ""
}

// Info implements models.Model.
func (c *client) Info() models.Info { return c.info }

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
