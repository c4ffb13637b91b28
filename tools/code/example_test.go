package code_test

import (
	"context"
	"fmt"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools/code"
)

func ExampleJavaScript() {
	js, err := code.JavaScript(code.WithTimeout(time.Second), code.WithMemory(32<<20))
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := js.Run(context.Background(), `
const words = "to be or not to be".split(" ");
const counts = new Map();
for (const w of words) counts.set(w, (counts.get(w) ?? 0) + 1);
console.log(counts);
console.log(2n ** 100n);`)
	fmt.Print(run.Output, run.Err, err)
	// Output:
	// Map(4) { 'to' => 2, 'be' => 2, 'or' => 1, 'not' => 1 }
	// 1267650600228229401496703205376n
	// <nil>
}

// What a program does wrong is told to the model that wrote it.
func ExampleJavaScript_errors() {
	js, err := code.JavaScript(code.WithTimeout(100 * time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, program := range []string{
		"const data = require('fs').readFileSync('data.csv');",
		"function area(r: number) {\n  return Math.PI * r ** 2;\n}",
		"function wait() {\n  while (true) {}\n}\nconsole.log('started');\nwait();",
	} {
		run, err := js.Run(context.Background(), program)
		fmt.Printf("%s%s, %v\n", run.Output, run.Err, err)
	}
	// Output:
	// ReferenceError: 'require' is not defined (there are no modules here: write the program without them)
	//     at (program.js:1:14), <nil>
	// SyntaxError: expecting ',' (this looks like TypeScript: write plain JavaScript, without types)
	//     at program.js:1:16, <nil>
	// started
	// stopped: it ran for 100ms, which is the limit; do less work, and print what is known early
	//     at wait (program.js)
	//     at (program.js:5:5), <nil>
}
