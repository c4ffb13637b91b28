package learned

import "math"

// Card describes an expert by what was measured of it. Slices have an entry for
// each domain of the network.
type Card struct {
	Skill     []float32 `json:"skill"`      // share of tasks solved
	Mean      float32   `json:"mean"`       // the same over all domains
	Tokens    []float32 `json:"tokens"`     // mean number of output tokens
	LogTokens []float32 `json:"log_tokens"` // mean logarithm of output tokens + 1
	Spread    float32   `json:"spread"`     // deviation of that logarithm
}

// Expert is one expert in one task.
type Expert struct {
	Card   *Card   // nil: something else that gave an answer, which is right with the chance that Stated says
	Stated float32 // only without a card
	Bound  int     // index among the experts that the network has parameters for; -1 = none
	In     float32 // USD of the input
	Out    float32 // USD per output token

	Asked  bool
	Answer int     // index of the answer that it gave; -1 = it gave none
	Tokens float32 // output tokens that it used; below 0 = unknown

	accuracy, logit float32 // expected of this task
	cost            float32 // expected, as a share of the dearest expert's
	log             float32 // expected logarithm of output tokens
	z               float32 // deviation of the observed one
}

// Accuracy is the chance that the expert solves the task, as the text alone
// tells. It is set by Begin.
func (e *Expert) Accuracy() float32 { return e.accuracy }

// Cost is what asking is expected to cost, as a share of what the dearest
// expert is expected to cost. It is set by Begin.
func (e *Expert) Cost() float32 { return e.cost }

// Task is a task on its way. Its slices may be used again for the next one.
type Task struct {
	Domains []float32 // how likely each domain is
	Text    []float32 // for each bound expert, the logit that it is right by the text
	Options int       // answers that the task lists; 0 = open
	Length  float32   // see Hasher
	Digits  float32
	Lambda  float32 // what the dearest expert's expected cost is worth, in probability of a right answer
	Unit    float32 // USD that the dearest expert is expected to cost; set by Begin
	Experts []Expert
	Answers int // different answers seen
}

// open is how many answers a task is taken to have that lists none.
const open = 10

func (t *Task) options() float32 {
	if t.Options > 1 {
		return float32(t.Options)
	}
	return open
}

// logit of a probability, kept from infinity.
func logit(p float32) float32 {
	p = min(max(p, 0.01), 0.99)
	return float32(math.Log(float64(p / (1 - p))))
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// Begin works out what is expected of every expert.
func (n *Net) Begin(t *Task) {
	t.Unit = 0
	for i := range t.Experts {
		e := &t.Experts[i]
		c := e.Card
		if c == nil {
			e.accuracy, e.logit, e.cost, e.log = e.Stated, logit(e.Stated), 0, 0
			continue
		}
		e.accuracy, e.log = dot(t.Domains, c.Skill), dot(t.Domains, c.LogTokens)
		if e.Bound >= 0 {
			e.accuracy = sigmoid(n.second(t, e))
		}
		e.logit = logit(e.accuracy)
		e.cost = e.In + float32(dot(t.Domains, c.Tokens)*e.Out)
		t.Unit = max(t.Unit, e.cost)
	}
	for i := range t.Experts {
		e := &t.Experts[i]
		if t.Unit > 0 {
			e.cost /= t.Unit
		}
		e.observe()
	}
}

// observe works out how unusual the length of an expert's output is.
func (e *Expert) observe() {
	e.z = 0
	if e.Asked && e.Card != nil && e.Tokens >= 0 {
		e.z = min(max((float32(math.Log1p(float64(e.Tokens)))-e.log)/max(e.Card.Spread, 0.1), -3), 3)
	}
}

// Reply books what an expert answered: an answer by its index, or -1.
func (t *Task) Reply(expert, answer int, tokens float32) {
	e := &t.Experts[expert]
	e.Asked, e.Answer, e.Tokens = true, answer, tokens
	t.Answers = max(t.Answers, answer+1)
	e.observe()
}

// second is the logit that a bound expert is right, from the text's own logit,
// those of the others, and its record in the domains.
func (n *Net) second(t *Task, e *Expert) float32 {
	var x [secondWidth]float32
	secondInputs(&x, t, e)
	w := n.Second.Weights[e.Bound*n.Second.Out:][:n.Second.Out]
	return dot(x[:], w[:secondWidth]) + dot(t.Domains, w[secondWidth:])
}

// secondWidth counts the second level's inputs beside the domains.
const secondWidth = 6

func secondInputs(x *[secondWidth]float32, t *Task, e *Expert) {
	var mean float32
	for _, l := range t.Text {
		mean += l
	}
	mean /= float32(max(len(t.Text), 1))
	*x = [secondWidth]float32{1, t.Text[e.Bound], mean, logit(dot(t.Domains, e.Card.Skill)), t.options() / 10, t.Length}
}

// SecondInputs writes the inputs of the second level for one expert.
func SecondInputs(x []float32, t *Task, expert int) []float32 {
	var head [secondWidth]float32
	secondInputs(&head, t, &t.Experts[expert])
	return append(append(x, head[:]...), t.Domains...)
}

// promptOverhead is how many tokens instructions add to a prompt.
const promptOverhead = 60

// InputTokens is about how many tokens experts are sent for a prompt of that
// many characters.
func InputTokens(characters int) float32 { return float32((characters+3)/4 + promptOverhead) }

// OutputTokens is how many output tokens a call must have used that cost usd,
// given what its input cost and what a token costs; -1 where that cannot be told.
func OutputTokens(usd, input, perToken float32) float32 {
	if perToken <= 0 {
		return -1
	}
	return max((usd-input)/perToken, 0)
}
