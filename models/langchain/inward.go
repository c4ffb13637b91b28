package langchain

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// request makes a request of what langchaingo's callers pass.
func request(info models.Info, messages []llms.MessageContent, o *llms.CallOptions) (*models.Request, error) {
	if field := missing(info, o); field != "" {
		return nil, &UnsupportedError{Field: field, Fix: "leave the option out, or call the models.Model itself"}
	}
	r := &models.Request{MaxOutput: o.MaxTokens, Stop: append([]string(nil), o.StopWords...)}
	for i, m := range messages {
		if err := appendMessage(r, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	if !math.IsNaN(o.Temperature) {
		r.Temperature = &o.Temperature
	}
	if o.TopP != 0 {
		r.TopP = &o.TopP
	}
	if o.TopK != 0 {
		r.TopK = &o.TopK
	}
	if o.Seed != 0 {
		seed := int64(o.Seed)
		r.Seed = &seed
	}
	if c := llms.GetThinkingConfig(o); c != nil {
		think := c.Mode != llms.ThinkingModeNone
		r.Think = &think
	}
	if o.JSONMode || o.ResponseMIMEType == "application/json" {
		r.Schema = json.RawMessage(`{"type":"object"}`)
	}
	if o.ToolChoice == "none" || o.FunctionCallBehavior == llms.FunctionCallBehaviorNone {
		return r, nil
	}
	defs := make([]*llms.FunctionDefinition, 0, len(o.Tools)+len(o.Functions))
	for _, t := range o.Tools {
		if t.Function == nil || t.Type != "function" && t.Type != "" {
			return nil, &UnsupportedError{Field: fmt.Sprintf("a tool of type %q", t.Type), Fix: "use tools of type function"}
		}
		defs = append(defs, t.Function)
	}
	for i := range o.Functions {
		defs = append(defs, &o.Functions[i])
	}
	for _, d := range defs {
		schema, err := json.Marshal(d.Parameters)
		if err != nil {
			return nil, fmt.Errorf("%w: the parameters of tool %q do not encode as JSON: %v", models.ErrInvalidRequest, d.Name, err)
		}
		if string(schema) == "null" {
			schema = nil
		}
		r.Tools = append(r.Tools, models.ToolDef{Name: d.Name, Description: d.Description, Schema: schema})
	}
	return r, nil
}

// missing names an option that cannot be passed on, or "".
func missing(info models.Info, o *llms.CallOptions) string {
	switch {
	case o.Model != "" && o.Model != info.Name:
		return fmt.Sprintf("WithModel(%q)", o.Model)
	case o.N > 1:
		return "WithN"
	case o.CandidateCount > 1:
		return "WithCandidateCount"
	case o.MinLength != 0:
		return "WithMinLength"
	case o.MaxLength != 0:
		return "WithMaxLength"
	case o.RepetitionPenalty != 0:
		return "WithRepetitionPenalty"
	case o.FrequencyPenalty != 0:
		return "WithFrequencyPenalty"
	case o.PresencePenalty != 0:
		return "WithPresencePenalty"
	case (o.JSONMode || o.ResponseMIMEType == "application/json") && !info.Schema:
		return "JSON mode, without Info.Schema,"
	case o.ResponseMIMEType != "" && o.ResponseMIMEType != "text/plain" && o.ResponseMIMEType != "application/json":
		return "WithResponseMIMEType"
	case o.ToolChoice != nil && o.ToolChoice != "auto" && o.ToolChoice != "none" && o.ToolChoice != "":
		return "WithToolChoice"
	case o.FunctionCallBehavior != "" && o.FunctionCallBehavior != llms.FunctionCallBehaviorAuto && o.FunctionCallBehavior != llms.FunctionCallBehaviorNone:
		return "WithFunctionCallBehavior"
	}
	for key := range o.Metadata {
		if key != "thinking_config" && key != "prompt_caching" {
			return fmt.Sprintf("metadata %q", key)
		}
	}
	return ""
}

// appendMessage adds a message of langchaingo's, which may be several of ours or
// a part of one.
func appendMessage(r *models.Request, m llms.MessageContent) error {
	var role models.Role
	switch m.Role {
	case llms.ChatMessageTypeSystem:
		role = models.System
	case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
		role = models.User
	case llms.ChatMessageTypeAI:
		role = models.Assistant
	case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
		role = models.ToolRole
	default:
		return fmt.Errorf("%w: it has the role %q", models.ErrInvalidRequest, m.Role)
	}
	out := models.Message{Role: role}
	var texts []string
	var results []models.Message
	for _, p := range m.Parts {
		if c, ok := p.(llms.CachedContent); ok {
			p = c.ContentPart
		}
		switch p := p.(type) {
		case llms.TextContent:
			texts = append(texts, p.Text)
		case llms.ToolCall:
			call := models.ToolCall{ID: p.ID}
			if p.FunctionCall != nil {
				call.Name, call.Args = p.FunctionCall.Name, raw(p.FunctionCall.Arguments)
			}
			out.Calls = append(out.Calls, call)
		case llms.ToolCallResponse:
			id := p.ToolCallID
			if id == "" { // of langchaingo's functions, which have none
				id = lastCall(r.Messages, p.Name)
			}
			results = append(results, models.Message{Role: models.ToolRole, CallID: id, Text: p.Content})
		default:
			return &UnsupportedError{Field: fmt.Sprintf("a part of type %T", p), Fix: "models.Request holds text, tool calls and their results"}
		}
	}
	out.Text = strings.Join(texts, "\n")
	switch {
	case (role == models.ToolRole) != (len(results) > 0) || len(results) > 0 && (len(texts) > 0 || len(out.Calls) > 0):
		return fmt.Errorf("%w: a message of a tool holds results of calls and nothing else, and other messages hold none", models.ErrInvalidRequest)
	case len(out.Calls) > 0 && role != models.Assistant:
		return fmt.Errorf("%w: only messages of the model hold calls", models.ErrInvalidRequest)
	case len(results) > 0:
		r.Messages = append(r.Messages, results...)
		return nil
	}
	// Some of langchaingo's callers write a message for each call of a turn; a
	// server wants the turn whole.
	if last := len(r.Messages) - 1; len(out.Calls) > 0 && out.Text == "" && last >= 0 && r.Messages[last].Role == models.Assistant {
		r.Messages[last].Calls = append(r.Messages[last].Calls, out.Calls...)
		return nil
	}
	r.Messages = append(r.Messages, out)
	return nil
}

// lastCall is the id of the newest call of a tool.
func lastCall(in []models.Message, tool string) string {
	for i := len(in) - 1; i >= 0; i-- {
		for j := len(in[i].Calls) - 1; j >= 0; j-- {
			if in[i].Calls[j].Name == tool {
				return in[i].Calls[j].ID
			}
		}
	}
	return ""
}
