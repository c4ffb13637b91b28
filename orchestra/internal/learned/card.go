package learned

import "math"

// Measures are what was measured of an expert, by domains. What is missing is
// filled in by Card.
type Measures struct {
	Mean, Spread        float64
	Skill, Tokens, Logs map[string]float64
}

// Card translates measures for the network's domains: a domain that is missing
// gets the mean of the others, and what nobody measured is the prior's. If a
// number is out of range, ok is false, and domain is where.
func (h *Header) Card(m *Measures) (c Card, domain string, ok bool) {
	in := func(v, high float64) bool { return v >= 0 && v <= high }
	c = Card{Mean: float32(m.Mean), Spread: float32(m.Spread)}
	if m.Spread == 0 {
		c.Spread = h.Prior.Spread
	}
	for i, d := range h.Domains {
		skill, ok := m.Skill[d]
		if !ok {
			skill = m.Mean
		}
		tokens, ok := m.Tokens[d]
		if !ok {
			tokens = mean(m.Tokens, float64(h.Prior.Tokens[i]))
		}
		logs, ok := m.Logs[d]
		if !ok {
			logs = mean(m.Logs, math.Log1p(tokens)-0.1) // the logarithm of a mean is above the mean of logarithms
		}
		if logs = max(logs, 0); !in(skill, 1) || !in(tokens, 1e8) || !in(logs, 25) {
			return Card{}, d, false
		}
		c.Skill = append(c.Skill, float32(skill))
		c.Tokens = append(c.Tokens, float32(tokens))
		c.LogTokens = append(c.LogTokens, float32(logs))
	}
	return c, "", true
}

// mean of a map's values, added in no particular order to one precision that
// does not depend on it; or the default.
func mean(m map[string]float64, or float64) float64 {
	if len(m) == 0 {
		return or
	}
	sum := 0.0
	for _, v := range m {
		sum += math.Round(v * 1e6)
	}
	return sum / 1e6 / float64(len(m))
}
