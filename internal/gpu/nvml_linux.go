//go:build linux && (amd64 || arm64) && !nonvml

package gpu

import "github.com/ebitengine/purego"

const nvmlGOOS = "linux"

func nvmlName() string { return "libnvidia-ml.so.1" }

// library is a shared library that was loaded without cgo.
type library struct{ handle uintptr }

func openLibrary(name string) (library, error) {
	h, err := purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	return library{h}, err
}

func (l library) symbol(name string) uintptr {
	address, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0
	}
	return address
}

func (l library) close() { _ = purego.Dlclose(l.handle) } // nothing can be done about it

// callAddress calls a C function that returns an int.
//
//go:uintptrescapes
func callAddress(address uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(address, args...)
	return r
}
