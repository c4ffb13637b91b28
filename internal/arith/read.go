package arith

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxQuestion is how long a question may be: arithmetic is asked in a few words.
const maxQuestion = 2000

// Read turns arithmetic that is asked in plain words into an expression that
// Parse reads. It would rather miss a question than read one wrongly: a whole
// sentence has to be arithmetic and nothing else.
//
//	question := [In LANGUAGE,] [please | can you] [ask] steps [tail]
//	ask      := what is | how much is | how many NOUN is | what do you get when you | calculate | compute | …
//	            [the result of | the value of]
//	tail     := = | equal | rounded to two decimal places | please | ?
//	steps    := sum { "," ["then" | "all"] (operator product | squared) | ("," | "and" | "then") step }
//	step     := add x | subtract x | multiply by x | divide the result by x | square it | halve it | double it
//	sum      := product { (plus | minus | increased by | more than | subtracted from | …) product }
//	product  := power { (times | divided by | over | mod | of | off | choose | …) power }
//	power    := operand { squared | cubed | factorial | percent | to the power of power | to the tenth }
//	operand  := number | name | f(sum, …) | (sum) | prefix power | list | verb
//	prefix   := square root of | half of | twice | factorial of | fourth root of | log base 2 of | …
//	list     := (sum | product | average | difference | greatest common divisor | …) of x, x and x
//	verb     := multiply x by x | add x to x | subtract x from x | increase x by x | raise x to the power of x | …
//	number   := 1,250 | 1.5 million | two hundred and five | a dozen | two thirds (before of)
//	name     := pkg.Name | CamelCase | ALL_CAPS
//
// Symbols may stand for words. "Of" needs a share before it (15 percent of, 2/3
// of). Adding or subtracting a percentage changes the left side by that share.
// A list or verb takes no operator after it that might belong to its last
// operand, unless a comma comes between. Beside these sentences there are "what
// percent of 80 is 20" and "percentage increase from 80 to 100". Other sentences
// around may only say how to answer ("Give just the number.").
//
// consts gives the values of names as text that Parse reads (the name itself
// will do, then it stays in the expression); without a value for each name
// nothing is read.
func Read(question string, consts func(name string) (value string, ok bool)) (expr string, ok bool) {
	if len(question) > maxQuestion || !utf8.ValidString(question) {
		return "", false
	}
	var found *node
	for _, s := range sentences(question) {
		n, ok := sentence(s)
		switch {
		case ok && found != nil:
			return "", false // two questions
		case ok:
			found = n
		case !instruction(s):
			return "", false
		}
	}
	if found == nil || !operates(found) || !resolve(found, consts) {
		return "", false
	}
	e := &Expr{found}
	expr = e.String()
	if _, err := Parse(expr); err != nil { // too long after resolving
		return "", false
	}
	return expr, true
}

var (
	spacePattern    = once(`[\s\x{00a0}\x{202f}]+`)
	sentencePattern = once(`[.?]\s+|(\pL)!\s+|:?\n+`)
	clausePattern   = once(`^(?i:in (?:\w+\+*|the \w+(?: \w+){0,2})(?: \w+)?|using \w+(?: \w+){0,3}|given that|quick question|question|hi|hello|hey|hi there|ok|okay|so|well|now|please)[,:]? `)
	askPattern      = once(`^(?i:(?:please |kindly |just |(?:can|could|would|will) you (?:please |kindly )?)*` +
		`(?:(?:tell me|find out|find|calculate|compute|evaluate|work out|determine|solve|figure out|give me|say)[: ]+)?` +
		`(?:(?:what(?:['’]?s| is| are| was| would| will| does| do)?|how much(?:['’]s| is| are| does| do| will| would)|how many(?: [a-z-]+){0,3}(?: is| are| does| do))(?: be)?[: ]+)?` +
		`(?:(?:you|we|i|one) (?:get|obtain|have) (?:(?:when|if|by|from) )?(?:(?:you|we|i|one) )?)?` +
		`(?:(?:the )?(?:exact |final |numeric |numerical |correct |decimal )*(?:value|result|answer|outcome|solution) (?:(?:of|to|for|when|if|from|you get when|you get if)(?: you| we| i)? )?)?)`)
	tailPattern = once(`(?i:(?:\s*=|,? equals?(?: to)?|,? is equal to|,? is| be| make| come to| exactly|,? in total|,? please| in decimal)?(?: what)?[\s.?]*)$`)
	roundTail   = once(`(?i:,?(?: and)?(?: round(?:ed)?(?: it| the result| your answer)?(?: off)?)?,? to (?:the nearest (integer|whole number|tenth|hundredth|thousandth)|([a-z]+|\d{1,2}) (?:decimal places?|decimals?|d\.?p\.?)))$`)
	// Dates, telephone numbers, idioms and what else has digits and signs only.
	noArithmetic = once(`^\+?[\d() ]*\d-\d+-[\d-]+$|^\d{3}-\d{4}$|\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}[-/]\d{1,2}[-/]\d{2,4}\b|^(?:24/7|9/11|50/50|80/20|20/20|7/7|4/20)$`)
	shareOf      = once(`^(?i:what (?:percent|percentage) of (.+?) (?:is|are) (.+?))[\s?.]*$`)
	isShareOf    = once(`^(?i:(.+?) is what (?:percent|percentage) of (.+?))[\s?.]*$`)
	plainAsk     = once(`(?i)calculate|compute|evaluate|work out|how much|numeric`)
	change       = once(`^(?i:(?:what(?:'s| is) |calculate |compute |find )?the (?:percent|percentage) (increase|decrease|change) from (.+?) to (.+?))[\s?.]*$`)
)

