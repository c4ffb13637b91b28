package agl

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Where the first rollout is gone, the next one decides: otherwise two
// controllers would score a part of the group each.
func TestTheFirstRolloutThatIsThereDecidesWhoHasAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 4, true)
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			if patches(r, "a-0") {
				delete(f.all, "a-0")
			}
			if patches(r, "a-1") { // the other controller was a little quicker
				f.running("a-1")
			}
			return false
		}
		c, groups := controller(t, f, 4, toy, func(cfg *Config) { cfg.Shared = true })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil || len(*groups) > 0 || len(f.calls) > 0 {
			t.Errorf("%v, %d groups, calls %q", err, len(*groups), f.calls)
		}
	})
}

// Nobody would ever play them, since nothing is taken over.
func TestRunOfASharedQueueFailsWhatItClaimedInVain(t *testing.T) {
	for what, refused := range map[string]func(r *http.Request) bool{
		"a claim": func(r *http.Request) bool { return patches(r, "a-1") },
		"a reward": func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "a-1/attempt") && strings.HasSuffix(r.URL.Path, "/events")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.enqueue("a", 3, true)
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !refused(r) {
					return false
				}
				reply(w, http.StatusBadRequest, map[string]string{"detail": "no"})
				return true
			}
			c, _ := controller(t, f, 3, toy, func(cfg *Config) { cfg.Shared = true })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			err := c.Run(ctx)
			if s, _, why := f.state("a-0"); err == nil || s != Failed || why == "" || time.Since(start) > 30*time.Second {
				t.Errorf("%s: a-0 is %s (%q) after %s, error %v", what, s, why, time.Since(start), err)
			}
		})
	}
}

// A trainer that is a step ahead has the task in the queue again while the end
// of its last group is still running.
func TestATakenOverGroupIsNotFilledUpFromALaterStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.enqueue("a", 3, true)
		in := f.all["a-0"].Input
		f.running("a-1", "a-2")
		f.all["a-1"].rewards["dead"], f.all["a-2"].rewards["dead"] = []Reward{{Value: 0.25}}, []Reward{{Value: 0.5}}
		f.order = f.order[1:]
		delete(f.all, "a-0") // the trainer has read it
		for _, id := range []string{"b-0", "b-1", "b-2"} {
			f.add(id, in, true)
		}
		c, groups := controller(t, f, 3, toy)
		if err := f.until(c, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]float64{"a-1": 0.25, "a-2": 0.5} {
			if s, r, _ := f.state(id); s != Succeeded || r == nil || r.Value != want || f.touched[id] != "" {
				t.Errorf("%s: %s, %+v, played again: %v", id, s, r, f.touched[id] != "")
			}
		}
		if len(*groups) != 1 || len((*groups)[0].Members) != 3 || (*groups)[0].Members[0].ID != "b-0" {
			t.Errorf("groups %+v", *groups)
		}
	})
}

// A reply without a rollout is none, and may be asked for again.
func TestARolloutThatIsMissingIsMalformed(t *testing.T) {
	for _, body := range []string{"null", "{}", `{"rollout":null}`, `{"attempts":[]}`} {
		f := newFake(t)
		f.before = func(w http.ResponseWriter, _ *http.Request) bool { _, err := w.Write([]byte(body)); return err == nil }
		if _, err := f.client().Rollout(t.Context(), "r"); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// A list of nothing takes no memory for each of its entries.
func TestEventsAreReadOneAtATime(t *testing.T) {
	for _, body := range []string{"[" + strings.Repeat("0,", 1<<20) + "0]", "[" + strings.Repeat("null,", 1<<20) + "null]"} {
		f := newFake(t)
		f.before = func(w http.ResponseWriter, _ *http.Request) bool { _, err := w.Write([]byte(body)); return err == nil }
		c := f.client()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, _, err := c.Triplets(t.Context(), "r")
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(body)); len(rows) > 0 || (err == nil) != strings.Contains(body, "null") || got > 60 {
			t.Errorf("%.10q…: %d rows, %v, and %d bytes for each", body, len(rows), err, got)
		}
	}
}

// The reply to a claim that was made may be lost as ctx ends.
func TestRunOfASharedQueueFailsAClaimWhoseReplyWasLost(t *testing.T) {
	for _, last := range []string{"a-0", "a-1"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			f.enqueue("a", 3, true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.before = func(_ http.ResponseWriter, r *http.Request) bool {
				if patches(r, last) {
					cancel()
				}
				return false
			}
			c, groups := controller(t, f, 3, toy, func(cfg *Config) { cfg.Shared = true })
			if err := c.Run(ctx); err != nil || len(*groups) > 0 {
				t.Errorf("%v, %d groups", err, len(*groups))
			}
			for id := range f.all {
				if s, _, _ := f.state(id); s == Running {
					t.Errorf("lost reply of %s: %s is left behind, running", last, id)
				}
			}
			if s, _, _ := f.state("a-2"); s != Queuing {
				t.Errorf("a-2 is nobody's, and %s", s)
			}
		})
	}
}
