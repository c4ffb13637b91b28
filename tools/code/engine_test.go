package code

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What the engine itself does wrong is not told as the program's fault.
func TestEngineThatFailsIsATypedError(t *testing.T) {
	for _, prelude := range []string{"", "no bytecode"} {
		j := &javascript{timeout: time.Second, memory: leastMemory, output: 100, parallel: 1, slots: make(chan struct{}, 1), prelude: prelude}
		r, err := j.Run(context.Background(), "1")
		var e *Error
		if !errors.As(err, &e) || e.Op != "run" || !errors.Is(err, ErrEngine) || r.Err != "" || r.Output != "" {
			t.Errorf("%q: %+v, %v", prelude, r, err)
		}
		if len(j.slots) != 0 {
			t.Error("the slot is still held")
		}
	}
}
