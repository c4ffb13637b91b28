// Package code runs programs that models write.
//
// JavaScript runs them in an engine within this process, written in Go: nothing
// has to be installed. It builds without cgo for Linux, macOS, Windows and
// FreeBSD, on the processors that modernc.org/libquickjs lists.
//
//	js, err := code.JavaScript(code.WithTimeout(5 * time.Second))
//	run, err := js.Run(ctx, "console.log(2n ** 100n)")
//	fmt.Println(run.Output, run.Err)
//
// # What programs find
//
// The language up to ES2023: BigInt, generators, classes, regular expressions
// with named groups, promises, and await at the top. console.log and the other
// methods of console, and print, write to one output; values look as in Node,
// two levels deeper. A program that prints nothing has the value of its last
// expression printed, awaited if it is a promise. setTimeout and setInterval
// run in order without waiting: the program's clock (Date, performance.now)
// jumps to the time of the next timer, for up to an hour in all. structuredClone
// and queueMicrotask are there. Local time is that of this process.
//
// There is no network, no file, no process, no module (require, import), no
// thread, no WebAssembly and no Intl: Number.prototype.toLocaleString groups
// digits as in en-US, and what else would need Intl is an error.
//
// # What bounds them
//
// Time, memory, output and recursion have limits (see WithTimeout, WithMemory,
// WithOutput). All memory of a program is one mapping outside Go's heap: it
// cannot exceed the limit, and it is unmapped when the program ends, so that
// nothing is left and nothing is shared with the next. A program whose time is
// over, or whose context is, is told to stop. Within a long step of the engine,
// such as a search in a string of megabytes, it does not listen: after 50 ms its
// memory is made inaccessible, and the fault in the engine ends it. (In Go a
// fault at such an address is a panic of one goroutine, see
// runtime/debug.SetPanicOnFault, and is recovered here. A debugger may stop
// there.)
//
// The engine is memory-unsafe code made of C. A program that finds a defect in
// it could corrupt the process. Where programs come from adversaries, run
// the process itself in a container.
package code
