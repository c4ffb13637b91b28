package fit

import (
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// world is what the networks learn in: rows as the text model reads them, with
// one of several sets of cards, a subset of experts, and prices.
type world struct {
	data  *Data
	reads []read
	cards [][][]learned.Card // by draw, then by fold of the row
	fold  []int              // of each row
	pools bool               // draw subsets of experts, and prices
}

// scene is one draw.
type scene struct {
	row     int
	draw    int
	offered []bool
	price   []float32
}

// draw makes a scene of a row.
func (w *world) draw(row int, rng *rand.Rand, s *scene) {
	s.row, s.draw = row, rng.IntN(len(w.cards))
	if !w.pools {
		return
	}
	m := w.data.experts()
	if s.offered == nil {
		s.offered, s.price = make([]bool, m), make([]float32, m)
	}
	for i := range s.offered {
		s.offered[i] = true
		s.price[i] = priceFactor(rng)
	}
	if rng.IntN(2) == 0 { // half of the time all of them are there
		keep := 2 + rng.IntN(m-1)
		for _, i := range rng.Perm(m)[min(keep, m):] {
			s.offered[i] = false
		}
	}
}

// begin sets a task up for a scene.
func (w *world) begin(n *learned.Net, s *scene, t *learned.Task, p *player) {
	w.data.begin(n, t, s.row, &w.reads[s.row], w.cards[s.draw][w.fold[s.row]], s.price, s.offered)
	p.start(&w.data.Rows[s.row], s.offered)
}

// some asks a random subset: one to all of the experts, small ones more often,
// and good experts more often than others.
func some(t *learned.Task, p *player, rng *rand.Rand) {
	n := len(t.Experts)
	size := 1
	for size < n && rng.Float32() < 0.7 {
		size++
	}
	for range size {
		var sum float32
		for i := range t.Experts {
			if e := &t.Experts[i]; !e.Asked {
				sum += weight(e)
			}
		}
		x := rng.Float32() * sum
		pick := -1
		for i := range t.Experts {
			e := &t.Experts[i]
			if e.Asked {
				continue
			}
			pick = i
			if x -= weight(e); x <= 0 {
				break
			}
		}
		p.ask(t, pick)
	}
}

func weight(e *learned.Expert) float32 {
	a := e.Accuracy()
	return 0.03 + float32(a*float32(a*float32(a*a)))
}

// answerParams are what the posterior learns.
func answerParams(n *learned.Net) [][]float32 {
	return [][]float32{n.Answer1.Weights, n.Answer1.Bias, n.Answer2.Weights, n.Answer2.Bias}
}

// fitAnswers fits the posterior to some rows.
func fitAnswers(n *learned.Net, w *world, rows []int, o *Options, rng *rand.Rand, progress func(done, of int, loss float64)) {
	initialise(answerParams(n), []int{n.Answer1.In, 0, n.Answer1.Out, 0}, rng)
	n.Answer2.Bias[0] = 0
	g := newGroup(n, o.Sizes, answerParams)
	opt := NewAdam(append(answerParams(n), []float32{n.None}))
	const batch = 64
	order := append([]int(nil), rows...)
	steps := o.AnswerEpochs * len(order) / batch
	step := 0
	for range o.AnswerEpochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var total float64
		for at := 0; at+batch <= len(order); at += batch {
			seed := rng.Uint64()
			grad, loss := g.run(func(part int, s *shard) {
				own := rand.New(rand.NewPCG(seed, uint64(part)))
				var sc scene
				var p player
				for i := at + part; i < at+batch; i += shards {
					w.draw(order[i], own, &sc)
					w.begin(n, &sc, &s.task, &p)
					some(&s.task, &p, own)
					s.loss += float64(n.AnswerGrad(&s.task, p.number(p.row.Right), s.grad, &s.none, &s.scratch))
				}
			})
			for _, l := range grad {
				scale(l, 1.0/batch)
			}
			none := []float32{g.shards[0].none / batch}
			opt.Step(append(grad, none), cosine(o.AnswerRate, step, steps), o.Decay)
			n.None = opt.params[len(opt.params)-1][0]
			total += loss
			step++
		}
		progress(step, steps, total/float64(max(len(order)/batch*batch, 1)))
	}
}

func scale(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

// initialise draws weights as He et al. do; of an entry without inputs, zeros.
func initialise(params [][]float32, inputs []int, rng *rand.Rand) {
	for i, p := range params {
		for k := range p {
			p[k] = 0
			if inputs[i] > 0 {
				p[k] = float32(rng.NormFloat64()) * sqrt(2/float32(inputs[i]))
			}
		}
	}
}
