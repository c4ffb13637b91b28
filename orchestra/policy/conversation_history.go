package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	// resultTokens caps what one call puts into a conversation.
	resultTokens = 4000
	// stub is what is left of an old result that has no room any more, in
	// characters.
	stub = 200
)

// chat is the conversation so far. Newest is the index of the first message that
// must not be shortened.
func (s *State) chat(system string, each int) (ms []models.Message, newest int) {
	history := s.Messages
	for len(history) > 0 && history[0].Role == models.System { // templates know one system message, at the start
		system += "\n\n" + history[0].Text
		history = history[1:]
	}
	ms = append(ms, models.Message{Role: models.System, Text: system})
	ms = append(ms, history...)
	taken := map[string]bool{}
	for _, m := range history {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	newest = len(ms)
	ms = append(ms, models.Message{Role: models.User, Text: s.Prompt})
	for i := range s.Turns {
		t := &s.Turns[i]
		if len(t.Done) == 0 {
			continue
		}
		newest = len(ms)
		said := models.Message{Role: models.Assistant, Text: t.Decision.Text, Reasoning: t.Decision.Reasoning}
		var results []models.Message
		for j := range t.Done {
			o := &t.Done[j]
			id := o.ID
			for n := j + 1; id == "" || taken[id]; n++ { // of an earlier run, in the history
				id = "turn-" + strconv.Itoa(t.N) + "-" + strconv.Itoa(n)
			}
			taken[id] = true
			said.Calls = append(said.Calls, models.ToolCall{ID: id, Name: o.Call.Tool, Args: o.Call.Args})
			results = append(results, models.Message{Role: models.ToolRole, CallID: id, Text: resultText(o, max(each/len(t.Done), 100))})
		}
		ms = append(append(ms, said), results...)
	}
	return ms, newest
}

// resultText is what became of a call, in at most that many tokens.
func resultText(o *Outcome, tokens int) string {
	if e := o.Err; e != nil {
		text := "The call failed: " + string(e.Kind)
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return shortened(strings.ToValidUTF8(text, "\uFFFD"), min(tokens, 500))
	}
	r := &o.Result
	var b strings.Builder
	shown := func(text string) bool { return r.Text == "" || strings.Contains(text, strings.TrimSpace(r.Text)) }
	told := false // the text says nothing beyond the rest
	for _, x := range r.Runs {
		output := x.Output
		if x.Err != "" {
			output += "\n" + x.Err
		}
		told = told || shown(output)
		fmt.Fprintf(&b, "```%s\n%s\n```\n```output\n%s\n```\n", x.Language, x.Code, output)
	}
	for _, a := range r.Attempts {
		told = told || shown(a.Text)
		b.WriteString("Answer")
		if a.By != "" {
			b.WriteString(" of " + a.By)
		}
		b.WriteString(": " + a.Text + "\n")
	}
	for _, d := range r.Documents {
		told = told || shown(d.Text)
		b.WriteString("Document")
		if d.Title != "" {
			b.WriteString(" " + strconv.Quote(d.Title))
		}
		if d.Untrusted {
			b.WriteString(" (from the open web)")
		}
		b.WriteString(": " + head(d.Text, wordings[FRAMES].form.doc) + "\n")
	}
	text := strings.TrimSpace(b.String())
	if !told && r.Text != "" {
		text = strings.TrimSpace(r.Text + "\n" + text)
	}
	if text == "" {
		text = "(nothing came back)"
	}
	text = shortened(strings.ToValidUTF8(text, "\uFFFD"), tokens)
	if r.Truncated {
		text += "\n(It was cut off.)"
	}
	return text
}

// shortened is the start of a text, in about that many tokens.
func shortened(text string, tokens int) string {
	left := 4 * tokens
	for i, r := range text {
		if left -= quarters(r); left < 0 {
			return text[:i] + " … (shortened)"
		}
	}
	return text
}

// room is how many tokens messages and tools may have; 0 = unknown. The margin
// is for the estimate's error and a server's own markup.
func (sp *speaker) room() int {
	if sp.info.Context <= 0 {
		return 0
	}
	return max(sp.info.Context-sp.maxOutput-sp.info.Context/16, 1)
}

// resultTokens caps the results of one turn: half of the room, so that the
// newest turn can stay whole.
func (sp *speaker) resultTokens() int {
	if room := sp.room(); room > 0 {
		return min(resultTokens, room/2)
	}
	return resultTokens
}

// fit shortens ms, oldest first, until it fits. From newest on nothing is
// shortened, nor is what people wrote.
func (sp *speaker) fit(ms []models.Message, newest int, defs []models.ToolDef) error {
	room := sp.room()
	if room == 0 {
		return nil
	}
	total := 0
	for _, d := range defs {
		total += estimate(d.Name) + estimate(d.Description) + estimate(string(d.Schema)) + 24
	}
	for i := range ms {
		total += size(&ms[i])
	}
	for i := 0; i < newest && total > room; i++ {
		m := &ms[i]
		before := size(m)
		m.Reasoning = ""
		if m.Role == models.ToolRole {
			if short := head(m.Text, stub); len(short) < len(m.Text) {
				m.Text = short + " … (shortened)"
			}
		}
		total += size(m) - before
	}
	if total > room {
		return &ConversationError{Model: sp.info.Name, Err: models.ErrContextOverflow,
			Fix: fmt.Sprintf("has a context of %d tokens, and about %d are needed beside %d of output: shorten Task.Prompt, Task.Messages or the descriptions of tools, lower WithMaxOutput, or use a model with a larger context", sp.info.Context, total, sp.maxOutput)}
	}
	return nil
}

// size is about how many tokens a message has.
func size(m *models.Message) int {
	n := estimate(m.Text) + estimate(m.Reasoning) + 8
	for _, c := range m.Calls {
		n += estimate(c.Name) + estimate(string(c.Args)) + 16
	}
	return n
}
