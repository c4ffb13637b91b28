package gpu

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithUs has the kernel ask a child to end when the thread that started it
// ends. It is for the case that the guard was killed: the guard is better,
// because it kills what the server started too.
func dieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }

// ours lists the living processes of a group, and those that have the token of a
// record in their environment, in whatever group. 0 is no group, and "" no token.
func ours(group int, token string) ([]process, error) { return oursBelow("/proc", group, token) }

func oursBelow(proc string, group int, token string) ([]process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("looking for its processes: %w", err)
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it ended
		}
		its, alive, err := parseStat(stat)
		if err != nil || !alive {
			continue
		}
		if (group == 0 || its != group) && !markedIn(dir, token) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // for people to read
		command := strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		found = append(found, process{pid: pid, group: its, command: command})
	}
	return found, nil
}

// marked reports whether a process has the token in its environment. Nobody has
// it but a server and what that starts.
func marked(pid int, token string) bool {
	return markedIn(filepath.Join("/proc", strconv.Itoa(pid)), token)
}

func markedIn(dir, token string) bool {
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil || token == "" {
		return false // it ended, or is another user's
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if string(e) == markName+"="+token {
			return true
		}
	}
	return false
}

// parseStat reads the process group from /proc/<pid>/stat, and whether anything
// of the process is alive: of one that is dead but was not waited for, threads
// may still be ending, and with them goes the GPU's memory.
func parseStat(stat []byte) (group int, alive bool, err error) {
	// The second field is the program's name in parentheses, which may hold any.
	end := bytes.LastIndexByte(stat, ')')
	f := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(f) < 18 {
		return 0, false, fmt.Errorf("%q is no state of a process", stat)
	}
	group, err = strconv.Atoi(f[2])
	if err != nil {
		return 0, false, err
	}
	threads, err := strconv.Atoi(f[17])
	if err != nil {
		return 0, false, err
	}
	dead := f[0] == "Z" || f[0] == "X" || f[0] == "x"
	return group, !dead || threads > 1, nil
}
