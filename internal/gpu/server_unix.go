//go:build unix

package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// guardScript waits for the end of its input, which is that of our process, and
// then kills its process group, itself included. Whoever asks the group to end
// does not mean the guard.
const guardScript = `trap '' HUP INT TERM; read -r x; kill -KILL 0`

// family is a server with its runners: a process group led by the guard. As the
// guard is waited for last, the group's number belongs to nobody else until
// then, and a signal to it reaches none but ours.
type family struct {
	cmd    *exec.Cmd
	guard  *exec.Cmd
	group  int
	record *record
	pipe   *os.File // the guard's input ends when it is closed

	mu   sync.Mutex
	over bool // the group's number may be another's
}

// startFamily starts the guard and the server. The caller must keep its thread
// until the server has ended.
func startFamily(cmd *exec.Cmd, dir string) (*family, error) {
	rec, err := newRecord(dir, cmd.Path)
	if err != nil {
		return nil, fmt.Errorf("a record in %s: %w", dir, err)
	}
	f := &family{cmd: cmd, record: rec}
	if err := f.startGuard(); err != nil {
		rec.remove()
		return nil, fmt.Errorf("its guard, a POSIX shell: %w", err)
	}
	cmd.Env = append(cmd.Env, rec.mark())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: f.group}
	dieWithUs(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errRun, err), f.end(killGrace))
	}
	return f, nil
}

func (f *family) startGuard() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	g := exec.Command("/bin/sh", "-c", guardScript)
	g.Env = []string{f.record.mark()}
	g.Dir = "/"
	g.Stdin = r
	g.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.Start(); err != nil {
		w.Close()
		return err
	}
	f.guard, f.group, f.pipe = g, g.Process.Pid, w
	return nil
}

// terminate asks the server to end.
func (f *family) terminate() {
	_ = f.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
}

// kill kills all of the group. What is there already dies on its own.
func (f *family) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		_ = syscall.Kill(-f.group, syscall.SIGKILL) // there may be none
	}
}

// end kills what is left after the server, waits until it is gone, and removes
// the record. It is called once, by the one that waited for the server.
func (f *family) end(limit time.Duration) error {
	f.kill()
	err := f.gone(time.Now().Add(limit))
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	_ = f.guard.Wait() // it was killed
	f.pipe.Close()
	if err != nil {
		f.record.abandon() // for the next start to try again
		return err
	}
	f.record.remove()
	return nil
}

// gone waits until nothing of the group is alive, nor a process that left it.
func (f *family) gone(until time.Time) error {
	return waitGone(until, func() ([]process, error) {
		left, err := ours(f.group, f.record.Token)
		if err != nil {
			return nil, nil // without a list of processes the group's end is all that can be done
		}
		for _, p := range left {
			if p.group != f.group {
				f.record.kill(p)
			}
		}
		return left, nil
	})
}

// waitGone waits until no process is listed, which it looks at more and more
// rarely.
func waitGone(until time.Time, list func() ([]process, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left, err := list()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("still there: %v", left)
		}
		time.Sleep(wait)
	}
}

// process is one of ours.
type process struct {
	pid, group int
	command    string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.command) }
