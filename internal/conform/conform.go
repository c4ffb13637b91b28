// Package conform holds what the conformance suites of models and tools share.
package conform

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// Grace is the time to return once a call's context is done.
	Grace = 2 * time.Second
	// abandon is the time after which such a call is left running.
	abandon = 30 * time.Second
)

// Problems gathers what is wrong. It is safe for concurrent use.
type Problems struct {
	mu    sync.Mutex
	found []error
}

// Errorf adds a problem.
func (p *Problems) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = append(p.found, fmt.Errorf(format, args...))
}

// Found lists the problems.
func (p *Problems) Found() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// panicked is the error of a call that panicked.
type panicked struct {
	value any
	stack []byte
}

func (e *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// Catch runs f and makes an error of a panic.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	return f()
}

// IsPanic reports whether err comes from Catch.
func IsPanic(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// Wait waits for a call whose context is done. It reports a call that takes too
// long, and false if it never came back.
func Wait[T any](p *Problems, back <-chan T) (outcome T, ok bool) {
	for i, limit := range []time.Duration{Grace, abandon} {
		t := time.NewTimer(limit)
		select {
		case outcome = <-back:
			t.Stop()
			return outcome, true
		case <-t.C:
		}
		if i == 0 {
			p.Errorf("the call still ran %v after its context was done", Grace)
		}
	}
	p.Errorf("the call never returned; its goroutine was left running")
	return outcome, false
}
