package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// Worths is a grid of what a right answer is worth, in USD: what a policy's
// curve is measured over. It is even in the logarithm.
func Worths(low, high float64, n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = low * math.Pow(high/low, float64(i)/float64(max(n-1, 1)))
	}
	return w
}

// Singles are the points of asking one model always, by model. Their Hull is the
// zero router of RouterBench: what mixing single models by chance comes to.
func Singles(l *Log, index []int) []Point {
	var ps []Point
	for m := range l.Models {
		c := Curve{Runs: [][]Outcome{Single(l, m).Runs[0]}}
		ps = append(ps, c.Points(index)[0])
	}
	return ps
}

// Single always asks one model.
func Single(l *Log, model int) *Curve {
	return route(l, l.Models[model].Name, 1, func(int, int) int { return model })
}

// Strongest is the model that is right most often, Cheapest the one that costs
// least.
func Strongest(l *Log) int {
	ps := Singles(l, nil)
	best := 0
	for m, p := range ps {
		if p.Accuracy > ps[best].Accuracy {
			best = m
		}
	}
	return best
}

// Cheapest is the model whose answers cost least.
func Cheapest(l *Log) int {
	ps := Singles(l, nil)
	best := 0
	for m, p := range ps {
		if p.Cost < ps[best].Cost {
			best = m
		}
	}
	return best
}

// Random asks one model, any with the same chance.
func Random(l *Log, seed uint64) *Curve {
	rng := rand.New(rand.NewPCG(seed, 0x72616e646f6d))
	return route(l, "random", 1, func(int, int) int { return rng.IntN(len(l.Models)) })
}

// route asks one model a row.
func route(l *Log, name string, settings int, pick func(setting, row int) int) *Curve {
	c := &Curve{Name: name}
	for s := range settings {
		run := make([]Outcome, len(l.Rows))
		for i := range l.Rows {
			m := pick(s, i)
			r := &l.Rows[i]
			run[i] = Outcome{Right: r.Replies[m].Right, Cost: l.Cost(r, m), Asked: []int{m}, Answer: r.Replies[m].Answer}
		}
		c.Runs = append(c.Runs, run)
	}
	return c
}

// Oracle asks the model whose answer is worth most after its cost, knowing which
// are right. No policy can reach it.
func Oracle(l *Log, worths []float64) *Curve {
	return route(l, "oracle", len(worths), func(s, row int) int {
		r := &l.Rows[row]
		return argmax(len(l.Models), func(m int) float64 {
			v := -l.Cost(r, m) / worths[s]
			if r.Replies[m].Right {
				v++
			}
			return v
		})
	})
}

func argmax(n int, f func(int) float64) int {
	best, top := 0, math.Inf(-1)
	for i := range n {
		if v := f(i); v > top {
			best, top = i, v
		}
	}
	return best
}

// means are each model's mean cost.
func means(l *Log) []float64 {
	c := make([]float64, len(l.Models))
	for m, p := range Singles(l, nil) {
		c[m] = p.Cost
	}
	return c
}

// texts are the features of rows, TF-IDF of hashed words; the weights come from
// train.
func texts(train, test *Log) (a, b [][]learned.TextFeature) {
	var h learned.Hasher
	df := make([]float64, learned.Buckets)
	for i := range train.Rows {
		for _, f := range h.Features(train.Rows[i].Query, nil) {
			df[f.Index]++
		}
	}
	idf := make([]float32, learned.Buckets)
	for i, n := range df {
		idf[i] = float32(math.Log(float64(len(train.Rows)+1)/(n+1))) + 1
	}
	of := func(l *Log) (out [][]learned.TextFeature) {
		for i := range l.Rows {
			out = append(out, slices.Clone(h.Features(l.Rows[i].Query, idf)))
		}
		return out
	}
	return of(train), of(test)
}

