package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// made is a log of two models, one of them dear and strong, the other cheap and
// good at easy questions only.
func made(rows int) *replay.Log {
	rng := rand.New(rand.NewPCG(1, 2))
	l := &replay.Log{Models: []replay.Model{{Name: "strong", In: 2, Out: 8}, {Name: "small", In: 0.1, Out: 0.4}}, Total: rows}
	for i := range rows {
		kind, chance := "easy", []float64{0.92, 0.9}
		if rng.IntN(2) == 0 {
			kind, chance = "hard", []float64{0.8, 0.4}
		}
		r := replay.Row{ID: fmt.Sprint(i), Category: kind, Answer: string(rune('A' + rng.IntN(4))), In: 80,
			Query: fmt.Sprintf("Question %d, which is %s.\nOptions: (A) red (B) green (C) blue (D) white", i, kind)}
		for _, c := range chance {
			p := replay.Reply{Answer: string(rune('A' + rng.IntN(4))), Out: 30 + rng.IntN(30)}
			if rng.Float64() < c {
				p.Answer = r.Answer
			}
			p.Right = p.Answer == r.Answer
			r.Replies = append(r.Replies, p)
		}
		l.Rows = append(l.Rows, r)
	}
	return l
}
