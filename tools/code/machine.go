package code

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libquickjs"
)

// The prelude is a function of its own scope, so that a program sees of it only
// what it defines.
//
//go:embed inspect.js
var inspectJS string

//go:embed prelude.js
var preludeJS string

var prelude = "(function (write) {\n'use strict';\n" + inspectJS + preludeJS + "})"

const (
	programName = "program.js"
	preludeName = "prelude.js"
	reserve     = 256 << 10 // bytes kept for describing an error when memory is full
	watched     = 64        // rejected promises that are kept an eye on
)

// machine is one engine with its memory, for one program. Nothing of it is
// shared with another.
type machine struct {
	*arena
	tls     *libc.TLS
	rt, ctx uintptr
	scratch uintptr // 16 bytes for results by reference
	out     output
	stop    atomic.Bool // set by another goroutine: end soon
	hooks   []any       // Go functions that the engine knows by their address
	pending []rejection

	undefined  libquickjs.TJSValue
	tick       libquickjs.TJSValue // runs the next timer
	show, text libquickjs.TJSValue // print a value; make text of one
}

// rejection is a rejected promise that nobody has handled.
type rejection struct{ promise, reason libquickjs.TJSValue }

// outcome is how a program ended.
type outcome struct {
	failure *failure // of the program
	fault   error    // of the engine: it panicked or did not start
}

// errStart means that the engine could not be set up.
var errStart = errors.New("the engine did not start")

// at is the thing at an address that the engine gave.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// hook makes a Go function callable by the engine, which takes the address of
// the function value. Values in an interface do not move, and hooks keeps them.
func (m *machine) hook(f any) uintptr {
	m.hooks = append(m.hooks, f)
	return (*[2]uintptr)(unsafe.Pointer(&f))[1]
}

// execute runs the program. It must have a goroutine of its own: if the memory
// is taken away meanwhile, the engine faults wherever it is, and that fault is
// turned into a panic of this goroutine, which ends here.
func (m *machine) execute(prelude string, code string) (o outcome) {
	o.fault = m.within(func() error {
		if err := m.load(prelude); err != nil {
			return err
		}
		o.failure = m.program(code)
		return nil
	})
	return o
}

// compile makes the prelude into what load takes: reading the text takes longer
// than all else that a program needs to start.
func (m *machine) compile() (code string, err error) {
	return code, m.within(func() error {
		f := m.eval(prelude, preludeName, libquickjs.MJS_EVAL_FLAG_COMPILE_ONLY)
		if m.failed() {
			return errStart
		}
		p := libquickjs.XJS_WriteObject(m.tls, m.ctx, m.scratch, f, libquickjs.MJS_WRITE_OBJ_BYTECODE)
		if p == 0 {
			return errStart
		}
		code = string(m.bytes(p, uint64(*at[libquickjs.Tsize_t](m.scratch))))
		return nil
	})
}

// within makes an engine, and calls f. A panic of either is an error.
func (m *machine) within(f func() error) (err error) {
	debug.SetPanicOnFault(true)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	m.tls = libc.NewTLS()
	// The engine itself is not closed: all it holds goes with its memory.
	defer m.tls.Close()
	if err := m.boot(); err != nil {
		return err
	}
	return f()
}

// boot makes the engine.
func (m *machine) boot() error {
	type functions = libquickjs.TJSMallocFunctions
	type state = libquickjs.TJSMallocState
	m.scratch = m.alloc(16)
	table := m.alloc(uint64(unsafe.Sizeof(functions{})))
	if m.scratch == 0 || table == 0 {
		return errStart
	}
	*at[functions](table) = functions{
		Fjs_malloc: m.hook(func(_ *libc.TLS, s uintptr, n libquickjs.Tsize_t) uintptr { return m.malloc(at[state](s), uint64(n)) }),
		Fjs_free:   m.hook(func(_ *libc.TLS, s, p uintptr) { m.mfree(at[state](s), p) }),
		Fjs_realloc: m.hook(func(_ *libc.TLS, s, p uintptr, n libquickjs.Tsize_t) uintptr {
			return m.mrealloc(at[state](s), p, uint64(n))
		}),
		Fjs_malloc_usable_size: m.hook(func(_ *libc.TLS, p uintptr) libquickjs.Tsize_t {
			return libquickjs.Tsize_t(m.size(m.block(p)) - header)
		}),
	}
	if m.rt = libquickjs.XJS_NewRuntime2(m.tls, table, 0); m.rt == 0 {
		return errStart
	}
	if m.ctx = libquickjs.XJS_NewContext(m.tls, m.rt); m.ctx == 0 {
		return errStart
	}
	libquickjs.XJS_SetInterruptHandler(m.tls, m.rt, m.hook(func(_ *libc.TLS, _, _ uintptr) int32 {
		if m.stop.Load() {
			return 1
		}
		return 0
	}), 0)
	libquickjs.XJS_SetHostPromiseRejectionTracker(m.tls, m.rt, m.hook(m.track), 0)
	m.undefined = m.property(libquickjs.XJS_GetGlobalObject(m.tls, m.ctx), "undefined")
	return nil
}

