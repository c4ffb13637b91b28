package qwen3

import (
	"encoding/json"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// MaxCalls bounds the calls of one output. What comes after is Malformed.
const MaxCalls = 64

// Parsed is an output, taken apart.
type Parsed struct {
	Reasoning string
	Text      string            // what is neither reasoning nor a call, trimmed
	Calls     []models.ToolCall // Args are always a JSON object
	Malformed []string          // what was meant as a call and cannot be read, as written
	Truncated bool              // the output ended inside a call, or inside thinking without one
}

// Parse takes an output of a model apart. It takes linear time, and repairs
// broken JSON but never completes what was cut off.
//
// Calls are what stands in <tool_call> blocks (JSON, or the <function=name>
// form of Qwen's coder models). Those inside of thinking are only thoughts,
// unless the thinking never ends, or nothing follows it: then the model forgot
// to close it. JSON objects in text are calls only if they are the whole text,
// alone or in a code fence, with arguments and names for which known returns
// true; a <function=…> outside of a block needs a known name too. In blocks,
// unknown names are left to the caller.
func Parse(output string, known func(name string) bool) Parsed {
	output = strings.ToValidUTF8(output, "\uFFFD")
	for _, end := range []string{imEnd, endOfText} {
		output, _, _ = strings.Cut(output, end)
	}
	if known == nil {
		known = func(string) bool { return false }
	}
	sc := scanner{s: output, known: known}
	sc.run()

	var p Parsed
	var text strings.Builder
	var thoughts []*piece
	in, open := sc.starts()
	for i := range sc.pieces {
		switch pc := &sc.pieces[i]; {
		case pc.kind == thinkStart:
			in = true
		case pc.kind == thinkEnd:
			in = false
		case in && (pc.kind == prose || i < open):
			thoughts = append(thoughts, pc)
		case pc.kind == prose:
			text.WriteString(pc.raw)
		default:
			p.take(pc)
		}
	}
	p.Text = strings.TrimSpace(text.String())
	if len(p.Calls) == 0 && len(p.Malformed) == 0 && p.Text == "" {
		for _, pc := range thoughts {
			if len(pc.calls) > 0 {
				p.take(&piece{calls: pc.calls})
				pc.raw = ""
			}
		}
	}
	var reasoning strings.Builder
	for _, pc := range thoughts {
		reasoning.WriteString(pc.raw)
	}
	p.Reasoning = strings.TrimSpace(reasoning.String())
	if len(p.Calls) == 0 && len(p.Malformed) == 0 {
		p.Truncated = in
		p.bare(known)
	}
	return p
}

func (p *Parsed) take(pc *piece) {
	for _, c := range pc.calls {
		if len(p.Calls) < MaxCalls {
			p.Calls = append(p.Calls, c)
		} else {
			p.Malformed = append(p.Malformed, `{"name": `+string(appendString(nil, c.Name))+`, "arguments": `+string(c.Args)+`}`)
		}
	}
	p.Malformed = append(p.Malformed, pc.bad...)
	p.Truncated = p.Truncated || pc.cut
}

// bare makes calls of a text that is nothing else.
func (p *Parsed) bare(known func(string) bool) {
	body := p.Text
	if fenced, ok := strings.CutPrefix(body, "```"); ok {
		_, fenced, _ = strings.Cut(fenced, "\n")
		body = strings.TrimSpace(strings.TrimSuffix(fenced, "```"))
	}
	if !strings.HasPrefix(body, "{") {
		return
	}
	var all []json.RawMessage
	rest := body
	for len(all) < MaxCalls {
		raw, n := strict(rest)
		if n == 0 {
			break
		}
		all, rest = append(all, raw), strings.TrimSpace(rest[n:])
	}
	cut := false
	if len(all) == 0 {
		v, err := jsonfix.Read(body)
		if err != nil || !v.Truncated && !strings.HasSuffix(body, "}") {
			return
		}
		all, rest, cut = append(all, v.JSON), "", v.Truncated
	}
	var calls []models.ToolCall
	for _, raw := range all {
		var o map[string]json.RawMessage
		var name string
		if json.Unmarshal(raw, &o) != nil || json.Unmarshal(o["name"], &name) != nil || !known(name) {
			return
		}
		c, ok := call(raw)
		if !cut && (!ok || o["arguments"] == nil && o["parameters"] == nil) {
			return
		}
		calls = append(calls, c)
	}
	switch {
	case cut:
		p.Malformed, p.Text, p.Truncated = []string{body}, "", true
	case rest == "":
		p.Calls, p.Text = calls, ""
	}
}
