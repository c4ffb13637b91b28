package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	readyTimeout = time.Minute     // a server looks for its GPUs before it answers
	closeGrace   = 5 * time.Second // for unloading models when asked to end
	killGrace    = 10 * time.Second
)

// Server is a running Ollama server of our own, on a free port of the loopback
// interface, with the processes that it started. It runs until Close, and ends
// with this process however that ends: on Unix a small shell beside it sees
// that we are gone and kills the whole group, on Linux the kernel ends it too,
// and on Windows both are in a job that dies with us. Its methods may be called
// concurrently.
type Server struct {
	url     string
	version string
	binary  string
	grace   time.Duration
	log     *serverLog
	family  *family
	closing atomic.Bool
	ask     sync.Once
	done    chan struct{} // closed when no process is left, or none that would die
	ended   error         // how the server's process ended; set before done
	left    error         // what could not be ended; set before done
}

// StartServer starts an Ollama server and waits until it answers. The context
// bounds the start, not the server's life: when it ends first, nothing is left
// running. Servers whose owner died without closing them are ended before (see
// KillStale). The errors are of type *ServerError: ErrServerConfig,
// ErrServerMissing, ErrServerStart, ErrServerPort, ErrServerExited with the end of the log,
// ErrServerNotReady; with the context's own where that was the cause.
func StartServer(ctx context.Context, c ServerConfig) (*Server, error) {
	cmd, dir, err := c.command()
	if err != nil {
		return nil, err
	}
	// One that cannot be killed holds memory, which is for the planner to see:
	// it does not stop a server from starting.
	_, _ = KillStale(ctx, dir)
	s := &Server{binary: cmd.Path, grace: closeGrace, log: newServerLog(), done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return nil, s.failed(ErrServerNotReady, err)
	}
	if err := s.spawn(cmd, dir); err != nil {
		return nil, s.failed(startKind(err), err)
	}
	limit := c.ReadyTimeout
	if limit <= 0 {
		limit = readyTimeout
	}
	ready, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.await(ready); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: %w", limit, err)
		}
		kind := s.kindOf(err)
		s.closing.Store(true)
		s.family.kill() // nothing is loaded: there is nothing to be gentle about
		if left := s.finish(); left != nil {
			err = errors.Join(err, left)
		}
		return nil, s.failed(kind, err)
	}
	return s, nil
}

// errRun is that the system did not run the server's program.
var errRun = errors.New("its program does not run")

// startKind tells a program that is none from other reasons not to start.
func startKind(err error) error {
	if errors.Is(err, errRun) && (errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOEXEC)) {
		return ErrServerMissing
	}
	return ErrServerStart
}

// kindOf says what kept the server from answering.
func (s *Server) kindOf(err error) error {
	if !errors.Is(err, errEnded) {
		return ErrServerNotReady
	}
	if s.log.portTaken() {
		return ErrServerPort
	}
	return ErrServerExited
}

func (s *Server) failed(kind, cause error) *ServerError {
	return &ServerError{Kind: kind, Binary: s.binary, URL: s.url, Log: s.log.tail(errorLog), Err: cause}
}

// spawn starts the processes, and a goroutine that lives as long as they do.
func (s *Server) spawn(cmd *exec.Cmd, dir string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	started := make(chan error)
	go s.live(cmd, dir, r, started)
	err = <-started
	w.Close() // the server has its own
	if err != nil {
		r.Close()
	}
	return err
}

// live runs the processes from their start to their end. It keeps its thread to
// itself, because on Linux a child gets its death signal when the thread ends
// that started it, which otherwise may be long before the process does.
func (s *Server) live(cmd *exec.Cmd, dir string, out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := startFamily(cmd, dir)
	s.family = f
	started <- err
	if err != nil {
		return
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.log, out) // it ends with the last writer, or is closed below
	}()
	s.ended = cmd.Wait()
	if err := f.end(killGrace); err != nil {
		s.left = s.failed(ErrServerStuck, err)
	}
	select {
	case <-read:
	case <-time.After(time.Second): // somebody still holds the other end
	}
	out.Close()
	<-read
	close(s.done)
}

// errEnded is that the server's process ended before it answered.
var errEnded = errors.New("it ended before it answered")

// await finds out the server's address from its log, and waits for an answer.
func (s *Server) await(ctx context.Context) error {
	select {
	case s.url = <-s.log.listening:
	case <-s.done:
		return s.endedEarly()
	case <-ctx.Done():
		return ctx.Err()
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		version, err := ProbeServer(ctx, s.url)
		if over, _ := s.Exited(); err == nil && !over { // if it ended, another answered
			s.version = version
			return nil
		}
		select {
		case <-time.After(wait):
		case <-s.done:
			return s.endedEarly()
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

func (s *Server) endedEarly() error {
	if s.ended != nil {
		return fmt.Errorf("%w: %w", errEnded, s.ended)
	}
	return errEnded
}

// URL is the server's address, such as "http://127.0.0.1:42595".
func (s *Server) URL() string { return s.url }

// Version is what the server says it is, such as "0.17.4". Builds without one
// say "0.0.0".
func (s *Server) Version() string { return s.version }

// LogTail returns the last n bytes of what the server wrote, from the beginning
// of a line where there is one, and at most 64 KiB. It is there after the end too.
func (s *Server) LogTail(n int) string { return s.log.tail(n) }

// Exited reports whether the server's processes have all ended, and why: nil
// after Close, otherwise a *ServerError of kind ErrServerExited with the end of
// the log. Processes that the server left behind were ended by then.
func (s *Server) Exited() (bool, error) {
	select {
	case <-s.done:
	default:
		return false, nil
	}
	if s.closing.Load() {
		return true, nil
	}
	return true, s.failed(ErrServerExited, s.ended)
}

// Close ends the server: it is asked to, and killed with all of its processes
// when it has not ended after 5 seconds. It returns when no process is left. The
// error is a *ServerError of kind ErrServerStuck when some do not die, which
// only the system can cause. Every call waits for the end and returns the same.
func (s *Server) Close() error {
	s.ask.Do(func() {
		select {
		case <-s.done: // by itself: Exited goes on saying so
		default:
			s.closing.Store(true)
			s.family.terminate()
		}
	})
	if s.within(s.grace) {
		return s.left
	}
	s.family.kill()
	return s.finish()
}

// finish waits for the end after a kill: longer than the processes are given.
func (s *Server) finish() error {
	if s.within(2 * killGrace) {
		return s.left
	}
	return s.failed(ErrServerStuck, nil)
}

func (s *Server) within(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-s.done:
		return true
	case <-t.C:
		return false
	}
}
