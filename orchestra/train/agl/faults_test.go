package agl

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

func patches(r *http.Request, id string) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+id)
}

func isReward(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events")
}

func TestControllerSurvivesTransientFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		hit    func(r *http.Request) bool
		answer func(w http.ResponseWriter)
	}{
		"a list is cut":        {func(r *http.Request) bool { return r.Method == http.MethodGet }, func(w http.ResponseWriter) { w.WriteHeader(cut) }},
		"a list is no JSON":    {func(r *http.Request) bool { return r.Method == http.MethodGet }, func(w http.ResponseWriter) { w.Write([]byte("<html>")) }},
		"a claim is cut":       {func(r *http.Request) bool { return patches(r, "a-1") }, func(w http.ResponseWriter) { w.WriteHeader(cut) }},
		"a claim fails":        {func(r *http.Request) bool { return patches(r, "a-0") }, func(w http.ResponseWriter) { w.WriteHeader(502) }},
		"a reward is cut":      {isReward, func(w http.ResponseWriter) { w.WriteHeader(cut) }},
		"the gateway fails":    {func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/proxy/") }, func(w http.ResponseWriter) { w.WriteHeader(503) }},
		"the model is busy":    {func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/proxy/") }, func(w http.ResponseWriter) { w.WriteHeader(429) }},
		"the gateway's is cut": {func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/proxy/") }, func(w http.ResponseWriter) { w.WriteHeader(cut) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.enqueue("a", 2, true)
				pick(f, "answer-1", "answer-2")
				left := 2
				f.before = func(w http.ResponseWriter, r *http.Request) bool {
					f.mu.Lock()
					defer f.mu.Unlock()
					if left == 0 || !fault.hit(r) {
						return false
					}
					left--
					fault.answer(w)
					return true
				}
				c, groups := controller(t, f, 2, toy)
				if err := f.until(c, 3*time.Minute); err != nil {
					t.Fatal(err)
				}
				if len(*groups) != 1 || left > 0 {
					t.Fatalf("%d groups, %d faults to come", len(*groups), left)
				}
				for _, m := range (*groups)[0].Members {
					if s, r, _ := f.state(m.ID); s != Succeeded || r == nil || m.Row.Right != (r.Value == 1) {
						t.Errorf("%s: %s %+v", m.ID, s, r)
					}
				}
			})
		})
	}
}

// A claim may arrive although its reply does not: the next try is then refused.
func TestControllerKnowsItsOwnClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		lost := false
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !patches(r, "a-0") || lost {
				return false
			}
			lost = true
			f.mu.Lock()
			defer f.mu.Unlock()
			f.patch(discard{http.Header{}}, r, f.all["a-0"])
			w.WriteHeader(cut)
			return true
		}
		c, groups := controller(t, f, 2, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 1 || len((*groups)[0].Members) != 2 {
			t.Errorf("groups %+v", *groups)
		}
	})
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header       { return d.h }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestControllersThatShareAQueuePlayEachGroupOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for _, task := range []string{"a", "b", "c", "d"} {
			f.enqueue(task, 3, true)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		share := func(cfg *Config) { cfg.Shared, cfg.Groups = true, 1 }
		one, a := controller(t, f, 3, toy, share)
		two, b := controller(t, f, 3, toy, share)
		done := make(chan error)
		go func() { done <- one.Run(ctx) }()
		go func() { done <- two.Run(ctx) }()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if !f.over() || len(*a)+len(*b) != 4 {
			t.Errorf("%d and %d groups, over %v", len(*a), len(*b), f.over())
		}
		for _, e := range f.all {
			if n := len(e.rewards[*e.Status.Attempt]); n != 1 || len(e.rewards) != 1 {
				t.Errorf("%s has %d rewards of %d attempts", e.ID, n, len(e.rewards))
			}
		}
	})
}

func TestTheFirstRolloutDecidesWhoHasAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 3, true)
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if patches(r, "a-0") { // the other controller was a little quicker
				f.mu.Lock()
				defer f.mu.Unlock()
				f.running("a-0")
			}
			return false
		}
		c, groups := controller(t, f, 3, toy, func(cfg *Config) { cfg.Shared = true })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil || len(*groups) > 0 || len(f.calls) > 0 {
			t.Errorf("%v, %d groups, calls %q", err, len(*groups), f.calls)
		}
	})
}

func TestControllerPlaysWithoutRolloutsThatSomebodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 4, true)
		pick(f, "answer-1", "answer-2")
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if patches(r, "a-0") { // after the list, before their claims
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.all, "a-1")
				f.all["a-2"].Status.State = Failed
			}
			return false
		}
		c, groups := controller(t, f, 4, toy)
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if g := (*groups)[0]; len(g.Members) != 2 || g.Members[0].ID != "a-0" || g.Members[1].ID != "a-3" || g.Members[0].Reward+g.Members[1].Reward != 1 {
			t.Errorf("members %+v", g.Members)
		}
	})
}