// Logistic asks the model that is worth most by a logistic regression for each
// on the words of the task, less its mean cost in train.
func Logistic(train, test *Log, worths []float64, seed uint64) *Curve {
	const epochs, rate = 6, 0.003
	a, b := texts(train, test)
	n := len(train.Models)
	w, bias := make([]float32, learned.Buckets*n), make([]float32, n)
	score := func(fs []learned.TextFeature, y []float32) {
		copy(y, bias)
		for _, f := range fs {
			for k, v := range w[int(f.Index)*n:][:n] {
				y[k] += float32(f.Value * v)
			}
		}
		for k := range y {
			y[k] = float32(1 / (1 + math.Exp(-float64(y[k]))))
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x6c6f67))
	y := make([]float32, n)
	for range epochs {
		for _, i := range rng.Perm(len(train.Rows)) {
			score(a[i], y)
			for k := range y {
				if train.Rows[i].Replies[k].Right {
					y[k]--
				}
				y[k] *= rate
				bias[k] -= y[k]
			}
			for _, f := range a[i] {
				row := w[int(f.Index)*n:][:n]
				for k, g := range y {
					row[k] -= float32(f.Value * g)
				}
			}
		}
	}
	p := make([][]float32, len(b))
	for i := range b {
		p[i] = make([]float32, n)
		score(b[i], p[i])
	}
	cost := means(train)
	return route(test, "logistic", len(worths), func(s, row int) int {
		return argmax(n, func(m int) float64 { return float64(p[row][m]) - cost[m]/worths[s] })
	})
}

// Nearest asks the model that is worth most by its rate on the k rows of train
// whose words are most alike.
func Nearest(train, test *Log, worths []float64, k int) *Curve {
	a, b := texts(train, test)
	index := make([][]learned.TextFeature, learned.Buckets) // by feature: rows of train; Index is unused
	rows := make([][]int32, learned.Buckets)
	for i, fs := range a {
		for _, f := range fs {
			index[f.Index] = append(index[f.Index], f)
			rows[f.Index] = append(rows[f.Index], int32(i))
		}
	}
	n := len(train.Models)
	p := make([][]float64, len(b))
	alike := make([]float32, len(a))
	order := make([]int, len(a))
	for i, fs := range b {
		clear(alike)
		for _, f := range fs {
			for j, g := range index[f.Index] {
				alike[rows[f.Index][j]] += float32(f.Value * g.Value)
			}
		}
		for j := range order {
			order[j] = j
		}
		slices.SortFunc(order, func(x, y int) int {
			if alike[x] != alike[y] {
				if alike[x] > alike[y] {
					return -1
				}
				return 1
			}
			return x - y
		})
		p[i] = make([]float64, n)
		for _, j := range order[:min(k, len(order))] {
			for m := range n {
				if train.Rows[j].Replies[m].Right {
					p[i][m] += 1 / float64(min(k, len(order)))
				}
			}
		}
	}
	cost := means(train)
	return route(test, "nearest", len(worths), func(s, row int) int {
		return argmax(n, func(m int) float64 { return p[row][m] - cost[m]/worths[s] })
	})
}

// CheapFirst asks models from the cheapest on, leaving out those that are both
// dearer and worse in train, until two answers agree, and takes the last if none
// do. Each setting leaves out one more of the cheapest.
func CheapFirst(train, test *Log) *Curve {
	ps := Singles(train, nil)
	order := make([]int, len(ps))
	for m := range order {
		order[m] = m
	}
	slices.SortFunc(order, func(a, b int) int {
		if ps[a].Cost < ps[b].Cost {
			return -1
		}
		return 1
	})
	var front []int
	for _, m := range order {
		if len(front) == 0 || ps[m].Accuracy > ps[front[len(front)-1]].Accuracy {
			front = append(front, m)
		}
	}
	c := &Curve{Name: "cheap first"}
	for first := range front {
		run := make([]Outcome, len(test.Rows))
		for i := range test.Rows {
			r, o := &test.Rows[i], &run[i]
			for _, m := range front[first:] {
				agreed := slices.ContainsFunc(o.Asked, func(b int) bool { return r.Replies[b].Answer != "" && r.Replies[b].Answer == r.Replies[m].Answer })
				o.Asked, o.Cost = append(o.Asked, m), o.Cost+test.Cost(r, m)
				if r.Replies[m].Answer != "" {
					o.Answer, o.Right = r.Replies[m].Answer, r.Replies[m].Right
				}
				if agreed {
					break
				}
			}
		}
		c.Runs = append(c.Runs, run)
	}
	return c
}

