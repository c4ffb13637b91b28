package train_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// A log of another shape: two models, no categories, answers that are words.
func TestLogsOfAnotherShape(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	var rows strings.Builder
	for i := range 1000 {
		if i%100 == 7 {
			rows.WriteString(`{"id":"broken","query":""}` + "\n")
			continue
		}
		hard := rng.IntN(2) == 0
		query, a, b := "an easy little question", "yes", "yes"
		if hard {
			query = "a hard and long problem"
			b = []string{"yes", "no"}[rng.IntN(2)]
		}
		right := map[bool]int{true: 1}[b == "yes"]
		fmt.Fprintf(&rows, `{"id":"%d","query":"%s, number %d","answer":"yes","in_tok_est":80,"out_tok_est":{"big":100,"small":100},"pred":{"big":%q,"small":%q},"correct":{"big":1,"small":%d}}`+"\n", i, query, i, a, b, right)
	}
	models, err := replay.ReadModels(strings.NewReader(`{"models":{"big":{"usd_per_mtok_in":5,"usd_per_mtok_out":20},"small":{"usd_per_mtok_in":0.2,"usd_per_mtok_out":0.8}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := replay.Read(models, strings.NewReader(rows.String()))
	if err != nil || len(l.Broken) != 10 || l.Broken[0].Line != 8 || l.Broken[0].ID != "broken" {
		t.Fatalf("%d broken rows, %v", len(l.Broken), err)
	}
	w := fitted(t, l, train.Bound(), train.WithEffort(0.2))
	sameDecisions(t, l, w, nil, 100)
	c, err := w.Replay(l, replay.Worths(1e-6, 0.1, 20), nil)
	if err != nil {
		t.Fatal(err)
	}
	singles := replay.Singles(l, nil)
	zero, auc := replay.AUC(singles, singles[1].Cost, singles[0].Cost), replay.AUC(c.Points(nil), singles[1].Cost, singles[0].Cost)
	t.Logf("AUC %.3f, zero router %.3f", auc, zero)
	if auc < zero+.05 {
		t.Error("easy and hard questions are not told apart")
	}
}
