package langchain

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// messages shapes a history for the provider. An OpenAI server wants an
// assistant's text and all its calls in one message, and langchaingo's Anthropic
// provider sends the first part of a message only; there, the server joins
// messages of one role.
func (c *client) messages(in []models.Message) []llms.MessageContent {
	var out []llms.MessageContent
	var system []string
	names := map[string]string{} // of the tools that were called, by the call's id
	add := func(role llms.ChatMessageType, parts ...llms.ContentPart) {
		out = append(out, llms.MessageContent{Role: role, Parts: parts})
	}
	for i, m := range in {
		switch m.Role {
		case models.System:
			if c.traits.joinSystem {
				system = append(system, m.Text)
			} else {
				add(llms.ChatMessageTypeSystem, llms.TextContent{Text: m.Text})
			}
		case models.User:
			add(llms.ChatMessageTypeHuman, llms.TextContent{Text: m.Text})
		case models.Assistant:
			var parts []llms.ContentPart
			if m.Text != "" || len(m.Calls) == 0 {
				parts = append(parts, llms.TextContent{Text: m.Text})
			}
			for _, call := range m.Calls {
				names[call.ID] = call.Name
				parts = append(parts, llms.ToolCall{ID: call.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: arguments(call.Args)}})
			}
			if !c.traits.onePart {
				add(llms.ChatMessageTypeAI, parts...)
				continue
			}
			for _, p := range parts {
				add(llms.ChatMessageTypeAI, p)
			}
		case models.ToolRole:
			result := llms.ToolCallResponse{ToolCallID: m.CallID, Name: names[m.CallID], Content: m.Text}
			if last := len(out) - 1; c.traits.joinResults && i > 0 && in[i-1].Role == models.ToolRole {
				out[last].Parts = append(out[last].Parts, result)
			} else {
				add(llms.ChatMessageTypeTool, result)
			}
		}
	}
	if len(system) > 0 {
		first := llms.TextParts(llms.ChatMessageTypeSystem, strings.Join(system, "\n\n"))
		out = append([]llms.MessageContent{first}, out...)
	}
	return out
}

// arguments makes a JSON object of what a model wrote: providers parse the
// arguments in a history, and fail for good on those that are none.
func arguments(args json.RawMessage) string {
	text := strings.Trim(string(args), " \t\r\n") // what JSON takes for space
	if text == "" {
		return "{}"
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return text
	}
	b, _ := json.Marshal(map[string]string{"invalid_json": string(args)}) // strings always encode
	return string(b)
}

// firstID is the number from which calls are counted that come without an id:
// each id of a conversation is to be used once.
func firstID(in []models.Message) int {
	n := 1
	for _, m := range in {
		n += len(m.Calls)
	}
	return n
}

func callID(n int) string { return "call_" + strconv.Itoa(n) }
