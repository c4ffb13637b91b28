package arith

import (
	"math/big"
	"strings"
)

// Binding strengths.
const (
	precSum = iota + 1
	precProduct
	precShare
	precSign
	precPower
	precPostfix
)

// infix returns how strong an infix operator binds (0: it is none), and
// whether it groups to the right.
func infix(op string) (prec int, right bool) {
	switch op {
	case "+", "-", "more than", "less than":
		return precSum, false
	case "*", "/", "//", "%", "<<", ">>", "off", "choose":
		return precProduct, false
	case "of":
		return precShare, true
	case "^":
		return precPower, true
	}
	return 0, false
}

// parser is a Pratt parser. It serves expressions and, with words, questions
// whose phrases words.go made tokens of.
type parser struct {
	toks  []token
	i     int
	depth int
	words bool
}

func parse(s string, prefix bool) (n *node, end int, err error) {
	toks, err := lex(s, false, prefix)
	if err != nil {
		return nil, 0, err
	}
	p := &parser{toks: toks}
	if n, err = p.expr(0); err != nil {
		return nil, 0, err
	}
	if t := p.peek(); t.kind != tEnd && !prefix {
		return nil, 0, p.unexpected(t)
	}
	if p.i == 0 {
		return n, 0, nil
	}
	return n, p.toks[p.i-1].end, nil
}

func (p *parser) peek() token { return p.toks[p.i] }

// ahead is the token after peek's.
func (p *parser) ahead() token { return p.toks[min(p.i+1, len(p.toks)-1)] }

func (p *parser) is(op string) bool { return p.peek().kind == tOp && p.peek().text == op }

func (p *parser) accept(op string) bool {
	if p.is(op) {
		p.i++
		return true
	}
	return false
}

func (p *parser) unexpected(t token) error {
	switch t.kind {
	case tEnd:
		return syntax(t.pos, "the expression ends where a number is missing")
	case tNum, tOrdinal:
		return syntax(t.pos, "an operator is missing before this number")
	}
	return syntax(t.pos, "unexpected %q", clip(t.text))
}

// expr parses what binds at least as strong as min.
func (p *parser) expr(min int) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, syntax(p.peek().pos, "nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for after := 0; ; {
		t := p.peek()
		if t.kind == tWord && t.text == "tothe" && min <= precPower {
			if left, err = p.tothe(left); err != nil {
				return nil, err
			}
			continue
		}
		if t.kind != tOp {
			return left, nil
		}
		if n, err := p.postfix(left, t); n != nil || err != nil {
			if after++; after > maxDepth/2 && err == nil {
				err = syntax(t.pos, "nested deeper than %d levels", maxDepth/2)
			}
			if left = n; err != nil {
				return nil, err
			}
			continue
		}
		prec, toRight := infix(t.text)
		if prec == 0 || prec < min {
			return left, nil
		}
		if err := p.clash(left, t); err != nil {
			return nil, err
		}
		p.i++
		next := prec + 1
		if toRight {
			next = prec
		}
		right, err := p.expr(next)
		if err != nil {
			return nil, err
		}
		if left, err = p.combine(t, left, right); err != nil {
			return nil, err
		}
	}
}

// postfix applies ! ² ³ and percent, if t is one of them.
func (p *parser) postfix(left *node, t token) (*node, error) {
	switch {
	case t.text == "!":
		p.i++
		return &node{op: "!", args: []*node{left}, pos: t.pos}, nil
	case t.text == "²", t.text == "³":
		p.i++
		power := int64(2)
		if t.text == "³" {
			power = 3
		}
		return binary("^", left, integer(power), t.pos), nil
	case t.text == "percent", t.text == "%" && !p.startsOperand(p.ahead()):
		if next := p.ahead(); t.text == "%" && next.kind == tOp && (next.text == "-" || next.text == "+") &&
			(p.toks[p.i-1].end < t.pos || p.toks[p.i+2].pos == next.end) { // 50% - 3 is clear, 7 % -3 is not
			return nil, syntax(t.pos, "%% before a sign has two meanings; write 7 %% (-3) or 7/100 - 3")
		}
		p.i++
		n := binary("/", left, integer(100), t.pos)
		n.pct = true
		return n, nil
	}
	return nil, nil
}

// startsOperand decides what % means: 7 % 3 is a remainder, 50% - 3 is not.
func (p *parser) startsOperand(t token) bool {
	return t.kind == tNum || t.kind == tName || t.kind == tOp && (t.text == "(" || t.text == "√")
}

