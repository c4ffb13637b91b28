package policy

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy/internal/qwen3"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Wording is one of the prompts that the paper's authors used.
type Wording uint8

const (
	// FRAMES is the question of the FRAMES evaluation. Documents end in " ..."
	// and the code section stands there only with code, as in HLE.
	FRAMES Wording = iota
	// HLE is the prompt of the HLE evaluation: 1,200 characters a document, and
	// the stray quote at the end.
	HLE
	// Training is the prompt of training, spelled as there, without a heading for
	// code.
	Training
)

// wordings are what released scripts say; they differ in more than words.
var wordings = [...]struct {
	name, system, end string
	form              contextForm
}{
	FRAMES:   {"frames", "You are good at using tools.", "Choose an appropriate tool.", contextForm{doc: 4000, after: " ...", code: codeHeading, codeCap: 12000, cap: 24000}},
	HLE:      {"hle", "You are good at using tools.", "Choose an appropriate tool.'", contextForm{doc: 1200, after: " ...", code: codeHeading, codeCap: 12000, cap: 27000}},
	Training: {"training", "You are good at using tools. ", "Choose an approriate tool.", contextForm{doc: 4000, codeCap: 16000, cap: 24000}},
}

const codeHeading = "\npython code and execution outputs:\n"

// prompt renders a State. What a small context leaves beside the output, the
// task and the tools goes to what was gathered.
func (t *trained) prompt(s *State) string {
	w := wordings[t.wording]
	question := s.Prompt
	if say := s.Prefer.Describe(); say != "" {
		question += " " + say
	}
	if t.wording == HLE { // the question counts there
		w.form.cap = max(w.form.cap-estimate(question), 0)
	}
	render := func(context string) string {
		return qwen3.Render([]models.Message{
			{Role: models.System, Text: w.system},
			{Role: models.User, Text: "Problem: " + question + "\n\n" + context + "\n\n" + w.end},
		}, toolDefs(s), qwen3.Options{NoThinking: t.noThink})
	}
	if t.info.Context > 0 {
		room := t.info.Context - t.maxOutput - estimate(render(""))
		w.form.cap = max(min(w.form.cap, room), 0)
		w.form.codeCap = min(w.form.codeCap, w.form.cap)
	}
	return render(w.form.context(s))
}

// toolDefs lists the tools that are offered, in the order of registration.
func toolDefs(s *State) []models.ToolDef {
	offers := map[string][]*Offer{}
	for i := range s.Offers {
		o := &s.Offers[i]
		offers[o.Tool] = append(offers[o.Tool], o)
	}
	var defs []models.ToolDef
	for i := range s.Tools {
		sp := &s.Tools[i]
		list := offers[sp.Name]
		if len(list) == 0 {
			continue
		}
		d := models.ToolDef{Name: sp.Name, Description: sp.Description, Schema: sp.Schema}
		if len(sp.Choices) > 0 {
			d.Schema = choiceSchema(sp, list)
		}
		defs = append(defs, d)
	}
	return defs
}

// choiceSchema is the one parameter of a tool that experts do the work of.
func choiceSchema(sp *tools.Spec, offers []*Offer) json.RawMessage {
	var names []string
	var table strings.Builder
	for _, c := range sp.Choices {
		for _, o := range offers {
			if o.Choice != c.Alias {
				continue
			}
			names = append(names, c.Alias)
			latency := o.Latency
			if latency <= 0 {
				latency = c.Info.Latency
			}
			table.WriteString("\n" + c.Alias + " | " + rate(c.Info.Price.Input) + " | " + rate(c.Info.Price.Output) + " | " + seconds(latency))
			break
		}
	}
	about, _ := json.Marshal("Which expert to use. Choices: " + strings.Join(names, ", ") +
		".\nModel | price per million input tokens | price per million output tokens | average latency" + table.String())
	return json.RawMessage(`{"properties":{"model":{"description":` + string(about) + `,"type":"string"}},"required":["model"],"title":"parameters","type":"object"}`)
}

func rate(r cost.Rate) string {
	a, known := r.Amount()
	if !known {
		return "unknown"
	}
	return a.String()
}

func seconds(d time.Duration) string {
	if d <= 0 {
		return "unknown"
	}
	return strconv.FormatInt(max(int64(d.Round(time.Second)/time.Second), 1), 10) + "s"
}

// spec finds a tool by name.
func spec(s *State, name string) *tools.Spec {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return &s.Tools[i]
		}
	}
	return nil
}

func answers(sp *tools.Spec) bool { return sp != nil && sp.Effects&tools.Answers != 0 }

// firstValid picks the first call that is on offer. If none is, it is the first
// one, which the loop answers with why not.
func firstValid(s *State, calls []models.ToolCall) []models.ToolCall {
	for i, c := range calls {
		var o map[string]json.RawMessage
		var model string
		if json.Unmarshal(c.Args, &o) == nil {
			_ = json.Unmarshal(o["model"], &model) // no string is no alias
		}
		for j := range s.Offers {
			if s.Offers[j].Tool == c.Name && (s.Offers[j].Choice == "" || s.Offers[j].Choice == model) {
				return calls[i : i+1]
			}
		}
	}
	return calls[:1]
}
