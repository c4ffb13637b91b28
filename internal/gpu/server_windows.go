package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var (
	kernel32        = syscall.NewLazyDLL("kernel32.dll")
	createJobObject = kernel32.NewProc("CreateJobObjectW")
	setJobObject    = kernel32.NewProc("SetInformationJobObject")
	assignToJob     = kernel32.NewProc("AssignProcessToJobObject")
	terminateJob    = kernel32.NewProc("TerminateJobObject")
)

const (
	extendedLimits = 9      // JobObjectExtendedLimitInformation
	killOnClose    = 0x2000 // JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
)

// jobLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
type jobLimits struct {
	processTime, jobTime     int64
	flags                    uint32
	minSet, maxSet           uintptr
	processes                uint32
	affinity                 uintptr
	priority, scheduling     uint32
	io                       [6]uint64
	processMemory, jobMemory uintptr
	peakProcess, peakJob     uintptr
}

// family is a server in a job of its own. Windows kills all processes of a job
// when the last handle to it is closed, and our death closes ours.
type family struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	job syscall.Handle // 0 = closed
}

func startFamily(cmd *exec.Cmd, _ string) (*family, error) {
	h, _, err := createJobObject.Call(0, 0)
	if h == 0 {
		return nil, fmt.Errorf("CreateJobObject: %w", err)
	}
	f := &family{cmd: cmd, job: syscall.Handle(h)}
	limits := jobLimits{flags: killOnClose}
	if ok, _, err := setJobObject.Call(h, extendedLimits, uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits)); ok == 0 {
		_ = syscall.CloseHandle(f.job)
		return nil, fmt.Errorf("SetInformationJobObject: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP} // our Ctrl-C is not the server's
	if err := cmd.Start(); err != nil {
		_ = syscall.CloseHandle(f.job)
		return nil, fmt.Errorf("%w: %w", errRun, err)
	}
	// What it starts from here on is in the job too; it starts nothing at once.
	assigned := os.ErrProcessDone
	err = cmd.Process.WithHandle(func(p uintptr) {
		if ok, _, err := assignToJob.Call(h, p); ok == 0 {
			assigned = err
		} else {
			assigned = nil
		}
	})
	if err == nil {
		err = assigned
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = syscall.CloseHandle(f.job)
		return nil, fmt.Errorf("AssignProcessToJobObject: %w", err)
	}
	return f, nil
}

// terminate kills: Windows has no signal by which a server without a window
// could be asked to end.
func (f *family) terminate() { f.kill() }

func (f *family) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.job != 0 {
		_, _, _ = terminateJob.Call(uintptr(f.job), 1) // it may have ended
	}
}

// end kills what is left after the server.
func (f *family) end(time.Duration) error {
	f.kill()
	f.mu.Lock()
	defer f.mu.Unlock()
	err := syscall.CloseHandle(f.job)
	f.job = 0
	return err
}

// stale finds nothing: the job ended them.
func stale(context.Context, string, bool) ([]Stale, error) { return nil, nil }