// The trainer deletes rollouts as it reads them, perhaps before all of a group
// are moved.
func TestControllerDoesNotMindRolloutsThatAreReadEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/a-1/attempt/") && isReward(r) {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.all, "a-1")
			}
			return false
		}
		c, groups := controller(t, f, 2, toy)
		if err := f.until(c, time.Minute); err != nil || len(*groups) != 1 {
			t.Fatal(err, len(*groups))
		}
		if s, _, _ := f.state("a-0"); s != Succeeded {
			t.Errorf("a-0 %s", s)
		}
	})
}

func TestRunEndsWhenTheServerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(cut); return true }
		c, _ := controller(t, f, 2, toy)
		start := time.Now()
		err := c.Run(t.Context())
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "is agl-server running there?") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took < 4*time.Minute || took > 5*time.Minute {
			t.Errorf("gave up after %s", took)
		}
	})
}

func TestRunEndsWhenAGroupCannotBeHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		gone := false
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			gone = gone || isReward(r)
			if gone {
				w.WriteHeader(cut)
			}
			return gone
		}
		c, _ := controller(t, f, 2, toy, func(cfg *Config) { cfg.Patience = 20 * time.Second })
		if err := c.Run(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRunEndsAtARefusalThatWaitingDoesNotCure(t *testing.T) {
	for status, want := range map[int]error{401: ErrKey, 404: ErrGone, 302: nil, 422: nil} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }
			c, _ := controller(t, f, 2, toy)
			start := time.Now()
			err := c.Run(t.Context())
			var e *Error
			if !errors.As(err, &e) || e.Status != status || want != nil && !errors.Is(err, want) || time.Since(start) > 0 {
				t.Errorf("status %d: %v after %s", status, err, time.Since(start))
			}
		})
	}
}

func TestRunEndsWhenOnGroupPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		c, _ := controller(t, f, 2, toy, func(cfg *Config) { cfg.OnGroup = func(*Group) { panic("disk full") } })
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("error %v", err)
		}
	})
}

// Only a paused gateway is waited for: a model that refuses is the model's fault.
func TestControllerGivesUpAModelThatStaysBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 2, true)
		asked := 0
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/proxy/") {
				return false
			}
			asked++
			w.WriteHeader(429)
			return true
		}
		c, _ := controller(t, f, 2, toy)
		start := time.Now()
		if err := f.until(c, time.Hour); err != nil {
			t.Fatal(err)
		}
		if s, r, why := f.state("a-0"); s != Failed || r.Value != 0 || !strings.Contains(why, "status 429") || time.Since(start) > 30*time.Second || asked != 2*4*3 { // in each of the turns that may fail in a row
			t.Errorf("%s %+v %q after %s, asked %d times", s, r, why, time.Since(start), asked)
		}
	})
}

func TestRunWaitsAsLongAsTheServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 1, true)
		start := time.Now()
		asked := 0
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if asked++; asked > 2 {
				return false
			}
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(429)
			return true
		}
		c, _ := controller(t, f, 1, toy)
		if err := f.until(c, time.Hour); err != nil || time.Since(start) < 40*time.Second || time.Since(start) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestRolloutsThatAreListedTwiceArePlayedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 4, true)
		f.order = append(f.order, f.order...)
		var played atomic.Int64
		c, groups := controller(t, f, 4, func(ctx context.Context, j *Job) (*orchestra.Result, bool, error) {
			played.Add(1)
			time.Sleep(time.Second) // so that a second group would have begun
			return toy(ctx, j)
		})
		if err := f.until(c, time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(*groups) != 1 || played.Load() != 4 {
			t.Errorf("%d groups, %d plays", len(*groups), played.Load())
		}
	})
}

func TestListsAreReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for i := range 600 { // more than a first look shows, and each task's rollouts far apart
			f.add("x-"+string(rune('a'+i%20))+"-"+time.Duration(i).String(), []byte(`{"prompt":"`+string(rune('a'+i%20))+`"}`), true)
		}
		played := 0
		c, _ := controller(t, f, 30, func(context.Context, *Job) (*orchestra.Result, bool, error) { return nil, false, errors.New("no") },
			func(cfg *Config) { cfg.OnGroup = func(*Group) { played++ } })
		if err := f.until(c, time.Minute); err != nil || played != 20 {
			t.Errorf("%v, %d groups", err, played)
		}
	})
}
