package code

import (
	"bytes"
	"math/rand/v2"
	"runtime/debug"
	"testing"
)

// play does what the bytes say with an arena, two bytes a step, and checks that
// no block ever holds other bytes than those written to it.
func play(t *testing.T, steps []byte) {
	a, err := newArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.free()
	whole := a.size(header)
	type held struct {
		p    uintptr
		n    uint64
		fill byte
	}
	var all []held
	write := func(h held) {
		for i := range a.bytes(h.p, h.n) {
			a.bytes(h.p, h.n)[i] = h.fill
		}
	}
	check := func(h held, n uint64) {
		if b := a.bytes(h.p, n); !bytes.Equal(b, bytes.Repeat([]byte{h.fill}, len(b))) {
			t.Fatalf("a block of %d bytes was overwritten", h.n)
		}
	}
	for i := 0; i+1 < len(steps); i += 2 {
		n := uint64(steps[i+1]) << (steps[i] >> 4) // up to 8 MB: more than there is
		switch which := int(steps[i+1]) % max(len(all), 1); {
		case steps[i]%4 < 2:
			if p := a.alloc(n); p != 0 {
				if p%16 != 0 {
					t.Fatalf("address %x", p)
				}
				all = append(all, held{p, n, byte(i)})
				write(all[len(all)-1])
			}
		case len(all) == 0:
		case steps[i]%4 == 2:
			h := all[which]
			if p := a.realloc(h.p, n); p != 0 {
				check(held{p, n, h.fill}, min(n, h.n))
				all[which] = held{p, n, h.fill}
				write(all[which])
			}
		default:
			h := all[which]
			check(h, h.n)
			a.release(a.block(h.p))
			all = append(all[:which], all[which+1:]...)
		}
	}
	for _, h := range all {
		check(h, h.n)
		a.release(a.block(h.p))
	}
	if a.size(header) != whole || *a.word(header)&used != 0 || a.find(whole) != header {
		t.Fatalf("all was released, and the first block has %d bytes of %d", a.size(header), whole)
	}
}

func TestArenaKeepsBlocksApartAndJoinsThemAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		steps := make([]byte, 2000)
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		play(t, steps)
	}
}

func FuzzArena(f *testing.F) {
	f.Add([]byte{0x00, 9, 0x42, 200, 0x03, 0, 0xF0, 255, 0x80, 255, 0x72, 3})
	f.Fuzz(func(t *testing.T, steps []byte) { play(t, steps) })
}

func TestArenaRefusesWhatDoesNotFit(t *testing.T) {
	a, err := newArena(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer a.free()
	if p := a.alloc(60_000); p == 0 || a.refused {
		t.Fatal("60,000 of 65,536 bytes do not fit")
	}
	for _, n := range []uint64{10_000, 1 << 40, ^uint64(0)} {
		a.refused = false
		if a.alloc(n) != 0 || !a.refused {
			t.Errorf("%d bytes fit", n)
		}
	}
}

// Taking the memory away is what stops a program that does not listen.
func TestSeizedMemoryIsAPanicOfItsUser(t *testing.T) {
	a, err := newArena(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	p := a.put("here")
	if err := a.seize(); err != nil {
		t.Fatal(err)
	}
	got := make(chan any)
	go func() {
		debug.SetPanicOnFault(true)
		defer func() { got <- recover() }()
		_ = string(a.bytes(p, 4))
	}()
	if <-got == nil {
		t.Error("the memory is still there")
	}
	if err := a.free(); err != nil {
		t.Error(err)
	}
}
