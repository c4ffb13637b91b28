package code

import (
	"regexp"
	"strconv"
	"strings"
)

// failure is why a program failed.
type failure struct {
	name    string // "TypeError"
	message string
	stack   string // one line a frame, of the engine and the prelude too
	thrown  bool   // it threw something that is no error: message is its text
	stopped bool   // from outside: the engine knows the innermost function, not its line
}

const (
	interrupted = "interrupted" // what the engine calls it when it was told to stop
	outOfMemory = "out of memory"
	frames      = 8 // of a stack that are shown
)

// place lists where in the program it happened, innermost first.
func (f *failure) place() []string {
	var at []string
	for l := range strings.SplitSeq(f.stack, "\n") {
		l = strings.TrimSpace(l)
		if !strings.Contains(l, programName+":") || len(at) == frames {
			continue
		}
		l = "    " + strings.Replace(l, "at <eval> (", "at (", 1)
		if f.stopped && len(at) == 0 {
			l = firstPlace.ReplaceAllString(l, programName)
		}
		at = append(at, l)
	}
	return at
}

// text is what the model that wrote the program is told.
func (f *failure) text(code string) string {
	if f.thrown {
		return "uncaught: " + f.message
	}
	s := f.name
	if f.message != "" {
		s += ": " + f.message
	}
	if h := f.hint(code); h != "" {
		s += " (" + h + ")"
	}
	return strings.Join(append([]string{s}, f.place()...), "\n")
}

// absent are names that programs for Node, browsers or other engines use, and
// what to do without them.
var absent = map[string]string{
	"require":        "there are no modules here: write the program without them",
	"module":         "there are no modules here: leave out the exports and print the result",
	"exports":        "there are no modules here: leave out the exports and print the result",
	"process":        "there is no process, no arguments and no input here: put the data into the program and print with console.log",
	"Deno":           "this is a plain engine: print with console.log",
	"Bun":            "this is a plain engine: print with console.log",
	"__dirname":      "there are no files here",
	"__filename":     "there are no files here",
	"Buffer":         "use Uint8Array",
	"fs":             "there are no files here",
	"fetch":          "there is no network here",
	"XMLHttpRequest": "there is no network here",
	"WebSocket":      "there is no network here",
	"Worker":         "there are no threads here",
	"window":         "this is no browser",
	"document":       "this is no browser",
	"localStorage":   "this is no browser",
	"alert":          "this is no browser: print with console.log",
	"prompt":         "there is no input here: put the data into the program",
	"readline":       "there is no input here: put the data into the program",
	"Intl":           "this engine has no Intl: format with toFixed, padStart or toISOString",
	"WebAssembly":    "write it in JavaScript",
	"Atomics":        "there are no threads here",
	"crypto":         "use Math.random",
	"TextEncoder":    "use charCodeAt and Uint8Array",
	"TextDecoder":    "use String.fromCharCode",
	"URL":            "take the address apart with a regular expression",
	"math":           "JavaScript's is Math",
}

var (
	undefinedName = regexp.MustCompile(`^'?([A-Za-z_$][\w$]*)'? is not defined$`)
	moduleLine    = regexp.MustCompile(`^\s*(import\b[^(]|export\b)`)
	typeLine      = regexp.MustCompile(`^\s*(export\s+)?(interface|enum|declare|namespace|abstract)\s|^\s*(export\s+)?type\s+\w+\s*(<.*>)?\s*=` +
		`|[\w)\]?]\s*:\s*(readonly\s+)?(number|string|boolean|any|void|unknown|never|object|bigint)(\[\])*\s*([=,);|{]|$)` +
		`|(\b(const|let|var)\s+|\(\s*)\w+\??\s*:\s*[A-Z]\w*(<[^=]*>)?(\[\])*\s*[=,)]` +
		`|\bas\s+(const|any|number|string|unknown|[A-Z]\w*)\b|\bnew\s+\w+<[^>]+>\(|\w<(number|string|boolean|[A-Z]\w*)>\(`)
)

// hint says what to do about an error, where that is known.
func (f *failure) hint(code string) string {
	switch f.name {
	case "ReferenceError":
		if m := undefinedName.FindStringSubmatch(f.message); m != nil {
			return absent[m[1]]
		}
	case "SyntaxError":
		line := f.line(code)
		switch {
		case moduleLine.MatchString(line):
			return "there are no modules here: write one program without import and export"
		case typeLine.MatchString(line):
			return "this looks like TypeScript: write plain JavaScript, without types"
		case strings.Contains(f.message, "return not in a function"):
			return "print the result with console.log"
		}
	case "InternalError":
		switch f.message {
		case outOfMemory:
			return "the program holds too much at once: use less data, or typed arrays"
		case "stack overflow":
			return "the recursion is too deep: use a loop or a stack of your own"
		}
	}
	return ""
}

var firstPlace = regexp.MustCompile(regexp.QuoteMeta(programName) + `:(\d+)(:\d+)?`)

// line is the line of the program that a failure is in, and "" if that is not
// known.
func (f *failure) line(code string) string {
	m := firstPlace.FindStringSubmatch(f.stack)
	if m == nil {
		return ""
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return ""
	}
	for l := range strings.SplitSeq(code, "\n") {
		if n--; n == 0 {
			return l[:min(len(l), 1000)]
		}
	}
	return ""
}
