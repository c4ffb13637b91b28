package orchestra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// sixTurns is an orchestrator whose runs take six turns: five steps, of which
// each asks a paid model, and an answer. What was really billed is appended to a
// file, as a provider would keep it.
func sixTurns(t testing.TB, bills string, opts ...orchestra.Option) *orchestra.Orchestrator {
	paid := models.Metered(modeltest.Func(models.Info{Name: "paid", Price: cost.Tokens(1, 2), MaxOutput: 100}, func(context.Context, *models.Request) (*models.Response, error) {
		f, err := os.OpenFile(bills, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = f.WriteString("0.00011\n")
		return &models.Response{Text: "seen", Finish: models.FinishStop, Usage: cost.Usage{Input: 50, Output: 30, Known: true}}, err
	}))
	step := func(name string, effects tools.Effects) tools.Tool {
		return fnTool{tools.Spec{Name: name, Description: "takes a step", MaxSpend: cost.Dollars(0.001), Fee: cost.Dollars(0.0001), Effects: effects},
			func(ctx context.Context, c tools.Call) (tools.Result, error) {
				r, err := paid.Generate(ctx, &models.Request{Messages: []models.Message{{Role: models.User, Text: string(c.Args)}}})
				if err != nil {
					return tools.Result{}, err
				}
				return tools.Result{Text: r.Text, Documents: []tools.Document{{ID: string(c.Args), Text: r.Text}}}, nil
			}}
	}
	// It decides on what was gathered, so that it takes a step that failed again.
	decide := decideFunc(func(_ context.Context, s *policy.State) (policy.Decision, error) {
		docs, _, _ := s.Work.Len()
		if docs == 5 {
			return say(fmt.Sprintf("done with %d", docs)), nil
		}
		tool := "step"
		if docs%2 == 1 {
			tool = "again"
		}
		return call(tool, `{"n":`+strconv.Itoa(docs)+`}`), nil
	})
	return newOrchestra(t, append(opts, orchestra.WithPolicy(decide), orchestra.WithTools(step("step", tools.Parallel), step("again", tools.Idempotent)))...)
}

// suicide kills its process after a number of events.
type suicide struct {
	orchestra.Checkpoint
	left int
}

func (s *suicide) Append(ctx context.Context, run string, event json.RawMessage) error {
	err := s.Checkpoint.Append(ctx, run, event)
	if s.left--; s.left == 0 {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
	return err
}

// TestChild is not a test but the process that TestKillAtEveryEvent kills.
func TestChild(t *testing.T) {
	dir := os.Getenv("RESUME_TEST_DIR")
	if dir == "" {
		t.Skip("it runs within TestKillAtEveryEvent")
	}
	left, _ := strconv.Atoi(os.Getenv("RESUME_TEST_EVENTS"))
	files, err := orchestra.NewFileCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := sixTurns(t, filepath.Join(dir, "bills"), orchestra.WithCheckpoint(&suicide{files, left}))
	if _, err := o.Run(context.Background(), orchestra.Task{ID: "six", Prompt: "take five steps"}); err != nil {
		t.Fatal(err)
	}
}

// Wherever a process dies, Resume finishes the run with the same answer, and
// every cent that was billed is in the ledger.
func TestKillAtEveryEvent(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		dir := t.TempDir()
		cmd := exec.Command(exe, "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), "RESUME_TEST_DIR="+dir, "RESUME_TEST_EVENTS="+strconv.Itoa(n), "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.Exited()) {
			t.Fatalf("the child: %v\n%s", err, out)
		}
		finished := err == nil
		files, err := orchestra.NewFileCheckpoint(dir)
		if err != nil {
			t.Fatal(err)
		}
		past, err := files.Trajectory("six")
		if err != nil {
			t.Fatal(err)
		}
		o := sixTurns(t, filepath.Join(dir, "bills"), orchestra.WithCheckpoint(files))
		if past.Result().Stop == orchestra.Answered {
			if _, err := o.Resume(context.Background(), past).Result(); !errors.Is(err, orchestra.ErrOver) {
				t.Errorf("after %d events the run is over, but Resume returned %v", n, err)
			}
			if finished {
				if n < 20 {
					t.Errorf("the run has only %d events", n)
				}
				return
			}
			continue
		}
		if runs, err := files.Unfinished(); err != nil || len(runs) != 1 || runs[0] != "six" {
			t.Errorf("after %d events: unfinished %v, %v", n, runs, err)
		}
		res, err := o.Resume(context.Background(), past).Result()
		if err != nil || res.Answer != "done with 5" {
			t.Errorf("after %d events: %q, %v", n, res.Answer, err)
			continue
		}
		checkBill(t, n, res, filepath.Join(dir, "bills"))
		kept, err := files.Trajectory("six")
		if err != nil {
			t.Fatal(err)
		}
		if again := kept.Result(); again.Answer != res.Answer || again.Spent.USD != res.Spent.USD || len(again.Ledger) != len(res.Ledger) {
			t.Errorf("after %d events: the file says %q for %v, the result %q for %v", n, again.Answer, again.Spent.USD, res.Answer, res.Spent.USD)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkBill compares the ledger with what was billed: they are equal but for
// calls that were under way, which are charged what was held for them.
func checkBill(t *testing.T, n int, res *orchestra.Result, bills string) {
	t.Helper()
	b, err := os.ReadFile(bills)
	if err != nil {
		t.Fatal(err)
	}
	billed := cost.Amount(strings.Count(string(b), "\n")) * cost.Dollars(0.00011)
	var measured, marked cost.Amount
	lost := 0
	for _, r := range res.Ledger {
		switch {
		case r.Basis == cost.Reserved:
			marked += r.USD
			lost++
		case r.Name == "paid":
			measured += r.USD
		}
	}
	if total := res.Ledger.Total().USD; total != res.Spent.USD {
		t.Errorf("after %d events: the ledger says %v, the result %v", n, total, res.Spent.USD)
	}
	if lost > 1 {
		t.Errorf("after %d events: %d rows are marked, and only one call was under way", n, lost)
	}
	if measured > billed || measured+marked < billed || lost == 0 && measured != billed {
		t.Errorf("after %d events: billed %v, measured %v, marked %v", n, billed, measured, marked)
	}
}
