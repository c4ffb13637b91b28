package agl

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

func TestRunLeavesWhatIsCutOffToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		pick(f, "answer-1", "answer-2")
		ctx, cancel := context.WithCancel(t.Context())
		c, _ := controller(t, f, 2, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			if j.Rollout.ID == "a-0" {
				return toy(ctx, j) // done when the end comes
			}
			cancel()
			<-ctx.Done()
			return toy(ctx, j)
		})
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a-0", "a-1"} {
			if s, r, _ := f.state(id); s != Running || r != nil {
				t.Errorf("%s: %s %+v", id, s, r)
			}
		}
		before := map[string]string{"a-0": f.touched["a-0"]}
		next, groups := controller(t, f, 2, toy)
		if err := f.until(next, time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 1 || !f.over() || f.touched["a-0"] == before["a-0"] || f.touched["a-0"] != *f.all["a-0"].Status.Attempt {
			t.Errorf("%d groups; attempts %q, %q", len(*groups), before, f.touched)
		}
	})
}

func TestRunOfASharedQueueFailsWhatIsCutOff(t *testing.T) {
	for name, end := range map[string]func(r *http.Request) bool{
		"as it claims": func(r *http.Request) bool { return patches(r, "a-1") },
		"as it plays":  func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/proxy/") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.enqueue("a", 2, true)
				ctx, cancel := context.WithCancel(t.Context())
				f.before = func(_ http.ResponseWriter, r *http.Request) bool {
					if end(r) {
						cancel()
					}
					return false
				}
				c, groups := controller(t, f, 2, toy, func(cfg *Config) { cfg.Shared = true })
				if err := c.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if s, _, why := f.state("a-0"); s != Failed || !strings.Contains(why, "was stopped") || len(*groups) > 0 {
					t.Errorf("%s %q, %d groups", s, why, len(*groups))
				}
			})
		})
	}
}

func TestRunHandsBackWhatIsDoneWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		ctx, cancel := context.WithCancel(t.Context())
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if isReward(r) {
				cancel()
				synctest.Wait() // so that whatever the end does is done
			}
			return false
		}
		c, groups := controller(t, f, 2, toy)
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if !f.over() || len(*groups) != 1 {
			t.Errorf("over %v, %d groups", f.over(), len(*groups))
		}
	})
}

func TestRunDoesNotWaitLongForADeadServerWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		ctx, cancel := context.WithCancel(t.Context())
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if isReward(r) {
				cancel()
				w.WriteHeader(cut)
				return true
			}
			return false
		}
		c, _ := controller(t, f, 2, toy)
		start := time.Now()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestRunTakesOverWhatADeadControllerLeft(t *testing.T) {
	reward := func(f *fake, ids ...string) {
		for _, id := range ids {
			f.all[id].rewards["dead"] = []Reward{{Value: 0.25}}
		}
	}
	for name, c := range map[string]struct {
		left   func(f *fake)
		states string // of a-0 … a-2, and whether they were played again
	}{
		"killed as it claimed":          {func(f *fake) { f.running("a-0", "a-1") }, "succeeded! succeeded! succeeded!"},
		"killed as it played":           {func(f *fake) { f.running("a-0", "a-1", "a-2") }, "succeeded! succeeded! succeeded!"},
		"killed as it rewarded":         {func(f *fake) { f.running("a-0", "a-1", "a-2"); reward(f, "a-0") }, "succeeded! succeeded! succeeded!"},
		"killed before it moved":        {func(f *fake) { f.running("a-0", "a-1", "a-2"); reward(f, "a-0", "a-1", "a-2") }, "succeeded succeeded succeeded"},
		"killed as it moved":            {func(f *fake) { f.running("a-0", "a-1"); reward(f, "a-0", "a-1"); delete(f.all, "a-2") }, "succeeded succeeded"},
		"what is left cannot be scored": {func(f *fake) { f.running("a-0"); delete(f.all, "a-1"); delete(f.all, "a-2") }, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.enqueue("a", 3, true)
				c.left(f)
				ctl, _ := controller(t, f, 3, toy)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if err := ctl.Run(ctx); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, id := range []string{"a-0", "a-1", "a-2"} {
					if f.all[id] == nil {
						continue
					}
					s, r, why := f.state(id)
					again := ""
					if f.touched[id] != "" {
						again = "!"
					}
					got = append(got, string(s)+again)
					if s == Succeeded && r == nil || s == Failed && why == "" || again == "" && r != nil && r.Value != 0.25 {
						t.Errorf("%s: %s %+v %q", id, s, r, why)
					}
				}
				if strings.Join(got, " ") != c.states {
					t.Errorf("got %q, want %q", got, c.states)
				}
			})
		})
	}
}

func TestRunLeavesRunningRolloutsOfASharedQueueAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		f.running("a-0", "a-1")
		c, _ := controller(t, f, 2, toy, func(cfg *Config) { cfg.Shared = true })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil || len(f.calls) > 0 {
			t.Errorf("%v, calls %q", err, f.calls)
		}
	})
}
