package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// check returns an error that wraps models.ErrInvalidRequest if r cannot be
// asked of the model.
func (m *client) check(r *models.Request) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{models.ErrInvalidRequest}, args...)...)
	}
	switch {
	case r == nil || len(r.Messages) == 0 && r.Prompt == "":
		return bad("it is empty: set Messages or Prompt")
	case len(r.Messages) > 0 && r.Prompt != "":
		return bad("it has both Messages and Prompt: set one")
	case r.Prompt != "" && !m.info.Raw:
		return bad("Prompt needs a model that takes raw prompts: set Config.Info.Raw if the server has /completions, or use Messages")
	case r.Prompt != "" && len(r.Tools) > 0:
		return bad("tools cannot be sent beside Prompt: write them into it, or use Messages")
	case len(r.Tools) > 0 && !m.info.Tools:
		return bad("the model takes no tools: set Config.Info.Tools if it does")
	case len(r.Schema) > 0 && !m.info.Schema:
		return bad("the model obeys no schema: set Config.Info.Schema if it does")
	case len(r.Schema) > 0 && !json.Valid(r.Schema):
		return bad("Schema is not JSON")
	case r.MaxOutput < 0:
		return bad("MaxOutput is %d: use 0 for no cap of your own", r.MaxOutput)
	}
	for i, msg := range r.Messages {
		switch msg.Role {
		case models.System, models.User, models.Assistant:
		case models.ToolRole:
			if msg.CallID == "" {
				return bad("message %d is a tool's result without CallID: set it to the ID of the call", i)
			}
		default:
			return bad("message %d has the role %q: use system, user, assistant or tool", i, msg.Role)
		}
	}
	for _, t := range r.Tools {
		if t.Name == "" || len(t.Schema) > 0 && !json.Valid(t.Schema) {
			return bad("tool %q has no name, or a schema that is not JSON", t.Name)
		}
	}
	return nil
}

// The parts of a body. Fields that a request need not have are set one by one
// in body.
type (
	message struct {
		Role    models.Role `json:"role"`
		Content *string     `json:"content"`
		Calls   []callOut   `json:"tool_calls,omitempty"`
		CallID  string      `json:"tool_call_id,omitempty"`
	}
	callOut struct {
		ID       string      `json:"id"`
		Type     string      `json:"type"`
		Function functionOut `json:"function"`
	}
	functionOut struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	toolOut struct {
		Type     string  `json:"type"`
		Function toolDef `json:"function"`
	}
	toolDef struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	schemaOut struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict bool            `json:"strict,omitempty"`
	}
)

// body returns the endpoint below the base URL and the body for r, which has
// passed check. Invalid UTF-8 becomes U+FFFD.
func (m *client) body(r *models.Request) (endpoint string, body []byte, err error) {
	f := make(map[string]any, len(m.extra)+12)
	for name, value := range m.extra {
		f[name] = value
	}
	f["model"] = m.model
	if r.Prompt != "" {
		endpoint = "completions"
		f["prompt"] = r.Prompt
	} else {
		endpoint = "chat/completions"
		f["messages"] = messages(r.Messages)
	}
	if len(r.Tools) > 0 {
		f["tools"] = toolsOut(r.Tools)
		if _, ok := f["tool_choice"]; !ok {
			f["tool_choice"] = "auto"
		}
	} else { // servers refuse these without tools
		delete(f, "tool_choice")
		delete(f, "parallel_tool_calls")
	}
	if len(r.Schema) > 0 {
		m.constrain(f, r)
	}
	if r.MaxOutput > 0 {
		field := m.maxTokens
		if r.Prompt != "" {
			field = "max_tokens" // /completions knows no other
		}
		f[field] = r.MaxOutput
	}
	set(f, "temperature", r.Temperature)
	set(f, "top_p", r.TopP)
	set(f, "top_k", r.TopK)
	set(f, "seed", r.Seed)
	if len(r.Stop) > 0 {
		f["stop"] = r.Stop
	}
	if r.Think != nil && r.Prompt == "" {
		f["chat_template_kwargs"] = think(m.extra["chat_template_kwargs"], *r.Think)
	}
	if r.Tokens {
		f["logprobs"] = true
		if r.Prompt != "" {
			f["logprobs"] = 1
		}
		if m.tellsIDs() {
			f["return_token_ids"] = true
		}
	}
	if r.OnDelta != nil {
		f["stream"] = true
		f["stream_options"] = map[string]bool{"include_usage": true}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil { // NaN, for instance
		return "", nil, fmt.Errorf("%w: %v", models.ErrInvalidRequest, err)
	}
	return endpoint, bytes.ToValidUTF8(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\uFFFD")), nil
}

func set[T any](f map[string]any, name string, value *T) {
	if value != nil {
		f[name] = *value
	}
}

// think adds enable_thinking to what Extra says of the chat template.
func think(extra json.RawMessage, on bool) map[string]any {
	var kwargs map[string]json.RawMessage
	_ = json.Unmarshal(extra, &kwargs) // anything but an object could not stay
	out := map[string]any{}
	for name, value := range kwargs {
		out[name] = value
	}
	out["enable_thinking"] = on
	return out
}

func messages(in []models.Message) []message {
	out := make([]message, len(in))
	for i, msg := range in {
		o := message{Role: msg.Role}
		if msg.Text != "" || len(msg.Calls) == 0 {
			o.Content = &msg.Text
		}
		if msg.Role == models.ToolRole {
			o.CallID = msg.CallID
		}
		if msg.Role == models.Assistant {
			for _, c := range msg.Calls {
				o.Calls = append(o.Calls, callOut{ID: c.ID, Type: "function", Function: functionOut{Name: c.Name, Arguments: arguments(c.Args)}})
			}
		}
		out[i] = o
	}
	return out
}

// arguments makes a JSON text of what a model wrote. Servers parse the
// arguments in a history and fail for good on one that is cut off, so what is
// not JSON is wrapped.
func arguments(args json.RawMessage) string {
	switch {
	case strings.TrimSpace(string(args)) == "":
		return "{}"
	case json.Valid(args):
		return string(args)
	}
	b, _ := json.Marshal(map[string]string{"invalid_json": string(args)})
	return string(b)
}

func toolsOut(in []models.ToolDef) []toolOut {
	out := make([]toolOut, len(in))
	for i, t := range in {
		if len(t.Schema) == 0 {
			t.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out[i] = toolOut{Type: "function", Function: toolDef{Name: t.Name, Description: t.Description, Parameters: t.Schema}}
	}
	return out
}
