package code

import (
	"fmt"
	"math/bits"
	"unsafe"

	"modernc.org/libquickjs"
)

// arena is all the memory of one run: a single mapping of the size of the
// memory limit. The engine allocates nowhere else, so the limit holds by
// construction, a run leaves nothing behind when the mapping is given back, and
// a run that does not stop is stopped by taking the mapping away (seize).
//
// Blocks lie one after the other. Each begins with a header, its size and that
// of the block before it, so that a freed block joins its free neighbours. Free
// blocks are in lists by size. The system backs only pages that were touched,
// and the untouched rest is one big free block, which is the last to be cut.
type arena struct {
	mem     []byte
	base    uintptr // address of mem
	lists   [classes]uint64
	have    [classes / 64]uint64 // which lists are not empty
	refused bool                 // a request did not fit
}

const (
	header   = 16
	smallest = 48 // a header and two links of a list, in steps of 16
	classes  = 256
	used     = 1 // in the size of a block: sizes are multiples of 16
)

// newArena maps size bytes, rounded up to whole pages of 64 KB.
func newArena(size int) (*arena, error) {
	size = (size + 0xffff) &^ 0xffff
	mem, err := mapMemory(size)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	a := &arena{mem: mem, base: uintptr(unsafe.Pointer(unsafe.SliceData(mem)))}
	// Offset 0 is no block: it ends lists. The last block is a used one.
	end := uint64(len(mem) - header)
	*a.word(header) = end - header
	*a.word(end), *a.word(end + 8) = used, end-header
	a.push(header)
	return a, nil
}

// free gives the memory back to the system. Nothing may use it any more.
func (a *arena) free() error {
	mem := a.mem
	a.mem = nil
	return unmapMemory(mem)
}

// seize makes the memory inaccessible: whoever uses it gets a fault. It may be
// called by another goroutine than the one that uses the arena.
func (a *arena) seize() error { return protectMemory(a.mem) }

// word is the number at an offset.
func (a *arena) word(at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&a.mem[at])) }

// size is that of the block at an offset, with its header.
func (a *arena) size(b uint64) uint64 { return *a.word(b) &^ used }

// class is the list that a free block of that size is in: four to each power
// of two.
func class(size uint64) int {
	n := bits.Len64(size)
	return n*4 + int(size>>(n-3))&3
}

func (a *arena) push(b uint64) {
	c := class(a.size(b))
	next := a.lists[c]
	*a.word(b + header), *a.word(b + header + 8) = next, 0
	if next != 0 {
		*a.word(next + header + 8) = b
	}
	a.lists[c] = b
	a.have[c/64] |= 1 << (c % 64)
}

func (a *arena) remove(b uint64) {
	c := class(a.size(b))
	next, prev := *a.word(b + header), *a.word(b + header + 8)
	if next != 0 {
		*a.word(next + header + 8) = prev
	}
	if prev != 0 {
		*a.word(prev + header) = next
	} else if a.lists[c] = next; next == 0 {
		a.have[c/64] &^= 1 << (c % 64)
	}
}

// find returns a free block of at least that size, or 0.
func (a *arena) find(size uint64) uint64 {
	c := class(size)
	// Blocks of the same class may be too small: a few are looked at.
	for b, n := a.lists[c], 0; b != 0 && n < 8; b, n = *a.word(b + header), n+1 {
		if a.size(b) >= size {
			return b
		}
	}
	for c++; c < classes; c = (c/64 + 1) * 64 {
		if m := a.have[c/64] >> (c % 64); m != 0 {
			return a.lists[c+bits.TrailingZeros64(m)]
		}
	}
	return 0
}

// resize gives the block that size and the number of the one before to the one
// behind it.
func (a *arena) resize(b, size, mark uint64) {
	*a.word(b) = size | mark
	*a.word(b + size + 8) = size
}

