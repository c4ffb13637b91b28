//go:build unix && !linux

package ollamatest

import "syscall"

// ownProcesses has a server in a group of its own.
func ownProcesses() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
