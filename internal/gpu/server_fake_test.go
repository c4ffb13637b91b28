//go:build linux

package gpu

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary runs itself as a server, as that server's runner, and as a
// program that owns a server. Which one is said by the variable fakeMode.
const (
	fakeMode = "GPU_TEST_FAKE"
	fakeID   = "GPU_TEST_ID" // what the processes of one test are found by
	fakeDir  = "GPU_TEST_DIR"
	fakeReal = "GPU_TEST_REAL" // the program of a real server
)

func init() {
	if mode := os.Getenv(fakeMode); mode != "" {
		os.Exit(fake(mode))
	}
}

func fake(mode string) int {
	switch mode {
	case "runner":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "owner", "owner of a stubborn server", "owner of a real server":
		return fakeOwner(mode)
	case "exits":
		fmt.Fprintln(os.Stderr, "first words\nError: no such thing")
		return 3
	case "hangs":
		time.Sleep(time.Hour)
	}
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "Error: unknown command", os.Args[1:])
		return 1
	}
	return fakeServer(mode)
}

// fakeServer does what Ollama does, but for the mode.
func fakeServer(mode string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	l, err := net.Listen("tcp", os.Getenv("OLLAMA_HOST"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	if mode == "floods" {
		for range 50 { // a line without end, and many short ones
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		for range 50 {
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("level=INFO\n"), 1<<20/11))
		}
	}
	runner := exec.Command("/proc/self/exe", "runner")
	runner.Env = append(os.Environ(), fakeMode+"=runner")
	runner.Stderr = os.Stderr // so it holds the log's other end
	runner.SysProcAttr = &syscall.SysProcAttr{Setsid: mode == "scatters"}
	if err := runner.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "time=now level=INFO msg=\"Listening on %s (version 0.17.4)\"\n", l.Addr())
	if mode == "crashes" {
		return 2
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case mode == "is mute":
				<-r.Context().Done()
			case mode == "is another":
				fmt.Fprint(w, "<html>Welcome to nginx!</html>")
			default:
				fmt.Fprint(w, `{"version":"0.17.4"}`)
			}
		}))
	}()
	for range term {
		if mode != "is stubborn" {
			_ = runner.Process.Kill()
			_ = runner.Wait()
			fmt.Fprintln(os.Stderr, "goodbye")
			return 0
		}
	}
	return 0
}

// fakeOwner starts a server, says where it is, and waits to be killed.
func fakeOwner(mode string) int {
	c := ServerConfig{Binary: "/proc/self/exe", Dir: os.Getenv(fakeDir), Env: []string{fakeMode + "=works"}}
	switch mode {
	case "owner of a stubborn server":
		c.Env = []string{fakeMode + "=is stubborn"}
	case "owner of a real server":
		c.Binary, c.Models, c.Env = os.Getenv(fakeReal), filepath.Join(c.Dir, "models"), realEnv(c.Dir)
	}
	s, err := StartServer(context.Background(), c)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println(s.URL(), s.family.group)
	time.Sleep(time.Hour)
	return 0
}

// faked is the configuration of a fake server, and the id of its processes.
func faked(t testing.TB, mode string) (ServerConfig, string) {
	t.Helper()
	id := fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		for _, p := range living(t, id) {
			t.Errorf("process %d is left", p)
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return ServerConfig{Binary: exe, Dir: t.TempDir(), Env: []string{fakeMode + "=" + mode, fakeID + "=" + id}}, id
}

// living are the processes with the id in their environment. What is ending has
// none any more.
func living(t testing.TB, id string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no /proc to look for processes in", err)
	}
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+fakeID+"="+id+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// running reports whether a process is there and not only waiting to be waited
// for.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

// eventually waits until something that no event tells of is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// records are the files in a directory of servers.
func records(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
