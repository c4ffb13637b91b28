package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// A call that waits for somebody is one turn, over two parts of the run; the
// wait is nobody's latency.
func TestAPausedTurnIsOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := tools.Must(tools.New("ask", "Asks the user.", func(context.Context, text) (string, error) {
			time.Sleep(2 * time.Second)
			return "yes", nil
		}, tools.WithEffects(tools.NeedsApproval)))
		call := policy.Decision{Calls: []policy.Call{{Tool: "ask", Args: json.RawMessage(`{"text":"a"}`)}}}
		o, err := orchestra.New(orchestra.WithPolicy(decides{call, finish("done")}), orchestra.WithTools(ask))
		if err != nil {
			t.Fatal(err)
		}
		res, err := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
		if !errors.Is(err, orchestra.ErrPaused) {
			t.Fatal(err)
		}
		if r := fold(t, res.Trajectory); r.Failed == "" || r.Calls["ask"] != 0 {
			t.Errorf("paused: %+v", r)
		}
		time.Sleep(time.Hour)
		res, err = o.Resume(t.Context(), res.Trajectory, orchestra.Approve(res.Pending[0].ID)).Result()
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		if _, err := res.Trajectory.WriteTo(&whole); err != nil {
			t.Fatal(err)
		}
		resumed, _, _ := strings.Cut(whole.String(), `{"event":"called"`) // the process ended just then
		cut, err := orchestra.ReadTrajectory(strings.NewReader(resumed))
		if err != nil {
			t.Fatal(err)
		}
		if r := fold(t, cut); !strings.Contains(resumed, `{"event":"resumed"`) || r.Failed != "the run was cut off" {
			t.Errorf("cut off after it was resumed: %q", r.Failed)
		}
		r := fold(t, reread(t, res.Trajectory))
		if len(r.Turns) != 2 || r.Calls["ask"] != 1 || !r.Valid || r.Failed != "" || r.Turns[0].Seconds != 2 || r.Seconds != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// The calls of a turn may come back in another order than they were asked for.
func TestOutcomesGoToTheCallsThatTheyAreOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := tools.Must(tools.New("ask", "Asks the user.", func(context.Context, text) (string, error) {
			time.Sleep(2 * time.Second)
			return "yes", nil
		}, tools.WithEffects(tools.NeedsApproval)))
		o, err := orchestra.New(orchestra.WithTools(ask), orchestra.WithPolicy(decides{{Calls: []policy.Call{
			{Tool: "ask", Args: json.RawMessage(`{"text":"a"}`)}, {Tool: "ask", Args: json.RawMessage(`{"text":"b"}`)},
		}}, finish("done")}))
		if err != nil {
			t.Fatal(err)
		}
		res, _ := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
		if len(res.Pending) != 2 {
			t.Fatalf("%+v", res)
		}
		first, second := res.Pending[0].ID, res.Pending[1].ID
		res, _ = o.Resume(t.Context(), res.Trajectory, orchestra.Approve(second)).Result()
		res, err = o.Resume(t.Context(), res.Trajectory, orchestra.Refuse(first, "not now")).Result()
		if err != nil {
			t.Fatal(err)
		}
		r := fold(t, res.Trajectory)
		if calls := r.Turns[0].Calls; calls[0].Err != "refused" || calls[1].Err != "" || r.Calls["ask"] != 1 {
			t.Errorf("%+v", calls)
		}
	})
}

// A turn lasts until the next decision: calls that were made one after the other
// count with all of their time.
func TestATurnLastsUntilTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tools.Must(tools.New("echo", "Takes its time.", func(context.Context, text) (string, error) {
			time.Sleep(2 * time.Second)
			return "", nil
		}))
		both := echoes(`{"text":"a"}`, `{"text":"b"}`)
		last := both
		last.Finish = &policy.Finish{Text: "done"}
		o, err := orchestra.New(orchestra.WithPolicy(decides{both, last}), orchestra.WithTools(slow))
		if err != nil {
			t.Fatal(err)
		}
		res, err := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
		if err != nil {
			t.Fatal(err)
		}
		if r := fold(t, res.Trajectory); r.Turns[0].Seconds != 4 || r.Turns[1].Seconds != 2 || r.Seconds != 8 {
			t.Errorf("%v s and %v s of %v s", r.Turns[0].Seconds, r.Turns[1].Seconds, r.Seconds)
		}
	})
}
