package gpu

import (
	"context"
	"time"
)

// Stale is a process of a server whose owner died without closing it: the server
// or one of its runners, which may hold a GPU's memory.
type Stale struct {
	PID     int
	Command string
	Owner   int       // the process that started the server, and is gone
	Started time.Time // when it did
}

// StaleRunners lists such processes below a ServerConfig.Dir; "" = the default.
// A process is listed only if it has in its environment the random mark of a
// record in that directory, and nobody alive owns the record. On Windows there
// are none: the system ends them with their owner.
func StaleRunners(dir string) ([]Stale, error) {
	dir, err := serverDir(dir)
	if err != nil {
		return nil, err
	}
	return stale(context.Background(), dir, false)
}

// KillStale kills what StaleRunners lists, waits until it is gone, and forgets
// it. It returns what it found, with an error if some of it is still there when
// the context ends or after 10 seconds. Call it before the GPU's free memory is
// looked at.
func KillStale(ctx context.Context, dir string) ([]Stale, error) {
	dir, err := serverDir(dir)
	if err != nil {
		return nil, err
	}
	return stale(ctx, dir, true)
}
