package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Question is a task whose answer can be checked.
type Question struct {
	Domain string // one of the network's domains (policy.Network.Domains), or "" if it is of none
	Prompt string
	Check  func(answer string) bool // whether an answer is right
}

// Measured is what Calibrate found out about an expert.
type Measured struct {
	Card   policy.Card
	Asked  int         // questions put to it
	Right  int         // of them solved
	Failed int         // of them without an answer, which counts as wrong
	Margin float64     // the share solved is known to ± this much, with 95 % confidence
	Spent  cost.Amount // on this expert
}

// Calibrate measures experts on questions of the user's own, under a budget, for
// policy.WithCards. The questions are asked one after another, taking turns among
// the domains, and each is put to all experts before the next, so that a budget
// which ends early leaves cards that compare. About 50 questions a domain are
// worth while; 50 in all were measured as too few to be better than no cards. It
// returns what it has with an error that wraps cost.ErrExceeded if the budget
// ended it, or the context's cause. The meter in the context bounds it too.
func Calibrate(ctx context.Context, experts []models.Model, questions []Question, b cost.Budget) ([]Measured, error) {
	var err error
	var asked []tools.Tool
	for i, m := range experts {
		t, err := tools.Answer(m)
		if err != nil {
			return nil, fmt.Errorf("train: Calibrate: expert %d: %w", i+1, err)
		}
		asked = append(asked, t)
	}
	for i, q := range questions {
		if q.Prompt == "" || q.Check == nil {
			return nil, fmt.Errorf("train: Calibrate: question %d has no prompt or no check", i+1)
		}
	}
	meter := cost.FromContext(ctx)
	if meter != nil {
		meter, err = meter.Child("calibrate", b)
	} else {
		meter, err = cost.NewMeter("calibrate", b)
	}
	if err != nil {
		return nil, err
	}
	defer meter.Close()
	if b.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.Time, fmt.Errorf("train: Calibrate: Budget.Time is over: %w", cost.ErrExceeded))
		defer cancel()
	}
	ctx = cost.NewContext(ctx, meter)
	tallies := make([]examined, len(experts))
	for _, i := range inTurns(questions) {
		for k, t := range asked {
			before := meter.Spent()
			rows := len(meter.Ledger())
			right, ok, err := examine(ctx, t, &questions[i])
			if err != nil {
				return report(experts, tallies), err
			}
			tallies[k].add(questions[i].Domain, right, ok, meter.Ledger()[rows:], meter.Spent().USD-before.USD)
		}
	}
	return report(experts, tallies), nil
}

// inTurns orders questions so that the domains take turns.
func inTurns(questions []Question) []int {
	turn := make([]int, len(questions))
	seen := map[string]int{}
	order := make([]int, len(questions))
	for i, q := range questions {
		order[i], turn[i] = i, seen[q.Domain]
		seen[q.Domain]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return turn[a] - turn[b] })
	return order
}

// examine puts a question to an expert. The error is for what ends the whole.
func examine(ctx context.Context, t tools.Tool, q *Question) (right, ok bool, err error) {
	args, err := json.Marshal(map[string]string{"model": t.Spec().Choices[0].Alias})
	if err != nil {
		return false, false, err
	}
	res, err := t.Call(ctx, tools.Call{Tool: t.Spec().Name, Args: args, Prompt: q.Prompt})
	switch {
	case ctx.Err() != nil:
		return false, false, context.Cause(ctx)
	case errors.Is(err, cost.ErrExceeded), errors.Is(err, cost.ErrUnpriced):
		return false, false, err
	case err != nil || len(res.Attempts) == 0:
		return false, false, nil
	}
	return q.Check(res.Attempts[0].Text), true, nil
}

// examined is what became of one expert's questions.
type examined struct {
	domains                 []string
	right                   []bool
	tokens                  []float64
	asked, solved, unusable int
	spent                   cost.Amount
}

func (x *examined) add(domain string, right, ok bool, rows cost.Ledger, usd cost.Amount) {
	x.asked++
	if right {
		x.solved++
	}
	if !ok {
		x.unusable++
	}
	var out float64
	for _, r := range rows {
		out += float64(r.Usage.Output)
	}
	x.domains, x.right, x.tokens = append(x.domains, domain), append(x.right, right), append(x.tokens, out)
	x.spent += usd
}

// report makes the cards. Shares of single domains are drawn to the whole's, as
// much as eight tasks weigh: those that networks are trained with are.
func report(experts []models.Model, tallies []examined) []Measured {
	const shrink = 8
	var out []Measured
	for k := range tallies {
		x := &tallies[k]
		n := float64(max(x.asked, 1))
		m := Measured{Asked: x.asked, Right: x.solved, Failed: x.unusable, Spent: x.spent}
		mean := (float64(x.solved) + 1) / (float64(x.asked) + 2)
		m.Margin = 1.96 * math.Sqrt(mean*(1-mean)/(n+2))
		m.Card = policy.Card{Name: experts[k].Info().Name, Tasks: x.asked, Mean: mean}
		if x.asked == 0 {
			out = append(out, m)
			continue
		}
		m.Card.Skill, m.Card.Tokens, m.Card.Logs = map[string]float64{}, map[string]float64{}, map[string]float64{}
		var tokens, logs float64
		for _, t := range x.tokens {
			tokens, logs = tokens+t/n, logs+math.Log1p(t)/n
		}
		for _, d := range slices.Compact(slices.Sorted(slices.Values(x.domains))) {
			var count, right, sum, sumLogs float64
			for i := range x.domains {
				if x.domains[i] == d {
					count++
					sum, sumLogs = sum+x.tokens[i], sumLogs+math.Log1p(x.tokens[i])
					if x.right[i] {
						right++
					}
				}
			}
			m.Card.Skill[d] = (right + shrink*mean) / (count + shrink)
			m.Card.Tokens[d] = (sum + shrink*tokens) / (count + shrink)
			m.Card.Logs[d] = (sumLogs + shrink*logs) / (count + shrink)
		}
		var square float64
		for i, t := range x.tokens {
			d := math.Log1p(t) - m.Card.Logs[x.domains[i]]
			square += d * d / n
		}
		m.Card.Spread = math.Sqrt(square) + 0.05
		out = append(out, m)
	}
	return out
}
