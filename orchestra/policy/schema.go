package policy

import (
	"bytes"
	"encoding/json"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// maxShape is how deep a grammar follows a schema; what is deeper may be
// anything.
const maxShape = 16

// member is a key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members lists an object in its order. Anything else has none.
func members(raw json.RawMessage) (list []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		key, isKey := t.(string)
		var m member
		if err != nil || !isKey || d.Decode(&m.value) != nil {
			return nil, false
		}
		m.key = key
		list = append(list, m)
	}
	return list, true
}

// appendJSON appends v, a value that always marshals.
func appendJSON(dst []byte, v any) []byte {
	b, _ := json.Marshal(v) // strings and lists of them always marshal
	return append(dst, b...)
}

// appendKey appends a key and its colon, and a comma before it where one is due.
func appendKey(dst []byte, key string) []byte {
	if c := dst[len(dst)-1]; c != '{' {
		dst = append(dst, ',')
	}
	return append(appendJSON(dst, key), ':')
}

// edited is the object with one value replaced, or added at the end. The other
// keys stay as they are, in their order.
func edited(raw json.RawMessage, key string, value func(old json.RawMessage) json.RawMessage) json.RawMessage {
	list, _ := members(raw)
	b, found := []byte{'{'}, false
	for _, m := range list {
		v := m.value
		if m.key == key {
			if found {
				continue
			}
			v, found = value(v), true
		}
		b = append(appendKey(b, m.key), v...)
	}
	if !found {
		b = append(appendKey(b, key), value(nil)...)
	}
	return append(b, '}')
}

// withAliases cuts the "model" argument of a tool's schema to these aliases.
func withAliases(schema json.RawMessage, aliases []string) json.RawMessage {
	return edited(schema, "properties", func(p json.RawMessage) json.RawMessage {
		return edited(p, "model", func(m json.RawMessage) json.RawMessage {
			return edited(m, "enum", func(json.RawMessage) json.RawMessage { return appendJSON(nil, aliases) })
		})
	})
}

// offeredAliases lists the experts that are on offer for a tool, in the order of
// registration, and says whether the tool is offered at all.
func offeredAliases(s *State, sp *tools.Spec) (aliases []string, offered bool) {
	on := map[string]bool{}
	for i := range s.Offers {
		if s.Offers[i].Tool == sp.Name {
			on[s.Offers[i].Choice] = true
		}
	}
	for _, c := range sp.Choices {
		if on[c.Alias] {
			aliases = append(aliases, c.Alias)
		}
	}
	if len(sp.Choices) > 0 {
		return aliases, len(aliases) > 0
	}
	return nil, len(on) > 0
}

// appendShape appends a tool's schema as a grammar needs it: what may stand
// where. Rules on values (pattern, format, bounds) and references are left out,
// since servers refuse many of them and the tool checks its arguments itself; so
// all that the tool takes still fits.
func appendShape(dst []byte, schema json.RawMessage) []byte {
	list, _ := members(schema)
	typed := false
	for _, m := range list {
		if m.key == "$ref" || m.key == "type" && string(m.value) != `"object"` {
			return append(dst, `{"type":"object"}`...)
		}
		typed = typed || m.key == "type"
	}
	if !typed {
		list = append([]member{{"type", json.RawMessage(`"object"`)}}, list...)
	}
	return appendShapeOf(dst, list, 0)
}

// appendShapeOf is appendShape of the keywords of one schema.
func appendShapeOf(dst []byte, list []member, depth int) []byte {
	for _, m := range list {
		if m.key == "$ref" || depth > maxShape {
			return append(dst, "{}"...)
		}
	}
	dst = append(dst, '{')
	either := false
	for _, m := range list {
		switch m.key {
		case "type", "enum", "const", "required":
			dst = appendCompact(appendKey(dst, m.key), m.value)
		case "properties":
			of, ok := members(m.value)
			if !ok {
				continue
			}
			dst = append(appendKey(dst, m.key), '{')
			for _, p := range of {
				dst = appendSchema(appendKey(dst, p.key), p.value, depth)
			}
			dst = append(dst, '}')
		case "additionalProperties":
			if v := string(m.value); v == "true" || v == "false" {
				dst = append(appendKey(dst, m.key), v...)
				continue
			}
			dst = appendSchema(appendKey(dst, m.key), m.value, depth)
		case "items":
			dst = appendSchema(appendKey(dst, m.key), m.value, depth)
		case "anyOf", "oneOf":
			var of []json.RawMessage
			if either || json.Unmarshal(m.value, &of) != nil || len(of) == 0 {
				continue
			}
			either = true
			dst = append(appendKey(dst, "anyOf"), '[')
			for i, o := range of {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendSchema(dst, o, depth)
			}
			dst = append(dst, ']')
		}
	}
	return append(dst, '}')
}

// appendSchema is appendShape of a schema within one. A boolean one becomes
// "anything".
func appendSchema(dst []byte, raw json.RawMessage, depth int) []byte {
	list, _ := members(raw)
	return appendShapeOf(dst, list, depth+1)
}

// appendCompact appends JSON without the space in it.
func appendCompact(dst []byte, raw json.RawMessage) []byte {
	b := bytes.NewBuffer(dst)
	if json.Compact(b, raw) != nil {
		return append(dst, "null"...) // cannot be: it was decoded
	}
	return b.Bytes()
}
