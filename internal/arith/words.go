package arith

import (
	"math/big"
	"strings"
	"sync"
)

// The phrase table: the token that a phrase stands for, then its phrases. What
// begins with a colon is a tWord of that text, "the" and "-" are dropped.
const phraseTable = `
+          plus, added to, is added to, increased by, is increased by
-          minus, less, decreased by, is decreased by, reduced by, is reduced by, diminished by, take away
more than  more than, greater than
less than  less than, subtracted from, is subtracted from, smaller than
*          times, multiplied by, is multiplied by, multiplied with
/          divided by, is divided by, over
%          mod, modulo
^          to the power of, to the power, raised to the power of, raised to the power, raised to, is raised to the power of
²          squared
³          cubed
!          factorial
percent    percent, per cent
of         of
off        off
choose     choose
:tothe     to the, raised to the
:power     power
:root      root of
:sqrt      square root of
:cbrt      cube root of
:square    square of, square, squaring
:cube      cube of, cubing
:!         factorial of
:abs       absolute value of
:inverse   reciprocal of, multiplicative inverse of
:neg       negative, minus
:ln        natural logarithm of, natural log of
:log2      binary logarithm of, base 2 logarithm of, base 2 log of
:log10     common logarithm of, decimal logarithm of, base 10 logarithm of, base 10 log of
:logbase   log base, logarithm base, logarithm to base, logarithm to the base, log to the base, log to base
:half      half of, half, one half of, a half of, halve, halving
:double    twice, double, double of, doubling
:triple    triple, thrice, triple of, tripling
:sum       sum of, total of
:product   product of
:avg       average of, mean of, arithmetic mean of, average value of
:gcd       gcd of, greatest common divisor of, greatest common factor of, highest common factor of, largest common divisor of
:lcm       lcm of, least common multiple of, lowest common multiple of, smallest common multiple of
:max       maximum of, max of, largest of, greatest of
:min       minimum of, min of, smallest of, least of
:between   difference between
:minus     difference of
:quotient  quotient of
:remainder remainder of, remainder when, remainder after dividing, remainder when you divide, remainder when dividing, remainder from dividing, remainder if
:multiply  multiply, multiplying
:divide    divide, dividing
:add       add, adding
:subtract  subtract, subtracting, take
:increase  increase, increasing
:decrease  decrease, decreasing, reduce, reducing
:raise     raise, raising
:and       and
:to        to
:by        by
:from      from
:with      with
:it        it, that, the result, result, this
:then      then, all
the        the, value of, constant, constants, numbers, integers, go constant, go constants
`

type phrase struct {
	words []string
	token string
}

// phrases maps the first word of phrases to all of them, the longest first.
var phrases = sync.OnceValue(func() map[string][]phrase {
	table := map[string][]phrase{}
	for line := range strings.Lines(strings.TrimSpace(phraseTable)) {
		token, all := strings.TrimSpace(line[:11]), line[11:]
		for text := range strings.SplitSeq(all, ",") {
			words := strings.Fields(text)
			list := table[words[0]]
			at := 0
			for at < len(list) && len(list[at].words) >= len(words) {
				at++
			}
			list = append(list[:at:at], append([]phrase{{words, token}}, list[at:]...)...)
			table[words[0]] = list
		}
	}
	return table
})

// lexWords cuts a question into tokens. It returns false for words that have no
// meaning in arithmetic.
func lexWords(s string) ([]token, bool) {
	raw, err := lex(s, true, false)
	if err != nil {
		return nil, false
	}
	var out []token
	for i := 0; i < len(raw); {
		t := raw[i]
		if t.kind == tOp && t.text == "-" && tight(raw, i) {
			return nil, false
		}
		if v, n := numberWords(raw[i:]); n > 0 {
			text, ok := decimal(v)
			if !ok || bits(v) > maxBits/4 {
				return nil, false
			}
			out = append(out, token{kind: tNum, text: text, val: v, pos: t.pos, end: raw[i+n-1].end})
			i += n
			continue
		}
		if t.kind != tName {
			out = append(out, t)
			i++
			continue
		}
		if name := normal(t.text); raw[i+1].kind == tOp && raw[i+1].text == "(" {
			if _, _, ok := arity(name); ok {
				out = append(out, t)
				i++
				continue
			}
		}
		tok, n := matchPhrase(raw[i:], len(out) > 0 && endsOperand(out[len(out)-1]))
		switch {
		case n > 0:
			if tok.text != "the" {
				out = append(out, tok)
			}
			i += n
		case builtin(normal(t.text)), identifier(t.text):
			out = append(out, t)
			i++
		case ordinalWord(t.text) > 0:
			v := new(big.Rat).SetInt64(ordinalWord(t.text))
			out = append(out, token{kind: tOrdinal, text: v.RatString(), val: v, pos: t.pos, end: t.end})
			i++
		case strings.EqualFold(t.text, "x") && i > 0 && raw[i-1].end < t.pos && t.end < raw[i+1].pos:
			out = append(out, token{kind: tOp, text: "*", pos: t.pos, end: t.end})
			i++
		default:
			return nil, false
		}
	}
	return out, true
}

// tight reports whether the minus at i is a hyphen before a word: 7-Eleven.
func tight(raw []token, i int) bool {
	next := raw[i+1]
	return i > 0 && raw[i-1].end == raw[i].pos && next.kind == tName && next.pos == raw[i].end
}

