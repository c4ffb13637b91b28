package toolworld

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Kind is what a task needs.
type Kind string

// Kinds of tasks.
const (
	LookUp     Kind = "look up"    // a fact that a document states
	Arithmetic Kind = "arithmetic" // what the calculator reads in the task itself
	Program    Kind = "program"    // what a program finds out
	Both       Kind = "both"       // a fact, and a calculation with it
	Neither    Kind = "neither"    // what an expert knows or does by itself
	Custom     Kind = "custom"     // what a tool of the application tells
)

// Kinds lists all kinds.
var Kinds = []Kind{LookUp, Arithmetic, Program, Both, Neither, Custom}

// Task is a task with what is needed to check an answer, and to play an expert.
type Task struct {
	Kind   Kind
	Prompt string
	Answer string
	Wrong  string   // an answer that looks right
	Facts  []string // sentences without which it cannot be solved
	Docs   []tools.Document
	Code   string // JavaScript that prints the answer, given the facts; "" = none would
	Tool   int    // Custom: of the list of custom tools
	Key    string // Custom: the argument
}

// generate makes a task. Held-out ones are worded in ways, and are about
// programs and custom tools, that others do not use.
func generate(rng *rand.Rand, k Kind, held bool) (t Task) {
	defer func() { t.Kind = k }()
	switch k {
	case LookUp:
		return lookUp(rng, held)
	case Arithmetic:
		return arithmetic(rng, held)
	case Program:
		return program(rng, held)
	case Both:
		return both(rng, held)
	case Custom:
		return custom(rng, held)
	}
	return neither(rng, held)
}

// worded picks a wording: the last one is that of held-out tasks.
func worded(rng *rand.Rand, list []string, held bool) string {
	if held {
		return list[len(list)-1]
	}
	return list[rng.IntN(len(list)-1)]
}

// part picks from the part of a list that is for held-out tasks, its last
// quarter, or from the rest.
func part[T any](rng *rand.Rand, list []T, held bool) T {
	cut := len(list) * 3 / 4
	if held {
		return list[cut+rng.IntN(len(list)-cut)]
	}
	return list[rng.IntN(cut)]
}

// article writes documents about an entity: one for the fact, some for others.
func article(rng *rand.Rand, entity string, a *attribute, value string) (fact string, docs []tools.Document) {
	fact = fill(pick(rng, a.say), "e", entity, "v", value)
	docs = append(docs, tools.Document{ID: entity + "/1", Title: entity, Text: fact})
	for i := range 2 + rng.IntN(2) {
		b := &attributes[rng.IntN(len(attributes))]
		if b == a {
			continue
		}
		docs = append(docs, tools.Document{ID: fmt.Sprintf("%s/%d", entity, i+2), Title: entity, Text: fill(pick(rng, b.say), "e", entity, "v", b.value(rng))})
	}
	return fact, docs
}

func lookUp(rng *rand.Rand, held bool) Task {
	a, e := &attributes[rng.IntN(len(attributes))], name(rng)
	v, wrong := a.value(rng), a.value(rng)
	for wrong == v {
		wrong = a.value(rng)
	}
	t := Task{Prompt: fill(worded(rng, a.ask, held), "e", e), Answer: v, Wrong: wrong}
	fact, docs := article(rng, e, a, v)
	t.Facts, t.Docs = []string{fact}, docs
	return t
}

func arithmetic(rng *rand.Rand, held bool) Task {
	a, b, c := 2+rng.IntN(900), 2+rng.IntN(90), 2+rng.IntN(9)
	forms := []struct {
		ask   string
		value *big.Rat
	}{
		{"What is {a} * {b} + {c}?", big.NewRat(int64(a*b+c), 1)},
		{"Calculate ({a} + {b}) * {c}.", big.NewRat(int64((a+b)*c), 1)},
		{"{a} times {b}", big.NewRat(int64(a*b), 1)},
		{"What is {b} percent of {a}?", big.NewRat(int64(a*b), 100)},
		{"{a} - {b} * {c} = ?", big.NewRat(int64(a-b*c), 1)},
		{"How much is {a} plus {b}?", big.NewRat(int64(a+b), 1)},
		{"Compute {a}^2 - {b}.", big.NewRat(int64(a*a-b), 1)},
		{"What's {a} minus {b}?", big.NewRat(int64(a-b), 1)},
	}
	f := part(rng, forms, held)
	n := decimal(f.value)
	return Task{Prompt: fill(f.ask, "a", strconv.Itoa(a), "b", strconv.Itoa(b), "c", strconv.Itoa(c)),
		Answer: n, Wrong: decimal(new(big.Rat).Add(f.value, big.NewRat(10, 1))), Code: "print(" + n + ")"}
}

