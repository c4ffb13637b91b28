//go:build unix && !linux

package gpu

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// dieWithUs does nothing: only Linux has a signal for it, and the guard does it.
func dieWithUs(*syscall.SysProcAttr) {}

// ours lists the living processes of a group, and those that have the token of a
// record in their environment, in whatever group. 0 is no group, and "" no token.
func ours(group int, token string) ([]process, error) {
	// Its options to show the environment differ.
	opts := "-axww"
	if runtime.GOOS == "darwin" {
		opts += "E"
	} else {
		opts += "e"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", opts, "-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "command=").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for its processes: ps: %w", err)
	}
	return parsePS(out, group, token), nil
}

// marked reports whether a process has the token in its environment.
func marked(pid int, token string) bool {
	all, err := ours(0, token)
	for _, p := range all {
		if err == nil && p.pid == pid {
			return true
		}
	}
	return false
}
