package code_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools/code"
)

// late is how long after its limit a program may end.
const late = 200 * time.Millisecond

// within runs f and checks its time. A busy machine may be late, but not three
// times in a row.
func within(t *testing.T, name string, limit time.Duration, f func()) {
	t.Helper()
	var took time.Duration
	for range 3 {
		start := time.Now()
		f()
		if took = time.Since(start); took <= limit+late {
			return
		}
	}
	t.Errorf("%s took %v, the limit is %v", name, took, limit)
}

// Programs that try to run on, to fill the memory or to fill the output. The
// want is a part of the error, unless the machine is so slow that the time is over before.
func TestAttacksEnd(t *testing.T) {
	const limit = 100 * time.Millisecond
	js := interpreter(t, code.WithTimeout(limit), code.WithMemory(64<<20))
	const stopped, full, deep, any = "stopped: it ran for 100ms", "out of memory", "stack overflow", ""
	for _, c := range []struct{ name, program, want string }{
		{"endless loop", `for (;;);`, stopped},
		{"catching", `for (;;) { try { for (;;); } catch { } finally { for (;;); } }`, stopped},
		{"endless promises", `(async function f() { for (;;) await 1; })()`, stopped},
		{"endless microtasks", `(function f() { queueMicrotask(f) })()`, stopped},
		{"endless timers", `(function f() { setTimeout(f) })()`, stopped},
		{"rejections", `for (;;) Promise.reject(new Error("x"))`, stopped},
		{"a trap of a proxy", `console.log(new Proxy({}, { ownKeys() { for (;;); } }))`, stopped},
		{"a getter of an error", `throw Object.create(Error.prototype, { message: { get() { for (;;); } } })`, stopped},
		{"a getter of a stack", `const e = new Error("q"); Object.defineProperty(e, "stack", { get() { for (;;); } }); throw e`, stopped},
		{"backtracking", `/^(a+)+$/.test("a".repeat(40) + "b")`, stopped},
		{"lazy backtracking", `"a".repeat(1e6).replace(/a*?b/g, "")`, stopped},
		// Here the engine does not listen: one step takes long.
		{"search in a string", `"a".repeat(2e7).indexOf("a".repeat(1e7) + "b")`, stopped},
		{"search in nothing", `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)`, stopped},
		{"search in holes", `const a = []; a.length = 4294967295; a.includes(5)`, stopped},
		{"joining holes", `Array(4e9).join("")`, stopped},
		{"reversing holes", `const a = []; a.length = 4e9; a.reverse()`, stopped},
		{"copying", `const a = new Array(1e5).fill(1); for (;;) a.slice()`, stopped},
		{"bytes", `const a = new Uint8Array(3e7); for (;;) a.fill(3)`, stopped},
		{"sorting", `const a = []; for (let i = 0; i < 1e5; i++) a.push(i * 7919 % 100003); for (;;) a.sort()`, stopped},
		{"writing JSON", `const o = []; for (let i = 0; i < 2e4; i++) o.push({ a: i }); for (;;) JSON.stringify(o)`, stopped},
		{"JSON that doubles", `let o = {}; for (let i = 0; i < 40; i++) o = { a: o, b: o }; JSON.stringify(o)`, any},
		{"digits of a big integer", `(7n ** 300000n).toString()`, stopped},
		{"products of big integers", `for (const x = 7n ** 100000n; ;) x * x`, stopped},
		// Memory.
		{"a tower of powers", `9n ** 9n ** 9n`, any},
		{"memory", `const a = []; for (;;) a.push(new Array(1000).fill(0))`, any},
		{"memory, caught", `const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(0)) } catch { }`, stopped},
		{"a huge array", `new Array(1e9).fill(1)`, any},
		{"many bytes", `new Uint8Array(2e9)`, any},
		{"doubling", `let s = "a"; for (;;) s += s`, "string too long"},
		{"padding", `"x".padStart(2 ** 30 - 1)`, full},
		{"parsing JSON", `JSON.parse("[" + "1,".repeat(2e7) + "1]")`, any},
		{"garbage in cycles", `for (;;) { const a = {}; a.a = a; }`, stopped},
		{"names", `const o = {}; for (let i = 0; ; i++) o["k" + i] = 1`, any},
		{"a long error", `throw new Error("x".repeat(1e7))`, any},
		// Depth.
		{"recursion", `(function f() { return f() + 1 })()`, deep},
		{"recursion through getters", `const o = { get x() { return this.x } }; o.x`, deep},
		{"recursion through text", `const o = { toString() { return String(o) } }; String(o)`, deep},
		{"recursion through callbacks", `[1].map(function f() { return [1].map(f) })`, deep},
		{"recursion of generators", `(function* g() { yield* g() })().next()`, deep},
		{"deep JSON", `JSON.parse("[".repeat(1e6))`, deep},
		{"deep code", `eval("(".repeat(1e6))`, deep},
		{"deep arrows", `eval("()=>".repeat(1e5) + "1")`, deep},
		{"deep templates", "eval('`${'.repeat(1e5))", deep},
		{"deep proxies", `let p = {}; for (let i = 0; i < 1e4; i++) p = new Proxy(p, {}); p.x`, deep},
		{"deep groups", `new RegExp("(?:".repeat(1e5) + ")".repeat(1e5))`, deep},
		{"deep values freed", `let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; o = null`, any},
		{"deep values printed", `let o = []; for (let i = 0; i < 1e5; i++) o = [o]; console.log(o)`, any},
		{"deep values flattened", `let o = []; for (let i = 0; i < 2e4; i++) o = [o]; o.flat(Infinity)`, deep},
		// Output.
		{"a gigabyte", `for (let i = 0; i < 1000; i++) console.log("x".repeat(1e6))`, any},
		{"wide output", `let o = {}; for (let i = 0; i < 40; i++) o = [o, o, o, o, o, o, o, o, o, o]; console.log(o)`, any},
	} {
		within(t, c.name, limit, func() {
			r := run(t, js, c.program)
			if !strings.Contains(r.Err, c.want) && !strings.HasPrefix(r.Err, stopped) {
				t.Errorf("%s: %.200q", c.name, r.Err)
			}
			if len(r.Output) > 64<<10 || len(r.Err) > 4000 {
				t.Errorf("%s: %d bytes of output, %d of error", c.name, len(r.Output), len(r.Err))
			}
		})
	}
}

