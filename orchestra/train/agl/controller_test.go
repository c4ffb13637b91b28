package agl

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// expert answers everything with one text, for a price a call.
func expert(name, says string, usd float64) models.Model {
	return modeltest.Func(models.Info{Name: name, Price: cost.Price{Request: cost.Per(usd)}, MaxOutput: 100}, func(context.Context, *models.Request) (*models.Response, error) {
		return &models.Response{Text: "<answer>" + says + "</answer>", Finish: models.FinishStop, Usage: cost.Usage{Input: 1, Output: 1, Requests: 1, Known: true}}, nil
	})
}

// toy plays with two experts: answer-1 is right and dear, answer-2 cheap and
// wrong.
func toy(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
	o, err := orchestra.New(orchestra.WithPolicy(j.Policy), orchestra.WithExperts(expert("strong", "right", 0.01), expert("weak", "wrong", 0.001)))
	if err != nil {
		return nil, false, err
	}
	res, err := o.Run(ctx, j.Task)
	return res, res.Answer == "right", err
}

// pick is a policy that asks the experts of a list in turn, for each task.
func pick(f *fake, experts ...string) {
	n := map[any]int{}
	f.sample = func(body map[string]any) string { // f is locked
		n[body["prompt"]]++
		return call("answer", experts[(n[body["prompt"]]-1)%len(experts)])
	}
}

func controller(t *testing.T, f *fake, n int, play Play, more ...func(*Config)) (*Controller, *[]*Group) {
	t.Helper()
	groups := &[]*Group{}
	cfg := Config{Client: f.client(), GroupSize: n, Play: play, OnGroup: func(g *Group) { *groups = append(*groups, g) }}
	for _, m := range more {
		m(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, groups
}

func TestControllerPlaysGroupsAndHandsThemBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 4, true)
		f.enqueue("b", 4, true)
		pick(f, "answer-1", "answer-2")
		c, groups := controller(t, f, 4, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 2 {
			t.Fatalf("%d groups", len(*groups))
		}
		for _, g := range *groups {
			for _, m := range g.Members {
				state, reward, failure := f.state(m.ID)
				if state != Succeeded || failure != "" || reward == nil || reward.Value != m.Reward || reward.Source != "tool-orchestra-go" || reward.Reason != "" {
					t.Errorf("%s: %s %+v %q", m.ID, state, reward, failure)
				}
				// Accuracy 1 for the right ones, which are the dearest: 0 of the cost's 0.5.
				if want := map[bool]float64{true: 1, false: 0}[m.Row.Right]; m.Reward != want {
					t.Errorf("%s: reward %v, want %v", m.ID, m.Reward, want)
				}
				if m.Row.ID != m.ID || m.Row.Group != g.Members[0].ID || m.Row.Task != strings.TrimPrefix(g.Key, "task ") || len(m.Row.Turns) != 1 || !slices.Equal(m.Row.Turns[0].ResponseIDs, bytesOf(call("answer", map[bool]string{true: "answer-1", false: "answer-2"}[m.Row.Right]))) {
					t.Errorf("row %+v", m.Row.Turns)
				}
			}
			if g.Flat {
				t.Errorf("%s is flat", g.Key)
			}
		}
		// Each group is claimed, rewarded and ended as a whole.
		var kinds []string
		for _, c := range f.calls {
			if kind, id, _ := strings.Cut(c, " "); strings.HasPrefix(id, "a-") {
				kinds = append(kinds, kind)
			}
		}
		if got := strings.Join(slices.Compact(kinds), " "); got != "running reward succeeded" {
			t.Errorf("order %q", got)
		}
	})
}

func bytesOf(s string) (out []int32) {
	for _, b := range []byte(s) {
		out = append(out, int32(b))
	}
	return out
}