// cut shortens a used block, and frees what is left if that is a block.
func (a *arena) cut(b, size uint64) {
	if all := a.size(b); all >= size+smallest {
		a.resize(b, size, used)
		*a.word(b + size) = (all - size) | used
		*a.word(b + all + 8) = all - size
		a.release(b + size)
	}
}

// release frees a used block and joins it with free neighbours.
func (a *arena) release(b uint64) {
	size := a.size(b)
	if next := b + size; *a.word(next)&used == 0 {
		a.remove(next)
		size += a.size(next)
	}
	if b > header {
		if prev := b - *a.word(b + 8); *a.word(prev)&used == 0 {
			a.remove(prev)
			size += a.size(prev)
			b = prev
		}
	}
	a.resize(b, size, 0)
	a.push(b)
}

// need is the size of a block that holds n bytes; false if none can.
func (a *arena) need(n uint64) (uint64, bool) {
	if n > uint64(len(a.mem)) {
		a.refused = true
		return 0, false
	}
	return max((n+header+15)&^15, smallest), true
}

// alloc returns the address of n bytes, in steps of 16, or 0 if they do not fit.
func (a *arena) alloc(n uint64) uintptr {
	size, ok := a.need(n)
	if !ok {
		return 0
	}
	b := a.find(size)
	if b == 0 {
		a.refused = true
		return 0
	}
	a.remove(b)
	*a.word(b) |= used
	a.cut(b, size)
	return a.base + uintptr(b) + header
}

// block is the offset of the block that alloc gave the address of.
func (a *arena) block(p uintptr) uint64 { return uint64(p-a.base) - header }

// realloc makes the block at p hold n bytes, moving it if it must. If it does
// not fit, it returns 0 and the block stays.
func (a *arena) realloc(p uintptr, n uint64) uintptr {
	size, ok := a.need(n)
	if !ok {
		return 0
	}
	b := a.block(p)
	old := a.size(b)
	if next := b + old; size > old && *a.word(next)&used == 0 && old+a.size(next) >= size {
		a.remove(next)
		a.resize(b, old+a.size(next), used)
		old = a.size(b)
	}
	if size <= old {
		a.cut(b, size)
		return p
	}
	to := a.alloc(n)
	if to != 0 {
		copy(a.bytes(to, old-header), a.bytes(p, old-header))
		a.release(b)
	}
	return to
}

// bytes are n bytes of the arena at an address.
func (a *arena) bytes(p uintptr, n uint64) []byte {
	at := uint64(p - a.base)
	return a.mem[at : at+n : at+n]
}

// put copies a string into the arena, with a 0 behind it. It returns 0 if it
// does not fit.
func (a *arena) put(s string) uintptr {
	p := a.alloc(uint64(len(s)) + 1)
	if p != 0 {
		b := a.bytes(p, uint64(len(s))+1)
		b[copy(b, s)] = 0
	}
	return p
}

// The functions below are what the engine calls. It counts by them how much it
// holds, which decides when it collects garbage.

func (a *arena) malloc(state *libquickjs.TJSMallocState, n uint64) uintptr {
	p := a.alloc(n)
	if p != 0 {
		state.Fmalloc_count++
		state.Fmalloc_size += libquickjs.Tsize_t(a.size(a.block(p)))
	}
	return p
}

func (a *arena) mfree(state *libquickjs.TJSMallocState, p uintptr) {
	if p == 0 {
		return
	}
	b := a.block(p)
	state.Fmalloc_count--
	state.Fmalloc_size -= libquickjs.Tsize_t(a.size(b))
	a.release(b)
}

func (a *arena) mrealloc(state *libquickjs.TJSMallocState, p uintptr, n uint64) uintptr {
	switch {
	case p == 0 && n == 0:
		return 0
	case p == 0:
		return a.malloc(state, n)
	case n == 0:
		a.mfree(state, p)
		return 0
	}
	old := a.size(a.block(p))
	to := a.realloc(p, n)
	if to != 0 {
		state.Fmalloc_size += libquickjs.Tsize_t(a.size(a.block(to))) - libquickjs.Tsize_t(old)
	}
	return to
}
