package gpu

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T, mode string) (*Server, string, ServerConfig) {
	t.Helper()
	c, id := faked(t, mode)
	s, err := StartServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, id, c
}

func TestServerRunsUntilClosedAndLeavesNothing(t *testing.T) {
	s, id, c := start(t, "works")
	if v, err := ProbeServer(t.Context(), s.URL()); err != nil || v != "0.17.4" || s.Version() != v {
		t.Fatalf("ProbeServer = %q, %v; Version = %q", v, err, s.Version())
	}
	if over, err := s.Exited(); over || err != nil {
		t.Fatalf("Exited = %v, %v while it runs", over, err)
	}
	pids := append(living(t, id), s.family.group)
	if len(pids) != 3 {
		t.Fatalf("%d processes run, want a server, a runner and the guard", len(pids))
	}
	if len(records(t, c.Dir)) != 1 {
		t.Fatalf("records: %v, want one", records(t, c.Dir))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids {
		if running(p) {
			t.Errorf("process %d runs after Close", p)
		}
	}
	if left := records(t, c.Dir); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	if over, err := s.Exited(); !over || err != nil {
		t.Errorf("Exited = %v, %v after Close", over, err)
	}
	if !strings.Contains(s.LogTail(1000), "goodbye") {
		t.Errorf("it was not asked to end; its log: %s", s.LogTail(1000))
	}
}

func TestServerIsInAGroupOfItsOwn(t *testing.T) {
	s, id, _ := start(t, "works")
	for _, p := range living(t, id) {
		if g, err := syscall.Getpgid(p); err != nil || g != s.family.group || g == syscall.Getpgrp() {
			t.Errorf("process %d is in group %d, %v; want %d", p, g, err, s.family.group)
		}
	}
}

func TestServerThatIgnoresTheRequestToEndIsKilled(t *testing.T) {
	s, _, _ := start(t, "is stubborn")
	s.grace = 50 * time.Millisecond
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestServerThatIsStoppedIsKilled(t *testing.T) {
	s, _, _ := start(t, "works")
	s.grace = 50 * time.Millisecond
	if err := syscall.Kill(s.family.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestServerCloseIsTheSameForAllCallers(t *testing.T) {
	s, id, _ := start(t, "works")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left := living(t, id); len(left) > 0 {
				t.Errorf("Close returned with %v running", left)
			}
		})
	}
	wg.Wait()
}

func TestServerKilledTakesItsRunnersWithIt(t *testing.T) {
	for _, mode := range []string{"works", "scatters"} { // the latter's runner leaves the group
		t.Run(mode, func(t *testing.T) {
			s, id, c := start(t, mode)
			pids := living(t, id)
			if err := syscall.Kill(s.family.cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server has exited", func() bool { over, _ := s.Exited(); return over })
			for _, p := range pids {
				if running(p) {
					t.Errorf("process %d runs on", p)
				}
			}
			_, err := s.Exited()
			e, ok := errors.AsType[*ServerError](err)
			if !ok || !errors.Is(err, ErrServerExited) || !strings.Contains(err.Error(), "signal: killed") || !strings.Contains(e.Log, "Listening") {
				t.Errorf("Exited says %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if over, err := s.Exited(); !over || err == nil {
				t.Errorf("after Close, Exited = %v, %v: it forgot that the server had ended before", over, err)
			}
			if left := records(t, c.Dir); len(left) > 0 {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func TestServerDoesWithoutItsGuard(t *testing.T) {
	s, id, _ := start(t, "works")
	if err := syscall.Kill(s.family.group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard is dead", func() bool { return !running(s.family.group) })
	if len(living(t, id)) != 2 {
		t.Error("the server or its runner died with the guard")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// onAThreadThatEnds runs a function in a goroutine whose thread ends with it.
// The main thread of a process never does.
func onAThreadThatEnds(f func()) {
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			done := make(chan struct{})
			onAThreadThatEnds(func() { defer close(done); f() })
			<-done // until then this one is ours
			return
		}
		f()
	}()
}

// The kernel's signal comes when a thread ends, so it must not be the caller's.
func TestServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	c, _ := faked(t, "works")
	threads := make(chan int)
	started := make(chan *Server)
	onAThreadThatEnds(func() {
		s, err := StartServer(t.Context(), c)
		if err != nil {
			t.Error(err)
		}
		threads <- syscall.Gettid()
		started <- s
	})
	tid, s := <-threads, <-started
	if s == nil {
		return
	}
	defer s.Close()
	eventually(t, "the thread has ended", func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		return err != nil
	})
	if _, err := ProbeServer(t.Context(), s.URL()); err != nil {
		t.Error(err)
	}
	if over, err := s.Exited(); over {
		t.Error(err)
	}
}

func TestServerFailsToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text := filepath.Join(t.TempDir(), "ollama")
	if err := os.WriteFile(text, []byte("\x00no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, mode string
		change     func(*ServerConfig)
		want       error
		says       string
	}{
		{"it exits at once", "exits", nil, ErrServerExited, "no such thing"},
		{"it crashes after it listened", "crashes", nil, ErrServerExited, "exit status 2"},
		{"it says nothing", "hangs", short, ErrServerNotReady, "no answer within 300ms"},
		{"it does not answer", "is mute", short, ErrServerNotReady, "Listening on"},
		{"something else answers", "is another", short, ErrServerNotReady, "not Ollama"},
		{"its port is taken", "works", func(c *ServerConfig) { c.Env = append(c.Env, "OLLAMA_HOST="+taken.Addr().String()) }, ErrServerPort, "OLLAMA_HOST"},
		{"no such program", "works", func(c *ServerConfig) { c.Binary = "/nowhere/ollama" }, ErrServerMissing, "install"},
		{"the program is none", "works", func(c *ServerConfig) { c.Binary = text }, ErrServerMissing, "exec format error"},
		{"its directory is a file", "works", func(c *ServerConfig) { c.Dir = text }, ErrServerConfig, "directory for its records"},
		{"negative context", "works", func(c *ServerConfig) { c.Context = -1 }, ErrServerConfig, "-1"},
		{"unknown KV type", "works", func(c *ServerConfig) { c.KV = "q5" }, ErrServerConfig, `"q8_0"`},
		{"no setting", "works", func(c *ServerConfig) { c.Env = append(c.Env, "CUDA") }, ErrServerConfig, "NAME=value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, id := faked(t, tt.mode)
			if tt.change != nil {
				tt.change(&c)
			}
			s, err := StartServer(t.Context(), c)
			if _, ok := err.(*ServerError); !ok || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || s != nil {
				t.Errorf("StartServer = %v, %v; want %v with %q", s, err, tt.want, tt.says)
			}
			if left := living(t, id); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
			if left, _ := os.ReadDir(c.Dir); len(left) > 0 && c.Dir != text {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func short(c *ServerConfig) { c.ReadyTimeout = 300 * time.Millisecond }

func TestServerLogIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, _, c := start(t, "floods")
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("100 MB of log take %d bytes", grown)
	}
	if n := len(s.LogTail(1 << 30)); n > keptLog || n < keptLog/2 {
		t.Errorf("%d bytes of log are kept, want about %d", n, keptLog)
	}
	if got := s.LogTail(100); !strings.HasPrefix(got, "level=INFO\n") || !strings.HasSuffix(got, "(version 0.17.4)\"\n") {
		t.Errorf("the log ends %q", got)
	}
	if info, err := os.Stat(filepath.Join(c.Dir, records(t, c.Dir)[0])); err != nil || info.Size() > 1000 {
		t.Errorf("its file: %v, %v", info, err)
	}
}

func TestServerStartIsCancelled(t *testing.T) {
	for _, mode := range []string{"hangs", "is mute", "is another"} {
		t.Run(mode, func(t *testing.T) {
			c, id := faked(t, mode)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := StartServer(ctx, c)
				failed <- err
			}()
			eventually(t, "the server's process runs", func() bool { return len(living(t, id)) > 0 })
			cancel()
			err := <-failed
			if !errors.Is(err, ErrServerNotReady) || !errors.Is(err, context.Canceled) {
				t.Errorf("StartServer: %v", err)
			}
			if left := living(t, id); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
	t.Run("before it began", func(t *testing.T) {
		c, _ := faked(t, "works")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := StartServer(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("StartServer: %v", err)
		}
		if left := records(t, c.Dir); len(left) > 0 {
			t.Errorf("files left: %v", left)
		}
	})
}

// A cancelled start is over at any moment, be the server ready or not.
func TestServerStartCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	c, id := faked(t, "works")
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*4*time.Millisecond)
		s, err := StartServer(ctx, c)
		cancel()
		if err == nil {
			err = s.Close()
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if left := living(t, id); err != nil || len(left) > 0 {
			t.Fatalf("cancelled after %d ms: %v; left: %v", 4*i, err, left)
		}
	}
}

func TestTwentyServersAtOnce(t *testing.T) {
	c, id := faked(t, "works")
	var wg sync.WaitGroup
	var urls sync.Map
	for range 20 {
		wg.Go(func() {
			s, err := StartServer(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			if _, twice := urls.LoadOrStore(s.URL(), true); twice {
				t.Errorf("two servers at %s", s.URL())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := living(t, id); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if left := records(t, c.Dir); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}