func TestControllerAsksTheGatewayInTheTrainedDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 4, true)
		c, _ := controller(t, f, 4, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		seeds := map[any]bool{}
		for _, b := range f.bodies {
			prompt, _ := b["prompt"].(string)
			if !strings.HasPrefix(prompt, "<|im_start|>system\nYou are good at using tools. ") || !strings.Contains(prompt, "Problem: What is a?") {
				t.Errorf("prompt %q", prompt)
			}
			if b["max_tokens"] != 8768.0 || b["response_format"] != nil {
				t.Errorf("max_tokens %v, response_format %v", b["max_tokens"], b["response_format"])
			}
			seeds[b["seed"]] = true
		}
		if len(seeds) != 4 { // of one seed, a whole group would be the same
			t.Errorf("%d seeds for 4 rollouts: %v", len(seeds), seeds)
		}
	})
}

func TestControllerWaitsForWholeGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 3, true)
		time.AfterFunc(30*time.Second, func() { f.enqueue("b", 1, false); f.add("a-3", f.all["a-0"].Input, true) })
		start := time.Now()
		c, groups := controller(t, f, 4, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			if time.Since(start) < 30*time.Second {
				t.Error("played before the group was whole")
			}
			return toy(ctx, j)
		})
		if err := f.until(c, time.Hour); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 2 {
			t.Errorf("%d groups", len(*groups))
		}
		if _, reward, _ := f.state("b-0"); reward == nil || reward.Value != 1 {
			t.Errorf("validation's reward %+v, want the outcome", reward)
		}
	})
}

func TestControllerPlaysATaskThatComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 6, true)
		c, groups := controller(t, f, 3, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 2 || !f.over() {
			t.Errorf("%d groups", len(*groups))
		}
	})
}

func TestControllerPlaysNoMoreGroupsThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for _, task := range []string{"a", "b", "c", "d", "e"} {
			f.enqueue(task, 2, true)
		}
		var playing, most atomic.Int64
		start := time.Now()
		c, groups := controller(t, f, 2, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			n := playing.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(10 * time.Second)
			playing.Add(-1)
			return toy(ctx, j)
		}, func(cfg *Config) { cfg.Groups, cfg.Poll = 2, time.Hour })
		if err := f.until(c, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		// The next begin as soon as there is room, not at the next look.
		if took := time.Since(start); most.Load() != 4 || len(*groups) != 5 || took > time.Minute {
			t.Errorf("%d rollouts at once, %d groups, %s", most.Load(), len(*groups), took)
		}
	})
}

func TestControllerGivesUpGroupsThatStayIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 3, true)
		start := time.Now()
		c, _ := controller(t, f, 4, toy)
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a-0", "a-1", "a-2"} {
			if s, _, why := f.state(id); s != Failed || !strings.Contains(why, "only 3 of the group's 4 rollouts came") {
				t.Errorf("%s after %s: %s %q", id, time.Since(start), s, why)
			}
		}
	})
}

func TestControllerKeepsCrashedRolloutsInTheGroup(t *testing.T) {
	for name, crash := range map[string]struct {
		play Play
		why  string
	}{
		"an error": {func(context.Context, *Job) (*orchestra.Result, bool, error) {
			return nil, true, errors.New("no such environment")
		}, "no such environment"},
		"a panic": {func(context.Context, *Job) (*orchestra.Result, bool, error) { panic("oh") }, "panicked: oh"},
		"nothing": {func(context.Context, *Job) (*orchestra.Result, bool, error) { return nil, true, nil }, "neither a result nor an error"},
		"no trajectory": {func(context.Context, *Job) (*orchestra.Result, bool, error) {
			return &orchestra.Result{Answer: "x"}, true, nil
		}, "trajectory is empty"},
		"a run that failed": {func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			j.Task.Prompt = ""
			return toy(ctx, j)
		}, "Task.Prompt"},
		"a timeout": {func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			<-ctx.Done()
			return nil, true, ctx.Err()
		}, "longer than its timeout_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.enqueue("a", 4, true)
				c, groups := controller(t, f, 4, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
					if j.Rollout.ID == "a-2" {
						return crash.play(ctx, j)
					}
					return toy(ctx, j)
				})
				if err := f.until(c, 5*time.Minute); err != nil {
					t.Fatal(err)
				}
				state, reward, why := f.state("a-2")
				if state != Failed || reward == nil || reward.Value != 0 || !strings.Contains(reward.Reason, crash.why) || !strings.Contains(why, crash.why) {
					t.Errorf("%s %+v %q", state, reward, why)
				}
				for _, m := range (*groups)[0].Members {
					if m.ID == "a-2" {
						continue
					}
					if state, _, _ := f.state(m.ID); state != Succeeded || !m.Row.Right || m.Reward != 1 { // all are right, the crashed one is not
						t.Errorf("%s: %s, right %v, reward %v", m.ID, state, m.Row.Right, m.Reward)
					}
				}
			})
		})
	}
}

func TestControllerScoresRunsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		n := 0
		f.sample = func(body map[string]any) string { // one rollout never writes a call
			if n++; n == 1 {
				return call("answer", "answer-1")
			}
			return "I do not know."
		}
		c, groups := controller(t, f, 2, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		var failed, right int
		for _, m := range (*groups)[0].Members {
			if m.Failed != "" {
				failed++
				state, reward, _ := f.state(m.ID)
				if state != Succeeded || reward.Value != 0 || reward.Reason == "" || m.Row.Turns[0].FormatOK {
					t.Errorf("%s %+v %+v", state, reward, m.Row)
				}
			} else if m.Reward > 0 {
				right++
			}
		}
		if failed != 1 || right != 1 {
			t.Errorf("%d failed, %d right", failed, right)
		}
	})
}

func TestControllerDoesNotScoreGroupsOfDifferentPreferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		c, _ := controller(t, f, 2, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			if j.Rollout.ID == "a-1" {
				j.Task.Prefer.Cost = 1
			}
			return toy(ctx, j)
		})
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if s, r, why := f.state("a-0"); s != Failed || r.Value != 0 || !strings.Contains(why, "different preferences") {
			t.Errorf("%s %+v %q", s, r, why)
		}
	})
}

func TestControllerLevelsFlatGroups(t *testing.T) {
	for _, c := range []struct {
		minStd float64
		flat   bool
	}{{0, true}, {-1, false}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.add("a-0", []byte(`{"task_id":"a","prompt":"a?","pref_vec":{"accuracy":1,"cost":0.05}}`), true)
			f.add("a-1", f.all["a-0"].Input, true)
			pick(f, "answer-1", "answer-2")
			ctl, groups := controller(t, f, 2, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
				res, _, err := toy(ctx, j)
				return res, true, err // both are right: only the cost differs
			}, func(cfg *Config) { cfg.MinStd = c.minStd })
			if err := f.until(ctl, time.Minute); err != nil {
				t.Fatal(err)
			}
			g := (*groups)[0]
			// Accuracy does not differ, so rewards are 0 and 0.05: a deviation of 0.035.
			a, b := g.Members[0], g.Members[1]
			if g.Flat != c.flat || (a.Reward == b.Reward) != c.flat || a.Row.Reward == b.Row.Reward || a.Row.Dropped != (map[bool]train.Drop{true: train.Flat})[c.flat] {
				t.Errorf("min std %v: %+v and %+v, flat %v", c.minStd, a, b, g.Flat)
			}
		})
	}
}

func TestControllerWaitsWhileWeightsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		pick(f, "answer-1", "answer-2")
		start := time.Now()
		refused := 0
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/proxy/") || time.Since(start) > 40*time.Second {
				return false
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			refused++
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Agl-Paused", "true")
			reply(w, http.StatusTooManyRequests, map[string]string{"error": "gateway paused"})
			return true
		}
		c, groups := controller(t, f, 2, toy)
		if err := f.until(c, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if refused != 12 { // 2 rollouts, at 0, 7, … 35 s
			t.Errorf("asked %d times while paused", refused)
		}
		for _, m := range (*groups)[0].Members {
			if m.State != Succeeded || m.Row.Seconds > 1 {
				t.Errorf("%s %s, %v s: the pause is not the rollout's", m.State, m.Failed, m.Row.Seconds)
			}
		}
	})
}
