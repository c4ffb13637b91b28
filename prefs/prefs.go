package prefs

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Vector is what a user wants of a run: how much the outcome, low cost and low
// latency matter, which tools to prefer, and which never to use. The zero
// Vector is Default. It is P of the paper's reward (arXiv 2511.21689, eq. 2).
type Vector struct {
	Accuracy float64            `json:"accuracy"`        // 0 to 1
	Cost     float64            `json:"cost"`            // 0 to 1: how much low cost matters
	Latency  float64            `json:"latency"`         // 0 to 1: how much low latency matters
	Use      map[string]float64 `json:"use,omitempty"`   // name of a tool, model or source: 0 to 1; absent = indifferent. It is one weight among others (for the embedded policy, 1 is worth about a third of full skill); to force a choice, use Never for the rest
	Never    []string           `json:"never,omitempty"` // names that must not be used; they are masked
}

// Default weighs accuracy first, then cost, then latency.
func Default() Vector { return Vector{Accuracy: 1, Cost: 0.5, Latency: 0.2} }

// IsZero reports whether nothing is set, so that v stands for Default.
func (v Vector) IsZero() bool {
	return v.Accuracy == 0 && v.Cost == 0 && v.Latency == 0 && len(v.Use) == 0 && len(v.Never) == 0
}

// OrDefault returns v, or Default for the zero Vector. A Vector that only says
// Use or Never gets Default's other weights.
func (v Vector) OrDefault() Vector {
	if v.Accuracy == 0 && v.Cost == 0 && v.Latency == 0 {
		d := Default()
		d.Use, d.Never = v.Use, v.Never
		return d
	}
	return v
}

// Validate checks the weights, and every name against the known ones. Errors
// are *RangeError and *UnknownNameError.
func (v Vector) Validate(names []string) error {
	for _, w := range []struct {
		field string
		value float64
	}{{"Accuracy", v.Accuracy}, {"Cost", v.Cost}, {"Latency", v.Latency}} {
		if err := inRange(w.field, w.value); err != nil {
			return err
		}
	}
	for _, n := range v.used() {
		if err := inRange(fmt.Sprintf("Use[%q]", n), v.Use[n]); err != nil {
			return err
		}
		if !slices.Contains(names, n) {
			return unknown("Use", n, names)
		}
	}
	for _, n := range v.Never {
		if !slices.Contains(names, n) {
			return unknown("Never", n, names)
		}
	}
	return nil
}

func inRange(field string, w float64) error {
	if math.IsNaN(w) || w < 0 || w > 1 {
		return &RangeError{Field: field, Value: w}
	}
	return nil
}

// used lists the names in Use, sorted: all output is deterministic.
func (v Vector) used() []string {
	if len(v.Use) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(v.Use))
}

// Allows reports whether none of the names is in Never. Names are those of one
// offer: its tool, model and sources.
func (v Vector) Allows(names ...string) bool {
	for _, n := range v.Never {
		if slices.Contains(names, n) {
			return false
		}
	}
	return true
}

// Weight is the largest Use of the names, 0 if they are indifferent.
func (v Vector) Weight(names ...string) float64 {
	w := 0.0
	if len(v.Use) == 0 {
		return w
	}
	for _, n := range names {
		w = max(w, v.Use[n])
	}
	return w
}

// Weights is P of eq. 2: the Use of each name, then accuracy, cost and latency.
// Cost and latency weigh the negated metrics.
func (v Vector) Weights(names []string) []float64 {
	v = v.OrDefault()
	p := make([]float64, 0, len(names)+3)
	for _, n := range names {
		p = append(p, v.Use[n])
	}
	return append(p, v.Accuracy, v.Cost, v.Latency)
}

// Describe says v in words, for policies that read. It is empty where v is the
// Default, which policies assume.
func (v Vector) Describe() string {
	var parts []string
	if d := Default(); v.OrDefault().Accuracy != d.Accuracy || v.OrDefault().Cost != d.Cost || v.OrDefault().Latency != d.Latency {
		parts = append(parts, fmt.Sprintf("An accurate answer matters %s, low cost %s, a quick answer %s.", word(v.Accuracy), word(v.Cost), word(v.Latency)))
	}
	var strong, weak []string
	for _, n := range v.used() {
		switch w := v.Use[n]; {
		case w >= 0.5:
			strong = append(strong, n)
		case w > 0:
			weak = append(weak, n)
		}
	}
	if len(strong) > 0 {
		parts = append(parts, "Prefer "+strings.Join(strong, ", ")+".")
	}
	if len(weak) > 0 {
		parts = append(parts, "If in doubt, prefer "+strings.Join(weak, ", ")+".")
	}
	if len(v.Never) > 0 {
		never := slices.Sorted(slices.Values(v.Never))
		parts = append(parts, "Never use "+strings.Join(slices.Compact(never), ", ")+".")
	}
	return strings.Join(parts, " ")
}

func word(w float64) string {
	switch {
	case w >= 0.8:
		return "very much"
	case w >= 0.4:
		return "somewhat"
	case w > 0:
		return "a little"
	}
	return "not at all"
}

// RangeError is a weight outside 0 to 1.
type RangeError struct {
	Field string
	Value float64
}

// Error says what happened, and what to do about it where that is known.
func (e *RangeError) Error() string {
	return fmt.Sprintf("prefs: %s is %v: use a weight from 0 (does not matter) to 1 (matters most)", e.Field, e.Value)
}

// UnknownNameError is a preference for something that does not exist.
type UnknownNameError struct {
	Field string   // "Use" or "Never"
	Name  string   // as given
	Near  []string // known names that may have been meant, best first
	Known []string // all of them
}

// Error says what happened, and what to do about it where that is known.
func (e *UnknownNameError) Error() string {
	s := fmt.Sprintf("prefs: %s names %q, which is no tool, model or source of this orchestrator", e.Field, e.Name)
	if len(e.Near) > 0 {
		return s + ": did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	if len(e.Known) == 0 {
		return s + ": it has none, so add models or tools first"
	}
	return s + ": use one of " + strings.Join(e.Known, ", ")
}

func unknown(field, name string, names []string) error {
	known := slices.Compact(slices.Sorted(slices.Values(names)))
	type near struct {
		name string
		d    int
	}
	var ns []near
	for _, k := range known {
		d := distance(normal(name), normal(k))
		if d <= max(2, len(name)/3) || strings.Contains(normal(k), normal(name)) && len(name) >= 3 {
			ns = append(ns, near{k, d})
		}
	}
	slices.SortStableFunc(ns, func(a, b near) int { return a.d - b.d })
	e := &UnknownNameError{Field: field, Name: name, Known: known}
	for _, n := range ns[:min(3, len(ns))] {
		e.Near = append(e.Near, n.name)
	}
	return e
}

// normal forgets case and separators, which people mix up most.
func normal(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(s))
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
