package openai

import (
	"encoding/json"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// joiner puts tool calls together from the deltas of a stream.
//
// Servers are careless with indexes and ids: both may be missing, negative, the
// same for all calls, or repeated with each delta. A delta belongs to the newest
// call with its id, else to the newest with its index, else to the newest, unless
// it is evidently the start of another.
type joiner struct {
	calls []*joined
}

type joined struct {
	index    int64 // -1 = none
	id, name string
	args     strings.Builder
}

// add takes the tool calls of one chunk and returns how many bytes they hold.
func (j *joiner) add(in []callIn) (size int) {
	for i, c := range in {
		index, ok := integer(c.Index)
		if !ok || index < 0 {
			index = -1
			if len(in) > 1 && c.ID == "" { // the position is all there is
				index = int64(i)
			}
		}
		size += j.addOne(index, string(c.ID), string(c.Function.Name), argumentText(c.Function.Arguments))
	}
	return size
}

func (j *joiner) addOne(index int64, id, name, args string) (size int) {
	if id == "" && name == "" && args == "" {
		return 0
	}
	size = len(id) + len(name) + len(args)
	c := j.find(index, id)
	if c == nil || c.ended(id, name, args) {
		c = &joined{index: index}
		j.calls = append(j.calls, c)
		size += 128 // so that empty calls count as well
	}
	if c.id == "" {
		c.id = id
	}
	if c.name == "" {
		c.name = name
	}
	c.args.WriteString(args)
	return size
}

// find returns the call that a delta may belong to.
func (j *joiner) find(index int64, id string) *joined {
	newest := func(f func(*joined) bool) *joined {
		for i := len(j.calls) - 1; i >= 0; i-- {
			if f(j.calls[i]) {
				return j.calls[i]
			}
		}
		return nil
	}
	if id != "" {
		if c := newest(func(c *joined) bool { return c.id == id && (c.index == index || index < 0 || c.index < 0) }); c != nil {
			return c
		}
	}
	if index >= 0 {
		return newest(func(c *joined) bool { return c.index == index })
	}
	return newest(func(*joined) bool { return true })
}

// ended reports whether a delta with these parts cannot go on with c.
func (c *joined) ended(id, name, args string) bool {
	switch {
	case id != "" && c.id != "" && id != c.id, name != "" && c.name != "" && name != c.name:
		return true
	case name == "" || !strings.HasPrefix(strings.TrimSpace(args), "{"):
		return false
	}
	// A new object after a complete one cannot be its continuation.
	had := strings.TrimSpace(c.args.String())
	return strings.HasSuffix(had, "}") && json.Valid([]byte(had))
}

// list returns the calls.
func (j *joiner) list() []models.ToolCall {
	var out []models.ToolCall
	for _, c := range j.calls {
		out = append(out, toolCall(c.id, c.name, c.args.String()))
	}
	return out
}

// whole returns the calls of a message that is not streamed: each entry is one.
func whole(c *content) []models.ToolCall {
	var out []models.ToolCall
	for _, t := range c.Calls {
		args := argumentText(t.Function.Arguments)
		if t.ID != "" || t.Function.Name != "" || args != "" {
			out = append(out, toolCall(string(t.ID), string(t.Function.Name), args))
		}
	}
	if f := c.FunctionCall; f != nil && len(out) == 0 {
		out = append(out, toolCall("", string(f.Name), argumentText(f.Arguments)))
	}
	return out
}

func toolCall(id, name, args string) models.ToolCall {
	t := models.ToolCall{ID: id, Name: name}
	if args != "" {
		t.Args = json.RawMessage(args)
	}
	return t
}
