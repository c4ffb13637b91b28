package fit

import (
	"math"
	"runtime"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// adam is the optimiser Adam with decoupled weight decay, over a list of
// parameter slices.
type adam struct {
	params [][]float32
	m, v   [][]float32
	t      int
}

func newAdam(params [][]float32) *adam {
	a := &adam{params: params}
	for _, p := range params {
		a.m, a.v = append(a.m, make([]float32, len(p))), append(a.v, make([]float32, len(p)))
	}
	return a
}

const (
	beta1 = 0.9
	beta2 = 0.999
	tiny  = 1e-8
)

// step moves the parameters against the gradient.
func (a *adam) step(grad [][]float32, rate, decay float64) {
	a.t++
	scale := float32(rate * math.Sqrt(1-math.Pow(beta2, float64(a.t))) / (1 - math.Pow(beta1, float64(a.t))))
	keep := float32(1 - rate*decay)
	for i, p := range a.params {
		m, v, g := a.m[i], a.v[i], grad[i]
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
