package models

import (
	"errors"
	"math/bits"
	"sync"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// longestRest bounds what Retry-After can do: a server may be wrong about a year.
const longestRest = time.Hour

// verdict is what the end of an attempt says about its replica.
type verdict int

const (
	unknown verdict = iota // nothing
	started                // it is alive; the attempt goes on
	alive
	resting // alive, and asks to be left alone for a while
	dead
)

// judge says what a failed attempt tells of its replica, for how long the
// replica wants to be left alone, and whether the failure is final: no other
// replica would do better.
func judge(err error) (v verdict, after time.Duration, final bool) {
	for _, refused := range []error{cost.ErrExceeded, cost.ErrNoMeter, cost.ErrClosed, cost.ErrUnpriced, ErrInvalidRequest} {
		if errors.Is(err, refused) {
			return unknown, 0, true
		}
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return unknown, 0, false
	case errors.Is(err, ErrContextOverflow):
		return alive, 0, true
	case e.Status == 429 && e.Retryable, e.Status == 503 && e.RetryAfter > 0:
		return resting, e.RetryAfter, false
	case e.Status >= 500 && e.Retryable, e.Status >= 300 && e.Status < 400,
		e.Status == 401, e.Status == 403, e.Status == 404, e.Status == 405, e.Status == 429:
		return dead, e.RetryAfter, false
	case e.Status != 0:
		return alive, 0, !e.Retryable // the request's fault, or its bad luck
	case !e.Sent:
		return dead, 0, false // it was not reached
	case e.Partial == nil && errors.Is(err, ErrTruncated):
		return dead, 0, false // it broke off before it replied
	}
	return unknown, 0, !e.Retryable
}

// fleet is what all maps of a pool know about its replicas.
type fleet struct {
	p  PoolPolicy
	mu sync.Mutex
	// turn breaks ties between replicas for requests without affinity.
	turn     int
	replicas []replica
}

type replica struct {
	seed    uint64 // of its rank for an affinity
	flight  int    // requests in flight
	fails   int    // in a row; 0 = it is well
	until   time.Time
	probing bool // a request tries whether it is back
	epoch   int  // grows when it dies: attempts from before say nothing new
	last    error
}

// attempt is a request that a replica was taken for.
type attempt struct {
	replica int
	epoch   int
	probe   bool
}

// change is what happened to a replica, for the log.
type change struct {
	out  time.Duration // it is left alone for so long
	back bool
}

func newFleet(replicas []Model, p PoolPolicy) *fleet {
	f := &fleet{p: p, replicas: make([]replica, len(replicas))}
	seen := map[[2]string]uint64{}
	for i, m := range replicas {
		info := m.Info()
		who := [2]string{info.Provider, info.Name}
		f.replicas[i].seed = scramble(hash(info.Provider+"\x00"+info.Name) + seen[who])
		seen[who]++ // those that nothing tells apart are told apart by their order
	}
	return f
}

// ready reports whether a request may go to the replica now.
func (r *replica) ready(now time.Time) bool {
	return !now.Before(r.until) && !(r.fails > 0 && r.probing)
}

// take chooses a replica that was not tried, and counts the request as in flight
// there until done.
func (f *fleet) take(now time.Time, affinity string, tried []bool) (attempt, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, sum, least, most := 0, 0, 0, 0
	for i := range f.replicas {
		r := &f.replicas[i]
		if tried[i] || !r.ready(now) {
			continue
		}
		if n == 0 || r.flight < least {
			least = r.flight
		}
		n, sum, most = n+1, sum+r.flight, max(most, r.flight)
	}
	if n == 0 {
		return attempt{}, false
	}
	bound := least
	if affinity != "" && most-least <= f.p.Spread {
		bound = (5*(sum+1)+4*n-1)/(4*n) - 1 // 1.25 times the mean with this request, rounded up, less this request
	}
	key, best, rank := hash(affinity), -1, uint64(0)
	for k := range f.replicas {
		i := k
		if affinity == "" {
			i = (k + f.turn) % len(f.replicas)
		}
		r := &f.replicas[i]
		if tried[i] || !r.ready(now) || r.flight > bound {
			continue
		}
		if affinity == "" {
			best = i
			break
		}
		if s := scramble(key ^ r.seed); best < 0 || s > rank {
			best, rank = i, s
		}
	}
	if affinity == "" {
		f.turn = (best + 1) % len(f.replicas)
	}
	r := &f.replicas[best]
	r.flight++
	a := attempt{replica: best, epoch: r.epoch, probe: r.fails > 0}
	r.probing = r.probing || a.probe
	return a, true
}

// done brings the replica of an attempt up to date.
func (f *fleet) done(now time.Time, a attempt, v verdict, after time.Duration, err error) (c change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.replicas[a.replica]
	if v != started {
		r.flight--
	}
	stale := a.epoch != r.epoch
	if !stale && a.probe {
		r.probing = false
	}
	after = min(after, longestRest)
	switch {
	case v == unknown || stale && v != resting:
		return change{}
	case v == dead:
		r.epoch++
		r.fails++
		c.out = max(f.down(r.fails), after)
		r.until, r.last = now.Add(c.out), err
		return c
	}
	if !stale && r.fails > 0 {
		r.fails, r.probing, c.back = 0, false, true
	}
	if until := now.Add(after); v == resting && until.After(r.until) {
		r.until, r.last, c = until, err, change{out: after}
	}
	return c
}

// down is how long a replica is left alone after so many failures in a row.
func (f *fleet) down(fails int) time.Duration {
	d := f.p.Down
	for range fails - 1 {
		if d > f.p.MaxDown/2 {
			return f.p.MaxDown
		}
		d *= 2
	}
	return d
}

// next says how long it is until a replica may be asked again, and what those
// that are left alone said last.
func (f *fleet) next(now time.Time) (wait time.Duration, last []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.replicas {
		r := &f.replicas[i]
		w := max(r.until.Sub(now), 0)
		if !r.ready(now) {
			last = append(last, r.last)
			if w == 0 {
				w = f.p.Down // the probe will have told by then, perhaps
			}
		}
		if i == 0 || w < wait {
			wait = w
		}
	}
	return wait, last
}

// hash is FNV-1a, which is the same in every process.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// scramble makes neighbours unlike each other: FNV alone ranks similar
// affinities alike.
func scramble(x uint64) uint64 {
	for _, odd := range [...]uint64{0x9e3779b97f4a7c15, 0xd1b54a32d192ed03} {
		hi, lo := bits.Mul64(x^odd, odd)
		x = hi ^ lo ^ x>>29
	}
	return x
}
