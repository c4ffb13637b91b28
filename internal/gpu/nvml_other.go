//go:build !windows && !(linux && (amd64 || arm64) && !nonvml)

package gpu

import "errors"

const nvmlGOOS = "linux"

func nvmlName() string { return "" }

// library is never loaded here.
type library struct{}

func openLibrary(string) (library, error) {
	return library{}, errors.New("NVML cannot be loaded by this program")
}

func (library) symbol(string) uintptr { return 0 }

func (library) close() {}

func callAddress(uintptr, ...uintptr) uintptr { return nvmlNotSupported }
