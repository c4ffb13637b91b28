//go:build linux

package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
)

// realEnv keeps a real server's files below a directory, and it off the network.
func realEnv(dir string) []string {
	return []string{"HOME=" + filepath.Join(dir, "home"), "OLLAMA_NO_CLOUD=1", fakeMode + "="}
}

// realOllama starts a real server, or skips the test where there is none.
func realOllama(t *testing.T, more ...string) (*Server, string, error) {
	t.Helper()
	c, id := faked(t, "")
	c.Binary = ollamatest.Binary(t)
	c.Models, c.Parallel, c.Context = filepath.Join(c.Dir, "models"), 1, 4096
	c.Env = append(append(realEnv(c.Dir), fakeID+"="+id), more...)
	s, err := StartServer(t.Context(), c)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, id, err
}

// load makes a real server load a model, which starts a runner.
func load(t *testing.T, url string) {
	t.Helper()
	server := ollamatest.Server{URL: url}
	server.Create(t, "script", "", "")
	ask(t, url)
}

// ask has the model that load made write a token.
func ask(t *testing.T, url string) {
	t.Helper()
	request := `{"model":"script","prompt":"x\n","raw":true,"stream":false,"options":{"num_thread":1,"num_predict":1,"num_ctx":512}}`
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Post(url+"/api/generate", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !json.Valid(body) || resp.StatusCode != 200 {
		t.Fatalf("%s: %s, %v", resp.Status, body, err)
	}
}

func TestRealServerRunsAndLeavesNothing(t *testing.T) {
	s, id, err := realOllama(t)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := ProbeServer(t.Context(), s.URL()); err != nil || v != s.Version() || os.Getenv("OLLAMA_BIN") == "" && v != ollamatest.Version {
		t.Errorf("ProbeServer = %q, %v; Version = %q", v, err, s.Version())
	}
	load(t, s.URL())
	pids := living(t, id)
	if len(pids) != 2 {
		t.Fatalf("processes %v, want a server and a runner", pids)
	}
	if !strings.Contains(s.LogTail(keptLog), "OLLAMA_CONTEXT_LENGTH:4096") {
		t.Errorf("it does not know its context; its log: %s", s.LogTail(keptLog))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids {
		if running(p) {
			t.Errorf("process %d runs on", p)
		}
	}
}

func TestRealServerKilledTakesItsRunnerWithIt(t *testing.T) {
	s, id, err := realOllama(t)
	if err != nil {
		t.Fatal(err)
	}
	load(t, s.URL())
	pids := living(t, id)
	if err := syscall.Kill(s.family.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has exited", func() bool { over, _ := s.Exited(); return over })
	if len(pids) != 2 || running(pids[0]) || running(pids[1]) {
		t.Errorf("processes %v, one runs on", pids)
	}
	if _, err := s.Exited(); !errors.Is(err, ErrServerExited) {
		t.Errorf("Exited: %v", err)
	}
}

func TestRealServerSurvivesItsRunner(t *testing.T) {
	s, id, err := realOllama(t)
	if err != nil {
		t.Fatal(err)
	}
	load(t, s.URL())
	for _, p := range living(t, id) {
		if p != s.family.cmd.Process.Pid {
			if err := syscall.Kill(p, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the runner is dead", func() bool { return !running(p) })
		}
	}
	if _, err := ProbeServer(t.Context(), s.URL()); err != nil {
		t.Errorf("after its runner died: %v", err)
	}
	ask(t, s.URL())
}

func TestRealServerSaysThatItsPortIsTaken(t *testing.T) {
	s, _, err := realOllama(t)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = realOllama(t, "OLLAMA_HOST="+strings.TrimPrefix(s.URL(), "http://"))
	if !errors.Is(err, ErrServerPort) {
		t.Errorf("StartServer: %v", err)
	}
}

func TestRealServerDiesWithItsOwner(t *testing.T) {
	bin := ollamatest.Binary(t)
	for _, guarded := range []bool{true, false} { // or by the kernel's signal alone
		t.Run(fmt.Sprintf("guarded=%v", guarded), func(t *testing.T) {
			cmd, url, group, c, id := ownerAt(t, "owner of a real server", fakeReal+"="+bin)
			load(t, url)
			if n := len(living(t, id)); n != 3 {
				t.Fatalf("%d processes, want the owner, a server and a runner", n)
			}
			if !guarded {
				if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the guard is dead", func() bool { return !running(group) })
			}
			kill9(t, cmd)
			if guarded {
				eventually(t, "all are gone", func() bool { return len(living(t, id)) == 0 })
			}
			if _, err := KillStale(t.Context(), c.Dir); err != nil || len(living(t, id)) > 0 {
				t.Errorf("KillStale: %v; left: %v", err, living(t, id))
			}
		})
	}
}
