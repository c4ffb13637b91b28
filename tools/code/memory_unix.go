//go:build unix

package code

import "golang.org/x/sys/unix"

// mapMemory asks the system for zeroed memory that is backed as it is touched.
func mapMemory(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// protectMemory makes every later use of the memory a fault.
func protectMemory(mem []byte) error { return unix.Mprotect(mem, unix.PROT_NONE) }

func unmapMemory(mem []byte) error { return unix.Munmap(mem) }
