package ollamatest

import "syscall"

// ownProcesses has a server in a group of its own, which ends when a test is
// killed.
func ownProcesses() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
