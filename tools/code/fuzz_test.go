package code_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools/code"
)

// No program makes the interpreter fail, run on or print without bound.
func FuzzJavaScript(f *testing.F) {
	for _, p := range []string{
		"", "1+1", "console.log({a:[1,2n,'x',/y/]})", "for(;;);", "throw {}", "let x: number = 1", "import 'x'", "await 1;`${1}`",
		"class A{#x=1;static{}};new A", "[..." + "'abc'].map(async x=>x)", "console.table([{a:1}])", "console.log('%d %o',1,{})",
		"new Proxy({},{})", "function*g(){yield 1}[...g()]", "setInterval(()=>{},9)", "'a'.replace(/(?<n>a)/,'$<n>')", "JSON.parse('[1')",
		"new Uint8Array(9).sort()", "9n**99n", "structuredClone(new Map([[{},new Set]]))", "\x00\xff", "a\n.b.c\n(", "Promise.reject(1)",
		"Array(4e9).join('')", "label:for(const[a,{b=1}]of[])continue label", "eval('1;')", "with({a:1})a", "delete globalThis.Date",
	} {
		f.Add(p)
	}
	const limit, output = 100 * time.Millisecond, 1000
	js := interpreter(f, code.WithTimeout(limit), code.WithMemory(8<<20), code.WithOutput(output))
	f.Fuzz(func(t *testing.T, program string) {
		start := time.Now()
		r, err := js.Run(context.Background(), program)
		if err != nil {
			t.Fatal(err)
		}
		// Fuzzing keeps every processor busy: only a program that runs on is late.
		if took := time.Since(start); took > limit+5*time.Second {
			t.Fatalf("it ran for %v", took)
		}
		if len(r.Output) > output || len(r.Err) > 4000 {
			t.Fatalf("%d bytes of output, %d of error", len(r.Output), len(r.Err))
		}
	})
}

func BenchmarkStart(b *testing.B) {
	js := interpreter(b)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := js.Run(context.Background(), "1 + 1"); err != nil || r.Output != "2\n" {
			b.Fatal(r, err)
		}
	}
}
