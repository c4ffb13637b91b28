package policy

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Unstated is the confidence that an attempt which states none is taken to have.
const Unstated = 0.6

// cutOff is that of an attempt which was cut off and states none.
const cutOff = 0.1

// scene is what the features of all candidates of one decision have in common.
type scene struct {
	words    map[uint32]bool // hashes of the task's words
	own      []uint32        // of a tool's
	needs    general.Needs
	tools    []seenTool // in the order of State.Tools
	docs     int
	runs     int
	attempts int
	experts  int     // that have answered
	unmet    float32 // the most that a call on offer would serve
}

// seenTool is what a tool is to the task.
type seenTool struct {
	kind   general.Kind
	rival  float32 // how well its words match the task's
	match  float32 // the same, but 0 if it was called, or is not on offer
	bidden float32 // how much more than any other it matches, or 0 as match
	dead   bool    // it is not worth another try
	serves float32 // how much of what the task needs and has not got it is for
	idle   float32 // how much it is for something else
}

// look reads the task and the tools.
func (th *thought) look(w *general.Weights, s *State) {
	sc := &th.scene
	if sc.words == nil {
		sc.words = map[uint32]bool{}
	}
	clear(sc.words)
	eachWord(general.Cut(s.Prompt), func(h uint32) { sc.words[h] = true })
	sc.needs = w.Reading.OfTask(s.Prompt, &th.hasher)
	sc.docs, sc.runs, sc.attempts = s.Work.Len()
	for _, a := range s.Work.Attempts() {
		if strings.TrimSpace(a.Text) == "" {
			sc.attempts--
		}
	}
	sc.docs += told(s)
	sc.experts = 0
	for i := range th.task.Experts {
		if e := &th.task.Experts[i]; e.Asked && e.Card != nil {
			sc.experts++
		}
	}
	sc.tools = sc.tools[:0]
	for i := range s.Tools {
		t := &s.Tools[i]
		sc.tools = append(sc.tools, seenTool{kind: w.Reading.OfTool(t.Name+" "+t.Description, &th.hasher), rival: sc.match(t), dead: failing(s, t.Name)})
	}
	for i := range sc.tools {
		sc.place(s, i)
	}
	sc.unmet = 0
	for i := range s.Offers {
		if o := &s.Offers[i]; o.Effects&tools.Answers == 0 {
			sc.unmet = max(sc.unmet, sc.of(s, o).serves)
		}
	}
}

// place says what a tool is beside the others, and to what the task needs: what
// finds or computes by its kind, other tools by the words that they share with the
// task.
func (sc *scene) place(s *State, i int) {
	t, name := &sc.tools[i], s.Tools[i].Name
	if !t.dead && !worked(s, name) && slices.ContainsFunc(s.Offers, func(o Offer) bool { return o.Tool == name }) {
		t.match, t.bidden = t.rival, t.rival
		for j := range sc.tools {
			if j != i {
				t.bidden = max(min(t.bidden, t.rival-sc.tools[j].rival), 0)
			}
		}
	}
	find, compute := t.kind[general.Finds]*sc.needs[general.LookUp], t.kind[general.Computes]*sc.needs[general.Compute]
	if sc.docs > 0 || t.dead {
		find = 0
	}
	if sc.runs > 0 || t.dead {
		compute = 0
	}
	other := t.kind[general.Other] * (1 - min(2*t.rival, 1))
	t.serves, t.idle = max(find, compute), t.kind[general.Finds]+t.kind[general.Computes]-find-compute+other
}

// of is the tool of an offer; nothing is known of one that the state does not
// describe.
func (sc *scene) of(s *State, o *Offer) *seenTool {
	for i := range sc.tools {
		if s.Tools[i].Name == o.Tool {
			return &sc.tools[i]
		}
	}
	return new(seenTool)
}

// told counts the calls that worked and left nothing in the workspace: tools of
// the application may just do something, or say so to the policy. They have been
// of use all the same.
func told(s *State) (n int) {
	for i := range s.Turns {
		for j := range s.Turns[i].Done {
			d := &s.Turns[i].Done[j]
			if r := &d.Result; d.Err == nil && len(r.Documents)+len(r.Runs)+len(r.Attempts) == 0 && effects(s, d.Call.Tool)&tools.Answers == 0 {
				n++
			}
		}
	}
	return n
}

// effects are those of a tool of the state.
func effects(s *State, tool string) tools.Effects {
	for i := range s.Tools {
		if s.Tools[i].Name == tool {
			return s.Tools[i].Effects
		}
	}
	return 0
}

// worked reports whether a call of a tool has.
func worked(s *State, tool string) bool {
	for i := range s.Turns {
		for j := range s.Turns[i].Done {
			if d := &s.Turns[i].Done[j]; d.Call.Tool == tool && d.Err == nil {
				return true
			}
		}
	}
	return false
}

// failing reports whether a tool is not worth another try: it failed twice, or
// once if it may have changed something before it did, whoever wrote its
// arguments. A call for which nobody wrote any, or that was refused, was not made.
func failing(s *State, tool string) bool {
	n, ran := 0, false
	for i := range s.Turns {
		for j := range s.Turns[i].Done {
			d := &s.Turns[i].Done[j]
			if d.Call.Tool != tool || d.Err == nil || d.Err.Kind == tools.Refused || d.Call.Writer != "" && len(d.Call.Args) == 0 {
				continue
			}
			n++
			ran = ran || d.Err.Kind != tools.BadArguments
		}
	}
	return n > 1 || ran && effects(s, tool)&(tools.ReadOnly|tools.Idempotent) == 0
}