// NaiveBayes is told each row's category. It asks on while a further answer is
// worth more than it costs, one step ahead, and takes the likeliest answer;
// models are taken to err independently at their rates in the category.
func NaiveBayes(train, test *Log, worths []float64) *Curve {
	const prior = 4
	n := len(train.Models)
	type table struct{ right, cost []float64 }
	all, by, count := table{make([]float64, n), make([]float64, n)}, map[string]*table{}, map[string]float64{}
	for i := range train.Rows {
		r := &train.Rows[i]
		t := by[r.Category]
		if t == nil {
			t = &table{make([]float64, n), make([]float64, n)}
			by[r.Category] = t
		}
		count[r.Category]++
		for m := range n {
			c := train.Cost(r, m)
			all.cost[m], t.cost[m] = all.cost[m]+c/float64(len(train.Rows)), t.cost[m]+c
			if r.Replies[m].Right {
				all.right[m] += 1 / float64(len(train.Rows))
				t.right[m]++
			}
		}
	}
	rates := func(category string) (right, cost []float64) {
		t, k := by[category], count[category]
		for m := range n {
			a, c := all.right[m], all.cost[m]
			if t != nil {
				a, c = (t.right[m]+prior*a)/(k+prior), (t.cost[m]+prior*c)/(k+prior)
			}
			right, cost = append(right, min(max(a, 0.01), 0.99)), append(cost, c)
		}
		return right, cost
	}
	c := &Curve{Name: "naive Bayes, category told"}
	for _, worth := range worths {
		run := make([]Outcome, len(test.Rows))
		for i := range test.Rows {
			right, cost := rates(test.Rows[i].Category)
			run[i] = bayes(test, &test.Rows[i], right, cost, worth)
		}
		c.Runs = append(c.Runs, run)
	}
	return c
}

// bayes plays one row.
func bayes(l *Log, r *Row, right, cost []float64, worth float64) (o Outcome) {
	k := float64(max(options(r.Query), 2))
	type option struct {
		answer string
		weight float64 // logarithm of its odds against an answer that nobody gave
	}
	var seen []option
	for {
		// The chance of each answer seen, and of each of the others.
		sum := max(k-float64(len(seen)), 0)
		for _, s := range seen {
			sum += math.Exp(s.weight)
		}
		other, best := 0.0, -1
		if k > float64(len(seen)) {
			other = 1 / sum
		}
		p := make([]float64, len(seen))
		for j, s := range seen {
			p[j] = math.Exp(s.weight) / sum
			if best < 0 || p[j] > p[best] {
				best = j
			}
		}
		now := other
		if best >= 0 {
			now = max(p[best], other)
		}
		second := func(not int) float64 { // the likeliest answer but one
			top := other
			for j := range p {
				if j != not {
					top = max(top, p[j])
				}
			}
			return top
		}
		gain := func(m int) float64 {
			if slices.Contains(o.Asked, m) {
				return math.Inf(-1)
			}
			a, wrong := right[m], (1-right[m])/(k-1)
			v := max(k-float64(len(seen)), 0) * max(other*a, second(-1)*wrong)
			for j := range p {
				v += max(p[j]*a, second(j)*wrong)
			}
			if len(o.Asked) == 0 {
				return v - cost[m]/worth
			}
			return v - now - cost[m]/worth
		}
		m := argmax(len(right), gain)
		if len(o.Asked) == len(right) || len(seen) > 0 && gain(m) <= 0 {
			if best >= 0 {
				o.Answer = seen[best].answer
			}
			o.Right = o.Answer != "" && o.Answer == r.Answer
			return o
		}
		o.Asked, o.Cost = append(o.Asked, m), o.Cost+l.Cost(r, m)
		a := r.Replies[m].Answer
		if a == "" {
			continue
		}
		j := slices.IndexFunc(seen, func(s option) bool { return s.answer == a })
		if j < 0 {
			j = len(seen)
			seen = append(seen, option{answer: a})
		}
		seen[j].weight += math.Log(right[m] * (k - 1) / (1 - right[m]))
	}
}

// options counts the answers that a task lists.
func options(query string) int {
	i := strings.LastIndex(query, "Options:")
	if i < 0 {
		return 10
	}
	n := 0
	for strings.Contains(query[i:], "("+string(rune('A'+n))+") ") && n < 26 {
		n++
	}
	return n
}
