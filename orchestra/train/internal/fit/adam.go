package fit

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// Adam is the optimiser Adam with decoupled weight decay, over a list of
// parameter slices. Its state is exported so that it can be kept.
type Adam struct {
	params [][]float32
	M, V   [][]float32 // running means of gradients and of their squares
	T      int         // steps made
}

// NewAdam starts an optimiser of parameters.
func NewAdam(params [][]float32) *Adam {
	a := &Adam{params: params}
	for _, p := range params {
		a.M, a.V = append(a.M, make([]float32, len(p))), append(a.V, make([]float32, len(p)))
	}
	return a
}

// Resume takes over the state of another optimiser of parameters of the same
// shape; false if the shapes differ.
func (a *Adam) Resume(from *Adam) bool {
	same := func(x [][]float32) bool {
		return slices.EqualFunc(x, a.M, func(p, q []float32) bool { return len(p) == len(q) })
	}
	if !same(from.M) || !same(from.V) || from.T < 0 {
		return false
	}
	a.M, a.V, a.T = from.M, from.V, from.T
	return true
}

const (
	beta1 = 0.9
	beta2 = 0.999
	tiny  = 1e-8
)

// Step moves the parameters against the gradient.
func (a *Adam) Step(grad [][]float32, rate, decay float64) {
	a.T++
	scale := float32(rate * math.Sqrt(1-math.Pow(beta2, float64(a.T))) / (1 - math.Pow(beta1, float64(a.T))))
	keep := float32(1 - rate*decay)
	for i, p := range a.params {
		m, v, g := a.M[i], a.V[i], grad[i]
		for k, x := range g {
			m[k] = float32(beta1*m[k]) + float32((1-beta1)*x)
			v[k] = float32(beta2*v[k]) + float32((1-beta2)*float32(x*x))
			p[k] = float32(keep*p[k]) - float32(scale*m[k])/(float32(math.Sqrt(float64(v[k])))+tiny)
		}
	}
}

// cosine falls from rate to a fiftieth of it.
func cosine(rate float64, at, of int) float64 {
	return rate * (0.02 + 0.98*0.5*(1+math.Cos(math.Pi*float64(at)/float64(max(of, 1)))))
}

// shards is the number of parts of a batch. It is fixed, so that sums do not
// depend on the number of cores.
const shards = 8

// shard is one part's memory.
type shard struct {
	grad    *learned.Net
	none    float32
	loss    float64
	scratch learned.Scratch
	task    learned.Task
	d       []float32
	probs   []float64
}

// group is the memory of batches of one network.
type group struct {
	shards [shards]*shard
	lists  [shards][][]float32
}

func newGroup(n *learned.Net, sizes learned.Sizes, list func(*learned.Net) [][]float32) *group {
	g := &group{}
	for i := range g.shards {
		g.shards[i] = &shard{grad: learned.New(n.Domains, n.Bound, sizes)}
		g.shards[i].grad.IDF, g.shards[i].grad.Text = nil, learned.Layer{}
		g.lists[i] = list(g.shards[i].grad)
	}
	return g
}

// run calls f once for each part, on all cores, and sums up the gradients into
// the first part's. It returns the sum of losses.
func (g *group) run(f func(part int, s *shard)) ([][]float32, float64) {
	var wait sync.WaitGroup
	work := func(from, step int) {
		for i := from; i < shards; i += step {
			s := g.shards[i]
			for _, l := range g.lists[i] {
				clear(l)
			}
			s.none, s.loss = 0, 0
			f(i, s)
		}
	}
	cores := min(runtime.GOMAXPROCS(0), shards)
	for c := 1; c < cores; c++ {
		wait.Go(func() { work(c, cores) })
	}
	work(0, cores)
	wait.Wait()
	loss := g.shards[0].loss
	for i := 1; i < shards; i++ {
		for k, l := range g.lists[i] {
			sum := g.lists[0][k]
			for j, x := range l {
				sum[j] += x
			}
		}
		g.shards[0].none += g.shards[i].none
		loss += g.shards[i].loss
	}
	return g.lists[0], loss
}

// each calls f for 0 to n-1 on all cores.
func each(n int, f func(i int)) {
	var wait sync.WaitGroup
	cores := min(runtime.GOMAXPROCS(0), n)
	for c := range cores {
		wait.Go(func() {
			for i := c; i < n; i += cores {
				f(i)
			}
		})
	}
	wait.Wait()
}
