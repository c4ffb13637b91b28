package arith

// share reads "two thirds" or "2/3" before "of"; n is the two.
func (p *parser) share(n *node) *node {
	if !p.words {
		return n
	}
	of := func(t token) bool { return t.kind == tOp && t.text == "of" }
	t := p.peek()
	switch next := p.ahead(); {
	case t.kind == tOrdinal && of(next):
		p.i++
		return binary("/", n, number(t), t.pos)
	case t.kind == tOp && t.text == "/" && next.kind == tNum && of(p.toks[p.i+2]):
		p.i += 2
		return binary("/", n, number(next), t.pos)
	}
	return n
}

func number(t token) *node {
	return &node{op: "num", text: t.text, val: t.val, pos: t.pos}
}

// word takes the next token if it is one of these.
func (p *parser) word(texts ...string) bool {
	t := p.peek()
	for _, s := range texts {
		if t.kind == tWord && t.text == s {
			p.i++
			return true
		}
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.word(text) {
		return p.unexpected(p.peek())
	}
	return nil
}

// phrase parses what begins with a word or an ordinal.
func (p *parser) phrase() (*node, error) {
	t := p.peek()
	p.i++
	if t.kind == tOrdinal { // fourth root of 81; a third of is read by share
		if err := p.expect("root"); err != nil {
			return nil, err
		}
		return p.apply(func(x *node) *node { return binary("^", x, binary("/", integer(1), number(t), t.pos), t.pos) })
	}
	num := func(op string, k int64) (*node, error) {
		return p.apply(func(x *node) *node { return binary(op, x, integer(k), t.pos) })
	}
	switch t.text {
	case "sqrt", "cbrt", "abs", "ln", "log2", "log10":
		return p.apply(func(x *node) *node { return call(t.text, t.pos, x) })
	case "square":
		return num("^", 2)
	case "cube":
		return num("^", 3)
	case "half":
		return num("/", 2)
	case "double":
		return num("*", 2)
	case "triple":
		return num("*", 3)
	case "!":
		return p.apply(func(x *node) *node { return &node{op: "!", args: []*node{x}, pos: t.pos} })
	case "neg":
		return p.apply(func(x *node) *node { return &node{op: "neg", args: []*node{x}, pos: t.pos} })
	case "inverse":
		return p.apply(func(x *node) *node { return binary("/", integer(1), x, t.pos) })
	case "logbase":
		base, err := p.expr(precPostfix)
		if err != nil {
			return nil, err
		}
		if !p.accept("of") {
			return nil, p.unexpected(p.peek())
		}
		return p.apply(func(x *node) *node { return call("log", t.pos, x, base) })
	case "sum", "product", "avg", "gcd", "lcm", "max", "min", "between", "minus", "quotient":
		return p.list(t)
	case "remainder":
		return p.remainder(t)
	case "multiply", "divide", "add", "subtract", "increase", "decrease", "raise":
		return p.verb(t)
	}
	return nil, p.unexpected(t)
}

// apply parses the operand of a prefix: square root of 9 plus 1 is 4.
func (p *parser) apply(f func(*node) *node) (*node, error) {
	x, err := p.expr(precSign)
	if err != nil {
		return nil, err
	}
	n := f(x)
	n.open = x.open
	return n, nil
}

// items parses "3, 4 and 5". A comma before an operator ends the list.
func (p *parser) items() ([]*node, error) {
	var list []*node
	for {
		n, err := p.expr(precSign)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		at := p.i
		comma := p.accept(",")
		and := p.word("and")
		if !comma && !and || p.leaves() {
			p.i = at
			return list, nil
		}
	}
}

// leaves reports whether what follows "and" or a comma is no item of a list but
// a further step or an operator; -5 is an item, unlike minus 5.
func (p *parser) leaves() bool {
	t := p.peek()
	switch t.kind {
	case tWord:
		switch t.text {
		case "then", "multiply", "divide", "add", "subtract":
			return true
		}
	case tOp:
		sign := (t.text == "-" || t.text == "+") && t.end-t.pos < len("less") && t.end == p.ahead().pos
		return t.text != "(" && t.text != "√" && !sign
	}
	return false
}

func (p *parser) list(t token) (*node, error) {
	items, err := p.items()
	if err != nil {
		return nil, err
	}
	two := t.text == "between" || t.text == "minus" || t.text == "quotient"
	if len(items) < 2 || two && len(items) != 2 {
		return nil, p.unexpected(p.peek())
	}
	var n *node
	switch t.text {
	case "sum":
		n = fold("+", items, t.pos)
	case "product":
		n = fold("*", items, t.pos)
	case "minus":
		n = fold("-", items, t.pos)
	case "quotient":
		n = fold("/", items, t.pos)
	case "between":
		n = call("abs", t.pos, fold("-", items, t.pos))
	default:
		n = call(t.text, t.pos, items...)
	}
	n.open = t.text
	return n, nil
}

func fold(op string, items []*node, pos int) *node {
	n := items[0]
	for _, x := range items[1:] {
		n = binary(op, n, x, pos)
	}
	return n
}

// remainder parses what follows "remainder when": 100 is divided by 7.
func (p *parser) remainder(t token) (*node, error) {
	p.word("divide")
	x, err := p.expr(precSign)
	if err != nil {
		return nil, err
	}
	if !p.accept("/") && !p.word("by") {
		return nil, p.unexpected(p.peek())
	}
	y, err := p.expr(precSign)
	if err != nil {
		return nil, err
	}
	n := binary("%", x, y, t.pos)
	n.open = t.text
	return n, nil
}

// verb parses "multiply 3 by 4" and its like.
func (p *parser) verb(t token) (*node, error) {
	x, err := p.expr(0)
	if err != nil {
		return nil, err
	}
	if t.text == "raise" { // to the power of 8
		if x.op != "^" {
			return nil, p.unexpected(p.peek())
		}
		return opened(x, t.text), nil
	}
	list := []*node{x}
	swap := false
	switch {
	case (t.text == "multiply" || t.text == "divide" || t.text == "increase" || t.text == "decrease") && p.word("by"):
	case t.text == "multiply" && p.word("and", "with"):
	case t.text == "add" && p.word("to", "with"):
		swap = true
	case t.text == "subtract" && p.word("from"):
		swap = true
	case t.text == "add":
		if !p.word("and") && !p.accept(",") {
			return nil, p.unexpected(p.peek())
		}
	default:
		return nil, p.unexpected(p.peek())
	}
	rest, err := p.items()
	if err != nil {
		return nil, err
	}
	if list = append(list, rest...); len(list) != 2 && (t.text != "add" || swap) {
		return nil, p.unexpected(p.peek())
	}
	if swap {
		list[0], list[1] = list[1], list[0]
	}
	op := map[string]string{"multiply": "*", "divide": "/", "add": "+", "subtract": "-", "increase": "+", "decrease": "-"}[t.text]
	if op == "+" || op == "-" {
		n := list[0]
		for _, y := range list[1:] {
			n = p.sum(op, n, y, t.pos)
		}
		return opened(n, t.text), nil
	}
	return opened(fold(op, list, t.pos), t.text), nil
}

func opened(n *node, by string) *node {
	n.open = by
	return n
}

// tothe parses what follows x in "x to the tenth power".
func (p *parser) tothe(x *node) (*node, error) {
	pos := p.peek().pos
	p.i++
	t := p.peek()
	if t.kind != tOrdinal {
		return nil, p.unexpected(t)
	}
	p.i++
	p.word("power")
	return binary("^", x, number(t), pos), nil
}

// clash refuses an operator after a list or a verb whose last operand it might
// belong to: "the sum of 3 and 4 times 5".
func (p *parser) clash(left *node, t token) error {
	switch {
	case left.open == "",
		left.open == "sum" && (t.text == "+" || t.text == "-"),
		left.open == "product" && (t.text == "*" || t.text == "/"):
		return nil
	}
	return p.unexpected(t)
}

// question parses all of the tokens: an expression, then commas, each
// of which closes what is before it ("3 plus 4, times 5"), and further steps
// ("then add 5").
func (p *parser) question() (*node, error) {
	n, err := p.expr(0)
	if err != nil {
		return nil, err
	}
	for p.peek().kind != tEnd {
		comma := p.accept(",")
		and := p.word("and")
		then := p.word("then")
		if !comma && !and && !then {
			return nil, p.unexpected(p.peek())
		}
		n = &node{op: n.op, text: n.text, val: n.val, args: n.args, pos: n.pos, pct: n.pct}
		t := p.peek()
		if prec, _ := infix(t.text); t.kind == tOp && prec > 0 {
			p.i++
			var right *node
			if right, err = p.expr(prec + 1); err == nil {
				n, err = p.combine(t, n, right)
			}
		} else if t.kind == tOp && (t.text == "²" || t.text == "³") {
			p.i++
			n = binary("^", n, integer(map[string]int64{"²": 2, "³": 3}[t.text]), t.pos)
		} else {
			n, err = p.step(n)
		}
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

// step parses a further instruction about n: "multiply the result by 2".
func (p *parser) step(n *node) (*node, error) {
	t := p.peek()
	p.i++
	if t.kind != tWord {
		return nil, p.unexpected(t)
	}
	switch t.text {
	case "square", "half", "double", "triple":
		p.word("it")
		k := map[string]int64{"square": 2, "half": 2, "double": 2, "triple": 3}[t.text]
		op := map[string]string{"square": "^", "half": "/", "double": "*", "triple": "*"}[t.text]
		return binary(op, n, integer(k), t.pos), nil
	case "multiply", "divide":
		p.word("it")
		if err := p.expect("by"); err != nil {
			return nil, err
		}
	case "add", "subtract":
	default:
		return nil, p.unexpected(t)
	}
	y, err := p.expr(precSign)
	if err != nil {
		return nil, err
	}
	if t.text == "add" && p.word("to") || t.text == "subtract" && p.word("from") {
		if err := p.expect("it"); err != nil {
			return nil, err
		}
	}
	op := map[string]string{"multiply": "*", "divide": "/", "add": "+", "subtract": "-"}[t.text]
	return opened(p.sum(op, n, y, t.pos), t.text), nil
}
