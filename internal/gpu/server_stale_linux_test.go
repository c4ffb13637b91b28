package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// owner runs a program that starts a server. It returns the program and the
// group of the server's processes.
func owner(t *testing.T, mode string) (cmd *exec.Cmd, group int, c ServerConfig, id string) {
	t.Helper()
	cmd, _, group, c, id = ownerAt(t, mode)
	return cmd, group, c, id
}

// ownerAt returns the server's address too, and adds to the owner's environment.
func ownerAt(t *testing.T, mode string, env ...string) (cmd *exec.Cmd, url string, group int, c ServerConfig, id string) {
	t.Helper()
	c, id = faked(t, mode)
	cmd = exec.Command(c.Binary)
	cmd.Env = append(append(append(os.Environ(), c.Env...), fakeDir+"="+c.Dir), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &url, &group); err != nil {
		t.Fatalf("it says %q", line)
	}
	return cmd, url, group, c, id
}

func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
}

func TestServerDiesWithItsKilledOwner(t *testing.T) {
	for _, mode := range []string{"owner", "owner of a stubborn server"} {
		t.Run(mode, func(t *testing.T) {
			cmd, group, c, id := owner(t, mode)
			pids := append(living(t, id), group)
			if len(pids) != 4 {
				t.Fatalf("processes %v, want the owner, a server, a runner and the guard", pids)
			}
			if found, err := StaleRunners(c.Dir); err != nil || len(found) > 0 {
				t.Errorf("with a living owner, StaleRunners = %v, %v", found, err)
			}
			kill9(t, cmd)
			eventually(t, "all of them are gone", func() bool {
				for _, p := range pids {
					if running(p) {
						return false
					}
				}
				return true
			})
			if _, err := KillStale(t.Context(), c.Dir); err != nil || len(records(t, c.Dir)) > 0 {
				t.Errorf("the record is left: %v, %v", records(t, c.Dir), err)
			}
		})
	}
}

// Without the guard, the kernel's signal asks the server to end.
func TestServerDiesWithItsOwnerAndGuardKilled(t *testing.T) {
	cmd, group, _, id := owner(t, "owner")
	if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard is dead", func() bool { return !running(group) })
	kill9(t, cmd)
	eventually(t, "the server and its runner are gone", func() bool { return len(living(t, id)) == 0 })
}

// orphans leaves a server and a runner that nobody owns.
func orphans(t *testing.T) (ServerConfig, string) {
	t.Helper()
	cmd, group, c, id := owner(t, "owner of a stubborn server")
	if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard is dead", func() bool { return !running(group) })
	kill9(t, cmd)
	if left := living(t, id); len(left) != 2 {
		t.Fatalf("processes %v, want a server and a runner", left)
	}
	c.Env = []string{fakeMode + "=works", fakeID + "=" + id}
	return c, id
}

func TestStaleServerIsFoundAndKilled(t *testing.T) {
	c, id := orphans(t)
	found, err := StaleRunners(c.Dir)
	if err != nil || len(found) != 2 {
		t.Fatalf("StaleRunners = %v, %v; want a server and a runner", found, err)
	}
	for _, f := range found {
		if !strings.HasSuffix(f.Command, "serve") && !strings.HasSuffix(f.Command, "runner") || f.Owner == os.Getpid() || time.Since(f.Started) > time.Minute {
			t.Errorf("found %+v", f)
		}
	}
	if len(living(t, id)) != 2 || len(records(t, c.Dir)) != 1 {
		t.Fatal("StaleRunners changed something")
	}
	killed, err := KillStale(t.Context(), c.Dir)
	if err != nil || len(killed) != 2 || len(living(t, id)) > 0 || len(records(t, c.Dir)) > 0 {
		t.Errorf("KillStale = %v, %v; left: %v, %v", killed, err, living(t, id), records(t, c.Dir))
	}
	for _, k := range killed {
		if running(k.PID) {
			t.Errorf("process %d runs on", k.PID)
		}
	}
}

func TestStaleServerIsKilledByTheNextStart(t *testing.T) {
	c, id := orphans(t)
	s, err := StartServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, files := len(living(t, id)), records(t, c.Dir); n != 2 || len(files) != 1 {
		t.Errorf("%d processes and %v, want the new server's only", n, files)
	}
}

