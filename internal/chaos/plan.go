package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says how much goes wrong. The zero Config is good for most tests.
type Config struct {
	Rate float64       // share of calls with a fault; 0 = 0.4, below 0: none
	Only []Kind        // nothing else goes wrong; nil = all that a point knows
	Not  []Kind        // these do not
	Slow time.Duration // longest time of slow replies and of Deaf ones; 0 = 30 ms
	Span int           // Cut, End, Reset, Stall and Garbage strike before that byte; 0 = 1,200
	Jump time.Duration // longest jump of the clock; 0 = the clock does not jump. Only bubbles of testing/synctest jump at once
}

// Plan draws what goes wrong from a seed. It is safe for concurrent use.
type Plan struct {
	seed uint64
	c    Config

	mu    sync.Mutex
	rngs  map[string]*rand.Rand // by point
	drawn []string
	kinds map[Kind]int
}

// New makes a plan. The same seed and Config draw the same.
func New(seed uint64, c Config) *Plan {
	if c.Rate == 0 {
		c.Rate = 0.4
	}
	if c.Slow <= 0 {
		c.Slow = 30 * time.Millisecond
	}
	if c.Span <= 0 {
		c.Span = 1200
	}
	return &Plan{seed: seed, c: c, rngs: map[string]*rand.Rand{}, kinds: map[Kind]int{}}
}

// Rand is the source of a point's draws, for choices of the test's own: use a
// name that is no point's. It is not safe for concurrent use.
func (p *Plan) Rand(point string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(point))
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

// Drawn counts the faults that were drawn so far, by kind.
func (p *Plan) Drawn() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make(map[Kind]int, len(p.kinds))
	for k, n := range p.kinds {
		counts[k] = n
	}
	return counts
}

// String lists what was drawn so far, in order.
func (p *Plan) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("seed %d: %s", p.seed, strings.Join(p.drawn, ", "))
}

// draw says what goes wrong with the next call of a point.
func (p *Plan) draw(point string, kinds []Kind) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rngs[point]
	if r == nil {
		r = p.Rand(point)
		p.rngs[point] = r
	}
	var f Fault
	if r.Float64() < p.c.Rate {
		if some := p.allowed(kinds); len(some) > 0 {
			f = p.fault(r, some[r.IntN(len(some))])
			p.kinds[f.Kind]++
		}
	}
	p.drawn = append(p.drawn, point+" "+f.String())
	return f
}

func (p *Plan) allowed(kinds []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool {
		return p.c.Only != nil && !slices.Contains(p.c.Only, k) || slices.Contains(p.c.Not, k) || k == Jump && p.c.Jump <= 0
	})
}

var (
	codes = []int{429, 429, 500, 502, 503, 503, 504, 529}
	// What servers say in Retry-After, and what they should not.
	afters = []string{"", "", "0", "0.02", "1", "3600", "-1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999999999999999"}
)

// fault draws the details of a kind.
func (p *Plan) fault(r *rand.Rand, k Kind) Fault {
	f := Fault{Kind: k}
	switch k {
	case Cut, End, Reset, Stall:
		f.At = r.IntN(p.c.Span)
	case Repeat, Drop:
		f.At = r.IntN(5)
	case Truncate:
		f.At = r.IntN(20)
	case Garbage:
		f.At, f.Bytes = r.IntN(p.c.Span), make([]byte, 1+r.IntN(20))
		for i := range f.Bytes {
			f.Bytes[i] = byte(r.Uint32())
		}
	case SlowHeader, SlowBody, Deaf:
		f.Wait = time.Duration(1 + r.Int64N(int64(p.c.Slow)))
	case Jump:
		f.Wait = time.Duration(1 + r.Int64N(int64(p.c.Jump)))
	case Status:
		f.Code, f.RetryAfter = codes[r.IntN(len(codes))], afters[r.IntN(len(afters))]
	}
	return f
}
