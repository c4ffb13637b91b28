package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// RolloutSchema names the format of trajectories.jsonl, and its major version.
const RolloutSchema = "toolorch.rollout/1"

// Rollout is one run as a trainer sees it: a line of trajectories.jsonl.
// FoldRollout makes it of a trajectory, Groups fills in Reward, Advantage and
// Dropped, WriteRollouts and ReadRollouts keep it. Money is written as decimal
// strings of US dollars ("0.0025"), exactly as it was charged; times are numbers
// of seconds.
type Rollout struct {
	Schema   string `json:"schema"`             // RolloutSchema
	Group    string `json:"group_id"`           // rollouts of one task in one step share it
	ID       string `json:"rollout_id"`         // of this one; unique in its group
	Step     int    `json:"step"`               // of the training
	Category string `json:"category,omitempty"` // of the task: "qa", "func_call"
	Task     string `json:"task_id"`

	// Prefer is P of eq. 2: the weight of each name that the user wants used, and
	// of "accuracy", "cost" and "latency". Names are those of tools, models and
	// sources, as in prefs.Vector, which Vector makes of it again.
	Prefer map[string]float64 `json:"pref_vec"`
	Never  []string           `json:"never,omitempty"` // names that were masked

	// Models says which expert each alias stood for. Prices has what each alias
	// charged (USD per million tokens, as cost.Price writes it; {} is unknown), and
	// what a call of each other tool cost ({"request": …}; nothing without a fee).
	// An alias that two tools gave to different experts is "tool/alias" for the
	// second.
	Models map[string]string     `json:"model_mapping"`
	Prices map[string]cost.Price `json:"tool_pricing"`

	Turns  []RolloutTurn `json:"turns"`
	Answer string        `json:"final_answer"`
	Valid  bool          `json:"valid"`            // there is an answer
	Failed string        `json:"failed,omitempty"` // why there is none; such a rollout is scored 0
	Right  bool          `json:"outcome"`          // the judge's word; false too where nobody judged

	USD     cost.Amount    `json:"cost_usd"`    // all that was spent, the policy's own calls included
	Seconds float64        `json:"latency_s"`   // the run's active time: waits for people are left out
	Calls   map[string]int `json:"tool_counts"` // calls that ran, under each name that preferences have for them

	Reward    float64 `json:"reward"`         // eq. 2; 0 until its group is scored
	Advantage float64 `json:"advantage"`      // eq. 3; shared by all turns
	Dropped   Drop    `json:"dropped_reason"` // "" = it is learned from
}

// RolloutTurn is one decision: what the policy saw, what it wrote, what came of
// it. It is one row for a trainer.
type RolloutTurn struct {
	// Messages is the prompt that the policy rendered, as a chat: the system
	// message holds the tools, as the model saw them, and an assistant's message at
	// the end is what the output goes on with. Prompt is a rendered prompt in
	// another format than ChatML. Where there are no messages, Tools lists what was
	// on offer, as registered: trajectories do not say how a chat server was asked.
	Messages []RolloutMessage `json:"messages"`
	Prompt   string           `json:"prompt,omitempty"`
	Tools    []models.ToolDef `json:"tools"`

	// The tokens as the sampler gave them, never tokenised again from text. They
	// are empty where it gave none, or gave what cannot be. Logprobs are natural
	// logarithms, one per response token, or none.
	PromptIDs   []int32   `json:"prompt_token_ids"`
	ResponseIDs []int32   `json:"response_token_ids"`
	Logprobs    []float32 `json:"logprobs"`

	Reasoning string        `json:"reasoning,omitempty"` // what it thought
	Text      string        `json:"response_text"`       // what it said beside its calls, or what was meant as one and could not be read
	Calls     []RolloutCall `json:"tool_calls"`
	By        string        `json:"by,omitempty"` // the expert that took the turn: the tokens are the policy's, the calls the expert's

	// FormatOK: the policy wrote what it should. It is false for an output without
	// a usable call, one that had to be forced, one with a part that cannot be
	// read, and for calls of unknown tools or with useless arguments.
	FormatOK bool        `json:"format_ok"`
	Err      string      `json:"err,omitempty"` // why there is no decision
	USD      cost.Amount `json:"cost_usd"`      // of the decision and its calls

	// Seconds is the time to the next decision. Of the last turn, and of one that
	// a pause followed, it is that of the decision and its longest call.
	Seconds float64 `json:"latency_s"`
}

// RolloutMessage is one entry of a chat.
type RolloutMessage struct {
	Role    models.Role `json:"role"`
	Content string      `json:"content"`
}