// decimal writes a number with at most two digits after the point.
func decimal(r *big.Rat) string {
	s := r.FloatString(2)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// programs are tasks that a few lines of code solve. The code sets x.
var programs = []struct{ ask, code string }{
	{"How many prime numbers are there below {n}?", "let x=0;for(let i=2;i<{n};i++){let p=true;for(let j=2;j*j<=i;j++)if(i%j==0){p=false;break}if(p)x++}"},
	{"What is the sum of the digits of 2 to the power of {m}?", "let x=0;for(const c of (2n**{m}n).toString())x+=Number(c)"},
	{"How many numbers from 1 to {n} are divisible by 3 or by {k}?", "let x=0;for(let i=1;i<={n};i++)if(i%3==0||i%{k}==0)x++"},
	{"How many steps does the Collatz sequence that starts at {n} need to reach 1?", "let x=0,v={n};while(v!=1){v=v%2?3*v+1:v/2;x++}"},
	{"In how many ways can {m} cents be paid with coins of 1, 5, 10 and 25 cents?", "const w=[1];for(let i=1;i<={m};i++)w[i]=0;for(const c of [1,5,10,25])for(let i=c;i<={m};i++)w[i]+=w[i-c];let x=w[{m}]"},
	{"What is the Fibonacci number with index {k}, if the first two are 1 and 1?", "let a=1,x=1;for(let i=2;i<{k};i++)[a,x]=[x,a+x]"},
	{"How many of the numbers from 1 to {n} read the same backwards?", "let x=0;for(let i=1;i<={n};i++)if(String(i)===[...String(i)].reverse().join(''))x++"},
	{"What is the largest prime factor of {n}?", "let v={n},x=1;for(let p=2;v>1;p++)while(v%p==0){x=p;v/=p}"},
	{"Simulate this: start with {n}, and {k} times subtract the sum of the digits. What is left?", "let x={n};for(let i=0;i<{k};i++){let s=0;for(const c of String(x))s+=Number(c);x-=s}"},
	{"Count the pairs of different divisors of {n}.", "let d=0;for(let i=1;i<={n};i++)if({n}%i==0)d++;let x=d*(d-1)/2"},
	{"How many numbers below {n} can be written as a sum of two squares?", "const t=new Set();for(let a=0;a*a<{n};a++)for(let b=a;a*a+b*b<{n};b++)t.add(a*a+b*b);let x=t.size"},
	{"How often does the digit 7 occur if all numbers from 1 to {n} are written down?", "let x=0;for(let i=1;i<={n};i++)x+=String(i).split('7').length-1"},
}

func program(rng *rand.Rand, held bool) Task {
	p := part(rng, programs, held)
	vars := []string{"n", strconv.Itoa(500 + rng.IntN(4000)), "m", strconv.Itoa(40 + rng.IntN(160)), "k", strconv.Itoa(4 + rng.IntN(30))}
	return Task{Prompt: fill(p.ask, vars...), Code: fill(p.code, vars...) + ";print(x)"} // Answer is filled in by running the code
}

// reckoned are questions about one fact and a number.
var reckoned = []struct {
	ask  string
	code string
	f    func(v, k int) int
}{
	{"What is {a} multiplied by {k}?", "print({v}*{k})", func(v, k int) int { return v * k }},
	{"Take {a} and add {k}. What is the result?", "print({v}+{k})", func(v, k int) int { return v + k }},
	{"How much is {k} times {a}?", "print({v}*{k})", func(v, k int) int { return v * k }},
	{"If {a} is reduced by {k}, what remains?", "print({v}-{k})", func(v, k int) int { return v - k }},
}

// both needs a fact and a calculation: with a constant, which the calculator
// finds in the documents, or with a number from a text, which it does not.
func both(rng *rand.Rand, held bool) Task {
	k := 2 + rng.IntN(30)
	if rng.IntN(2) == 0 {
		pkg, constant := strings.ToLower(name(rng)), pick(rng, []string{"BlockSize", "FrameSize", "MaxRetries", "HeaderBytes", "PageSize", "WindowSize"})
		v := 2 + rng.IntN(4096)
		forms := []string{"What is {k} times {c}?", "Calculate {c} * {k}.", "{k} * {c}", "How much is {c} times {k}?"}
		t := Task{Prompt: fill(worded(rng, forms, held), "k", strconv.Itoa(k), "c", pkg+"."+constant), Answer: strconv.Itoa(v * k), Wrong: strconv.Itoa(v*k + v)}
		t.Facts = []string{fmt.Sprintf("const %s = %d", constant, v)}
		t.Docs = []tools.Document{{ID: pkg + "." + constant, Title: "const " + pkg + "." + constant, Text: t.Facts[0] + " // of package " + pkg}}
		t.Code = fmt.Sprintf("print(%d*%d)", v, k)
		return t
	}
	a := pick(rng, numbers())
	e := name(rng)
	v := a.number(rng)
	f := reckoned[rng.IntN(len(reckoned)-1)]
	if held {
		f = reckoned[len(reckoned)-1]
	}
	fact, docs := article(rng, e, a, strconv.Itoa(v))
	return Task{Prompt: fill(f.ask, "a", fill(a.short, "e", e), "k", strconv.Itoa(k)), Answer: strconv.Itoa(f.f(v, k)), Wrong: strconv.Itoa(f.f(v, k) + k),
		Facts: []string{fact}, Docs: docs, Code: fill(f.code, "v", strconv.Itoa(v), "k", strconv.Itoa(k))}
}

// numbers are the attributes that can be reckoned with.
func numbers() (list []*attribute) {
	for i := range attributes {
		if attributes[i].short != "" {
			list = append(list, &attributes[i])
		}
	}
	return list
}

// known is what experts know or do without help.
var known = []struct {
	ask   []string
	pairs []string // what is filled in, then the answer
}{
	{[]string{"Translate '{x}' into French.", "What is '{x}' in French?", "How do you say '{x}' in French?"}, []string{"good morning", "bonjour", "thank you", "merci", "the house", "la maison", "a dog", "un chien", "tomorrow", "demain"}},
	{[]string{"Is this review positive or negative? \"{x}\"", "Classify the sentiment of this review: \"{x}\"", "Does the author of this like the product? Say positive or negative: \"{x}\""}, []string{"I love it, it works every day", "positive", "It broke after a week and nobody answers", "negative", "Best purchase of the year", "positive", "I want my money back", "negative"}},
	{[]string{"What is the opposite of '{x}'?", "Give an antonym of '{x}'.", "Name a word that means the contrary of '{x}'."}, []string{"hot", "cold", "early", "late", "generous", "stingy", "shallow", "deep", "rough", "smooth"}},
	{[]string{"Correct the spelling: {x}", "Fix the spelling mistake in '{x}'.", "Which word was meant by '{x}'? Spell it right."}, []string{"recieve", "receive", "definately", "definitely", "seperate", "separate", "occured", "occurred"}},
	{[]string{"Complete the proverb: {x}", "How does this saying end? {x}", "Finish this saying: {x}"}, []string{"The early bird catches the …", "worm", "A rolling stone gathers no …", "moss", "Too many cooks spoil the …", "broth"}},
	{[]string{"Is this message spam? Answer yes or no: {x}", "Decide if the following mail is spam, yes or no: {x}", "Would you filter this as spam (yes or no)? {x}"}, []string{"You have won a prize, click now", "yes", "The meeting moved to three o'clock", "no", "Cheap pills without prescription", "yes", "Your parcel will arrive on Monday", "no"}},
	{[]string{"Put this sentence into the past tense: {x}", "Rewrite in the past tense: {x}", "Say this in the past tense: {x}"}, []string{"She goes home.", "She went home.", "They eat bread.", "They ate bread.", "He writes a letter.", "He wrote a letter."}},
	{[]string{"Which word does not belong with the others: {x}?", "Find the odd one out: {x}.", "Three of these belong together; which one does not? {x}"}, []string{"apple, pear, hammer, plum", "hammer", "oak, beech, trout, birch", "trout", "copper, iron, violin, zinc", "violin"}},
}

func neither(rng *rand.Rand, held bool) Task {
	c := pick(rng, known)
	i := 2 * rng.IntN(len(c.pairs)/2)
	j := i
	for c.pairs[j+1] == c.pairs[i+1] {
		j = 2 * rng.IntN(len(c.pairs)/2)
	}
	return Task{Prompt: fill(worded(rng, c.ask, held), "x", c.pairs[i]), Answer: c.pairs[i+1], Wrong: c.pairs[j+1]}
}
