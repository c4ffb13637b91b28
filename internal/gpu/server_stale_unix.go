//go:build unix

package gpu

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// unfinished is the age from which a record without content is no longer one
	// that is being written.
	unfinished = time.Hour
	// elsewhere is how long the record of another machine's dead owner is kept, on
	// a disk that machines share: its processes are not ours to see.
	elsewhere = 30 * 24 * time.Hour
)

// stale goes through the records that nobody owns.
func stale(ctx context.Context, dir string, kill bool) ([]Stale, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Stale
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), recordPrefix) || !e.Type().IsRegular() {
			continue
		}
		r, age, err := takeRecord(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it has an owner, or none that we could know of
		}
		found, err := r.stale(ctx, age, kill)
		all, errs = append(all, found...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// stale looks for the processes of a record that we hold, and gives it up.
func (r *record) stale(ctx context.Context, age time.Duration, kill bool) ([]Stale, error) {
	host, boot := machine()
	switch {
	case r.Token == "" && age < unfinished, r.Token != "" && r.Host != host && age < elsewhere:
		r.abandon()
		return nil, nil
	case r.Token == "", r.Host != host, r.Boot != boot: // nothing of it lives here
		if kill {
			r.remove()
		} else {
			r.abandon()
		}
		return nil, nil
	}
	left, err := ours(0, r.Token)
	var found []Stale
	for _, p := range left {
		found = append(found, Stale{PID: p.pid, Command: p.command, Owner: r.Owner, Started: r.Started})
	}
	if err != nil || !kill {
		r.abandon()
		return found, err
	}
	until := time.Now().Add(killGrace)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	dying := map[int]int{} // pid → group, of those that are no longer marked but still ending
	err = waitGone(until, func() ([]process, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now, err := ours(0, r.Token)
		for _, p := range now {
			dying[p.pid] = p.group
			r.kill(p)
		}
		if err != nil || len(now) > 0 {
			return now, err
		}
		return ending(dying)
	})
	if err != nil {
		r.abandon()
		return found, err
	}
	r.remove()
	return found, nil
}

// ending lists those that are still there in the group in which they were. A
// dying process gives up its environment before the GPU's memory.
func ending(dying map[int]int) ([]process, error) {
	var left []process
	looked := map[int]bool{}
	for _, group := range dying {
		if group == 0 || looked[group] {
			continue
		}
		looked[group] = true
		in, err := ours(group, "")
		if err != nil {
			return nil, err
		}
		for _, p := range in {
			if g, was := dying[p.pid]; was && g == group {
				left = append(left, p)
			}
		}
	}
	return left, nil
}