// RolloutCall is a call that the policy wanted.
type RolloutCall struct {
	ID     string          `json:"id,omitempty"` // as the policy's model named it
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`   // a JSON string where the model wrote something else
	Writer string          `json:"writer,omitempty"` // alias of the expert that wrote them; "" = the policy did
	Err    string          `json:"err,omitempty"`    // the tools.Kind of its failure; "" = it worked, or nothing is known of it
}

// ErrRollout means that a trajectory or a line is no usable rollout.
var ErrRollout = errors.New("train: unusable rollout")

// RolloutOption says of a rollout what its trajectory does not know.
type RolloutOption func(*Rollout)

// InGroup puts the rollout into a group of a training step. Without it the group
// is the task.
func InGroup(step int, group string) RolloutOption {
	return func(r *Rollout) { r.Step, r.Group = step, group }
}

// OfTask names the task, and its category. Without it they are "task_id" and
// "category" of orchestra.Task.Meta, and the task's id is the run's if there is
// none.
func OfTask(id, category string) RolloutOption {
	return func(r *Rollout) { r.Task, r.Category = id, category }
}

// Judged is the outcome. Without it the answer counts as wrong.
func Judged(right bool) RolloutOption { return func(r *Rollout) { r.Right = right } }

// FoldRollout makes a rollout of a run's events. It is a pure function of them,
// and reads the same of a trajectory in memory and of one from a file. Samples
// are not trusted: see RolloutTurn. Calls that the loop made on its own, to have
// an answer when a run must end, count in USD alone.
//
// Of a run that was cut off, or that never began to answer, Failed says why.
// The error is ErrRollout: the trajectory is empty, or a tool has a name that
// pref_vec cannot hold.
func FoldRollout(t *orchestra.Trajectory, opts ...RolloutOption) (*Rollout, error) {
	f := &folder{r: &Rollout{Schema: RolloutSchema, Models: map[string]string{}, Prices: map[string]cost.Price{}, Calls: map[string]int{}, Turns: []RolloutTurn{}}}
	if t != nil {
		for e := range t.Events() {
			if err := f.add(e); err != nil {
				return nil, err
			}
		}
	}
	if !f.begun {
		return nil, fmt.Errorf("%w: the trajectory is empty: make a Rollout with Failed of a run that never began", ErrRollout)
	}
	f.close(time.Time{})
	f.end(t.Result())
	for _, o := range opts {
		if o != nil {
			o(f.r)
		}
	}
	if f.r.Task == "" {
		f.r.Task = f.r.ID
	}
	if f.r.Group == "" {
		f.r.Group = f.r.Task
	}
	if err := f.r.check(); err != nil {
		return nil, err
	}
	return f.r, nil
}

// folder is a rollout on its way.
type folder struct {
	r     *Rollout
	specs []tools.Spec
	begun bool
	err   string // why the run's last part ended

	open    bool // the newest turn is not over
	decided orchestra.Decided
	known   []bool        // calls of it whose outcome is known
	longest time.Duration // of its calls
	paused  bool          // since it began
}

func (f *folder) add(e orchestra.Event) error {
	switch e := e.(type) {
	case orchestra.Started:
		return f.begin(&e)
	case orchestra.Resumed:
		f.paused, f.err = true, ""
	case orchestra.Stopped:
		f.err = e.Err
	case orchestra.Decided:
		f.close(e.Start)
		f.turn(&e)
	case orchestra.Returned:
		f.returned(&e.Outcome)
	}
	return nil
}

func (f *folder) begin(e *orchestra.Started) (err error) {
	r := f.r
	f.begun, f.specs = true, e.Tools
	r.ID, r.Task, r.Category = e.Run, e.Task.Meta["task_id"], e.Task.Meta["category"]
	r.Never = e.Task.Prefer.Never
	for i := range e.Tools {
		s := &e.Tools[i]
		if len(s.Choices) == 0 {
			r.Prices[s.Name] = cost.Price{}
			if s.Fee > 0 {
				r.Prices[s.Name] = cost.Price{Request: cost.PerAmount(s.Fee)}
			}
		}
		for _, c := range s.Choices {
			alias := c.Alias
			if was, taken := r.Models[alias]; taken && was != c.Info.Name {
				alias = s.Name + "/" + alias
			}
			r.Models[alias], r.Prices[alias] = c.Info.Name, c.Info.Price
		}
	}
	r.Prefer, err = preferences(e.Task.Prefer)
	return err
}

// turn begins one.
func (f *folder) turn(e *orchestra.Decided) {
	d := &e.Decision
	f.decided, f.known, f.longest, f.open, f.paused = *e, make([]bool, len(d.Calls)), 0, true, false
	t := RolloutTurn{
		Messages: []RolloutMessage{}, Tools: []models.ToolDef{}, PromptIDs: []int32{}, ResponseIDs: []int32{}, Logprobs: []float32{},
		Reasoning: d.Reasoning, Text: d.Text, Calls: []RolloutCall{}, By: d.By, Err: e.Err, USD: e.USD,
		FormatOK: !e.Malformed && !d.Forced && len(d.Malformed) == 0,
	}
	switch {
	case len(d.Malformed) > 0 && t.Text == "":
		t.Text = strings.Join(d.Malformed, "\n")
	case d.Finish != nil && t.Text == "":
		t.Text = d.Finish.Text
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		t.Calls = append(t.Calls, RolloutCall{ID: c.ID, Name: c.Tool, Args: jsonfix.Storable(c.Args), Writer: c.Writer})
	}
	t.sampled(d.Sample)
	if len(t.Messages) == 0 {
		for i := range f.specs {
			s := &f.specs[i]
			if slices.ContainsFunc(e.Offers, func(o policy.Offer) bool { return o.Tool == s.Name }) {
				t.Tools = append(t.Tools, models.ToolDef{Name: s.Name, Description: s.Description, Schema: s.Schema})
			}
		}
	}
	f.r.Turns = append(f.r.Turns, t)
}

// sampled takes what the sampler gave, as far as it can be true.
func (t *RolloutTurn) sampled(s *models.Sample) {
	if s == nil {
		return
	}
	if t.Messages = append(t.Messages, chat(s.Prompt)...); len(t.Messages) == 0 {
		t.Prompt = s.Prompt
	}
	if !tokens(s.PromptIDs) || !tokens(s.OutputIDs) {
		return
	}
	t.PromptIDs, t.ResponseIDs = append(t.PromptIDs, s.PromptIDs...), append(t.ResponseIDs, s.OutputIDs...)
	if len(s.Logprobs) == len(s.OutputIDs) && logprobs(s.Logprobs) { // else nobody knows which belongs to which
		t.Logprobs = append(t.Logprobs, s.Logprobs...)
	}
}

// chat takes a prompt in ChatML apart, without loss: texts cannot forge its
// marks, since the policy neutralised them. Of another format it is nil.
func chat(prompt string) (ms []RolloutMessage) {
	for prompt != "" {
		head, ok := strings.CutPrefix(prompt, "<|im_start|>")
		role, text, cut := strings.Cut(head, "\n")
		if !ok || !cut {
			return nil
		}
		text, rest, over := strings.Cut(text, "<|im_end|>\n")
		if over || text != "" {
			ms = append(ms, RolloutMessage{Role: models.Role(role), Content: text})
		}
		prompt = rest
	}
	return ms
}

// returned notes what became of a call. One that no decision asked for is the
// loop's own.
func (f *folder) returned(o *policy.Outcome) {
	if !f.open {
		return
	}
	calls := f.decided.Decision.Calls
	i := 0
	for ; i < len(calls); i++ { // equal calls return in order
		c := &calls[i]
		if !f.known[i] && c.Tool == o.Call.Tool && c.ID == o.Call.ID && c.Writer == o.Call.Writer && (c.Writer != "" || string(c.Args) == string(o.Call.Args)) {
			break
		}
	}
	if i == len(calls) {
		return
	}
	f.known[i] = true
	t := &f.r.Turns[len(f.r.Turns)-1]
	t.USD += o.USD
	t.Calls[i].Args = jsonfix.Storable(o.Call.Args) // an expert may have written them
	f.longest = max(f.longest, o.Took)
	ran := true
	if o.Err != nil {
		k := o.Err.Kind
		t.Calls[i].Err = string(k)
		ran = k != tools.BadArguments && k != tools.Unknown && k != tools.Refused
		if k == tools.Unknown || k == tools.BadArguments && calls[i].Writer == "" {
			t.FormatOK = false
		}
	}
	if ran {
		for _, n := range f.names(&calls[i]) {
			f.r.Calls[n]++
		}
	}
}

// names are what preferences call the offer that a call took, each once.
func (f *folder) names(c *policy.Call) []string {
	var in struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(c.Args, &in) // no object has no model
	for i := range f.decided.Offers {
		o := &f.decided.Offers[i]
		if o.Tool == c.Tool && (o.Choice == "" || o.Choice == in.Model) && o.Writer == c.Writer {
			return slices.Compact(slices.Sorted(slices.Values(o.Names)))
		}
	}
	return []string{c.Tool} // it was not on offer: asked for again, with other arguments
}

// close ends the newest turn. Next is when the one after it began.
func (f *folder) close(next time.Time) {
	if !f.open {
		return
	}
	f.open = false
	took := f.decided.Took + f.longest
	if wall := next.Sub(f.decided.Start); !next.IsZero() && !f.paused && wall > 0 {
		took = wall
	}
	f.r.Turns[len(f.r.Turns)-1].Seconds = max(took, 0).Seconds()
}

// end says what the run came to.
func (f *folder) end(res *orchestra.Result) {
	r := f.r
	r.Answer, r.Valid = res.Answer, strings.TrimSpace(res.Answer) != ""
	r.USD, r.Seconds = res.Spent.USD, res.Spent.Time.Seconds()
	if r.Valid {
		return
	}
	r.Failed = "the run was cut off"
	if res.Stop != "" {
		r.Failed = "there is no answer (" + string(res.Stop) + ")"
	}
	if f.err != "" {
		r.Failed = f.err
	}
}