func (p *parser) combine(t token, left, right *node) (*node, error) {
	one := func() *node { return integer(1) }
	var n *node
	switch t.text {
	case "of": // of is a product only after a share: 15% of, two thirds of
		if !left.pct && !fraction(left) {
			return nil, p.unexpected(t)
		}
		n = binary("*", left, right, t.pos)
	case "off":
		if !left.pct {
			return nil, p.unexpected(t)
		}
		n = binary("*", right, binary("-", one(), left, t.pos), t.pos)
	case "choose":
		n = call("binomial", t.pos, left, right)
	case "more than", "less than":
		op := map[string]string{"more than": "+", "less than": "-"}[t.text]
		n = p.sum(op, right, left, t.pos)
	case "+", "-":
		if right.pct && !left.pct && !p.words {
			return nil, syntax(t.pos, "adding or subtracting a percentage has two meanings; write x * (1 + 15/100) or x + 15/100")
		}
		n = p.sum(t.text, left, right, t.pos)
	default:
		n = binary(t.text, left, right, t.pos)
	}
	n.open = right.open
	return n, nil
}

// sum is binary, except that adding or subtracting 15 percent changes the left
// side by that share.
func (p *parser) sum(op string, left, right *node, pos int) *node {
	if (op == "+" || op == "-") && right.pct && !left.pct {
		return binary("*", left, binary(op, integer(1), right, pos), pos)
	}
	return binary(op, left, right, pos)
}

// operand parses a number, a name, a call, a sign, parentheses or, in words,
// the forms that begin with a word.
func (p *parser) operand() (*node, error) {
	t := p.peek()
	switch {
	case t.kind == tNum:
		p.i++
		return p.share(&node{op: "num", text: t.text, val: t.val, pos: t.pos}), nil
	case t.kind == tName:
		p.i++
		if p.accept("(") {
			return p.call(t)
		}
		name := t.text
		if short := normal(name); builtin(short) {
			name = short
		}
		return &node{op: "name", text: name, pos: t.pos}, nil
	case p.accept("("):
		n, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		if !p.accept(")") {
			return nil, p.unclosed(t.pos)
		}
		closed := *n
		closed.open = ""
		return &closed, nil
	case p.accept("-"):
		n, err := p.expr(precSign)
		if err != nil {
			return nil, err
		}
		return &node{op: "neg", args: []*node{n}, pos: t.pos}, nil
	case p.accept("+"):
		return p.expr(precSign)
	case p.accept("√"):
		n, err := p.expr(precPostfix)
		if err != nil {
			return nil, err
		}
		return call("sqrt", t.pos, n), nil
	case t.kind == tWord, t.kind == tOrdinal:
		return p.phrase()
	}
	return nil, p.unexpected(t)
}

func (p *parser) unclosed(pos int) error {
	if t := p.peek(); t.kind != tEnd && !(t.kind == tOp && t.text == ",") {
		return p.unexpected(t)
	}
	return syntax(pos, "this parenthesis is not closed")
}

func (p *parser) call(t token) (*node, error) {
	name := normal(t.text)
	lo, hi, ok := arity(name)
	if !ok {
		return nil, syntax(t.pos, "unknown function %q; there are %s", clip(t.text), functions)
	}
	n := call(name, t.pos)
	for !p.accept(")") {
		if len(n.args) > 0 && !p.accept(",") {
			return nil, p.unclosed(t.end)
		}
		a, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, a)
	}
	if c := len(n.args); c < lo || c > hi {
		if hi == maxInput {
			return nil, syntax(t.pos, "%s needs at least %d arguments and has %d", name, lo, c)
		}
		return nil, syntax(t.pos, "%s needs %d to %d arguments and has %d", name, lo, hi, c)
	}
	return n, nil
}

// normal is the name of a function or constant as it is written here.
func normal(name string) string {
	s := strings.TrimPrefix(strings.ToLower(name), "math.")
	if s == "e" && name != "e" && !strings.HasPrefix(name, "math.") {
		return name
	}
	switch s {
	case "mean", "average":
		return "avg"
	case "comb", "choose":
		return "binomial"
	case "fact":
		return "factorial"
	case "ceiling":
		return "ceil"
	}
	return s
}

func integer(i int64) *node {
	v := new(big.Rat).SetInt64(i)
	return &node{op: "num", text: v.RatString(), val: v}
}

func binary(op string, left, right *node, pos int) *node {
	return &node{op: op, args: []*node{left, right}, pos: pos}
}

func call(name string, pos int, args ...*node) *node {
	return &node{op: "call", text: name, args: args, pos: pos}
}

// fraction reports whether n is one number divided by another.
func fraction(n *node) bool {
	return n.op == "/" && n.args[0].op == "num" && n.args[1].op == "num"
}
