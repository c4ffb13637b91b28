package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func TestBootstrapOfNoRows(t *testing.T) {
	for _, rows := range []int{0, -1} {
		v := replay.Bootstrap(rows, 10, 1, func(index []int) float64 { return float64(len(index)) })
		if v != (replay.Interval{}) {
			t.Errorf("%d rows: %+v", rows, v)
		}
	}
}

// The time to read the list must not grow with the square of it.
func TestListsOfTooManyModelsAreRefusedAtOnce(t *testing.T) {
	var b strings.Builder
	for i := range 60000 {
		fmt.Fprintf(&b, `,"the same long beginning of %d":{"usd_per_mtok_in":0,"usd_per_mtok_out":0}`, i)
	}
	list := `{"models":{` + strings.TrimPrefix(b.String()[:b.Len()/2], ",")
	list = list[:strings.LastIndex(list, `,"`)] + "}}"
	start := time.Now()
	if _, err := replay.ReadModels(strings.NewReader(list)); err == nil || !strings.Contains(err.Error(), "more than 64") || time.Since(start) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}
