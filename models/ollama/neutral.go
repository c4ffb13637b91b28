package ollama

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// control matches what the tokenizers of common models take as one token of
// their own, wherever it stands: ChatML's and its kin, DeepSeek's wide bars,
// Qwen's tags, Llama's, Mistral's and Gemma's.
var control = regexp.MustCompile(`<([|｜][^<>\n]{1,64}[|｜]>|/?(?:think|tool_call|tool_response|s|start_of_turn|end_of_turn|bos|eos)>)|\[(/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK)\])`)

// neutral puts a space behind the first character of every control token in
// text that is rendered into a prompt, which makes plain text of it.
func neutral(s string) string {
	if !strings.ContainsAny(s, "<[") {
		return s
	}
	return control.ReplaceAllStringFunc(s, func(t string) string { return t[:1] + " " + t[1:] })
}

// rewrite copies a JSON value, in its order, with neutral strings. In a schema,
// properties and alternatives that are true or false become {}: servers refuse
// the whole request otherwise.
func rewrite(b json.RawMessage, schema bool) json.RawMessage {
	w := rewriter{dec: json.NewDecoder(bytes.NewReader(b))}
	w.dec.UseNumber()
	if w.value(schema, false) != nil {
		return b // cannot be: it was checked
	}
	return w.out.Bytes()
}

// parameters makes the schema of a tool's arguments: an object, for servers
// read it into a structure and fail on the rest.
func parameters(schema json.RawMessage) json.RawMessage {
	var head struct {
		Type       json.RawMessage `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &head) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	out := []byte("{")
	if wire.IsNull(head.Type) {
		out = append(out, `"type":"object",`...)
	}
	if wire.IsNull(head.Properties) {
		out = append(out, `"properties":{},`...)
	}
	rest := rewrite(schema, true)[1:]
	if rest[0] == '}' {
		out = bytes.TrimSuffix(out, []byte(","))
	}
	return append(out, rest...)
}

type rewriter struct {
	dec *json.Decoder
	out bytes.Buffer
}

// value copies the next value. schema: it is one; holder: its members are.
func (w *rewriter) value(schema, holder bool) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		w.out.WriteByte(byte(v))
		for first := true; w.dec.More(); first = false {
			if !first {
				w.out.WriteByte(',')
			}
			inner, holds := holder, false
			if v == '{' {
				key, err := w.dec.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				w.text(name)
				w.out.WriteByte(':')
				holds = schema && (name == "properties" || name == "anyOf")
			}
			if err := w.value(inner, holds); err != nil {
				return err
			}
		}
		end, err := w.dec.Token()
		if err != nil {
			return err
		}
		d, _ := end.(json.Delim)
		w.out.WriteByte(byte(d))
	case string:
		w.text(v)
	case json.Number:
		w.out.WriteString(v.String())
	case bool:
		switch {
		case schema:
			w.out.WriteString("{}")
		case v:
			w.out.WriteString("true")
		default:
			w.out.WriteString("false")
		}
	default:
		w.out.WriteString("null")
	}
	return nil
}

func (w *rewriter) text(s string) {
	b, _ := encode(neutral(s)) // strings can be
	w.out.Write(bytes.TrimSuffix(b, []byte("\n")))
}
