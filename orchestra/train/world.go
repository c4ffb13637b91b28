package train

import (
	"slices"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/fit"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// anyDomain is the domain of rows that state none.
const anyDomain = "any"

// category is a row's domain.
func category(r *replay.Row) string {
	if r.Category == "" {
		return anyDomain
	}
	return r.Category
}

// domainsOf lists the categories of a log, sorted.
func domainsOf(l *replay.Log) []string {
	var names []string
	seen := map[string]bool{}
	for i := range l.Rows {
		c := category(&l.Rows[i])
		if !seen[c] {
			seen[c] = true
			names = append(names, c)
		}
	}
	slices.Sort(names)
	return names
}

// dataOf translates a log. Rows of a category that domains lacks count to the
// first.
func dataOf(l *replay.Log, domains []string) *fit.Data {
	d := &fit.Data{Domains: domains}
	for _, m := range l.Models {
		d.In, d.Out = append(d.In, float32(m.In/1e6)), append(d.Out, float32(m.Out/1e6))
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		row := fit.Row{Text: r.Query, Domain: max(slices.Index(domains, category(r)), 0), In: inputTokens(r), Right: -1}
		var answers []string
		for _, p := range r.Replies {
			a := -1
			if p.Answer != "" {
				if a = slices.Index(answers, p.Answer); a < 0 {
					a = len(answers)
					answers = append(answers, p.Answer)
				}
				if p.Right {
					row.Right = a
				}
			}
			row.Replies = append(row.Replies, fit.Reply{Answer: a, Tokens: float32(p.Out)})
		}
		row.Answers = len(answers)
		d.Rows = append(d.Rows, row)
	}
	return d
}

// player runs a network over the rows of a log without the orchestrator: the
// same decisions, a thousand times as fast.
type player struct {
	net     *learned.Net
	cards   []learned.Card
	models  []int // of the log, by expert
	bound   []int // parameters of each, or -1
	prices  []replay.Model
	hasher  learned.Hasher
	task    learned.Task
	scratch learned.Scratch
	answers []string
}

// played is what became of one row.
type played struct {
	asked  []int  // models of the log, in order
	answer string // "" = none
	right  bool
	usd    float64
}

// run plays one row. worth is what a right answer is worth in USD.
func (p *player) run(r *replay.Row, worth float64, out *played) {
	t := &p.task
	p.net.Read(t, p.hasher.Features(r.Query, p.net.IDF))
	t.Options, t.Length, t.Digits = p.hasher.Options, p.hasher.Length, p.hasher.Digits
	t.Experts, t.Answers, t.Lambda = t.Experts[:0], 0, 0
	for i, m := range p.models {
		price := p.prices[m]
		t.Experts = append(t.Experts, learned.Expert{Card: &p.cards[i], Bound: p.bound[i], In: float32(price.In/1e6) * float32(r.In), Out: float32(price.Out / 1e6), Tokens: -1})
	}
	p.net.Begin(t)
	t.Lambda = float32(float64(t.Unit) / worth)
	out.asked, out.answer, out.right, out.usd = out.asked[:0], "", false, 0
	p.answers = p.answers[:0]
	for {
		ps, none := p.net.Posterior(t, &p.scratch)
		best, value := -1, float32(0)
		for i, v := range p.net.Values(t, ps, none, &p.scratch) {
			if !t.Experts[i].Asked && (best < 0 || v > value) {
				best, value = i, v
			}
		}
		if best < 0 || value <= 0 && t.Answers > 0 {
			if first, _ := learned.Best(ps); first >= 0 {
				out.answer = p.answers[first]
			}
			break
		}
		m := p.models[best]
		reply := r.Replies[m]
		a := -1
		if reply.Answer != "" {
			if a = slices.Index(p.answers, reply.Answer); a < 0 {
				a = len(p.answers)
				p.answers = append(p.answers, reply.Answer)
			}
		}
		usd := (float64(r.In)*p.prices[m].In + float64(reply.Out)*p.prices[m].Out) / 1e6
		e := &t.Experts[best]
		t.Reply(best, a, learned.OutputTokens(float32(usd), e.In, e.Out))
		out.asked = append(out.asked, m)
		out.usd += usd
	}
	out.right = out.answer != "" && out.answer == r.Answer
}
