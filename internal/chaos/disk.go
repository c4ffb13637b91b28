package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
)

// ErrDiskFull is the error of a disk without space; it is syscall.ENOSPC.
var ErrDiskFull = fmt.Errorf("chaos: %w", syscall.ENOSPC)

// ErrUnsynced means that something was written and may not stay; it is
// syscall.EIO.
var ErrUnsynced = fmt.Errorf("chaos: not synced: %w", syscall.EIO)

// disk is a disk that fills up.
type disk struct {
	plan  *Plan
	point string
	mu    sync.Mutex
	full  bool
}

// next says how much of a write of n bytes takes place, and how it fails.
func (d *disk) next(n int) (written int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return 0, ErrDiskFull
	}
	switch d.plan.draw(d.point, diskKinds).Kind {
	case DiskFull:
		d.full = true
		return n / 2, ErrDiskFull
	case Unsynced:
		return n, ErrUnsynced
	}
	return n, nil
}

// Checkpoint makes a checkpoint of c whose disk fills up, and at times says that
// it failed where it kept the event.
func (p *Plan) Checkpoint(point string, c orchestra.Checkpoint) orchestra.Checkpoint {
	return &checkpoint{c: c, d: disk{plan: p, point: point}}
}

type checkpoint struct {
	c orchestra.Checkpoint
	d disk
}

// Append keeps an event, or not.
func (x *checkpoint) Append(ctx context.Context, run string, event json.RawMessage) error {
	written, fault := x.d.next(len(event))
	if written == len(event) {
		if err := x.c.Append(ctx, run, event); err != nil {
			return err
		}
	}
	return fault
}

// Writer makes a writer of w whose disk fills up: the write that finds it full
// writes half, as disks do.
func (p *Plan) Writer(point string, w io.Writer) io.Writer {
	return &writer{w: w, d: disk{plan: p, point: point}}
}

type writer struct {
	w io.Writer
	d disk
}

// Write writes b, or a part of it.
func (x *writer) Write(b []byte) (int, error) {
	written, fault := x.d.next(len(b))
	if written == 0 {
		return 0, fault
	}
	n, err := x.w.Write(b[:written])
	if err == nil {
		err = fault
	}
	return n, err
}
