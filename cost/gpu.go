package cost

import (
	"strconv"
	"sync"
	"time"
)

// GPUs divides the time of GPUs of one's own among the calls that share them. A
// server that answers several requests in one batch works for all of them at
// once: at each moment a call is charged its share, the number of GPUs divided
// by the number of calls under way. Together the calls are charged for the time
// in which the GPUs had work, not for the times that they waited side by side. A
// call that has the GPUs to itself is charged all of them.
//
// No call is charged more than GPUs × its own time, which is what to reserve;
// models.OnGPUs does both.
// Start and Stop are safe for concurrent use.
type GPUs struct {
	mu    sync.Mutex
	n     int
	calls int
	at    time.Time
	each  time.Duration // what a call has been charged that was there from the beginning
}

// maxGPUs of one server; times of days stay in range.
const maxGPUs = 1 << 16

// NewGPUs is for a server on n GPUs. Fewer than one, or more than 65,536, is an
// *InvalidError.
func NewGPUs(n int) (*GPUs, error) {
	if n < 1 || n > maxGPUs {
		return nil, &InvalidError{Field: "NewGPUs", Value: strconv.Itoa(n), Fix: "state how many GPUs the server uses, from 1 to 65,536"}
	}
	return &GPUs{n: n}, nil
}

// Count is the number of GPUs.
func (g *GPUs) Count() int { return g.n }

// GPUUse is one call's use of GPUs.
type GPUUse struct {
	g       *GPUs
	from    time.Duration
	stopped bool
	took    time.Duration
}

// Start begins a call. Its Stop must be called, however it ends.
func (g *GPUs) Start() *GPUUse {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance()
	g.calls++
	return &GPUUse{g: g, from: g.each}
}

// Stop ends the call and returns its GPU time, for Usage.GPU. Stopping again
// returns the same.
func (u *GPUUse) Stop() time.Duration {
	u.g.mu.Lock()
	defer u.g.mu.Unlock()
	if !u.stopped {
		u.g.advance()
		u.g.calls--
		u.stopped, u.took = true, u.g.each-u.from
	}
	return u.took
}

// advance counts the time since the last call came or went. What does not
// divide is given to nobody: less than a nanosecond a time.
func (g *GPUs) advance() {
	now := time.Now()
	if g.calls > 0 {
		g.each += now.Sub(g.at) * time.Duration(g.n) / time.Duration(g.calls)
	}
	g.at = now
}
