package qwen3

import (
	"encoding/json"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	functionOpen   = "<function="
	functionClose  = "</function>"
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
	maxName        = 128 // bytes of a name in the <function=…> form
)

// strict reads the JSON value that s starts with and returns its length, 0 if
// there is none that is complete.
func strict(s string) (json.RawMessage, int) {
	dec := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	if dec.Decode(&raw) != nil {
		return nil, 0
	}
	return raw, int(dec.InputOffset())
}

// objects lists the elements of an array, or the value itself.
func objects(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return []json.RawMessage{raw}
	}
	return list
}

// call reads {"name": …, "arguments": {…}}. Keys are compared exactly, unlike
// those of structs.
func call(raw json.RawMessage) (models.ToolCall, bool) {
	var o map[string]json.RawMessage
	var c models.ToolCall
	if json.Unmarshal(raw, &o) != nil || json.Unmarshal(o["name"], &c.Name) != nil {
		return c, false
	}
	args, ok := o["arguments"]
	if !ok {
		args = o["parameters"]
	}
	c.Name = strings.TrimSpace(c.Name)
	c.Args, ok = object(args)
	return c, ok && c.Name != ""
}

// object makes a JSON object of arguments: none are an empty one, and a string
// holds one.
func object(raw json.RawMessage) (json.RawMessage, bool) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}"), true
	case raw[0] == '{':
		return raw, true
	case raw[0] != '"':
		return nil, false
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	if strings.TrimSpace(s) == "" {
		return json.RawMessage("{}"), true
	}
	v, err := jsonfix.Read(s)
	if err != nil || v.Truncated || v.JSON[0] != '{' {
		return nil, false
	}
	return v.JSON, true
}

// function reads <function=name><parameter=key>value</parameter>…</function>
// at the start of s, and returns its length. Whole is false if it is cut off or
// broken.
func function(s string) (c models.ToolCall, n int, whole bool) {
	c.Name, n = attribute(s, functionOpen)
	if c.Name == "" {
		return c, 0, false
	}
	args, first := []byte{'{'}, true
	for {
		n += blank(s[n:])
		switch {
		case strings.HasPrefix(s[n:], functionClose):
			n += len(functionClose)
		case strings.HasPrefix(s[n:], callClose) && !first:
		default:
			key, skip := attribute(s[n:], parameterOpen)
			if key == "" {
				return c, n, false
			}
			n += skip
			value, skip := parameter(s[n:])
			if skip == 0 {
				return c, n, false
			}
			n += skip
			if !first {
				args = append(args, ", "...)
			}
			first = false
			args = append(appendString(args, key), ": "...)
			if json.Valid([]byte(value)) && value[0] != '"' {
				args = append(args, value...)
			} else {
				args = appendString(args, value)
			}
			continue
		}
		c.Args = append(args, '}')
		return c, n, true
	}
}

// attribute reads the name of a tag such as <function=name>.
func attribute(s, open string) (name string, n int) {
	s, ok := strings.CutPrefix(s, open)
	end := strings.IndexByte(s[:min(len(s), maxName)], '>')
	if !ok || end < 0 {
		return "", 0
	}
	return strings.Trim(s[:end], " \"'"), len(open) + end + 1
}

// parameter reads a value up to the closing tag that another tag follows,
// since the value may hold such a tag itself.
func parameter(s string) (value string, n int) {
	for {
		at := strings.Index(s[n:], parameterClose)
		if at < 0 {
			return "", 0
		}
		end := n + at
		n = end + len(parameterClose)
		next := s[n+blank(s[n:]):]
		if strings.HasPrefix(next, parameterOpen) || strings.HasPrefix(next, functionClose) || strings.HasPrefix(next, callClose) {
			value = strings.TrimSuffix(strings.TrimPrefix(s[:end], "\n"), "\n")
			return value, n
		}
	}
}
