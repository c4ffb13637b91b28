// Package qwen3 speaks the chat format of Qwen3 models: Render writes the raw
// prompt that their own chat template writes, byte for byte, and Parse reads
// what they generate. Doing both here keeps servers' templates and parsers,
// which lose or garble calls, out of the way.
package qwen3

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	imStart       = "<|im_start|>"
	imEnd         = "<|im_end|>"
	endOfText     = "<|endoftext|>"
	thinkOpen     = "<think>"
	thinkClose    = "</think>"
	callOpen      = "<tool_call>"
	callClose     = "</tool_call>"
	responseOpen  = "<tool_response>"
	responseClose = "</tool_response>"
)

// Options vary a prompt. The zero Options asks for the model's next turn, with
// thinking.
type Options struct {
	NoThinking   bool // an empty think block is written for the model
	NoGeneration bool // end after the last message: for training rows
}

// Render writes messages and tools as one prompt. The text of messages, tools
// and calls is neutralised, so that only the format's own tokens are control
// tokens. Reasoning is kept after the last real query only, as in training;
// an assistant's text that starts with a think block is split first. Schemas
// that are not JSON are left out, and call arguments that are not JSON are
// written as they are.
func Render(messages []models.Message, tools []models.ToolDef, o Options) string {
	var b strings.Builder
	renderSystem(&b, messages, tools)
	query := lastQuery(messages)
	for i, m := range messages {
		switch {
		case m.Role == models.System && i == 0: // written above
		case m.Role == models.User, m.Role == models.System:
			b.WriteString(imStart + string(m.Role) + "\n" + Neutralise(m.Text) + imEnd + "\n")
		case m.Role == models.Assistant:
			renderAssistant(&b, m, i > query, i == len(messages)-1)
		case m.Role == models.ToolRole:
			if i == 0 || messages[i-1].Role != models.ToolRole {
				b.WriteString(imStart + "user")
			}
			b.WriteString("\n" + responseOpen + "\n" + Neutralise(m.Text) + "\n" + responseClose)
			if i == len(messages)-1 || messages[i+1].Role != models.ToolRole {
				b.WriteString(imEnd + "\n")
			}
		}
	}
	if !o.NoGeneration {
		b.WriteString(imStart + "assistant\n")
		if o.NoThinking {
			b.WriteString(thinkOpen + "\n\n" + thinkClose + "\n\n")
		}
	}
	return b.String()
}

func renderSystem(b *strings.Builder, messages []models.Message, tools []models.ToolDef) {
	system := len(messages) > 0 && messages[0].Role == models.System
	if !system && len(tools) == 0 {
		return
	}
	b.WriteString(imStart + "system\n")
	if system {
		b.WriteString(Neutralise(messages[0].Text))
	}
	if len(tools) > 0 {
		if system {
			b.WriteString("\n\n")
		}
		b.WriteString("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
			"You are provided with function signatures within <tools></tools> XML tags:\n<tools>")
		for _, t := range tools {
			b.WriteString("\n" + Neutralise(string(appendTool(nil, t))))
		}
		b.WriteString("\n</tools>\n\nFor each function call, return a json object with function name and arguments within " +
			callOpen + callClose + " XML tags:\n" + callOpen + "\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n" + callClose)
	}
	b.WriteString(imEnd + "\n")
}

func appendTool(dst []byte, t models.ToolDef) []byte {
	dst = append(dst, `{"type": "function", "function": {"name": `...)
	dst = appendString(dst, t.Name)
	dst = append(dst, `, "description": `...)
	dst = appendString(dst, t.Description)
	dst = append(dst, `, "parameters": `...)
	if json.Valid(t.Schema) {
		dst = appendJSON(dst, t.Schema)
	} else {
		dst = append(dst, `{"type": "object", "properties": {}}`...)
	}
	return append(dst, "}}"...)
}

// lastQuery is the index of the last user message that is no tool result. If
// there is none it is the last index, so that no reasoning is kept.
func lastQuery(messages []models.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role == models.User && !(strings.HasPrefix(m.Text, responseOpen) && strings.HasSuffix(m.Text, responseClose)) {
			return i
		}
	}
	return len(messages) - 1
}

func renderAssistant(b *strings.Builder, m models.Message, afterQuery, last bool) {
	reasoning, text := m.Reasoning, m.Text
	if reasoning == "" {
		if at := strings.Index(text, thinkClose); at >= 0 {
			reasoning = text[:at]
			if open := strings.LastIndex(reasoning, thinkOpen); open >= 0 {
				reasoning = reasoning[open+len(thinkOpen):]
			}
			reasoning = strings.Trim(reasoning, "\n")
			text = strings.TrimLeft(text[strings.LastIndex(text, thinkClose)+len(thinkClose):], "\n")
		}
	}
	b.WriteString(imStart + "assistant\n")
	if afterQuery && (last || reasoning != "") {
		b.WriteString(thinkOpen + "\n" + Neutralise(strings.Trim(reasoning, "\n")) + "\n" + thinkClose + "\n\n")
		text = strings.TrimLeft(text, "\n")
	}
	b.WriteString(Neutralise(text))
	for i, c := range m.Calls {
		if i > 0 || text != "" {
			b.WriteByte('\n')
		}
		name := Neutralise(string(appendString(nil, c.Name)))
		b.WriteString(callOpen + "\n{\"name\": " + name + ", \"arguments\": " + Neutralise(arguments(c.Args)) + "}\n" + callClose)
	}
	b.WriteString(imEnd + "\n")
}

// arguments writes a call's arguments; those that are a JSON string are
// written as what the string holds.
func arguments(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0:
		return "{}"
	case !json.Valid(raw):
		return string(raw)
	case json.Unmarshal(raw, &s) == nil && raw[0] == '"':
		return s
	}
	return string(appendJSON(nil, raw))
}

// control matches all that Qwen3's tokenizer turns into one special token.
var control = regexp.MustCompile(`<(\|[a-z_]+\|>|/?(?:think|tool_call|tool_response)>)`)

// Neutralise puts a space behind the first character of every control token in
// untrusted text: "<|im_end|>" becomes "< |im_end|>", which is plain text to
// the tokenizer. It leaves text without such tokens as it is.
func Neutralise(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	return control.ReplaceAllString(s, "< $1")
}
