package train_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// generated makes a log of that many rows: two kinds of tasks with words of
// their own, a dear model that is good at both, a cheap one that is good at one
// of them, and a cheap one that is good at nothing. Long outputs are wrong more
// often.
func generated(t testing.TB, rows int, seed uint64) *replay.Log {
	t.Helper()
	models := []replay.Model{{Name: "dear", In: 2, Out: 8}, {Name: "cheap", In: 0.1, Out: 0.4}, {Name: "poor", In: 0.1, Out: 0.3}}
	skill := map[string][]float64{"sums": {0.8, 0.85, 0.3}, "poems": {0.85, 0.35, 0.3}}
	words := map[string][]string{"sums": strings.Fields("add number total plus minus multiply digit count fraction product"), "poems": strings.Fields("verse rhyme author stanza poet metaphor meter line elegy sonnet")}
	rng := rand.New(rand.NewPCG(seed, 7))
	l := &replay.Log{Models: models}
	for i := range rows {
		category := []string{"sums", "poems"}[rng.IntN(2)]
		var text []string
		for range 8 {
			text = append(text, words[category][rng.IntN(10)])
		}
		r := replay.Row{ID: fmt.Sprint(i), Category: category, Answer: string(rune('A' + rng.IntN(4))), In: 110}
		r.Query = fmt.Sprintf("Task %d: %s?\nOptions: (A) one (B) two (C) three (D) four", i, strings.Join(text, " "))
		r.In = (len(r.Query)+3)/4 + 60
		for m := range models {
			p := replay.Reply{Out: 40 + rng.IntN(20)}
			if rng.Float64() < skill[category][m] {
				p.Answer, p.Right = r.Answer, true
			} else {
				p.Out += 20 + rng.IntN(40)
				if wrong := string(rune('A' + rng.IntN(5))); wrong != r.Answer && wrong != "E" {
					p.Answer = wrong
				}
			}
			r.Replies = append(r.Replies, p)
		}
		l.Rows = append(l.Rows, r)
	}
	return l
}
