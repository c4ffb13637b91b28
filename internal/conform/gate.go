package conform

import (
	"sync"
	"time"
)

// settle is the time in which deltas that come too late are caught.
const settle = 50 * time.Millisecond

// Gate lets deltas pass until the call that makes them has returned, and counts
// those that come later. It is safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	closed bool
	late   int
}

// Pass reports whether a delta comes in time.
func (g *Gate) Pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.late++
	}
	return !g.closed
}

// Close is called once the call has returned.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Late waits a moment and reports deltas that came after Close.
func (g *Gate) Late(p *Problems, call string) {
	time.Sleep(settle)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.late > 0 {
		p.Errorf("OnDelta was called after %s had returned (%d times)", call, g.late)
	}
}
