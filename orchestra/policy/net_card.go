package policy

import (
	"fmt"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// Card is what was measured of an expert, by the domains of a network (see
// Network.Domains). A domain that is missing gets the mean of the others.
type Card struct {
	Name   string             `json:"name"`  // of the model
	Tasks  int                `json:"tasks"` // measured in all
	Mean   float64            `json:"mean"`  // share of them solved
	Skill  map[string]float64 `json:"skill,omitempty"`
	Tokens map[string]float64 `json:"tokens,omitempty"`     // mean number of output tokens
	Logs   map[string]float64 `json:"log_tokens,omitempty"` // mean natural logarithm of output tokens + 1
	Spread float64            `json:"spread,omitempty"`     // standard deviation of that logarithm within a domain
}

// SkillOf is the part of a card that models.Info has room for.
func (c *Card) SkillOf() models.Skill {
	return models.Skill{Score: c.Mean, Tasks: c.Tasks, ByDomain: c.Skill}
}

// priorTasks is how many tasks the prior counts as beside what was measured.
const priorTasks = 8

// card translates a card.
func (n *Network) card(c *Card) (*learned.Card, error) {
	bad := func(format string, args ...any) (*learned.Card, error) {
		return nil, fmt.Errorf("policy: the card of %q: %s", c.Name, fmt.Sprintf(format, args...))
	}
	in := func(v, low, high float64) bool { return v >= low && v <= high }
	switch {
	case c.Name == "":
		return bad("it names no model")
	case !in(c.Mean, 0, 1):
		return bad("its mean is %v: a share of tasks is from 0 to 1", c.Mean)
	case !in(c.Spread, 0, 20):
		return bad("its spread is %v: use 0 to 20", c.Spread)
	}
	out, domain, ok := n.h.Card(&learned.Measures{Mean: c.Mean, Spread: c.Spread, Skill: c.Skill, Tokens: c.Tokens, Logs: c.Logs})
	if !ok {
		return bad("its numbers for %q are out of range", domain)
	}
	return &out, nil
}

// stated is the card of an expert of which only the Skill is known, or nothing:
// its share of tasks solved, drawn to the prior by as much as priorTasks weigh,
// and the output of an average expert.
func (n *Network) stated(th *thought, s *models.Skill) *learned.Card {
	if s.Tasks <= 0 {
		return n.prior
	}
	th.cards = th.cards[:len(th.cards)+1]
	c := &th.cards[len(th.cards)-1]
	total := float32(s.Tasks)
	c.Mean = (float32(s.Score)*total + n.prior.Mean*priorTasks) / (total + priorTasks)
	c.Tokens, c.LogTokens, c.Spread = n.prior.Tokens, n.prior.LogTokens, n.prior.Spread
	c.Skill = c.Skill[:0]
	each := total / float32(max(len(s.ByDomain), 1))
	for _, d := range n.h.Domains {
		v, ok := s.ByDomain[d]
		if !ok {
			c.Skill = append(c.Skill, c.Mean)
			continue
		}
		c.Skill = append(c.Skill, (float32(v)*each+c.Mean*priorTasks)/(each+priorTasks))
	}
	return c
}
