package replay

import (
	"cmp"
	"slices"
)

// PGR is the share of the gap in accuracy between a weak and a strong model that
// a policy closes (RouteLLM, arXiv 2406.18665, §3.2). Above 1 the policy beats the
// strong model, below 0 it is beaten by the weak one. ok is false if the strong
// model is not the more accurate one, so that there is no gap.
func PGR(p, weak, strong Point) (pgr float64, ok bool) {
	if !(strong.Accuracy > weak.Accuracy) {
		return 0, false
	}
	return (p.Accuracy - weak.Accuracy) / (strong.Accuracy - weak.Accuracy), true
}

// APGR is the average of PGR along a policy's curve from the weak model's cost to
// the strong one's: RouteLLM's measure, the area between the curve and the weak
// model's accuracy by the area between the two models, by the trapezoid rule.
// Mixing the two models by chance comes to 0.5.
//
// RouteLLM's axis is the share of tasks that the strong model is asked, not cost:
// give it Curve.StrongPoints, with weak and strong at Cost 0 and 1. Points by USD
// measure the same for two models whose calls cost the same each time, and are
// defined for policies that ask several.
//
// Points count as they are, without a hull: a setting that is worse than a mixture
// of others lowers the figure. Of several points at one cost their mean counts, as
// in RouteLLM. The curve begins at weak and ends at strong where it has no point
// there; these ends are always to be had. Points that cost less than weak or more
// than strong are left out. ok is false where there is no gap, or strong does not
// cost more.
func APGR(points []Point, weak, strong Point) (apgr float64, ok bool) {
	if _, ok := PGR(weak, weak, strong); !ok || !(strong.Cost > weak.Cost) {
		return 0, false
	}
	ps := []Point{}
	for _, p := range points {
		if p.Cost >= weak.Cost && p.Cost <= strong.Cost {
			ps = append(ps, p)
		}
	}
	slices.SortStableFunc(ps, func(a, b Point) int { return cmp.Compare(a.Cost, b.Cost) })
	ps = merge(ps)
	if len(ps) == 0 || ps[0].Cost > weak.Cost {
		ps = slices.Insert(ps, 0, weak)
	}
	if ps[len(ps)-1].Cost < strong.Cost {
		ps = append(ps, strong)
	}
	for i := 1; i < len(ps); i++ {
		a, _ := PGR(ps[i-1], weak, strong)
		b, _ := PGR(ps[i], weak, strong)
		apgr += (a + b) / 2 * (ps[i].Cost - ps[i-1].Cost) / (strong.Cost - weak.Cost)
	}
	return apgr, true
}

// merge makes one point of those at one cost. They are sorted.
func merge(ps []Point) []Point {
	var out []Point
	for i := 0; i < len(ps); {
		j, sum := i, 0.0
		for ; j < len(ps) && ps[j].Cost == ps[i].Cost; j++ {
			sum += ps[j].Accuracy
		}
		out = append(out, Point{Cost: ps[i].Cost, Accuracy: sum / float64(j-i)})
		i = j
	}
	return out
}

// StrongPoints are the points of a curve over the share of rows on which model
// strong was asked, in place of their cost. An index counts as in Points.
func (c *Curve) StrongPoints(strong int, index []int) []Point {
	shares := Curve{Runs: make([][]Outcome, len(c.Runs))}
	for s, run := range c.Runs {
		shares.Runs[s] = make([]Outcome, len(run))
		for i, o := range run {
			if shares.Runs[s][i].Right = o.Right; slices.Contains(o.Asked, strong) {
				shares.Runs[s][i].Cost = 1
			}
		}
	}
	return shares.Points(index)
}
