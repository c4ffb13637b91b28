package fit

import (
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// Row is a task with what every expert answered.
type Row struct {
	Text    string
	Domain  int
	In      float32 // input tokens
	Right   int     // index of the right answer, or -1 if nobody gave it
	Answers int     // different answers
	Replies []Reply // by expert
}

// Reply is what one expert answered.
type Reply struct {
	Answer int // index among the row's answers; -1 = none
	Tokens float32
}

// Data are rows to learn from.
type Data struct {
	Rows    []Row
	Domains []string
	In, Out []float32 // USD per token, by expert
}

// experts is their number.
func (d *Data) experts() int { return len(d.In) }

// right reports whether an expert solved a row.
func (r *Row) right(expert int) bool {
	return r.Replies[expert].Answer >= 0 && r.Replies[expert].Answer == r.Right
}

// shrink is how many tasks an expert's overall rate counts as in its rate of a
// domain.
const shrink = 8

// Cards measures every expert on some rows.
func (d *Data) Cards(rows []int) []learned.Card {
	cs := make([]learned.Card, d.experts())
	for m := range cs {
		c := &cs[m]
		n := make([]float64, len(d.Domains))
		right, tokens, logs := make([]float64, len(n)), make([]float64, len(n)), make([]float64, len(n))
		var all, allRight, allTokens, allLogs float64
		for _, i := range rows {
			r := &d.Rows[i]
			n[r.Domain]++
			t := float64(r.Replies[m].Tokens)
			tokens[r.Domain] += t
			logs[r.Domain] += math.Log1p(t)
			if r.right(m) {
				right[r.Domain]++
			}
		}
		for k := range n {
			all, allRight, allTokens, allLogs = all+n[k], allRight+right[k], allTokens+tokens[k], allLogs+logs[k]
		}
		all = max(all, 1)
		mean := (allRight + 1) / (all + 2)
		c.Mean = float32(mean)
		for k := range n {
			c.Skill = append(c.Skill, float32((right[k]+shrink*mean)/(n[k]+shrink)))
			c.Tokens = append(c.Tokens, float32((tokens[k]+shrink*allTokens/all)/(n[k]+shrink)))
			c.LogTokens = append(c.LogTokens, float32((logs[k]+shrink*allLogs/all)/(n[k]+shrink)))
		}
		var square float64
		for _, i := range rows {
			r := &d.Rows[i]
			x := math.Log1p(float64(r.Replies[m].Tokens)) - float64(c.LogTokens[r.Domain])
			square += x * x
		}
		c.Spread = float32(math.Sqrt(square/all)) + 0.05
	}
	return cs
}

// Draw picks up to n rows of each domain out of rows.
func (d *Data) Draw(rows []int, n int, rng *rand.Rand) []int {
	by := make([][]int, len(d.Domains))
	for _, i := range rows {
		by[d.Rows[i].Domain] = append(by[d.Rows[i].Domain], i)
	}
	var out []int
	for _, l := range by {
		for k := range min(n, len(l)) {
			j := k + rng.IntN(len(l)-k)
			l[k], l[j] = l[j], l[k]
			out = append(out, l[k])
		}
	}
	return out
}

// read is what the text model makes of a row.
type read struct {
	domains, text []float32
	options       int
	length        float32
	digits        float32
}

// begin sets a task up at its start. cards, in and out are by expert; a price of
// an expert that is not offered is below 0.
func (d *Data) begin(n *learned.Net, t *learned.Task, row int, in *read, cards []learned.Card, price []float32, offered []bool) {
	r := &d.Rows[row]
	t.Domains, t.Text = append(t.Domains[:0], in.domains...), append(t.Text[:0], in.text...)
	t.Options, t.Length, t.Digits = in.options, in.length, in.digits
	t.Experts, t.Answers, t.Lambda = t.Experts[:0], 0, 0
	for m := range d.experts() {
		if offered != nil && !offered[m] {
			continue
		}
		f := float32(1)
		if price != nil {
			f = price[m]
		}
		e := learned.Expert{Card: &cards[m], Bound: -1, In: f * r.In * d.In[m], Out: f * d.Out[m], Tokens: -1}
		if n.Bound > 0 {
			e.Bound = m
		}
		t.Experts = append(t.Experts, e)
	}
	n.Begin(t)
}

// player asks experts of a row, and keeps how answers are numbered: in the order
// in which they were first seen.
type player struct {
	row   *Row
	who   []int // expert of the data, by index in the task
	seen  [64]int8
	order [64]int8 // row's answer, by number
}

// start begins a row.
func (p *player) start(r *Row, offered []bool) {
	p.row, p.who = r, p.who[:0]
	for m := range r.Replies {
		if offered == nil || offered[m] {
			p.who = append(p.who, m)
		}
	}
	for i := range r.Answers {
		p.seen[i] = -1
	}
}

// ask reveals what an expert answered.
func (p *player) ask(t *learned.Task, expert int) {
	a := p.row.Replies[p.who[expert]]
	n := -1
	if a.Answer >= 0 {
		if p.seen[a.Answer] < 0 {
			p.seen[a.Answer] = int8(t.Answers)
			p.order[t.Answers] = int8(a.Answer)
		}
		n = int(p.seen[a.Answer])
	}
	t.Reply(expert, n, a.Tokens)
}

// number is the number of a row's answer in the task, or -1.
func (p *player) number(answer int) int {
	if answer < 0 {
		return -1
	}
	return int(p.seen[answer])
}
