package langchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// UnsupportedError is a request that asks for what the other side would drop.
// Nothing was sent. It wraps errors.ErrUnsupported.
type UnsupportedError struct {
	Field string // of models.Request, or of llms.CallOptions
	Fix   string // what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("langchain: %s would be dropped: %s", e.Field, e.Fix)
}

// Unwrap gives errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// check refuses what cannot be meant and what would be dropped.
func (c *client) check(r *models.Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{models.ErrInvalidRequest}, args...)...)
	}
	history := false
	for i, m := range r.Messages {
		switch m.Role {
		case models.System, models.User:
		case models.Assistant:
			history = history || len(m.Calls) > 0
		case models.ToolRole:
			history = true
			if m.CallID == "" {
				return bad("message %d is a tool's result without CallID: set it to the ID of the call", i)
			}
		default:
			return bad("message %d has the role %q: use system, user, assistant or tool", i, m.Role)
		}
	}
	for _, t := range r.Tools {
		if _, err := object(t.Schema); t.Name == "" || err != nil {
			return bad("tool %q has no name, or a schema that is not a JSON object", t.Name)
		}
	}
	if t, p := r.Temperature, r.TopP; t != nil && !finite(*t) || p != nil && !finite(*p) {
		return bad("Temperature and TopP must be numbers")
	}
	dropped := func(field, fix string) error { return &UnsupportedError{Field: field, Fix: fix} }
	switch {
	case r.Prompt != "":
		return dropped("Prompt", "langchaingo has no raw completions; use Messages, or models/openai")
	case len(r.Schema) > 0:
		return dropped("Schema", "langchaingo has no option for it; use models/openai")
	case r.Think != nil:
		return dropped("Think", "leave it out, and put the provider's own option into Config.Options")
	case c.provider == OpenAI && r.Temperature != nil && *r.Temperature != 1 && fixedTemperature(c.info.Name):
		return dropped("Temperature", "this model takes none but 1")
	}
	for _, f := range []struct {
		feature Feature
		field   string
		asked   bool
	}{
		{Cap, "MaxOutput", r.MaxOutput > 0},
		{TopP, "TopP", r.TopP != nil},
		{TopK, "TopK", r.TopK != nil},
		{Seed, "Seed", r.Seed != nil},
		{Stop, "Stop", len(r.Stop) > 0},
		{Tools, "Tools", len(r.Tools) > 0 || history},
	} {
		if f.asked && c.traits.honours&f.feature == 0 {
			return dropped(f.field, fmt.Sprintf("leave it out, use models/openai, or set Config.Honours if the %s provider obeys it", c.provider))
		}
	}
	const zero = "langchaingo takes 0 for unset; use another value"
	switch {
	case r.TopP != nil && *r.TopP == 0:
		return dropped("TopP", zero)
	case r.TopK != nil && *r.TopK == 0:
		return dropped("TopK", zero)
	case r.Seed != nil && (*r.Seed == 0 || *r.Seed != int64(int(*r.Seed))):
		return dropped("Seed", zero)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// fixedTemperature reports whether langchaingo's OpenAI provider leaves out the
// temperature for a model of that name.
func fixedTemperature(model string) bool {
	return strings.HasPrefix(model, "o1-") || model == "o3" || strings.HasPrefix(model, "o3-") || strings.HasPrefix(model, "gpt-5")
}

// callOptions are the options for r, which has passed check.
func (c *client) callOptions(r *models.Request, s *relay) []llms.CallOption {
	ours := func(o *llms.CallOptions) {
		switch {
		case r.MaxOutput > 0:
			o.MaxTokens = r.MaxOutput
		case o.MaxTokens == 0 && c.traits.capAlways:
			if o.MaxTokens = c.info.MaxOutput; o.MaxTokens == 0 {
				o.MaxTokens = models.DefaultMaxOutput
			}
		}
		if t := r.Temperature; t != nil {
			o.Temperature = *t
		} else if c.temperature != nil {
			o.Temperature = *c.temperature
		}
		if r.TopP != nil {
			o.TopP = *r.TopP
		}
		if r.TopK != nil {
			o.TopK = *r.TopK
		}
		if r.Seed != nil {
			o.Seed = int(*r.Seed)
		}
		if len(r.Stop) > 0 {
			o.StopWords = append([]string(nil), r.Stop...)
		}
		o.Tools = c.tools(r.Tools)
		if c.streams(r) {
			o.StreamingFunc, o.StreamingReasoningFunc = s.textChunk, s.reasoningChunk
		}
	}
	return append(append([]llms.CallOption(nil), c.options...), ours)
}

// streams reports whether r is to be streamed.
func (c *client) streams(r *models.Request) bool {
	return r.OnDelta != nil && c.traits.honours&Streams != 0 && !(c.traits.plainTools && len(r.Tools) > 0)
}

func (c *client) tools(in []models.ToolDef) []llms.Tool {
	var out []llms.Tool
	for _, t := range in {
		f := &llms.FunctionDefinition{Name: t.Name, Description: t.Description}
		schema, _ := object(t.Schema) // check has seen it
		switch {
		case !c.traits.rawSchema:
			f.Parameters = schema
		case len(t.Schema) > 0:
			f.Parameters = t.Schema
		default:
			f.Parameters = noArguments
		}
		out = append(out, llms.Tool{Type: "function", Function: f})
	}
	return out
}

var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// object reads a schema; none is that of no arguments.
func object(schema json.RawMessage) (map[string]any, error) {
	if len(schema) == 0 {
		schema = noArguments
	}
	var o map[string]any
	if err := json.Unmarshal(schema, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("null")
	}
	return o, nil
}