// endsOperand reports whether an operand can end with t.
func endsOperand(t token) bool {
	switch t.text {
	case ")", "!", "²", "³", "percent", "%":
		return true
	}
	return t.kind == tNum || t.kind == tName || t.kind == tOrdinal
}

// matchPhrase finds the longest phrase that toks begin with. Minus is a sign
// or an operator, depending on what stands before it.
func matchPhrase(toks []token, after bool) (token, int) {
next:
	for _, p := range phrases()[strings.ToLower(toks[0].text)] {
		for i, w := range p.words {
			t := toks[i]
			if !(t.kind == tName || t.kind == tNum) || strings.ToLower(t.text) != w {
				continue next // toks ends with tEnd, so i stays inside
			}
		}
		k, text := tOp, p.token
		if strings.HasPrefix(text, ":") {
			k, text = tWord, text[1:]
		}
		if (text == "neg" || text == "-") && p.words[0] == "minus" {
			k, text = tOp, "-"
		}
		if after && k == tWord && text == "neg" {
			continue
		}
		n := len(p.words)
		return token{kind: k, text: text, pos: toks[0].pos, end: toks[n-1].end}, n
	}
	return token{}, 0
}

// identifier reports whether a word can only be the name of a constant: it has
// a dot, capitals inside, or is all capitals.
func identifier(s string) bool {
	if strings.Contains(s, ".") {
		return true
	}
	upper, lower := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			upper++
		case 'a' <= c && c <= 'z':
			lower++
		}
	}
	if lower == 0 {
		return upper >= 2
	}
	return strings.ContainsFunc(s[1:], func(r rune) bool { return 'A' <= r && r <= 'Z' }) || strings.Contains(s, "_")
}

// numberWords reads a number of words, or digits with a word such as million,
// at the start of toks, and returns how many tokens it took.
func numberWords(toks []token) (*big.Rat, int) {
	total, group := new(big.Rat), new(big.Rat)
	n, last := 0, int64(0) // last is the size of the word before, 0 at the start
	if toks[0].kind == tNum {
		if toks[1].kind != tName || scale(toks[1].text) == 0 {
			return nil, 0
		}
		group.Set(toks[0].val)
		n, last = 1, 1
	} else if toks[0].kind == tName && strings.EqualFold(toks[0].text, "a") {
		if toks[1].kind != tName || scale(toks[1].text) == 0 && ordinalWord(toks[1].text) < 3 {
			return nil, 0
		}
		group.SetInt64(1)
		n, last = 1, 1
	}
	for toks[n].kind == tName || toks[n].kind == tOp && toks[n].text == "-" {
		t := toks[n]
		if t.kind == tOp { // twenty-five
			if last < 20 || last >= 100 || last%10 != 0 || toks[n+1].kind != tName || unit(toks[n+1].text) < 1 || unit(toks[n+1].text) > 9 ||
				toks[n-1].end != t.pos || t.end != toks[n+1].pos {
				break
			}
			n++
			continue
		}
		word := strings.ToLower(t.text)
		if word == "and" && (last == 100 || last >= 1000) && unit(toks[n+1].text) > 0 {
			n++
			continue
		}
		if u := unit(word); u >= 0 {
			if !(last == 0 || last == 100 || last >= 1000 || last >= 20 && last%10 == 0 && 0 < u && u < 10) {
				break
			}
			group.Add(group, new(big.Rat).SetInt64(u))
			n, last = n+1, max(u, 1)
			continue
		}
		s := scale(word)
		if s == 0 || n == 0 && s != 0 || last >= 1000 {
			break
		}
		group.Mul(group, new(big.Rat).SetInt64(s))
		if s >= 1000 {
			total.Add(total, group)
			group = new(big.Rat)
		}
		n, last = n+1, s
	}
	if n == 0 {
		return nil, 0
	}
	return total.Add(total, group), n
}

// unit is the value of a number word below a hundred, or -1.
func unit(w string) int64 {
	const small = " zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
	const tens = " _ _ twenty thirty forty fifty sixty seventy eighty ninety "
	if i := index(small, w); i >= 0 {
		return i
	}
	if i := index(tens, w); i >= 0 {
		return 10 * i
	}
	return -1
}

func scale(w string) int64 {
	switch strings.ToLower(w) {
	case "dozen":
		return 12
	case "hundred":
		return 100
	case "thousand":
		return 1000
	case "million":
		return 1e6
	case "billion":
		return 1e9
	case "trillion":
		return 1e12
	}
	return 0
}

// ordinalWord is 3 for third and thirds, at least 3 and at most 20; otherwise 0.
func ordinalWord(w string) int64 {
	const ordinals = " _ _ _ third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
	w = strings.TrimSuffix(strings.ToLower(w), "s")
	if w == "quarter" {
		return 4
	}
	return max(index(ordinals, w), 0)
}

// index is the position of a word in a list of words with spaces around.
func index(list, w string) int64 {
	w = strings.ToLower(w)
	if w == "" || w == "_" {
		return -1
	}
	at := strings.Index(list, " "+w+" ")
	if at < 0 {
		return -1
	}
	return int64(strings.Count(list[:at], " "))
}