func TestStaleServerOutlivesACancelledKill(t *testing.T) {
	c, id := orphans(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := KillStale(ctx, c.Dir); !errors.Is(err, context.Canceled) {
		t.Errorf("KillStale: %v", err)
	}
	if len(living(t, id)) != 2 || len(records(t, c.Dir)) != 1 {
		t.Errorf("left: %v, %v", living(t, id), records(t, c.Dir))
	}
	if _, err := KillStale(t.Context(), c.Dir); err != nil || len(living(t, id)) > 0 {
		t.Errorf("KillStale: %v; left: %v", err, living(t, id))
	}
}

// bystander runs a process that looks like a runner.
func bystander(t *testing.T, env ...string) int {
	t.Helper()
	c, id := faked(t, "runner")
	cmd := exec.Command(c.Binary, "runner")
	cmd.Env = append(append(os.Environ(), c.Env...), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill9(t, cmd) })
	eventually(t, "it runs", func() bool { return len(living(t, id)) == 1 })
	return cmd.Process.Pid
}

func TestStaleKillsNobodyElse(t *testing.T) {
	host, boot := machine()
	const token = "00112233445566778899aabbccddeeff"
	for _, tt := range []struct {
		name   string
		env    string
		record string
		kept   bool // the record
	}{
		{"the number was given to another process", "A=b", `{"token":"` + token + `","host":%q,"boot":%q,"owner":%d}`, false},
		{"another token", markName + "=" + token + "0", `{"token":"` + token + `","host":%q,"boot":%q,"owner":%d}`, false},
		{"no token", markName + "=", `{"token":"","host":%q,"boot":%q,"owner":%d}`, true},
		{"a token that is none", markName + "=x", `{"token":"x","host":%q,"boot":%q,"owner":%d}`, true},
		{"another machine", markName + "=" + token, `{"token":"` + token + `","host":"elsewhere","was":%q,"boot":%q,"owner":%d}`, true},
		{"before the system started", markName + "=" + token, `{"token":"` + token + `","host":%q,"boot":"earlier","was":%q,"owner":%d}`, false},
		{"half a record", markName + "=" + token, `{"token":"` + token + `"`, true},
		{"an empty record", markName + "=" + token, ``, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := bystander(t, tt.env)
			dir := t.TempDir()
			text := tt.record
			if strings.Contains(text, "%") {
				text = fmt.Sprintf(text, host, boot, pid)
			}
			if err := os.WriteFile(filepath.Join(dir, "server-"+token+".json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if found, err := KillStale(t.Context(), dir); len(found) > 0 || err != nil {
				t.Errorf("KillStale = %v, %v", found, err)
			}
			if !running(pid) {
				t.Error("it killed a process that is not ours")
			}
			if kept := len(records(t, dir)) == 1; kept != tt.kept {
				t.Errorf("the record is kept: %v, want %v", kept, tt.kept)
			}
		})
	}
}

// Between listing and killing, a number may be given to another process.
func TestStaleLooksAgainBeforeItKills(t *testing.T) {
	r := record{Token: strings.Repeat("ab", 16)}
	other, own := bystander(t), bystander(t, r.mark())
	r.kill(process{pid: other})
	r.kill(process{pid: own})
	eventually(t, "the record's own is dead", func() bool { return !running(own) })
	r.kill(process{pid: own}) // does nothing
	if !running(other) {
		t.Error("it killed a process that is not ours")
	}
}

// What is being killed has no environment any more before its memory is free.
func TestStaleWaitsForWhatIsEnding(t *testing.T) {
	pid := bystander(t)
	group := syscall.Getpgrp() // it is in ours
	if left, err := ending(map[int]int{pid: group}); err != nil || len(left) != 1 || left[0].pid != pid {
		t.Errorf("ending = %v, %v; want the process", left, err)
	}
	if left, err := ending(map[int]int{pid: group + 1, 1 << 30: group, 5: 0}); err != nil || len(left) > 0 {
		t.Errorf("ending = %v, %v; want none", left, err)
	}
}

func TestStaleRecordsEnd(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"server-empty.json": 2 * unfinished, "server-elsewhere.json": 2 * elsewhere} {
		text := ""
		if name == "server-elsewhere.json" {
			b, err := json.Marshal(record{Token: strings.Repeat("ab", 16), Host: "elsewhere"})
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "server-link.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "server-fifo.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := StaleRunners(dir); err != nil || len(records(t, dir)) != 5 {
		t.Errorf("after StaleRunners: %v, %v", records(t, dir), err)
	}
	if _, err := KillStale(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if left := records(t, dir); len(left) != 3 {
		t.Errorf("left: %v, want what is no record", left)
	}
}

func TestStaleWithoutADirectory(t *testing.T) {
	if found, err := KillStale(t.Context(), filepath.Join(t.TempDir(), "none")); found != nil || err != nil {
		t.Errorf("KillStale = %v, %v", found, err)
	}
}
