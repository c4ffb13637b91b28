// Package leak fails a test binary that leaves goroutines behind.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main runs the tests and exits; with status 1 if they failed, or if goroutines
// that they started are still there a while after they ended.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := wait(5 * time.Second); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "%d goroutines left behind:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// wait gives goroutines that are about to end some time, and returns the rest.
func wait(limit time.Duration) []string {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left := others()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// others lists the stacks of all goroutines but this one and the runtime's.
func others() []string {
	buf := make([]byte, 4<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	var left []string
	for _, s := range stacks[1:] { // the first is this one
		switch {
		case strings.Contains(s, "os/signal.signal_recv"), strings.Contains(s, "os/signal.loop"),
			strings.Contains(s, "testing.(*M).startAlarm"), strings.Contains(s, "testing/internal"),
			strings.Contains(s, "internal/fuzz."), strings.Contains(s, "runtime.ensureSigM"),
			strings.Contains(s, "testing.tRunner.func1"):
		default:
			left = append(left, s)
		}
	}
	return left
}