// A loop that is stopped says where it was.
func TestStoppedProgramsSayWhere(t *testing.T) {
	r := run(t, interpreter(t, code.WithTimeout(50*time.Millisecond)), "console.log('begun');\nfunction f() {\n  for (;;);\n}\nf();")
	if r.Output != "begun\n" || !strings.HasSuffix(r.Err, "\n    at f (program.js)\n    at (program.js:5:2)") {
		t.Errorf("%+v", r)
	}
}

func TestContextStopsPrograms(t *testing.T) {
	js := interpreter(t)
	for _, p := range []string{`console.log("begun"); for (;;);`, `console.log("begun"); Array(4e9).join("")`, `console.log("begun"); await new Promise(r => { (function f() { setTimeout(f) })() })`} {
		within(t, p, 100*time.Millisecond, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			r, err := js.Run(ctx, p)
			var e *code.Error
			if !errors.As(err, &e) || e.Op != "run" || !errors.Is(err, context.DeadlineExceeded) || r.Output != "begun\n" {
				t.Errorf("%s: %+v, %v", p, r, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := js.Run(ctx, "console.log(1)"); !errors.Is(err, context.Canceled) || r.Output != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// rss is the memory of this process that is in use, in MB, Go's heap and the
// rest; 0 where the system does not say.
func rss() (mb int) {
	var pages, resident int
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		fmt.Sscan(string(b), &pages, &resident)
	}
	return resident * os.Getpagesize() >> 20
}

// peak measures how far the memory rises above what it is now while f runs.
func peak(f func()) (mb int) {
	runtime.GC()
	base, stop, done := rss(), make(chan struct{}), make(chan int)
	go func() {
		top, tick := base, time.NewTicker(2*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				top = max(top, rss())
			case <-stop:
				done <- max(top, rss())
				return
			}
		}
	}()
	f()
	close(stop)
	return <-done - base
}

// 200 programs at once take the memory of those that run, and each ends.
func TestManyAtOnceTakeBoundedMemory(t *testing.T) {
	const programs, parallel, memory, limit = 200, 4, 16, 50 * time.Millisecond
	js := interpreter(t, code.WithConcurrency(parallel), code.WithMemory(memory<<20), code.WithTimeout(limit))
	var before, after runtime.MemStats
	var mb int
	runtime.GC()
	runtime.ReadMemStats(&before)
	within(t, "200 programs", programs/parallel*(limit+late), func() {
		mb = peak(func() {
			var all sync.WaitGroup
			for i := range programs {
				all.Go(func() {
					p := []string{`const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(0)) } catch { }`, `for (;;);`, `new Uint8Array(1.2e7).fill(1).indexOf(2)`, `const a = []; for (;;) a.push({})`}[i%4]
					if _, err := js.Run(context.Background(), p); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("memory rose by %d MB, Go's heap from %d to %d KB", mb, before.HeapAlloc>>10, after.HeapAlloc>>10)
	if allowed := parallel*memory + 64; mb > allowed {
		t.Errorf("memory rose by %d MB, more than %d", mb, allowed)
	}
	if rss() > 0 && mb < 4 {
		t.Error("the programs took no memory: the test measures nothing")
	}
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("Go's heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

// Those that wait are let go by their context, with a typed error.
func TestWaitingProgramsObeyTheirContext(t *testing.T) {
	js := interpreter(t, code.WithConcurrency(1), code.WithTimeout(time.Minute))
	within(t, "200 programs", 100*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		ops := make(chan string, 200)
		for range cap(ops) {
			go func() {
				_, err := js.Run(ctx, "for (;;);")
				var e *code.Error
				if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
					e = &code.Error{}
				}
				ops <- e.Op
			}()
		}
		count := map[string]int{}
		for range cap(ops) {
			count[<-ops]++
		}
		if count["run"] != 1 || count["wait"] != 199 {
			t.Errorf("%v", count)
		}
	})
	if r := run(t, js, "1"); r.Output != "1\n" {
		t.Errorf("afterwards: %+v", r)
	}
}

// Nothing is left of programs, however they ended.
func TestRunsLeaveNoMemory(t *testing.T) {
	js := interpreter(t, code.WithTimeout(time.Millisecond), code.WithConcurrency(2))
	slow := interpreter(t)
	some := func(n int) {
		for range n {
			run(t, slow, "const a = []; for (let i = 0; i < 1000; i++) a.push({ i }); a.length")
			run(t, slow, "null.x")
		}
		for range n / 10 {
			run(t, js, "for (;;);")
			run(t, js, "Array(4e9).join('')")
		}
	}
	some(20)
	runtime.GC()
	before := rss()
	some(125)
	runtime.GC()
	if grown := rss() - before; grown > 24 {
		t.Errorf("300 programs left %d MB", grown)
	} else {
		t.Logf("300 programs left %d MB of %d", grown, before)
	}
}