// load runs the compiled prelude.
func (m *machine) load(prelude string) error {
	p := m.put(prelude)
	if p == 0 {
		return errStart
	}
	defer m.release(m.block(p))
	f := libquickjs.XJS_ReadObject(m.tls, m.ctx, p, libquickjs.Tsize_t(len(prelude)), libquickjs.MJS_READ_OBJ_BYTECODE)
	if m.failed() {
		return errStart
	}
	make := libquickjs.XJS_EvalFunction(m.tls, m.ctx, f)
	if m.failed() {
		return errStart
	}
	write := libquickjs.XJS_NewCFunction2(m.tls, m.ctx, m.hook(m.write), 0, 1, libquickjs.EJS_CFUNC_generic, 0)
	parts := m.call(make, write)
	if m.failed() {
		return errStart
	}
	m.tick, m.show, m.text = m.element(parts, 0), m.element(parts, 1), m.element(parts, 2)
	return nil
}

// program runs the code, and then what it left to be done: jobs of promises
// and timers.
func (m *machine) program(code string) *failure {
	spare := m.alloc(reserve)
	fail := func(v libquickjs.TJSValue) *failure {
		if spare != 0 {
			m.release(m.block(spare))
			spare = 0
		}
		return m.describe(v)
	}
	// An asynchronous script may await at its top, and gives a promise of the
	// value of its last expression.
	promise := m.eval(code, programName, libquickjs.MJS_EVAL_FLAG_ASYNC)
	if m.failed() {
		return fail(m.exception())
	}
	if !m.drain() {
		return fail(m.exception())
	}
	switch state := libquickjs.XJS_PromiseState(m.tls, m.ctx, promise); {
	case state == libquickjs.EJS_PROMISE_REJECTED:
		return fail(libquickjs.XJS_PromiseResult(m.tls, m.ctx, promise))
	case m.stop.Load():
		return &failure{name: interrupted}
	case state == libquickjs.EJS_PROMISE_PENDING:
		return &failure{name: "Error", message: "the program awaits a promise that nothing settles"}
	}
	if len(m.pending) > 0 {
		return fail(m.pending[0].reason)
	}
	if m.out.empty() {
		v := m.property(libquickjs.XJS_PromiseResult(m.tls, m.ctx, promise), "value")
		if libquickjs.XJS_PromiseState(m.tls, m.ctx, v) == libquickjs.EJS_PROMISE_FULFILLED { // the last line calls an async function
			v = libquickjs.XJS_PromiseResult(m.tls, m.ctx, v)
		}
		if m.call(m.show, v); m.failed() {
			return fail(m.exception())
		}
	}
	return nil
}

// drain runs jobs and timers until there are none or the program is stopped. It
// returns false if one of them threw.
func (m *machine) drain() bool {
	for !m.stop.Load() {
		switch n := libquickjs.XJS_ExecutePendingJob(m.tls, m.rt, m.scratch); {
		case n < 0:
			return false
		case n > 0:
			continue
		}
		more := m.call(m.tick)
		if m.failed() {
			return false
		}
		if libquickjs.XJS_ToBool(m.tls, m.ctx, more) == 0 {
			break
		}
	}
	return true
}

// track notes promises that are rejected and not handled, and handled later.
func (m *machine) track(_ *libc.TLS, _ uintptr, promise, reason libquickjs.TJSValue, handled int32, _ uintptr) {
	if handled == 0 {
		if len(m.pending) < watched {
			libquickjs.XDupValue(m.tls, m.ctx, promise)
			m.pending = append(m.pending, rejection{promise, libquickjs.XDupValue(m.tls, m.ctx, reason)})
		}
		return
	}
	for i, r := range m.pending {
		if r.promise == promise {
			m.pending = append(m.pending[:i], m.pending[i+1:]...)
			libquickjs.XFreeValue(m.tls, m.ctx, r.promise)
			libquickjs.XFreeValue(m.tls, m.ctx, r.reason)
			return
		}
	}
}

// write is the function of the prelude that appends to the output.
func (m *machine) write(_ *libc.TLS, _ uintptr, _ libquickjs.TJSValue, argc int32, argv uintptr) libquickjs.TJSValue {
	if argc > 0 && !m.view(*at[libquickjs.TJSValue](argv), m.out.write) {
		return libquickjs.XJS_Throw(m.tls, m.ctx, m.exception())
	}
	return m.undefined
}

// view calls f with the bytes of a string while they are there. It returns
// false if there was no memory for them; the exception is then set.
func (m *machine) view(v libquickjs.TJSValue, f func([]byte)) bool {
	p := libquickjs.XJS_ToCStringLen2(m.tls, m.ctx, m.scratch, v, 0)
	if p == 0 {
		return false
	}
	f(m.bytes(p, uint64(*at[libquickjs.Tsize_t](m.scratch))))
	libquickjs.XJS_FreeCString(m.tls, m.ctx, p)
	return true
}
