package orchestra_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// down is an expert that cannot be reached, which costs nothing.
type down struct{ echo }

func (m down) Generate(context.Context, *models.Request) (*models.Response, error) {
	return nil, &models.Error{Model: m.info.Name, Status: 401, Body: "no such key"}
}

// Experts that cannot be reached are not waited for while others are there.
func TestTheDefaultPolicyAsksOthersThanThoseThatAreDown(t *testing.T) {
	for dead := range 3 {
		var ms []models.Model
		for i := range 4 {
			e := expert(fmt.Sprint("m", i), "done", cost.Tokens(0.1, 0.4))
			e.info.Skill = models.Skill{Score: 0.9 - 0.1*float64(i), Tasks: 100} // the best ones are down
			if i < dead {
				ms = append(ms, down{e})
			} else {
				ms = append(ms, e)
			}
		}
		for _, more := range [][]tools.Tool{nil, {noop("lamp", nil)}} {
			o := newOrchestra(t, orchestra.WithExperts(ms...), orchestra.WithTools(more...))
			res, err := o.Run(t.Context(), orchestra.Task{Prompt: "What is the capital of France?"})
			if err != nil || res.Stop != orchestra.Answered {
				t.Errorf("%d are down: %s, %v", dead, res.Stop, err)
			}
			if n := len(res.Trajectory.Turns()); n != dead+2 {
				t.Errorf("%d are down, and it took %d turns", dead, n)
			}
		}
	}
	o := newOrchestra(t, orchestra.WithExperts(down{expert("m", "done", cost.Tokens(0.1, 0.4))}))
	if res, err := o.Run(t.Context(), orchestra.Task{Prompt: "What is the capital of France?"}); err == nil || len(res.Trajectory.Turns()) < 2 {
		t.Errorf("the only one is asked %d times: %v", len(res.Trajectory.Turns()), err)
	}
}
