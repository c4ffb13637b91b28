package ollama

import (
	"encoding/json"
	"strings"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// The parts of a body for /api/chat whose types in package api would lose
// something: numbers of arguments, and keywords of schemas that other servers
// than theirs may know.
type (
	chatRequest struct {
		api.ChatRequest
		Messages []message `json:"messages"`
		Tools    []toolOut `json:"tools,omitempty"`
	}
	message struct {
		Role     models.Role `json:"role"`
		Content  string      `json:"content"`
		Thinking string      `json:"thinking,omitempty"`
		Calls    []callOut   `json:"tool_calls,omitempty"`
		Tool     string      `json:"tool_name,omitempty"`
		CallID   string      `json:"tool_call_id,omitempty"`
	}
	callOut struct {
		ID       string      `json:"id,omitempty"`
		Function functionOut `json:"function"`
	}
	functionOut struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
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
)

func (m *Model) chat(r *models.Request) *chatRequest {
	q := &chatRequest{ChatRequest: api.ChatRequest{
		Model:     m.model,
		Stream:    &yes,
		Truncate:  &no, // else the oldest messages are dropped in silence
		Shift:     &no,
		Format:    r.Schema,
		KeepAlive: m.keepAlive(),
		Options:   m.sampling(r),
		Logprobs:  r.Tokens,
	}}
	switch {
	case r.Think != nil:
		q.Think = &api.ThinkValue{Value: *r.Think}
	case len(r.Schema) > 0:
		// A model that reasons is not held to the schema until it has reasoned.
		q.Think = &api.ThinkValue{Value: false}
	}
	q.Messages = messages(r.Messages)
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, toolOut{Type: "function", Function: toolDef{
			Name:        neutral(t.Name),
			Description: neutral(t.Description),
			Parameters:  parameters(t.Schema),
		}})
	}
	return q
}

func messages(in []models.Message) []message {
	out := make([]message, len(in))
	named := map[string]string{} // tool of a call's id
	var waiting []string         // tools of calls that have no result yet
	for i, msg := range in {
		o := message{Role: msg.Role, Content: neutral(msg.Text)}
		switch msg.Role {
		case models.Assistant:
			o.Thinking = neutral(msg.Reasoning)
			waiting = waiting[:0]
			for j, c := range msg.Calls {
				name := neutral(c.Name)
				o.Calls = append(o.Calls, callOut{ID: c.ID, Function: functionOut{Index: j, Name: name, Arguments: arguments(c.Args)}})
				named[c.ID] = name
				waiting = append(waiting, name)
			}
		case models.ToolRole:
			o.CallID = msg.CallID
			o.Tool = named[msg.CallID]
			if len(waiting) > 0 {
				if msg.CallID == "" { // results come in the order of the calls
					o.Tool = waiting[0]
				}
				waiting = waiting[1:]
			}
		}
		out[i] = o
	}
	return out
}

// arguments makes an object of what a model wrote: servers refuse a history with
// anything else. What is a string of one is taken out of it, and what is not
// JSON is wrapped.
func arguments(args json.RawMessage) json.RawMessage {
	var s string
	switch {
	case strings.TrimSpace(string(args)) == "", string(args) == "null":
		return json.RawMessage("{}")
	case isObject(args):
		return rewrite(args, false)
	case json.Unmarshal(args, &s) == nil && isObject(json.RawMessage(s)):
		return rewrite(json.RawMessage(s), false)
	}
	b, _ := json.Marshal(map[string]string{"invalid_json": neutral(string(args))}) // strings can be
	return b
}

func isObject(b json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimLeft(string(b), " \t\r\n"), "{") && json.Valid(b)
}
