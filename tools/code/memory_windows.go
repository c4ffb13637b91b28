package code

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapMemory asks the system for zeroed memory that is backed as it is touched.
func mapMemory(size int) ([]byte, error) {
	p, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(at[byte](p), size), nil
}

// protectMemory makes every later use of the memory a fault.
func protectMemory(mem []byte) error {
	var old uint32
	return windows.VirtualProtect(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)), windows.PAGE_NOACCESS, &old)
}

func unmapMemory(mem []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, windows.MEM_RELEASE)
}
