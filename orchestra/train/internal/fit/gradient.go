package fit

import (
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// rollout is one episode: whom it asked, in order, and what came of it.
type rollout struct {
	asked   []int // experts of the task; the end is not listed
	logs    []float64
	reward  float64
	stopped bool // by choice, with experts left
}

// policyGradient improves the values by GRPO: groups of rollouts of one task at
// one price of being wrong, their rewards centred on the group's mean, and the
// clipped surrogate. Rewards are not divided by their deviation: within a group
// of one task it says how lucky the group was, not how much is to be learned.
func policyGradient(n *learned.Net, j *judge, rows []int, o *Options, rng *rand.Rand, progress func(done, of int, loss float64)) {
	g := newGroup(n, o.Sizes, valueParams)
	opt := NewAdam(valueParams(n))
	groups := make([][]rollout, o.Groups)
	scenes := make([]scene, o.Groups)
	lambdas := make([]float32, o.Groups)
	var recent float64
	for step := range o.GradientSteps {
		seed := rng.Uint64()
		g.run(func(part int, s *shard) {
			own := rand.New(rand.NewPCG(seed, uint64(part)))
			for k := part; k < o.Groups; k += shards {
				j.w.draw(rows[own.IntN(len(rows))], own, &scenes[k])
				lambdas[k] = o.lambda(own)
				if groups[k] == nil {
					groups[k] = make([]rollout, o.Rollouts)
				}
				s.play(n, j, &scenes[k], lambdas[k], groups[k], o, own)
				for i := range groups[k] {
					s.loss -= groups[k][i].reward
				}
			}
		})
		var mean float64
		for k := range groups {
			for i := range groups[k] {
				mean += groups[k][i].reward
			}
		}
		mean /= float64(o.Groups * o.Rollouts)
		for range o.Passes {
			grad, _ := g.run(func(part int, s *shard) {
				for k := part; k < o.Groups; k += shards {
					s.learn(n, j, &scenes[k], lambdas[k], groups[k], o)
				}
			})
			for _, l := range grad {
				scale(l, 1/float32(o.Groups*o.Rollouts))
			}
			opt.Step(grad, cosine(o.GradientRate, step, o.GradientSteps), 0)
		}
		if recent == 0 {
			recent = mean
		}
		recent = 0.99*recent + 0.01*mean
		if step%50 == 49 {
			progress(step+1, o.GradientSteps, recent)
		}
	}
}

// choose writes the chances of asking each expert, and the end's last.
func choose(values []float32, asked int, answers int, temperature float32, out []float64) []float64 {
	out = out[:0]
	top := math.Inf(-1)
	for _, v := range values {
		out = append(out, float64(v/temperature))
		top = max(top, out[len(out)-1])
	}
	end := math.Inf(-1)
	if answers > 0 || asked == len(values) {
		end = 0
	}
	out = append(out, end)
	top = max(top, end)
	var sum float64
	for i, v := range out {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// play makes a group of rollouts.
func (s *shard) play(n *learned.Net, j *judge, sc *scene, lambda float32, group []rollout, o *Options, rng *rand.Rand) {
	var q [64]float32
	j.full(sc, &s.task, &s.scratch, q[:])
	out := j.nets[j.w.fold[sc.row]]
	row := &j.w.data.Rows[sc.row]
	var start, t learned.Task
	var begin, p player
	j.w.begin(out, sc, &start, &begin)
	start.Lambda = lambda
	for i := range group {
		r := &group[i]
		r.asked, r.logs, r.stopped = r.asked[:0], r.logs[:0], false
		clone(&t, &start)
		p = begin
		var spent float32
		for len(r.asked) < len(t.Experts) {
			ps, none := out.Posterior(&t, &s.scratch)
			s.probs = choose(n.Values(&t, ps, none, &s.scratch), len(r.asked), t.Answers, o.Temperature, s.probs)
			x, pick := rng.Float64(), len(s.probs)-1
			for k, v := range s.probs {
				if x -= v; x <= 0 && v > 0 {
					pick = k
					break
				}
			}
			r.logs = append(r.logs, math.Log(max(s.probs[pick], 1e-30)))
			if pick == len(t.Experts) {
				r.stopped = true
				break
			}
			if s.probs[pick] == 0 { // rounding left the end, which was not to be had
				break
			}
			p.ask(&t, pick)
			e := &t.Experts[pick]
			spent += e.In + float32(e.Out*e.Tokens)
			r.asked = append(r.asked, pick)
		}
		r.reward = -float64(lambda * spent / t.Unit)
		if t.Answers > 0 {
			ps, _ := out.Posterior(&t, &s.scratch)
			first, _ := learned.Best(ps)
			a := int(p.order[first])
			r.reward += 0.5 * float64(q[a])
			if a == row.Right {
				r.reward += 0.5
			}
		}
	}
}

// learn adds the gradient of the clipped surrogate of a group.
func (s *shard) learn(n *learned.Net, j *judge, sc *scene, lambda float32, group []rollout, o *Options) {
	var mean float64
	for i := range group {
		mean += group[i].reward
	}
	mean /= float64(len(group))
	out := j.nets[j.w.fold[sc.row]]
	var start, t learned.Task
	var begin, p player
	j.w.begin(out, sc, &start, &begin)
	start.Lambda = lambda
	for i := range group {
		r := &group[i]
		a := r.reward - mean
		if a == 0 {
			continue
		}
		clone(&t, &start)
		p = begin
		for step := range r.logs {
			ps, none := out.Posterior(&t, &s.scratch)
			s.probs = choose(n.Values(&t, ps, none, &s.scratch), step, t.Answers, o.Temperature, s.probs)
			pick := len(t.Experts)
			if step < len(r.asked) {
				pick = r.asked[step]
			}
			ratio := math.Exp(math.Log(max(s.probs[pick], 1e-30)) - r.logs[step])
			clipped := a > 0 && ratio > 1+o.ClipHigh || a < 0 && ratio < 1-o.ClipLow
			if !clipped {
				d := s.target(len(t.Experts))
				for k := range d {
					if t.Experts[k].Asked {
						continue
					}
					x := s.probs[k]
					if k == pick {
						x--
					}
					d[k] = float32(a * ratio * x / float64(o.Temperature))
				}
				n.ValueGrad(&t, ps, none, d, s.grad, &s.scratch)
			}
			if step < len(r.asked) {
				p.ask(&t, pick)
			}
		}
	}
}
