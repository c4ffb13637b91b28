package code_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/code"
)

func interpreter(t testing.TB, opts ...code.Option) tools.Interpreter {
	t.Helper()
	js, err := code.JavaScript(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func run(t testing.TB, js tools.Interpreter, program string) tools.CodeRun {
	t.Helper()
	r, err := js.Run(context.Background(), program)
	if err != nil {
		t.Fatalf("%v, of %s", err, program)
	}
	if r.Language != "javascript" || r.Code != program {
		t.Errorf("the run says %q, %q", r.Language, r.Code)
	}
	return r
}

// What models write, and what it must print.
func TestPrograms(t *testing.T) {
	js := interpreter(t)
	for _, c := range []struct{ name, program, want string }{
		{"arithmetic", `console.log(0.1 + 0.2, 7 / 2, 7 % 3, 2 ** 53, -0, 1 / 0, 0 / 0, 1e21, 0xff)`, "0.30000000000000004 3.5 1 9007199254740992 -0 Infinity NaN 1e+21 255"},
		{"a sieve", `const n = 100000, s = new Uint8Array(n + 1); let c = 0;
			for (let i = 2; i <= n; i++) { if (s[i]) continue; c++; for (let j = i * i; j <= n; j += i) s[j] = 1; }
			console.log(c);`, "9592"},
		{"big integers", `let f = 1n; for (let i = 1n; i <= 30n; i++) f *= i; console.log(f, String(f).length, BigInt.asUintN(8, 511n), 10n ** 20n % 7n)`, "265252859812191058636308480000000n 33 255n 2n"},
		{"a modular power", `const pow = (b, e, m) => { let r = 1n; for (b %= m; e; e >>= 1n, b = b * b % m) if (e & 1n) r = r * b % m; return r; };
			console.log(pow(2n, 1000n, 1000007n).toString())`, "783922"},
		{"a matrix", `const a = [[1, 2], [3, 4]], b = [[5, 6], [7, 8]];
			console.log(a.map(r => b[0].map((_, j) => r.reduce((s, x, k) => s + x * b[k][j], 0))))`, "[ [ 19, 22 ], [ 43, 50 ] ]"},
		{"dates", `const a = new Date("2024-02-28T00:00:00Z"); a.setUTCDate(a.getUTCDate() + 2);
			console.log(a.toISOString().slice(0, 10), (Date.UTC(2024, 11, 25) - Date.UTC(2024, 0, 1)) / 864e5, new Date(0), a.getUTCDay())`, "2024-03-01 359 1970-01-01T00:00:00.000Z 5"},
		{"a broken date", `console.log(new Date("nonsense"), [new Date(NaN)])`, "Invalid Date [ Invalid Date ]"},
		{"words counted", `const t = "the cat and the hat and the bat", m = new Map();
			for (const w of t.split(/\s+/)) m.set(w, (m.get(w) ?? 0) + 1);
			console.log([...m].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 2), m.size)`, "[ [ 'the', 3 ], [ 'and', 2 ] ] 5"},
		{"strings", "const s = 'Hello, Wörld 😀'; console.log([...s].length, s.length, s.toUpperCase(), s.replaceAll('l', 'L'), s.at(-3), s.padEnd(18, '.') + '|', `${1 + 1}`)", "14 15 HELLO, WÖRLD 😀 HeLLo, WörLd 😀   Hello, Wörld 😀...| 2"},
		{"a palindrome", `const p = s => { const c = s.toLowerCase().replace(/[^a-z0-9]/g, ""); return c === [...c].reverse().join(""); };
			console.log(p("A man, a plan, a canal: Panama"), p("no"))`, "true false"},
		{"named groups", `const m = "2024-05-17".match(/(?<y>\d{4})-(?<m>\d\d)-(?<d>\d\d)/); const { y, m: mo } = m.groups;
			console.log(y, mo, [..."a1b22".matchAll(/[a-z](\d+)/g)].map(x => x[1]), "x-y".replace(/(?<l>\w)-(?<r>\w)/, "$<r>-$<l>"))`, "2024 05 [ '1', '22' ] y-x"},
		{"lookbehind and unicode classes", `console.log("$42 €7".match(/(?<=\$)\d+/)[0], "añb".match(/\p{L}+/u)[0])`, "42 añb"},
		{"generators", `function* fib() { let [a, b] = [0, 1]; for (;;) { yield a; [a, b] = [b, a + b]; } }
			const out = []; for (const x of fib()) { if (x > 50) break; out.push(x); } console.log(out.join(" "))`, "0 1 1 2 3 5 8 13 21 34"},
		{"classes", `class Shape { #n; static count = 0; constructor(n) { this.#n = n; Shape.count++; } get name() { return this.#n; } area() { return 0; } toString() { return this.name + " " + this.area().toFixed(2); } }
			class Circle extends Shape { constructor(r) { super("circle"); this.r = r; } area() { return Math.PI * this.r ** 2; } }
			console.log(String(new Circle(2)), Shape.count, new Circle(1), new Circle(1) instanceof Shape, Circle)`, "circle 12.57 1 Circle { r: 1 } true [class Circle extends Shape]"},
		{"destructuring", `const { a, b: { c = 5, ...rest } = {}, ...others } = { a: 1, b: { d: 2 }, e: 3 }; const [x, , y = 9] = [7, 8]; console.log(a, c, rest, others, x, y)`, "1 5 { d: 2 } { e: 3 } 7 9"},
		{"optional chaining", `const o = { a: { b: null } }; console.log(o?.a?.b?.c, o.x?.(), o.a.b ?? "none", o.q ||= 4)`, "undefined undefined none 4"},
		{"sets", `const a = new Set([1, 2, 3]), b = new Set([2, 3, 4]); console.log([...a].filter(x => b.has(x)), new Set([...a, ...b]), new Set("hello").size)`, "[ 2, 3 ] Set(4) { 1, 2, 3, 4 } 4"},
		{"maps and cycles", `const o = { n: 1, list: [1] }; o.self = o; console.log(new Map([["k", { v: [1] }]]), o, new WeakMap())`, "Map(1) { 'k' => { v: [ 1 ] } } <ref *1> { n: 1, list: [ 1 ], self: [Circular *1] } WeakMap {}"},
		{"depth", `console.log({ a: { b: { c: { d: { e: { f: 1 } } } } } }, [[[[[[1]]]]]])`, "{ a: { b: { c: { d: { e: [Object] } } } } } [ [ [ [ [ [Array] ] ] ] ] ]"},
		{"values of all kinds", `console.log([undefined, null, "it's", 'a\n"b"', 5n, Symbol("s"), /x/gi, () => 1, function f() {}, NaN, -0, [, 1], true])`, "[\n  undefined, null, \"it's\", 'a\\n\"b\"', 5n, Symbol(s), /x/gi,\n  [Function (anonymous)], [Function: f], NaN, -0, [ <1 empty item>, 1 ],\n  true\n]"},
		{"accessors are not called", `console.log({ get x() { throw 1; }, set x(v) {}, get y() { throw 1; }, set z(v) {}, "a-b": 1, [Symbol("k")]: 2 })`, "{\n  x: [Getter/Setter],\n  y: [Getter],\n  z: [Setter],\n  'a-b': 1,\n  [Symbol(k)]: 2\n}"},
		{"typed arrays", `console.log(new Uint8Array([1, 255, 256]), new Float64Array(2), new Array(3), Array.from({ length: 3 }, (_, i) => i * i))`, "Uint8Array(3) [ 1, 255, 0 ] Float64Array(2) [ 0, 0 ] [ <3 empty items> ] [ 0, 1, 4 ]"},
		{"long arrays are cut", `console.log(Array.from({ length: 103 }, (_, i) => 7)); const far = []; far[5e6] = 1; console.log(far)`, strings.Replace("[\n"+strings.Repeat("  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,\n", 4)+"  7, 7, 7, 7, ... 3 more items\n]\n[ <5000000 empty items>, 1 ]", "7,\n]", "7\n]", 1)},
		{"wide objects are broken", `console.log({ name: "Alice", tags: ["a", "b"], address: { street: "123 Main Street", city: "Springfield" } })`, "{\n  name: 'Alice',\n  tags: [ 'a', 'b' ],\n  address: { street: '123 Main Street', city: 'Springfield' }\n}"},
		{"errors as values", `try { null.x } catch (e) { console.log(e instanceof TypeError, e.name) } console.log([new RangeError("no")], String(new Error("e")))`, "true TypeError\n[ [RangeError: no] ] Error: e"},
		{"verbs", `console.log("%s is %d years and %i, %f, %j %o %% %x", "Al", 42, 3.9, 1.5, { a: 1 }, [1], "more"); console.log("100%", 5)`, "Al is 42 years and 3, 1.5, {\"a\":1} [ 1 ] % %x more\n100% 5"},
		{"the rest of console", `console.group("g"); console.info("in"); console.error("two\nlines"); console.groupEnd(); console.assert(1 > 2, "why"); console.count(); console.count(); console.dir({ a: 1 }); print("p")`, "g\n  in\n  two\n  lines\nAssertion failed: why\ndefault: 1\ndefault: 2\n{ a: 1 }\np"},
		{"a table", `console.table([{ a: 1, b: "x" }, { a: 2 }])`, "┌─────────┬───┬─────┐\n│ (index) │ a │ b   │\n├─────────┼───┼─────┤\n│ 0       │ 1 │ 'x' │\n│ 1       │ 2 │     │\n└─────────┴───┴─────┘"},
		{"JSON", `console.log(JSON.stringify({ a: [1, { b: 2 }], d: new Date(0), u: undefined }), JSON.stringify({ a: 1 }, null, 2), JSON.parse('{"x":[1,2]}').x.length)`, "{\"a\":[1,{\"b\":2}],\"d\":\"1970-01-01T00:00:00.000Z\"} {\n  \"a\": 1\n} 2"},
		{"sorting", `const p = [["b", 2], ["a", 2], ["c", 1]]; console.log(p.toSorted((x, y) => x[1] - y[1] || x[0].localeCompare(y[0])), [10, 9, 1].sort(), [3, 1, 2].sort((a, b) => b - a), Object.groupBy([1, 2, 3], x => x % 2 ? "odd" : "even"))`, "[ [ 'c', 1 ], [ 'a', 2 ], [ 'b', 2 ] ] [ 1, 10, 9 ] [ 3, 2, 1 ] [Object: null prototype] { odd: [ 1, 3 ], even: [ 2 ] }"},
		{"memoised recursion", `const memo = {}; const f = n => n < 2 ? n : memo[n] ??= f(n - 1) + f(n - 2); console.log(f(90), (function d(n) { return n ? d(n - 1) : "deep" })(2000))`, "2880067194370816000 deep"},
		{"permutations", `const perms = a => a.length < 2 ? [a] : a.flatMap((x, i) => perms(a.toSpliced(i, 1)).map(p => [x, ...p])); console.log(perms([1, 2, 3]).length, perms(["a", "b"]))`, "6 [ [ 'a', 'b' ], [ 'b', 'a' ] ]"},
		{"shortest paths", `const g = { a: { b: 1, c: 4 }, b: { c: 2, d: 5 }, c: { d: 1 }, d: {} }, dist = { a: 0 }, todo = new Set(Object.keys(g));
			while (todo.size) { const u = [...todo].reduce((m, v) => (dist[v] ?? Infinity) < (dist[m] ?? Infinity) ? v : m); todo.delete(u);
			for (const [v, w] of Object.entries(g[u])) dist[v] = Math.min(dist[v] ?? Infinity, dist[u] + w); } console.log(dist)`, "{ a: 0, b: 1, c: 3, d: 4 }"},
		{"promises in order", `console.log(1); setTimeout(() => console.log(5)); setImmediate(() => console.log(6)); queueMicrotask(() => console.log(3)); Promise.resolve().then(() => console.log(4)); console.log(2)`, "1\n2\n3\n4\n5\n6"},
		{"await at the top", `const sleep = ms => new Promise(r => setTimeout(r, ms)); const xs = await Promise.all([1, 2, 3].map(async x => { await sleep(100 * (4 - x)); console.log("done", x); return x * x; })); console.log(xs)`, "done 3\ndone 2\ndone 1\n[ 1, 4, 9 ]"},
		{"an async main", `async function main() { for await (const x of (async function* () { yield 1; yield 2; })()) console.log(x); } main();`, "1\n2"},
		{"a rejection that is handled late", `const p = Promise.reject(new Error("x")); setTimeout(() => p.catch(e => console.log("caught", e.message)), 10)`, "caught x"},
		{"timers in virtual time", `const t = Date.now(), n = new Date(); let k = 0; const id = setInterval(() => { if (++k === 3) clearInterval(id); }, 60_000);
			setTimeout(() => { const d = Date.now() - t; console.log(k, d >= 200_000 && d < 205_000, new Date() - n >= 200_000, performance.now() >= 200_000) }, 200_000); clearTimeout(setTimeout(() => console.log("never")))`, "3 true true true"},
		{"the clock is a Date", `const d = new Date(2020, 0, 5); console.log(d instanceof Date, d.constructor === Date, d.getFullYear(), typeof Date(), new (class D extends Date {})(0).getTime(), Date.UTC(1970, 0, 1))`, "true true 2020 string 0 0"},
		{"a deep copy", `const a = { d: new Date(0), m: new Map([[1, { x: 1 }]]), s: new Set([1]), l: [1, [2]], t: new Uint8Array(2), r: /a/g }; a.me = a; const b = structuredClone(a); b.l[1][0] = 9; b.m.get(1).x = 9; console.log(a.l[1][0], a.m.get(1).x, b.me === b, b.d, b.s, b.t.length, b.r)`, "2 1 true 1970-01-01T00:00:00.000Z Set(1) { 1 } 2 /a/g"},
		{"grouped digits", `console.log((1234567.891).toLocaleString(), (-1234.5).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }), 1234567n.toLocaleString(), (999).toLocaleString(), NaN.toLocaleString(), (0.00001).toLocaleString())`, "1,234,567.891 -1,234.50 1,234,567 999 NaN 0"},
		{"sloppy mode", `x = 5; var y = x; function f() { return typeof this } console.log(y, delete globalThis.x, f(), eval("y + 1"), new Function("a", "return a * 2")(4))`, "5 true object 6 8"},
		{"a lone surrogate", `console.log("\ud800" + "ok")`, "\uFFFDok"},
		{"a NUL", `console.log("a\0b".length, "a\0b")`, "3 a\x00b"},
		// A program that prints nothing.
		{"the last value", `const xs = [3, 4]; xs.map(x => x * x)`, "[ 9, 16 ]"},
		{"the last value as text", `"plain " + 'text'`, "plain text"},
		{"the last value awaited", `(async () => { await null; return { ok: 1 } })()`, "{ ok: 1 }"},
		{"no value", `const a = 1;`, ""},
		{"nothing", "", ""},
		{"not after output", `console.log("out"); 42`, "out"},
	} {
		r := run(t, js, c.program)
		if r.Err != "" || r.Truncated || strings.TrimSuffix(r.Output, "\n") != c.want {
			t.Errorf("%s:\n%s\nwant\n%s\nerr %q", c.name, r.Output, c.want, r.Err)
		}
	}
}

// What is told about programs that fail. Each want is a part of it.
func TestErrorsOfPrograms(t *testing.T) {
	js := interpreter(t, code.WithMemory(16<<20))
	for _, c := range []struct {
		name, program string
		want          []string
	}{
		{"runtime", "const a = 1;\nfunction f(x) {\n  return x.y.z;\n}\nf({});", []string{"TypeError: cannot read property 'z' of undefined\n    at f (program.js:3:", "\n    at (program.js:5:"}},
		{"after an await", "await null;\n\nnull.x", []string{"TypeError", "program.js:3"}},
		{"in a timer", "setTimeout(() => {\n  boom();\n}, 5)", []string{"ReferenceError: 'boom' is not defined", "program.js:2"}},
		{"nobody catches", "async function f() {\n  throw new RangeError('low')\n}\nf(); console.log(1)", []string{"RangeError: low", "at f (program.js:2"}},
		{"own class", "class MyError extends Error { constructor(m) { super(m); this.name = 'MyError' } }\nthrow new MyError('mine')", []string{"MyError: mine", "program.js:2"}},
		{"no error", "throw { code: 7, why: ['x'] }", []string{"uncaught: { code: 7, why: [ 'x' ] }"}},
		{"a string", "throw 'text'", []string{"uncaught: text"}},
		{"null", "throw null", []string{"uncaught: null"}},
		{"syntax", "let a = 1;\nlet b = ;\n", []string{"SyntaxError: ", "program.js:2:"}},
		{"cut off", "function f() {\n  return [1,", []string{"SyntaxError: ", "program.js:2:"}},
		{"twice", "let a; let a;", []string{"SyntaxError: invalid redefinition of lexical identifier"}},
		{"bare return", "const x = 1;\nreturn x;", []string{"SyntaxError: return not in a function (print the result with console.log)", "program.js:2"}},
		{"a waiting promise", "await new Promise(() => {})", []string{"Error: the program awaits a promise that nothing settles"}},
		{"an interval for ever", "setInterval(() => {}, 1000)", []string{"RangeError: timers are still set after an hour on the program's clock: clear them"}},
		{"not a function", "setTimeout('x')", []string{"TypeError: the first argument of a timer must be a function"}},
		{"recursion", "const f = n => 1 + f(n + 1);\nf(0)", []string{"InternalError: stack overflow (the recursion is too deep", "program.js:1"}},
		{"memory", "const a = [];\nfor (;;) a.push('x'.repeat(1e5) + a.length)", []string{"out of memory (the program holds too much at once"}},
		{"big integers", "1n << 100000000n", []string{"RangeError: BigInt is too large"}},
		{"mixed numbers", "1n + 1", []string{"TypeError: "}},
		{"its own name", "throw Object.assign(new Error('m'), { name: Symbol() })", []string{"m"}},
		{"a long message", "throw new Error('x'.repeat(1e6))", []string{"Error: xxx", "…"}},
		// What is not there.
		{"require", "const fs = require('fs');", []string{"ReferenceError: 'require' is not defined (there are no modules here"}},
		{"import", "import fs from 'fs';\nconsole.log(1)", []string{"SyntaxError", "(there are no modules here: write one program without import and export)", "program.js:1"}},
		{"export", "const a = 1;\nexport default a;", []string{"there are no modules here", "program.js:2"}},
		{"import()", "await import('fs')", []string{"ReferenceError: could not load module 'fs'"}},
		{"process", "process.exit(1)", []string{"'process' is not defined (there is no process"}},
		{"module", "module.exports = 1", []string{"leave out the exports"}},
		{"fetch", "await fetch('http://127.0.0.1')", []string{"'fetch' is not defined (there is no network here)"}},
		{"Intl", "new Intl.NumberFormat('en').format(1)", []string{"'Intl' is not defined (this engine has no Intl"}},
		{"currency", "(5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })", []string{"RangeError: toLocaleString knows no style, currency here: there is no Intl"}},
		{"a date's options", "new Date(0).toLocaleDateString('en-US', { weekday: 'long' })", []string{"RangeError: toLocaleDateString takes no options here"}},
		{"std", "std.loadFile('/etc/passwd')", []string{"'std' is not defined"}},
		{"os", "os.exec(['ls'])", []string{"'os' is not defined"}},
		{"Atomics", "new SharedArrayBuffer(8)", []string{"'SharedArrayBuffer' is not defined"}},
		{"Buffer", "Buffer.from('x')", []string{"(use Uint8Array)"}},
		// TypeScript.
		{"types of parameters", "function f(a: number, b: string[]): boolean {\n  return true;\n}", []string{"SyntaxError", "(this looks like TypeScript: write plain JavaScript, without types)", "program.js:1"}},
		{"an interface", "console.log(1);\ninterface Point { x: number }", []string{"TypeScript", "program.js:2"}},
		{"a typed variable", "const m: Map<string, number> = new Map();", []string{"TypeScript"}},
		{"a type", "type Pair = [number, number];", []string{"TypeScript"}},
		{"as", "const x = JSON.parse('1') as number;", []string{"TypeScript"}},
	} {
		r := run(t, js, c.program)
		for _, w := range c.want {
			if !strings.Contains(r.Err, w) {
				t.Errorf("%s: %q, want %q in it", c.name, r.Err, w)
			}
		}
		if strings.Contains(r.Err, "prelude") || len(r.Err) > 4000 {
			t.Errorf("%s: %d bytes: %.300q", c.name, len(r.Err), r.Err)
		}
	}
	// Code that is not TypeScript is not called so.
	for _, p := range []string{"const o = { a: Foo, b: };", "let x = cond ? A : ;", "for (const x of) {}", "switch (a) { case B: foo( }"} {
		if r := run(t, js, p); !strings.Contains(r.Err, "SyntaxError") || strings.Contains(r.Err, "TypeScript") {
			t.Errorf("%s: %q", p, r.Err)
		}
	}
}

func TestOutputBeforeAnErrorIsKept(t *testing.T) {
	r := run(t, interpreter(t), "console.log('so far'); null.x; console.log('never')")
	if r.Output != "so far\n" || !strings.HasPrefix(r.Err, "TypeError") {
		t.Errorf("%+v", r)
	}
}

func TestOutputIsCut(t *testing.T) {
	js := interpreter(t, code.WithOutput(10))
	for _, c := range []struct {
		program, want string
		cut           bool
	}{
		{`print("123456789")`, "123456789\n", false},
		{`print("1234567890")`, "1234567890", true},
		{`print("12345678é€")`, "12345678é", true},
		{`print("€€€€"); print("x"); null.x`, "€€€", true}, // nothing follows a cut
		{`for (let i = 0; i < 300; i++) print("x".repeat(1e4))`, "xxxxxxxxxx", true},
	} {
		if r := run(t, js, c.program); r.Output != c.want || r.Truncated != c.cut {
			t.Errorf("%s: %q, cut: %v", c.program, r.Output, r.Truncated)
		}
	}
}

// Each program starts as if it were the first.
func TestNothingIsSharedBetweenRuns(t *testing.T) {
	js := interpreter(t, code.WithConcurrency(1))
	run(t, js, `globalThis.leak = 1; Array.prototype.map = 2; console.log = null; Object.prototype.x = 3; Date.now = () => 0; delete globalThis.setTimeout`)
	if r := run(t, js, `console.log(typeof leak, typeof [].map, ({}).x, Date.now() > 1e12, typeof setTimeout)`); r.Output != "undefined function undefined true function\n" {
		t.Errorf("%+v", r)
	}
}

// A program may break what the prelude gave it: it harms itself only.
func TestProgramsThatBreakTheConsole(t *testing.T) {
	js := interpreter(t, code.WithTimeout(time.Second))
	for _, p := range []string{
		`Array.prototype.join = () => { throw new Error("j") }; console.log([1], 2)`,
		`String.prototype.includes = null; throw new Error("x")`,
		`Object.getOwnPropertyDescriptor = () => { throw 1 }; console.log({ a: 1 })`,
		`Object.defineProperty(Object.prototype, "get", { get() { throw 2 } }); console.log({ a: 1 })`,
		`Promise.prototype.then = () => { throw 3 }; await 1; queueMicrotask(() => 1)`,
		`Array.prototype.shift = () => ({ due: 0, fn: 1, args: [] }); setTimeout(() => 1)`,
		`console.log(new Proxy({}, { ownKeys() { throw new Error("k") } }))`,
		`console.log(new Proxy([], { get() { throw new Error("k") } }))`,
		`Error.prototype.toString = () => { throw 4 }; console.log(new Error("x"))`,
		`Object.prototype.toString = () => 5; console.log({}, new Date(0))`,
		`throw new Proxy(new Error("p"), { get() { throw 6 } })`,
		`Error.prepareStackTrace = () => { throw 7 }; throw new Error("x")`,
	} {
		run(t, js, p)
	}
}

func TestLimitsThatCannotBe(t *testing.T) {
	for _, o := range []code.Option{
		code.WithTimeout(0), code.WithTimeout(-1), code.WithMemory(0), code.WithMemory(1000), code.WithMemory(2 << 30),
		code.WithOutput(0), code.WithOutput(-1), code.WithConcurrency(0), code.WithConcurrency(-1),
	} {
		var limit *code.LimitError
		if js, err := code.JavaScript(o); !errors.As(err, &limit) || js != nil {
			t.Errorf("%v, %v", js, err)
		}
	}
	if r := run(t, interpreter(t, nil, code.WithMemory(4<<20)), `console.log(new Array(1000).fill(1).length)`); r.Output != "1000\n" {
		t.Errorf("in the least memory: %+v", r)
	}
}

func TestProgramsLargerThanMemory(t *testing.T) {
	js := interpreter(t, code.WithMemory(4<<20))
	if r := run(t, js, strings.Repeat("1;", 4<<20)); !strings.Contains(r.Err, "out of memory") {
		t.Errorf("%+v", r.Err)
	}
}

func TestGarbageIsCollected(t *testing.T) {
	js := interpreter(t, code.WithMemory(4<<20))
	if r := run(t, js, `for (let i = 0; i < 50_000; i++) { const a = { list: [i] }; a.self = a; } "done"`); r.Output != "done\n" {
		t.Errorf("%+v", r)
	}
}

// However finely a program fills its memory, there is room to say so.
func TestFullMemoryIsToldAsSuch(t *testing.T) {
	js := interpreter(t, code.WithMemory(4<<20))
	for _, p := range []string{
		`globalThis.a = []; for (;;) a.push({})`,
		`globalThis.a = {}; for (;;) a = { a }`,
		`globalThis.a = []; for (;;) a.push("" + Math.random())`,
		`globalThis.a = []; try { for (;;) a.push(new Array(1000).fill(0)) } catch { } globalThis.b = null; for (;;) b = { b }`,
		`globalThis.a = []; for (let n = 1e6; ; n = Math.max(n / 2 | 0, 1)) try { for (;;) a.push(new Uint8Array(n)) } catch (e) { if (n === 1) throw e }`,
		`globalThis.a = null; const f = () => { a = { a }; f() }; for (;;) try { f() } catch (e) { if (!String(e).includes("stack")) throw e }`,
		`globalThis.a = []; for (;;) a.push(Promise.reject(a))`,
		`globalThis.a = []; (function f() { a.push({}); queueMicrotask(f) })()`,
		`globalThis.a = []; for (;;) a.push(Symbol("x"))`,
	} {
		if r := run(t, js, p); !strings.HasPrefix(r.Err, "InternalError: out of memory (") {
			t.Errorf("%s: %q", p, r.Err)
		}
	}
}
