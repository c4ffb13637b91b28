package openai

import (
	"encoding/json"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// reply is a whole body, or one chunk of a stream. Servers differ in the types
// of many fields; those stay raw until they are read.
type reply struct {
	Object    wire.Lenient    `json:"object"`
	Model     wire.Lenient    `json:"model"`
	Choices   []choice        `json:"choices"`
	Usage     json.RawMessage `json:"usage"`
	Service   wire.Lenient    `json:"service_tier"` // that served the call
	Error     json.RawMessage `json:"error"`
	PromptIDs json.RawMessage `json:"prompt_token_ids"` // vLLM, chat
}

type choice struct {
	Index     json.RawMessage `json:"index"`
	Delta     *content        `json:"delta"`
	Message   *content        `json:"message"`
	Text      string          `json:"text"` // completions
	Finish    wire.Lenient    `json:"finish_reason"`
	Logprobs  json.RawMessage `json:"logprobs"`
	TokenIDs  json.RawMessage `json:"token_ids"`        // vLLM
	PromptIDs json.RawMessage `json:"prompt_token_ids"` // vLLM, completions
	Usage     json.RawMessage `json:"usage"`            // where some put a stream's
}

// content is a message, or what a chunk adds to it.
type content struct {
	Content          json.RawMessage `json:"content"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	Refusal          wire.Lenient    `json:"refusal"`
	Calls            []callIn        `json:"tool_calls"`
	FunctionCall     *functionIn     `json:"function_call"` // before tool_calls
}

type callIn struct {
	Index    json.RawMessage `json:"index"`
	ID       wire.Lenient    `json:"id"`
	Function functionIn      `json:"function"`
}

type functionIn struct {
	Name      wire.Lenient    `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// texts returns the text and the reasoning of a message's content, which is
// null, a string, or an array of parts. ok is false if it is none of them.
func texts(b json.RawMessage) (text, reasoning string, ok bool) {
	if wire.IsNull(b) {
		return "", "", true
	}
	if b[0] == '"' {
		return wire.Scalar(b), "", true
	}
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return "", "", false
	}
	for _, raw := range list {
		var part struct {
			Text     wire.Lenient    `json:"text"`
			Refusal  wire.Lenient    `json:"refusal"`
			Thinking json.RawMessage `json:"thinking"` // Mistral: a string or parts again
		}
		if raw[0] == '"' {
			text += wire.Scalar(raw)
			continue
		}
		if json.Unmarshal(raw, &part) != nil {
			return "", "", false
		}
		text += string(part.Text + part.Refusal)
		if t, more, ok := texts(part.Thinking); ok {
			reasoning += t + more
		}
	}
	return text, reasoning, true
}

// argumentText returns arguments as the model wrote them: servers send them as
// a string of JSON, some as the object itself.
func argumentText(b json.RawMessage) string {
	switch {
	case wire.IsNull(b):
		return ""
	case b[0] == '"':
		return wire.Scalar(b)
	}
	return string(b)
}

// integer reads a count; ok is false if there is none.
func integer(b json.RawMessage) (n int64, ok bool) { return jsonfix.Integer(wire.Scalar(b)) }

// logprobs reads the log probabilities of a chat's tokens or a completion's.
func logprobs(b json.RawMessage) []float32 {
	var l struct {
		Content []struct {
			Logprob float32 `json:"logprob"`
		} `json:"content"`
		Tokens []float32 `json:"token_logprobs"`
	}
	if wire.IsNull(b) || json.Unmarshal(b, &l) != nil {
		return nil
	}
	out := l.Tokens
	for _, t := range l.Content {
		out = append(out, t.Logprob)
	}
	return out
}

// ids reads token ids.
func ids(b json.RawMessage) []int32 {
	var out []int32
	if wire.IsNull(b) || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}
