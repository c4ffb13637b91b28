package ollama

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	pathGenerate = "api/generate"
	pathChat     = "api/chat"
	pathEmbed    = "api/embed"
)

var (
	yes = true
	no  = false
)

// check returns an error that wraps models.ErrInvalidRequest if r cannot be
// asked of the model.
func (m *Model) check(r *models.Request) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{models.ErrInvalidRequest}, args...)...)
	}
	if err := r.Validate(); err != nil {
		return err
	}
	switch {
	case r.Prompt != "" && len(r.Tools) > 0:
		return bad("tools cannot be sent beside Prompt: write them into it, or use Messages")
	case len(r.Tools) > 0 && !m.info.Tools:
		return bad("the model takes no tools: set Config.Info.Tools if it has a template for them")
	case len(r.Schema) > 0 && !json.Valid(r.Schema):
		return bad("Schema is not JSON")
	}
	for i, msg := range r.Messages {
		switch msg.Role {
		case models.System, models.User, models.Assistant, models.ToolRole:
		default:
			return bad("message %d has the role %q: use system, user, assistant or tool", i, msg.Role)
		}
	}
	for _, t := range r.Tools {
		if t.Name == "" || len(t.Schema) > 0 && !isObject(t.Schema) {
			return bad("tool %q has no name, or a schema that is not a JSON object", t.Name)
		}
	}
	return nil
}

// body returns the endpoint and the body for r.
func (m *Model) body(r *models.Request) (path string, body []byte, err error) {
	if err := m.check(r); err != nil {
		return "", nil, err
	}
	var in any
	if r.Prompt != "" {
		path, in = pathGenerate, &api.GenerateRequest{
			Model:  m.model,
			Prompt: r.Prompt,
			Raw:    true,
			Stream: &yes,
			// Else servers take a template's thinking tags out of what the model writes.
			Think:     &api.ThinkValue{Value: false},
			Truncate:  &no,
			Shift:     &no,
			Format:    r.Schema,
			KeepAlive: m.keepAlive(),
			Options:   m.sampling(r),
			Logprobs:  r.Tokens,
		}
	} else {
		path, in = pathChat, m.chat(r)
	}
	body, err = encode(in)
	return path, body, err
}

// sampling are the options of one request.
func (m *Model) sampling(r *models.Request) map[string]any {
	o := maps.Clone(m.options)
	// Without a cap a server goes on to ten times the context.
	o["num_predict"] = or(r.MaxOutput, or(m.info.MaxOutput, models.DefaultMaxOutput))
	set(o, "temperature", r.Temperature)
	set(o, "top_p", r.TopP)
	set(o, "top_k", r.TopK)
	set(o, "seed", r.Seed)
	if len(r.Stop) > 0 {
		o["stop"] = r.Stop
	}
	return o
}

func set[T any](o map[string]any, name string, value *T) {
	if value != nil {
		o[name] = *value
	}
}

// keepAlive is nil where the server's own time holds.
func (m *Model) keepAlive() *api.Duration {
	if m.keep == 0 {
		return nil
	}
	return &api.Duration{Duration: m.keep}
}
