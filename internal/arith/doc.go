// Package arith evaluates arithmetic, exactly where that is possible, and reads
// arithmetic that is asked in plain words.
//
// Everything is bounded: input length, nesting, the size of numbers and the
// total work, so that no expression can hold a program up.
package arith

import (
	"fmt"
	"math/big"
)

const (
	maxInput = 10 << 10 // bytes of an expression
	maxDepth = 200      // of nesting
	maxBits  = 1 << 16  // of an exact numerator or denominator, and of a binary exponent
	maxWork  = 4 << 20  // of one evaluation, see machine.spend
)

// Error is an expression that cannot be evaluated.
type Error struct {
	Pos     int    // byte offset in the expression
	Problem string // what is wrong and, where it is not plain, what to write
	Syntax  bool   // the expression could not be parsed; otherwise it has no value
}

func (e *Error) Error() string {
	return fmt.Sprintf("arith: %s (at character %d)", e.Problem, e.Pos+1)
}

func syntax(pos int, format string, args ...any) error {
	return &Error{Pos: pos, Problem: fmt.Sprintf(format, args...), Syntax: true}
}

// Expr is a parsed expression. It is immutable and safe for concurrent use.
type Expr struct{ root *node }

// node is an expression's tree. op is "num", "name", "neg", "call" or an
// infix operator; "!" has one argument.
type node struct {
	op   string
	text string   // of a number, without separators; of a name or function, its normal form
	val  *big.Rat // of a number
	args []*node
	pos  int
	pct  bool   // a percentage: a division by 100
	open string // in words only: the list form that it ends with, see parser.clash
}

// Parse reads an expression. Its errors are *Error.
//
//	expression := operand (operator expression)*, the tightest first:
//	    ! % (factorial, percentage)   ^ ** (to the right)   - (sign)
//	    * / // % << >>   + -
//	operand := number | name | function "(" expression ("," expression)* ")" | "(" expression ")"
//
// // divides and rounds down, % between operands is what is left of that, and
// << stands where Go has it. Numbers may be written 1,234.5 (not among
// the arguments of a function), 1_000, 6.02e23, 0xff, 0b101 and 0o17. The
// names pi and e are known, and these functions, also with "math." before them
// and in any case: sqrt cbrt abs floor ceil round min max gcd lcm log (natural,
// or log(x, base)) ln log2 log10 exp sin cos tan pow mod factorial sum avg mean
// binomial. Any other name, such as disk.SectorSize, needs a value in Eval.
func Parse(s string) (*Expr, error) {
	n, _, err := parse(s, false)
	if err != nil {
		return nil, err
	}
	return &Expr{n}, nil
}

// ParsePrefix reads the longest expression that s begins with and returns what
// follows it.
func ParsePrefix(s string) (e *Expr, rest string, err error) {
	n, end, err := parse(s, true)
	if err != nil {
		return nil, s, err
	}
	return &Expr{n}, s[end:], nil
}

// Eval parses and evaluates an expression without names of its own. Its errors
// are *Error.
func Eval(s string) (Value, error) {
	e, err := Parse(s)
	if err != nil {
		return Value{}, err
	}
	return e.Eval(nil)
}

// Names returns the names that Eval needs a value for, each once, in order.
func (e *Expr) Names() []string {
	var names []string
	seen := map[string]bool{}
	e.root.walk(func(n *node) {
		if n.op == "name" && !builtin(n.text) && !seen[n.text] {
			seen[n.text] = true
			names = append(names, n.text)
		}
	})
	return names
}

func (n *node) walk(f func(*node)) {
	f(n)
	for _, a := range n.args {
		a.walk(f)
	}
}

func builtin(name string) bool { return name == "pi" || name == "e" }

// String writes the expression with one space around operators and the
// parentheses that it needs. Parse reads it back.
func (e *Expr) String() string { return string(e.root.print(nil, 0)) }

func (n *node) print(b []byte, min int) []byte {
	switch n.op {
	case "num", "name":
		return append(b, n.text...)
	case "call":
		b = append(append(b, n.text...), '(')
		for i, a := range n.args {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = a.print(b, 0)
		}
		return append(b, ')')
	}
	prec, _ := infix(n.op)
	switch n.op {
	case "neg":
		prec = precSign
	case "!":
		prec = precPostfix
	}
	if prec < min {
		b = append(b, '(')
		return append(n.print(b, 0), ')')
	}
	switch n.op {
	case "neg":
		return n.args[0].print(append(b, '-'), precSign+1)
	case "!":
		return append(n.args[0].print(b, precPostfix), '!')
	}
	left, right := prec, prec+1
	if n.op == "^" {
		left, right = prec+1, prec
	}
	b = n.args[0].print(b, left)
	b = append(append(append(b, ' '), n.op...), ' ')
	if n.op == "%" && n.args[1].op == "neg" { // see expr
		right = precPostfix
	}
	return n.args[1].print(b, right)
}
