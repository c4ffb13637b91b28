//go:build unix

package ollamatest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Version is the server that Binary looks for.
const Version = "0.17.4"

// Binary returns the path of a real Ollama server: $OLLAMA_BIN, or the one that
// .ci/run builds and keeps in the user's cache. Without one the test is
// skipped, or fails if $OLLAMA_REQUIRED is set.
func Binary(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("OLLAMA_BIN"); bin != "" {
		return bin
	}
	if dir, err := os.UserCacheDir(); err == nil {
		bin := filepath.Join(dir, "toolorchestra", "ollama-"+Version)
		if _, err := os.Stat(bin); err == nil {
			return bin
		}
	}
	if os.Getenv("OLLAMA_REQUIRED") != "" {
		t.Fatal("no Ollama server: run .ci/ollama/build, or set OLLAMA_BIN")
	}
	t.Skip("no Ollama server to test against: run .ci/ollama/build (it compiles one from its Go module, in minutes), or set OLLAMA_BIN")
	return ""
}

// Server is a running Ollama server of a test's own.
type Server struct {
	URL string
	cmd *exec.Cmd
	log tail
}

// tail keeps the end of a log.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf = append(l.buf, b...); len(l.buf) > 64<<10 {
		l.buf = append(l.buf[:0], l.buf[len(l.buf)-16<<10:]...)
	}
	return len(b), nil
}

// Log is the end of what the server wrote.
func (s *Server) Log() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return string(s.log.buf)
}

var listening = regexp.MustCompile(`Listening on (127\.0\.0\.1:\d+)`)

// Env is the environment of a test's server: its files are below dir, and
// nothing is fetched.
func Env(dir string, more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		"OLLAMA_HOST=127.0.0.1:0", "OLLAMA_NO_CLOUD=1", "OLLAMA_NOPRUNE=1",
	}, more...)
}

// Start runs a server until the test ends. The environment is added to its own.
func Start(t testing.TB, env ...string) *Server {
	t.Helper()
	s, err := start(Binary(t), t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func start(bin, dir string, env []string) (*Server, error) {
	s := &Server{cmd: exec.Command(bin, "serve")}
	s.cmd.Env = Env(dir, env...)
	s.cmd.SysProcAttr = ownProcesses()
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	go func() { // ends with the server
		defer close(found)
		lines := bufio.NewReader(io.TeeReader(out, &s.log))
		for {
			line, err := lines.ReadString('\n')
			if m := listening.FindStringSubmatch(line); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case addr, ok := <-found:
		if ok {
			s.URL = "http://" + addr
			return s, nil
		}
	case <-time.After(time.Minute):
	}
	s.Kill()
	return nil, fmt.Errorf("the server did not start: %s", s.Log())
}

// Kill ends the server and its runners at once.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may be dead
	_ = s.cmd.Wait()                                      // it was killed
	for range 1000 {                                      // its runners die a little later on a busy machine
		if len(s.Runners()) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Runners are the ids of the server's processes that hold models.
func (s *Server) Runners() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range dirs {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended
		}
		var pid, ppid, group int
		var state string
		if _, err := fmt.Sscanf(string(b), "%d", &pid); err != nil {
			continue
		}
		rest := string(b[bytes.LastIndexByte(b, ')')+1:])
		if _, err := fmt.Sscanf(rest, "%s %d %d", &state, &ppid, &group); err == nil && group == s.cmd.Process.Pid && pid != group && state != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// KillRunner kills the processes that hold the server's models.
func (s *Server) KillRunner(t testing.TB) {
	t.Helper()
	pids := s.Runners()
	if len(pids) == 0 {
		t.Fatal("the server has no runner to kill")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// Create makes a model of the built-in scripts: with the template and the
// parser, where they are not empty.
func (s *Server) Create(t testing.TB, name, template, parser string) {
	t.Helper()
	s.CreateFrom(t, name, scripted(), template, parser)
}

// CreateFrom makes a model of a GGUF file's content.
func (s *Server) CreateFrom(t testing.TB, name string, gguf []byte, template, parser string) {
	t.Helper()
	if err := s.create(name, gguf, template, parser); err != nil {
		t.Fatal(err)
	}
}

var scripted = sync.OnceValue(func() []byte { return GGUF(Scripts()) })

func (s *Server) create(name string, gguf []byte, template, parser string) error {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(gguf))
	if !s.has("/api/blobs/" + digest) { // else the server answers without reading, and hangs up
		if err := s.post("/api/blobs/"+digest, gguf); err != nil {
			return err
		}
	}
	body, err := json.Marshal(map[string]any{"model": name, "files": map[string]string{"model.gguf": digest}, "template": template, "parser": parser, "stream": false})
	if err != nil {
		return err
	}
	return s.post("/api/create", body)
}

func (s *Server) has(path string) bool {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := c.Head(s.URL + path)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *Server) post(path string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode >= 300 || strings.Contains(string(said), `"error"`)) {
		err = fmt.Errorf("POST %s: %s: %s", path, resp.Status, said)
	}
	return err
}
