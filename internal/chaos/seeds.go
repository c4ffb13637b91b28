package chaos

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// Env is the environment variable that replays one seed.
const Env = "CHAOS_SEED"

// Seeds yields the seeds 1 to n, or only that of CHAOS_SEED.
func Seeds(t testing.TB, n int) iter.Seq[uint64] {
	t.Helper()
	return func(yield func(uint64) bool) {
		if s := os.Getenv(Env); s != "" {
			seed, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatalf("%s=%q is not a seed: %v", Env, s, err)
			}
			yield(seed)
			return
		}
		for seed := uint64(1); seed <= uint64(n); seed++ {
			if !yield(seed) {
				return
			}
		}
	}
}

// Tell has t log, should it fail, what was drawn and how to replay it.
func (p *Plan) Tell(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\nreplay with %s=%d", p, Env, p.seed)
		}
	})
}
