package openai

import (
	"encoding/json"
	"math"
	"strconv"
)

// reply is a whole body, or one chunk of a stream. Servers differ in the types
// of many fields; those stay raw until they are read.
type reply struct {
	Object    lenient         `json:"object"`
	Model     lenient         `json:"model"`
	Choices   []choice        `json:"choices"`
	Usage     json.RawMessage `json:"usage"`
	Service   lenient         `json:"service_tier"` // that served the call
	Error     json.RawMessage `json:"error"`
	PromptIDs json.RawMessage `json:"prompt_token_ids"` // vLLM, chat
}

type choice struct {
	Index     json.RawMessage `json:"index"`
	Delta     *content        `json:"delta"`
	Message   *content        `json:"message"`
	Text      string          `json:"text"` // completions
	Finish    lenient         `json:"finish_reason"`
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
	Refusal          lenient         `json:"refusal"`
	Calls            []callIn        `json:"tool_calls"`
	FunctionCall     *functionIn     `json:"function_call"` // before tool_calls
}

type callIn struct {
	Index    json.RawMessage `json:"index"`
	ID       lenient         `json:"id"`
	Function functionIn      `json:"function"`
}

type functionIn struct {
	Name      lenient         `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// lenient is a string for which numbers are taken as well, and all else as empty.
type lenient string

// UnmarshalJSON takes what there is.
func (l *lenient) UnmarshalJSON(b []byte) error {
	*l = lenient(scalar(b))
	return nil
}

// scalar returns the text of a JSON string or number, and "" for all else.
func scalar(b json.RawMessage) string {
	if len(b) == 0 {
		return ""
	}
	switch c := b[0]; {
	case c == '"':
		var s string
		_ = json.Unmarshal(b, &s)
		return s
	case c == '-' || '0' <= c && c <= '9':
		return string(b)
	}
	return ""
}

// isNull reports whether a field is missing or null.
func isNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// texts returns the text and the reasoning of a message's content, which is
// null, a string, or an array of parts. ok is false if it is none of them.
func texts(b json.RawMessage) (text, reasoning string, ok bool) {
	if isNull(b) {
		return "", "", true
	}
	if b[0] == '"' {
		return scalar(b), "", true
	}
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return "", "", false
	}
	for _, raw := range list {
		var part struct {
			Text     lenient         `json:"text"`
			Refusal  lenient         `json:"refusal"`
			Thinking json.RawMessage `json:"thinking"` // Mistral: a string or parts again
		}
		if raw[0] == '"' {
			text += scalar(raw)
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
	case isNull(b):
		return ""
	case b[0] == '"':
		return scalar(b)
	}
	return string(b)
}

// integer reads a count; ok is false if there is none.
func integer(b json.RawMessage) (n int64, ok bool) {
	s := scalar(b)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64) // 12.0, and what overflows
	switch {
	case s == "" || math.IsNaN(f) || err != nil && !math.IsInf(f, 0):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// logprobs reads the log probabilities of a chat's tokens or a completion's.
func logprobs(b json.RawMessage) []float32 {
	var l struct {
		Content []struct {
			Logprob float32 `json:"logprob"`
		} `json:"content"`
		Tokens []float32 `json:"token_logprobs"`
	}
	if isNull(b) || json.Unmarshal(b, &l) != nil {
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
	if isNull(b) || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}
