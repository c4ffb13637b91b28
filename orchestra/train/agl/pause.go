package agl

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// pauses is how long a rollout waited for weights to move. It is not the
// rollout's doing, so it does not count as its latency.
type pauses struct{ ns atomic.Int64 }

func (p *pauses) total() time.Duration { return time.Duration(p.ns.Load()) }

// The wait before the gateway is asked again, while it is paused: what it asks
// for, within these bounds.
const (
	shortestPause = 100 * time.Millisecond
	usualPause    = 5 * time.Second
	longestPause  = time.Minute
)

// patient is a transport that asks a paused gateway again until the context
// ends. Other refusals are for models.Retry.
type patient struct {
	next   http.RoundTripper
	waited *pauses
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	next := p.next
	if next == nil {
		next = http.DefaultTransport
	}
	for {
		resp, err := next.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || !isPaused(resp.Header) || req.GetBody == nil {
			return resp, err
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		wait := usualPause
		if asked := retryAfter(resp.Header); asked > 0 {
			wait = min(max(asked, shortestPause), longestPause)
		}
		start := time.Now()
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-req.Context().Done():
			t.Stop()
		}
		p.waited.ns.Add(int64(time.Since(start)))
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		again := req.Clone(req.Context())
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
		req = again
	}
}
