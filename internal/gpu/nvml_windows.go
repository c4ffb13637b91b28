package gpu

import (
	"os"
	"path/filepath"
	"syscall"
)

const nvmlGOOS = "windows"

// nvmlName is where drivers put the library. A bare name would be looked for in
// the program's and the working directory, too, where anyone may put another.
func nvmlName() string {
	root := os.Getenv("SystemRoot")
	if root == "" {
		root = `C:\Windows`
	}
	return filepath.Join(root, "System32", "nvml.dll")
}

// library is a shared library.
type library struct{ dll *syscall.DLL }

func openLibrary(name string) (library, error) {
	dll, err := syscall.LoadDLL(name)
	return library{dll}, err
}

func (l library) symbol(name string) uintptr {
	p, err := l.dll.FindProc(name)
	if err != nil {
		return 0
	}
	return p.Addr()
}

func (l library) close() { _ = l.dll.Release() } // nothing can be done about it

// callAddress calls a C function that returns an int.
//
//go:uintptrescapes
func callAddress(address uintptr, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(address, args...)
	return r
}