func once(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// sentences cuts a text at its full stops, question marks and line ends.
func sentences(s string) []string {
	s = strings.NewReplacer("`", " ", "\\times", "×", "\\cdot", "·", "\\div", "÷").Replace(s)
	var out []string
	for at := 0; at <= len(s); {
		end, next := len(s), len(s)+1
		if m := sentencePattern().FindStringSubmatchIndex(s[at:]); m != nil {
			end, next = at+m[0], at+m[1]
			if m[3] > 0 { // a letter before an exclamation mark; after a digit it is a factorial
				end = at + m[3]
			}
		}
		if t := strings.TrimSpace(spacePattern().ReplaceAllString(s[at:end], " ")); t != "" {
			out = append(out, t)
		}
		at = next
	}
	return out
}

// instruction reports whether a sentence only says how to answer.
func instruction(s string) bool {
	const harmless = " answer give reply respond provide with only just the a an final number value result as your output no nothing else words explanation explanations hi hello hey there please thanks thank you show work think step by concisely briefly precisely exactly in full be precise exact and quick question math arithmetic need i have do not explain don't single digits "
	for w := range strings.FieldsSeq(strings.ToLower(s)) {
		w = strings.Trim(w, ".,:;!?")
		if w != "" && !strings.Contains(harmless, " "+w+" ") {
			return false
		}
	}
	return true
}

// sentence reads one sentence.
func sentence(s string) (*node, bool) {
	if m := shareOf().FindStringSubmatch(s); m != nil {
		return share(m[2], m[1])
	}
	if m := isShareOf().FindStringSubmatch(s); m != nil {
		return share(m[1], m[2])
	}
	if m := change().FindStringSubmatch(s); m != nil {
		return changed(strings.ToLower(m[1]) == "decrease", m[2], m[3])
	}
	inLanguage := false
	if m := clausePattern().FindString(s); m != "" {
		inLanguage = strings.HasPrefix(strings.ToLower(m), "in ") || strings.HasPrefix(strings.ToLower(m), "using ")
		s = s[len(m):]
	}
	ask := askPattern().FindString(s)
	s = s[len(ask):]
	places := ""
	s = s[:tailPattern().FindStringIndex(s)[0]]
	if m := roundTail().FindStringSubmatch(s); m != nil {
		var ok bool
		if places, ok = decimals(m[1], m[2]); !ok {
			return nil, false
		}
		s = s[:len(s)-len(m[0])]
	}
	if noArithmetic().MatchString(strings.TrimSpace(s)) {
		return nil, false
	}
	n, ok := words(s)
	if !ok {
		return nil, false
	}
	if inLanguage && has(n, "/", "//", "%", "^", "<<", ">>") { // these may mean something else there
		return nil, false
	}
	// The difference between two things is rarely a number.
	if n.open == "between" && !has(n, "num") && !plainAsk().MatchString(ask) {
		return nil, false
	}
	if places != "" {
		digits, ok := new(big.Rat).SetString(places)
		if !ok {
			return nil, false
		}
		n = call("round", 0, n, &node{op: "num", text: places, val: digits})
	}
	return n, true
}

// words parses a text that is nothing but arithmetic.
func words(s string) (*node, bool) {
	toks, ok := lexWords(s)
	if !ok {
		return nil, false
	}
	p := &parser{toks: toks, words: true}
	n, err := p.question()
	return n, err == nil
}

// has reports whether n contains one of these operators.
func has(n *node, ops ...string) bool {
	found := false
	n.walk(func(n *node) { found = found || slices.Contains(ops, n.op) })
	return found
}

// operates reports whether there is anything to compute: a sign, a percentage
// or rounding is not enough.
func operates(n *node) bool {
	found := false
	n.walk(func(n *node) {
		prec, _ := infix(n.op)
		found = found || prec > 0 && !n.pct || n.op == "!" || n.op == "call" && n.text != "round"
	})
	return found
}

// resolve puts the values of names into n.
func resolve(n *node, consts func(string) (string, bool)) bool {
	if n.op == "name" && !builtin(n.text) {
		if consts == nil {
			return false
		}
		value, ok := consts(n.text)
		if !ok {
			return false
		}
		v, _, err := parse(value, false)
		if err != nil {
			return false
		}
		*n = *v
		return true
	}
	for _, a := range n.args {
		if !resolve(a, consts) {
			return false
		}
	}
	return true
}

// share is what percentage part is of total.
func share(part, total string) (*node, bool) {
	x, okX := words(part)
	y, okY := words(total)
	if !okX || !okY {
		return nil, false
	}
	return binary("*", binary("/", x, y, 0), integer(100), 0), true
}

// changed is the percentage by which to is more (or less) than from.
func changed(less bool, from, to string) (*node, bool) {
	x, okX := words(from)
	y, okY := words(to)
	again, _ := words(from) // resolve changes nodes in place
	if !okX || !okY {
		return nil, false
	}
	diff := binary("-", y, x, 0)
	if less {
		diff = binary("-", x, y, 0)
	}
	return binary("*", binary("/", diff, again, 0), integer(100), 0), true
}

// decimals is how many decimals a sentence asks for.
func decimals(nearest, count string) (string, bool) {
	switch strings.ToLower(nearest) {
	case "":
	case "tenth":
		return "1", true
	case "hundredth":
		return "2", true
	case "thousandth":
		return "3", true
	default:
		return "0", true
	}
	if u := unit(count); u >= 0 {
		return strconv.FormatInt(u, 10), true
	}
	return count, isDigit(count[0])
}
