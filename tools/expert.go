package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// expertTool is a tool whose work is done by one of several experts: the
// "model" argument says which.
type expertTool struct {
	spec         Spec
	experts      []models.Model
	instructions string
	finish       func(context.Context, Call, models.Model, *models.Response) (Result, error)
}

// newExpertTool numbers the experts: "answer-1", "answer-2".
func newExpertTool(name, description, alias, instructions string, experts []models.Model) (*expertTool, error) {
	t := &expertTool{instructions: instructions, spec: Spec{Name: name, Description: description, Effects: ReadOnly | Parallel}}
	var aliases []string
	for i, m := range experts {
		if m == nil {
			return nil, &SpecError{Tool: name, Field: fmt.Sprintf("experts[%d]", i), Fix: "the model is nil: pass the value that its constructor returned, and check its error"}
		}
		info := m.Info()
		if info.Name == "" {
			return nil, &SpecError{Tool: name, Field: fmt.Sprintf("experts[%d].Info().Name", i), Fix: "the model has no name: budgets, ledgers and preferences need one"}
		}
		if err := info.Price.Validate(); err != nil {
			return nil, fmt.Errorf("%w (of %s)", err, info.Name)
		}
		a := alias + "-" + strconv.Itoa(i+1)
		aliases = append(aliases, a)
		t.experts = append(t.experts, models.Metered(m))
		t.spec.Choices = append(t.spec.Choices, Choice{Alias: a, Info: info, Names: others(m)})
	}
	enum, err := json.Marshal(aliases)
	if err != nil {
		return nil, err
	}
	t.spec.Schema = json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","enum":` + string(enum) +
		`,"description":"The expert that does it."}},"required":["model"],"additionalProperties":false}`)
	t.spec.Estimate = t.estimate
	return t, nil
}

// others names the models within a composite but the first.
func others(m models.Model) (names []string) {
	first := m.Info().Name
	var walk func(models.Model) models.Model
	walk = func(m models.Model) models.Model {
		if c, ok := m.(models.Composite); ok {
			return c.Map(walk)
		}
		if n := m.Info().Name; n != first && !slices.Contains(names, n) {
			names = append(names, n)
		}
		return m
	}
	walk(m)
	return names
}

// Spec describes the tool.
func (t *expertTool) Spec() Spec { return t.spec }

// expert finds the one that the arguments name.
func (t *expertTool) expert(args json.RawMessage) (models.Model, error) {
	var in struct {
		Model string `json:"model"`
	}
	v, err := jsonfix.Read(string(args))
	if err == nil && !v.Truncated {
		err = json.Unmarshal(v.JSON, &in)
	}
	if v.Truncated || err != nil {
		return nil, &ArgumentsError{Problem: `write {"model": "` + t.spec.Choices[0].Alias + `"}`, Truncated: v.Truncated}
	}
	aliases := make([]string, len(t.experts))
	for i, c := range t.spec.Choices {
		if c.Alias == in.Model {
			return t.experts[i], nil
		}
		aliases[i] = c.Alias
	}
	return nil, &ArgumentsError{Problem: fmt.Sprintf("model is %q: use one of %s", in.Model, strings.Join(aliases, ", "))}
}

// room is how many tokens of workspace the expert takes.
func room(info models.Info, c Call) int {
	said := len(c.Prompt)
	for _, m := range c.History {
		said += len(m.Text)
	}
	if info.Context <= 0 {
		return 24_000
	}
	output := info.MaxOutput
	if output <= 0 || output > info.Context/2 {
		output = min(models.DefaultMaxOutput, info.Context/2)
	}
	return max(info.Context-output-1000-said/bytesPerToken, 500)
}

// estimate ranges from a short workspace and a short answer to all of both.
func (t *expertTool) estimate(c Call) cost.Estimate {
	m, err := t.expert(c.Args)
	if err != nil {
		return cost.Estimate{Name: t.spec.Name, Priced: true}
	}
	all := room(m.Info(), c)
	e := models.Estimate(m, request(t.instructions, c, all))
	if docs, runs, tries := c.Work.Len(); docs+runs+tries > 0 && all > leastContext {
		e.Floor = models.Estimate(m, request(t.instructions, c, leastContext)).Floor
	}
	e.Name = t.spec.Name
	return e
}

// Call asks the expert, with as much of the workspace as the budget allows.
func (t *expertTool) Call(ctx context.Context, c Call) (Result, error) {
	m, err := t.expert(c.Args)
	if err != nil {
		return Result{}, err
	}
	tokens := room(m.Info(), c)
	r := request(t.instructions, c, tokens)
	for left := cost.FromContext(ctx).Left(); tokens > leastContext; tokens = max(tokens/2, leastContext) {
		if e := models.Estimate(m, r); e.Floor.USD <= left.USD && e.Floor.Tokens <= left.Tokens {
			break
		}
		r = request(t.instructions, c, max(tokens/2, leastContext))
	}
	r.OnDelta = c.OnDelta
	resp, err := m.Generate(ctx, r)
	if err != nil {
		return Result{}, err
	}
	return t.finish(ctx, c, m, resp)
}

