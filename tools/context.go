package tools

import (
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Bytes that stand for a token where text is cut to fit: no tokenizer ships.
const bytesPerToken = 4

// leastContext is the workspace that an expert is shown at the least, in tokens.
const leastContext = 4000

// context writes what the run has gathered for an expert, the newest and best
// documents first, in about that many tokens. Documents are numbered so that
// answers can cite them.
func (w Workspace) context(tokens int) string {
	var b strings.Builder
	left := tokens * bytesPerToken
	add := func(format string, text string, args ...any) bool {
		if left < 200 {
			return false
		}
		if len(text) > left {
			text = strings.ToValidUTF8(text[:left], "") + " …"
		}
		n := b.Len()
		fmt.Fprintf(&b, format, append(args, text)...)
		left -= b.Len() - n
		return true
	}
	// Code first: it is short, and what it printed was computed for this task.
	for _, r := range w.Runs() {
		out := r.Output
		if r.Err != "" {
			out += "\n" + r.Err
		}
		if !add("Program (%s):\n%s\n", r.Code, r.Language) || !add("Its output:\n%s\n\n", out) {
			break
		}
	}
	for i, d := range w.Documents() {
		if !add("[%d] %s\n%s\n\n", d.Text, i+1, d.Title) {
			break
		}
	}
	for _, a := range w.Attempts() {
		if !add("Answer proposed by %s: %s\n\n", a.Text, a.By) {
			break
		}
	}
	return b.String()
}

// request asks an expert in a fresh chat: instructions, then what was gathered
// and the problem.
func request(instructions string, c Call, tokens int) *models.Request {
	user := "Problem: " + c.Prompt
	if ctx := c.Work.context(tokens); ctx != "" {
		user = ctx + user
	}
	chat := append([]models.Message{{Role: models.System, Text: instructions}}, c.History...)
	return &models.Request{Messages: append(chat, models.Message{Role: models.User, Text: user})}
}