// describeOffer fills in the features of an offer.
func (th *thought) describeOffer(f *general.Features, s *State, o *Offer) {
	*f = general.Features{general.Call: 1}
	sc := &th.scene
	gathered, answers := sc.docs+sc.runs > 0, o.Effects&tools.Answers != 0
	switch {
	case !answers && sc.attempts > 0:
		f[general.GathersLate] = 1
	case !answers && !gathered:
		f[general.GathersFirst] = 1
	case !answers:
		f[general.GathersMore] = 1
	case sc.attempts > 0:
		f[general.AnswersMore] = 1
	case gathered:
		f[general.AnswersTold] = 1
	default:
		f[general.AnswersBlind] = 1
	}
	t := sc.of(s, o)
	f[general.Match] = t.match
	if o.Effects&tools.ReadOnly == 0 {
		f[general.Effects], f[general.Bidden] = 1, t.bidden
	}
	for i := range sc.tools {
		other := &sc.tools[i]
		if other == t {
			continue
		}
		m := other.match
		if o.Effects&tools.ReadOnly == 0 { // what the task is about may be done already
			m = other.rival
		}
		f[general.Rival] = max(f[general.Rival], m)
	}
	if answers {
		f[general.Unmet] = sc.unmet
	} else {
		f[general.Serves], f[general.Idle] = t.serves*(1-f[general.Rival]), t.idle
	}
	if answers && o.Choice == "" && o.Writer == "" {
		f[general.Exact] = 1
	}
	again, same, failed := history(s, o)
	f[general.Again], f[general.SameTool], f[general.Failed] = half(again), half(same), half(failed)
	if t.dead && o.Choice == "" {
		f[general.Dead] = 1
	}
	if o.Writer != "" {
		f[general.Writer] = 1
	}
	if left := s.Left.USD; o.Estimate.Mean.USD > 0 {
		f[general.Cost] = float32(s.Prefer.Cost * math.Sqrt(min(o.Estimate.Mean.USD.Dollars()/max(left.Dollars(), 1e-12), 1)))
	}
	if left := roughly(s.Left.Time); o.Latency > 0 && left > 0 {
		f[general.Latency] = float32(s.Prefer.Latency * math.Sqrt(min(float64(o.Latency)/float64(left), 1)))
	}
	th.compare(f, s, o)
	if o.Skill.Tasks > 0 {
		f[general.Skill] = float32(s.Prefer.Accuracy * (o.Skill.Score - 0.5))
	}
	f[general.Use] = float32(s.Prefer.Weight(o.Names...))
}

// compare says how much dearer and slower an offer is than the best of its tool.
func (th *thought) compare(f *general.Features, s *State, o *Offer) {
	usd, latency := o.Estimate.Mean.USD, o.Latency
	for i := range s.Offers {
		if p := &s.Offers[i]; p.Tool == o.Tool {
			usd, latency = min(usd, p.Estimate.Mean.USD), min(latency, p.Latency)
		}
	}
	if o.Estimate.Mean.USD > usd {
		f[general.Dearer] = float32(s.Prefer.Cost * (1 - usd.Dollars()/o.Estimate.Mean.USD.Dollars()))
	}
	if o.Latency > latency {
		f[general.Slower] = float32(s.Prefer.Latency * (1 - float64(latency)/float64(o.Latency)))
	}
}

// describeExpert fills in the features of asking an expert of the network. What
// its price, time and skill are worth, and the user's preference for it, is in
// one number, as where there are only experts to choose from.
func (th *thought) describeExpert(f *general.Features, s *State, o *Offer, expert int) {
	th.describeOffer(f, s, o)
	for _, i := range [...]int{general.Cost, general.Latency, general.Dearer, general.Slower, general.Skill, general.Use} {
		f[i] = 0
	}
	e := &th.task.Experts[expert]
	if th.scene.attempts == 0 {
		f[general.Worth] = clamp(e.Accuracy() - th.task.Lambda*e.Cost() + th.wished(s, o))
	} else {
		f[general.Gain] = clamp(th.values[expert])
	}
	f[general.Asked] = min(float32(th.scene.experts)/4, 1)
}

// describeFinish fills in the features of finishing with an attempt of that
// confidence.
func (th *thought) describeFinish(f *general.Features, s *State, confidence float32) {
	*f = general.Features{general.Finish: 1, general.Confidence: confidence, general.Doubt: float32(s.Prefer.Accuracy) * (1 - confidence),
		general.Unmet: th.scene.unmet}
	if total := s.Turn - 1 + s.Left.Turns; s.Left.Turns > 0 {
		f[general.TurnsUsed] = float32(s.Turn-1) / float32(total)
	}
	if total := s.Limit.USD; total > 0 {
		f[general.BudgetUsed] = float32(min(s.Spent.USD.Dollars()/total.Dollars(), 1))
	}
}

func half(n int) float32 { return min(float32(n)/2, 1) }

func clamp(x float32) float32 { return min(max(x, -1), 1) }

// history counts what became of earlier calls of the offer, and of others of
// its tool.
func history(s *State, o *Offer) (again, same, failed int) {
	for i := range s.Turns {
		for j := range s.Turns[i].Done {
			d := &s.Turns[i].Done[j]
			switch {
			case d.Call.Tool != o.Tool:
			case d.Call.Writer != o.Writer || o.Writer == "" && string(d.Call.Args) != string(o.Args):
				if d.Err == nil {
					same++
				}
			case d.Err != nil:
				failed++
			default:
				again++
			}
		}
	}
	return again, same, failed
}

// roughly is the time left, rounded up, so that a decision does not hang on the
// speed of the machine: a busy one takes seconds for what is done at once elsewhere.
func roughly(left time.Duration) time.Duration {
	step := time.Second
	switch {
	case left > 5*time.Minute:
		step = 30 * time.Second
	case left > time.Minute:
		step = 5 * time.Second
	}
	return (left + step - 1).Truncate(step)
}