// Answer is the tool "answer": an expert gives a final answer from what was
// gathered. Each expert is one offer, metered. In the trained dialect a call to
// it ends the run. With no experts the tool cannot be made.
func Answer(experts ...models.Model) (Tool, error) {
	if len(experts) == 0 {
		return nil, &SpecError{Tool: "answer", Field: "experts", Fix: "pass at least one model"}
	}
	t, err := newExpertTool("answer", "Give the final answer to the problem, from what is known so far.", "answer",
		"Solve the problem. Use the material above it where it helps, and cite its numbers like [1] where you rely on it. "+
			"Think step by step, then write the final answer, and nothing else, between <answer> and </answer>.", experts)
	if err != nil {
		return nil, err
	}
	t.spec.Effects |= Answers
	t.finish = func(_ context.Context, c Call, m models.Model, r *models.Response) (Result, error) {
		text, whole := final(r.Text)
		if text == "" {
			return Result{}, fmt.Errorf("tools: %s answered with no text (it stopped for: %s)", m.Info().Name, r.Finish)
		}
		a := Attempt{By: m.Info().Name, Text: text, Sources: cited(r.Text, c.Work)}
		if r.Finish == models.FinishLength && !whole {
			a.Truncated, a.Confidence = true, cutOff
		}
		return Result{Text: text, Attempts: []Attempt{a}, Truncated: a.Truncated}, nil
	}
	return t, nil
}

// cutOff is the confidence in an answer that ended at the output cap.
const cutOff = 0.1

// final takes the answer out of the reasoning around it, and says whether it
// was marked from beginning to end.
func final(text string) (answer string, whole bool) {
	if i := strings.LastIndex(text, "<answer>"); i >= 0 {
		inner, _, closed := strings.Cut(text[i+len("<answer>"):], "</answer>")
		return strings.TrimSpace(inner), closed
	}
	if i := strings.LastIndex(text, `\boxed{`); i >= 0 {
		depth, rest := 1, text[i+len(`\boxed{`):]
		for j := range len(rest) {
			switch rest[j] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return strings.TrimSpace(rest[:j]), true
				}
			}
		}
	}
	return strings.TrimSpace(text), false
}

// cited lists the documents whose numbers the text cites.
func cited(text string, w Workspace) []string {
	var ids []string
	for i, d := range w.Documents() {
		if strings.Contains(text, "["+strconv.Itoa(i+1)+"]") {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// Reason is the tool "enhance_reasoning": an expert writes a program that
// yields intermediate results, and i runs it.
func Reason(i Interpreter, experts ...models.Model) (Tool, error) {
	const name = "enhance_reasoning"
	switch {
	case i == nil:
		return nil, &SpecError{Tool: name, Field: "interpreter", Fix: "pass what runs the code"}
	case len(experts) == 0:
		return nil, &SpecError{Tool: name, Field: "experts", Fix: "pass at least one model"}
	}
	lang := i.Language()
	t, err := newExpertTool(name, "Analyse the problem, write code for it, run the code and return intermediate results.", "reasoner",
		"Write one self-contained "+lang+" program, in a ```"+lang+" block, whose output brings the problem nearer to its solution. "+
			"It has no network and no files. Print what you compute. Do not state the final answer.", experts)
	if err != nil {
		return nil, err
	}
	t.spec.Sources = []string{lang}
	t.finish = func(ctx context.Context, _ Call, m models.Model, r *models.Response) (Result, error) {
		code, ok := fenced(r.Text, lang)
		switch {
		case ok && r.Finish == models.FinishLength:
			return Result{}, errors.New("tools: the program was cut off at the output cap: half a program is not run")
		case !ok:
			return Result{Text: strings.TrimSpace(r.Text), Truncated: r.Finish == models.FinishLength}, nil
		}
		run, err := i.Run(ctx, code)
		if err != nil {
			return Result{}, err
		}
		text := run.Output
		if run.Err != "" {
			text += "\n" + run.Err
		}
		return Result{Text: text, Runs: []CodeRun{run}, Truncated: run.Truncated}, nil
	}
	return t, nil
}

// fenced returns the last whole code block of that language, or of none.
func fenced(text, lang string) (code string, ok bool) {
	lang = strings.ToLower(lang)
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "```")
		if !found {
			return code, ok
		}
		tag, body, found := strings.Cut(after, "\n")
		block, next, closed := strings.Cut(body, "```")
		if !found || !closed {
			return code, ok
		}
		if tag = strings.ToLower(strings.TrimSpace(tag)); tag == "" && !ok || tag == lang || shortNames[tag] == lang {
			code, ok = block, true
		}
		rest = next
	}
}

// shortNames are other names of languages that models put on code blocks.
var shortNames = map[string]string{"js": "javascript", "mjs": "javascript", "node": "javascript", "py": "python", "python3": "python"}
