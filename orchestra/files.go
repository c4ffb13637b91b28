package orchestra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ErrRunExists means that a new run has the id of one whose events are kept
// already: resume that one, or give Task.ID another value.
var ErrRunExists = errors.New("orchestra: a run with this id is kept already")

// ErrInUse means that another process is playing the run.
var ErrInUse = errors.New("orchestra: the run is in use by another process")

// FileCheckpoint keeps each run in a file of JSON lines in one directory, as
// Trajectory.WriteTo writes them. Every event is written and synced before
// Append returns. It is safe for concurrent use; a run has one writer at a time,
// which on Unix is enforced across processes.
type FileCheckpoint struct {
	dir  string
	mu   sync.Mutex
	open map[string]*runFile
	shut bool
}

type runFile struct {
	mu sync.Mutex
	f  *os.File
}

const runSuffix = ".run.jsonl"

// NewFileCheckpoint keeps runs in dir, which is made if it does not exist.
func NewFileCheckpoint(dir string) (*FileCheckpoint, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("orchestra: the directory for runs: %w", err)
	}
	return &FileCheckpoint{dir: dir, open: map[string]*runFile{}}, nil
}

func (c *FileCheckpoint) path(run string) string {
	return filepath.Join(c.dir, url.PathEscape(run)+runSuffix)
}

// Append keeps an event. Errors are ErrRunExists, ErrInUse and those of the file
// system.
func (c *FileCheckpoint) Append(_ context.Context, run string, event json.RawMessage) error {
	var head struct {
		Event string `json:"event"`
		After int    `json:"after"`
	}
	if err := json.Unmarshal(event, &head); err != nil {
		return err
	}
	f, err := c.file(run, head.Event, head.After)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line := append(slices.Clip([]byte(event)), '\n')
	end, err := f.f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err = f.f.Write(line); err == nil {
		err = f.f.Sync()
	}
	if err != nil { // the disk is full, perhaps: half a line must not stay
		err = errors.Join(err, f.f.Truncate(end))
	}
	if err == nil && head.Event != (Stopped{}).event() {
		return nil
	}
	c.mu.Lock() // it was the last one
	defer c.mu.Unlock()
	delete(c.open, run)
	return errors.Join(err, f.f.Close())
}

// file returns the open file of a run.
func (c *FileCheckpoint) file(run, event string, after int) (*runFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return nil, fmt.Errorf("orchestra: the checkpoint: %w", os.ErrClosed)
	}
	if f := c.open[run]; f != nil {
		if event == (Started{}).event() || event == (Resumed{}).event() {
			return nil, fmt.Errorf("%w: %q", ErrInUse, run)
		}
		return f, nil
	}
	flags := os.O_RDWR
	if event == (Started{}).event() {
		flags |= os.O_CREATE // a crash may have left an empty one
	}
	f, err := os.OpenFile(c.path(run), flags, 0o600)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("orchestra: the events of %q are not in %s: resume a run with the checkpoint that kept it: %w", run, c.dir, err)
	case err != nil:
		return nil, err
	}
	if err = lockFile(f); err == nil {
		err = dropTornTail(f)
	}
	if err == nil {
		err = follows(f, run, event, after)
	}
	if err == nil && event == (Started{}).event() {
		err = syncDir(c.dir)
	}
	if err != nil {
		_ = f.Close() // it was not written
		return nil, err
	}
	r := &runFile{f: f}
	c.open[run] = r
	return r, nil
}

// ErrStale means that a run went on since the trajectory was read.
var ErrStale = errors.New("orchestra: the run went on since its trajectory was read")

// follows checks that an event that begins a part stands where it belongs.
func follows(f *os.File, run, event string, after int) error {
	if event != (Started{}).event() && event != (Resumed{}).event() {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines, buf := 0, make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		lines += bytes.Count(buf[:n], []byte("\n"))
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case event == (Started{}).event() && lines > 0:
		return fmt.Errorf("%w: %q: resume it, or give Task.ID another value", ErrRunExists, run)
	case event == (Resumed{}).event() && lines != after:
		return fmt.Errorf("%w: %q has %d events, and %d were read: read it again with Trajectory", ErrStale, run, lines, after)
	}
	return nil
}

// dropTornTail removes what stands behind the last line break: the process died
// while it wrote that.
func dropTornTail(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for at := end; at > 0; {
		n := min(int64(len(buf)), at)
		at -= n
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			if keep := at + int64(i) + 1; keep < end {
				return f.Truncate(keep)
			}
			return nil
		}
	}
	return f.Truncate(0)
}

// Trajectory reads the events of a run, for Resume. Half a line at the end,
// which a crash left, is left out.
func (c *FileCheckpoint) Trajectory(run string) (*Trajectory, error) {
	b, err := os.ReadFile(c.path(run))
	if err != nil {
		return nil, fmt.Errorf("orchestra: run %q: %w", run, err)
	}
	return ReadTrajectory(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1]))
}

// Unfinished lists the runs that Resume may go on with: those that were cut off
// and those that wait for replies.
func (c *FileCheckpoint) Unfinished() ([]string, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), runSuffix)
		run, err := url.PathUnescape(name)
		if !ok || err != nil {
			continue
		}
		t, err := c.Trajectory(run)
		if err != nil {
			continue // nothing that could be resumed
		}
		if stop := t.Result().Stop; stop == "" || stop == Paused || stop == Canceled {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// Close closes the files of runs that are under way, which then fail.
func (c *FileCheckpoint) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	var errs []error
	for run, f := range c.open {
		errs = append(errs, f.f.Close())
		delete(c.open, run)
	}
	return errors.Join(errs...)
}
