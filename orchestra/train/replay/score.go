package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Point is what a policy comes to at one setting: mean accuracy at a mean cost.
type Point struct {
	Cost     float64 `json:"cost"`     // mean USD a task
	Accuracy float64 `json:"accuracy"` // share of tasks solved
}

// Hull is the non-decreasing concave hull of points: what can be had by mixing
// them, by cost. It begins with the best of the cheapest points.
func Hull(points []Point) []Point {
	ps := slices.Clone(points)
	slices.SortFunc(ps, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.Accuracy, a.Accuracy))
	})
	var h []Point
	for _, p := range ps {
		if len(h) > 0 && p.Accuracy <= h[len(h)-1].Accuracy {
			continue
		}
		for len(h) >= 2 {
			a, b := h[len(h)-2], h[len(h)-1]
			if (b.Accuracy-a.Accuracy)*(p.Cost-a.Cost) > (p.Accuracy-a.Accuracy)*(b.Cost-a.Cost) {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, p)
	}
	return h
}

// At is the accuracy of a hull at a cost. Below its first point it is 0, beyond
// its last one that of the last.
func At(hull []Point, cost float64) float64 {
	if len(hull) == 0 || cost < hull[0].Cost {
		return 0
	}
	for i := 1; i < len(hull); i++ {
		if a, b := hull[i-1], hull[i]; cost < b.Cost {
			return a.Accuracy + (b.Accuracy-a.Accuracy)*(cost-a.Cost)/(b.Cost-a.Cost)
		}
	}
	return hull[len(hull)-1].Accuracy
}

// AUC is the mean accuracy of the points' hull over costs from low to high.
// What cannot be had at a cost counts as nothing: a policy that is dear at its
// cheapest loses the part before.
func AUC(points []Point, low, high float64) float64 {
	h := Hull(points)
	if len(h) == 0 || high <= low {
		return 0
	}
	if h[0].Cost >= high {
		return 0
	}
	costs := []float64{max(low, h[0].Cost)}
	for _, p := range h {
		if p.Cost > costs[0] && p.Cost < high {
			costs = append(costs, p.Cost)
		}
	}
	costs = append(costs, high)
	var area float64
	for i := 1; i < len(costs); i++ {
		area += (costs[i] - costs[i-1]) * (At(h, costs[i-1]) + At(h, costs[i])) / 2
	}
	return area / (high - low)
}

// CostTo is the least cost at which a hull reaches an accuracy; ok is false if
// it never does.
func CostTo(hull []Point, accuracy float64) (cost float64, ok bool) {
	for i, p := range hull {
		if p.Accuracy < accuracy {
			continue
		}
		if i == 0 {
			return p.Cost, true
		}
		a := hull[i-1]
		return a.Cost + (p.Cost-a.Cost)*(accuracy-a.Accuracy)/(p.Accuracy-a.Accuracy), true
	}
	return 0, false
}

// Top is the most accurate point of a hull, or the zero Point.
func Top(hull []Point) Point {
	if len(hull) == 0 {
		return Point{}
	}
	return hull[len(hull)-1]
}

// Outcome is what a policy did with one row.
type Outcome struct {
	Right  bool
	Cost   float64 // USD
	Asked  []int   // models, in order
	Answer string  // that it finished with; "" = none
}

// Curve is what a policy did with all rows of a log at each of its settings.
type Curve struct {
	Name string
	Runs [][]Outcome // by setting, then by row
}

// Points are the means by setting. With an index, rows count as often as they
// occur in it.
func (c *Curve) Points(index []int) []Point {
	ps := make([]Point, len(c.Runs))
	for i, run := range c.Runs {
		n := 0
		add := func(o Outcome) {
			ps[i].Cost += o.Cost
			if o.Right {
				ps[i].Accuracy++
			}
			n++
		}
		if index == nil {
			for _, o := range run {
				add(o)
			}
		}
		for _, j := range index {
			add(run[j])
		}
		ps[i].Cost /= float64(max(n, 1))
		ps[i].Accuracy /= float64(max(n, 1))
	}
	return ps
}

// Interval is a mean with the bounds that hold 95 % of its bootstrap draws.
type Interval struct{ Mean, Low, High float64 }

// Bootstrap draws rows with replacement and returns the interval of f over the
// draws; f gets the indices of the rows drawn. Comparing two policies within f
// makes the comparison a paired one.
func Bootstrap(rows, draws int, seed uint64, f func(index []int) float64) Interval {
	rng := rand.New(rand.NewPCG(seed, 0x6f72636865737472))
	all := make([]int, max(rows, 0))
	for i := range all {
		all[i] = i
	}
	v := Interval{Mean: f(all)}
	if draws < 1 || rows < 1 {
		v.Low, v.High = v.Mean, v.Mean
		return v
	}
	values := make([]float64, draws)
	index := make([]int, rows)
	for d := range values {
		for i := range index {
			index[i] = rng.IntN(rows)
		}
		values[d] = f(index)
	}
	slices.Sort(values)
	v.Low, v.High = values[int(0.025*float64(draws))], values[min(int(0.975*float64(draws)), draws-1)]
	return v
}
