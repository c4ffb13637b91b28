package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// line is one line of a stream of /api/generate or /api/chat. It is used again
// for the next one.
type line struct {
	text, thinking []byte
	model          []byte
	done           bool
	reason         string
	calls          []callIn
	input, output  int64 // tokens; 0 = not told
	cached         int64 // part of input
	logprobs       []float32
	fault          string // what the server says went wrong
}

// callIn is a call as servers send it.
type callIn struct {
	ID       wire.Lenient `json:"id"`
	Function struct {
		Name      wire.Lenient    `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

var (
	errNoObject = errors.New("a line of the reply is not a JSON object")
	errLine     = errors.New("a line of the reply has a field of the wrong type")
)

// parse reads a line. Nearly all of them are a piece of text in a form that
// fast knows; the others are read by encoding/json.
func (l *line) parse(b []byte) error {
	l.clear()
	if l.fast(b) {
		return nil
	}
	l.clear()
	return l.slow(b)
}

func (l *line) clear() {
	*l = line{text: l.text[:0], thinking: l.thinking[:0], model: l.model[:0]}
}

// slow reads any line. Fields are looked at one by one: servers differ, and one
// that is odd should not hide the others.
func (l *line) slow(b []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil || fields == nil {
		return errNoObject
	}
	known, wrong := false, ""
	for name, v := range fields {
		if wire.IsNull(v) {
			continue
		}
		ok := true
		switch name {
		case "model":
			l.model = append(l.model[:0], wire.Scalar(v)...)
		case "response":
			known, ok = true, appendText(&l.text, v)
		case "thinking":
			known, ok = true, appendText(&l.thinking, v)
		case "message":
			known, ok = true, l.message(v)
		case "done":
			known, ok = true, json.Unmarshal(v, &l.done) == nil
		case "done_reason":
			l.reason = wire.Scalar(v)
		case "tool_calls":
			ok = json.Unmarshal(v, &l.calls) == nil
		case "prompt_eval_count":
			l.input = count(v)
		case "prompt_eval_cached_count":
			l.cached = count(v)
		case "eval_count":
			l.output = count(v)
		case "logprobs":
			l.logprobs = logprobs(v)
		default:
			// Calls that could not be read came as "error parsing tool call".
			if s := said(v); s != "" && strings.Contains(strings.ToLower(name), "error") && (l.fault == "" || name == "error") {
				l.fault = s
			}
		}
		if !ok {
			wrong = name
		}
	}
	switch {
	case l.fault != "":
	case wrong != "":
		return fmt.Errorf("%w: %s", errLine, wrong)
	case !known:
		l.fault = string(b)
	}
	return nil
}

// message reads what /api/chat wraps the text in.
func (l *line) message(b json.RawMessage) bool {
	var m struct {
		Content  json.RawMessage `json:"content"`
		Thinking json.RawMessage `json:"thinking"`
		Calls    json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(b, &m) != nil || !appendText(&l.text, m.Content) || !appendText(&l.thinking, m.Thinking) {
		return false
	}
	return wire.IsNull(m.Calls) || json.Unmarshal(m.Calls, &l.calls) == nil
}

// appendText appends a JSON string, or nothing for null.
func appendText(to *[]byte, b json.RawMessage) bool {
	var s string
	if !wire.IsNull(b) && json.Unmarshal(b, &s) != nil {
		return false
	}
	*to = append(*to, s...)
	return true
}

// said is the text of an error, whatever its type; "" if there is none.
func said(b json.RawMessage) string {
	switch string(b) {
	case "", "null", "false", `""`, "{}", "[]":
		return ""
	}
	if s := wire.Scalar(b); s != "" {
		return s
	}
	var object struct {
		Message wire.Lenient `json:"message"`
	}
	if json.Unmarshal(b, &object) == nil && object.Message != "" {
		return string(object.Message)
	}
	return string(b)
}

// count reads a number of tokens; what is none, or negative, is 0.
func count(b json.RawMessage) int64 {
	n, err := strconv.ParseInt(wire.Scalar(b), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// logprobs reads the log probabilities of a line's tokens.
func logprobs(b json.RawMessage) []float32 {
	var list []struct {
		Logprob float32 `json:"logprob"`
	}
	if json.Unmarshal(b, &list) != nil {
		return nil
	}
	out := make([]float32, len(list))
	for i := range list {
		out[i] = list[i].Logprob
	}
	return out
}
