package fit

import (
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// priceFactor is a random change of a price: a fifth to five times it.
func priceFactor(rng *rand.Rand) float32 {
	return float32(math.Exp((2*rng.Float64() - 1) * math.Log(5)))
}

// valueParams are what the value of asking learns.
func valueParams(n *learned.Net) [][]float32 {
	return [][]float32{n.State.Weights, n.State.Bias, n.Offer.Weights, n.Value2.Weights, n.Value2.Bias, n.Value3.Weights, n.Value3.Bias, n.Heads.Weights}
}

// judge holds, for each row, the networks that did not see it.
type judge struct {
	w    *world
	nets []*learned.Net // by fold
}

// full writes how likely each of the row's answers is right when all experts
// have been asked, and the row was not seen.
func (j *judge) full(sc *scene, t *learned.Task, s *learned.Scratch, q []float32) {
	n := j.nets[j.w.fold[sc.row]]
	all := scene{row: sc.row, draw: sc.draw}
	var p player
	j.w.begin(n, &all, t, &p)
	for i := range t.Experts {
		p.ask(t, i)
	}
	ps, _ := n.Posterior(t, s)
	for i, v := range ps {
		q[p.order[i]] = v
	}
}

// fitValues fits the value of asking one step ahead: what it adds to the chance
// that the likeliest answer is right, as the posterior over all experts sees it.
func fitValues(n *learned.Net, j *judge, rows []int, o *Options, rng *rand.Rand, progress func(done, of int, loss float64)) {
	initialise(valueParams(n), []int{n.State.In + n.Offer.In, 0, n.State.In + n.Offer.In, n.Value2.In, 0, n.Value3.In, 0, 0}, rng)
	for i := range n.Value3.Weights { // begin near the text's own word
		n.Value3.Weights[i] *= 0.1
	}
	g := newGroup(n, o.Sizes, valueParams)
	opt := NewAdam(valueParams(n))
	const batch = 64
	steps := o.ValueSteps
	var recent float64
	for step := range steps {
		seed := rng.Uint64()
		grad, loss := g.run(func(part int, s *shard) {
			own := rand.New(rand.NewPCG(seed, uint64(part)))
			var sc scene
			var p, next player
			var q [64]float32
			var after learned.Task
			for i := part; i < batch; i += shards {
				j.w.draw(rows[own.IntN(len(rows))], own, &sc)
				j.full(&sc, &s.task, &s.scratch, q[:])
				out := j.nets[j.w.fold[sc.row]]
				j.w.begin(out, &sc, &s.task, &p)
				if own.IntN(4) > 0 {
					few(&s.task, &p, own)
				}
				s.task.Lambda = o.lambda(own)
				now := float32(0)
				if s.task.Answers > 0 {
					ps, _ := out.Posterior(&s.task, &s.scratch)
					first, _ := learned.Best(ps)
					now = q[p.order[first]]
				}
				target := s.target(len(s.task.Experts))
				for k := range s.task.Experts {
					if s.task.Experts[k].Asked {
						continue
					}
					clone(&after, &s.task)
					next = p
					next.ask(&after, k)
					v := float32(0)
					if after.Answers > 0 {
						ps, _ := out.Posterior(&after, &s.scratch)
						first, _ := learned.Best(ps)
						v = q[next.order[first]]
					}
					target[k] = v - now
				}
				ps, none := out.Posterior(&s.task, &s.scratch)
				vs := n.Values(&s.task, ps, none, &s.scratch)
				left := 0
				for k := range target {
					if !s.task.Experts[k].Asked {
						left++
					}
				}
				for k := range target {
					if s.task.Experts[k].Asked {
						target[k] = 0
						continue
					}
					e := vs[k] + float32(s.task.Lambda*s.task.Experts[k].Cost()) - target[k]
					s.loss += float64(e*e) / float64(left)
					target[k] = e / float32(left)
				}
				n.ValueGrad(&s.task, ps, none, target, s.grad, &s.scratch)
			}
		})
		for _, l := range grad {
			scale(l, 1.0/batch)
		}
		opt.Step(grad, cosine(o.ValueRate, step, steps), o.Decay)
		recent = 0.98*recent + 0.02*loss/batch
		if step%50 == 49 {
			progress(step+1, steps, recent)
		}
	}
}

// target returns n zeros.
func (s *shard) target(n int) []float32 {
	s.d = append(s.d[:0], make([]float32, n)...)
	return s.d
}

// few asks one to four experts.
func few(t *learned.Task, p *player, rng *rand.Rand) {
	for n := 1; ; n++ {
		one(t, p, rng)
		if n >= 4 || n >= len(t.Experts)-1 || rng.Float32() < 0.5 {
			return
		}
	}
}

// one asks an expert, good and cheap ones more often.
func one(t *learned.Task, p *player, rng *rand.Rand) {
	best, pick := float32(math.Inf(-1)), -1
	for i := range t.Experts {
		e := &t.Experts[i]
		if e.Asked {
			continue
		}
		v := 6*e.Accuracy() - e.Cost() - float32(math.Log(-math.Log(1-rng.Float64()*0.999999-1e-9))) // a Gumbel draw
		if v > best {
			best, pick = v, i
		}
	}
	if pick >= 0 {
		p.ask(t, pick)
	}
}

// clone copies a task into memory of its own.
func clone(dst, src *learned.Task) {
	experts := append(dst.Experts[:0], src.Experts...)
	*dst = *src
	dst.Experts = experts
}
