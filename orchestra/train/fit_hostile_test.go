package train_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// Files hold 64 experts; a log that was made in memory may hold more.
func TestTooManyModelsToBindAreRefused(t *testing.T) {
	l := generated(t, 120, 1)
	for i := len(l.Models); i < 65; i++ {
		l.Models = append(l.Models, replay.Model{Name: fmt.Sprint("m", i), In: 1, Out: 1})
		for k := range l.Rows {
			l.Rows[k].Replies = append(l.Rows[k].Replies, replay.Reply{Answer: "A", Right: l.Rows[k].Answer == "A", Out: 9})
		}
	}
	if _, err := train.Fit(t.Context(), l, train.Bound(), train.WithEffort(0.001)); !errors.Is(err, train.ErrTrain) {
		t.Error(err)
	}
}

// A card need not tell everything: what it leaves out is filled in alike by the
// fast evaluator and by the policy.
func TestIncompleteCardsCountAlike(t *testing.T) {
	l := generated(t, 400, 3)
	w := fitted(t, l)
	cards := w.Cards(l, 0, 1)
	cards[0].Skill, cards[0].Tokens = nil, nil
	delete(cards[1].Skill, "sums")
	delete(cards[1].Logs, "poems")
	cards[2] = policy.Card{Name: cards[2].Name, Tasks: 9, Mean: 0.3}
	sameDecisions(t, l, w, cards, 60)
}
