package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/toolorchestra/toolorchestra-go/internal/arith"
	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
)

// Calculator returns the tool "calculator". It evaluates arithmetic with
// integers and fractions exactly and functions such as sqrt to 50 digits;
// plain words ("15 percent of 80") will do as well. Names such as
// disk.SectorSize get their values from lines like "const SectorSize = 512" in
// the documents of the workspace, if these agree; the attempt then cites them.
//
// It costs nothing, and its work is bounded to about a second. It proposes
// itself when the task is nothing but arithmetic and all names in it have
// values. Errors of calls are *ArgumentsError or say what is wrong with the
// expression.
func Calculator() Tool { return calculator{} }

type calculator struct{}

const calculatorSchema = `{"type":"object","properties":{"expression":{"type":"string",` +
	`"description":"For example 3*(4+5)/7, 2^64-1, sqrt(2), 8% * 1250, 20!, round(22/7, 2), or 8 * disk.SectorSize if a document gives its value."}},` +
	`"required":["expression"],"additionalProperties":false}`

// Spec describes the tool.
func (t calculator) Spec() Spec {
	return Spec{
		Name: "calculator",
		Description: "Evaluates arithmetic exactly: + - * / // % ^ ! and functions " +
			"(sqrt, log is natural, log2, log10, sin, gcd, binomial, min, max, avg, round and others). It knows no units and no variables.",
		Schema:  json.RawMessage(calculatorSchema),
		Effects: ReadOnly | Idempotent | Parallel | Answers,
		Latency: 100 * time.Microsecond,
		Propose: t.propose,
	}
}

// Call evaluates the expression.
func (calculator) Call(ctx context.Context, c Call) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	text, err := expression(c.Args)
	if err != nil {
		return Result{}, err
	}
	found := &constants{work: c.Work}
	e, err := arith.Parse(text)
	if err != nil {
		words, ok := arith.Read(text, found.name)
		if !ok {
			return Result{}, err
		}
		if e, err = arith.Parse(words); err != nil {
			return Result{}, err
		}
	}
	v, err := e.Eval(found.value)
	if err != nil {
		return Result{}, err
	}
	a := Attempt{By: "calculator", Text: v.String(), Confidence: 1}
	if !v.Exact() {
		a.Confidence = 0.95
	}
	line := e.String() + " = " + strings.TrimPrefix(a.Text, "≈ ")
	if strings.HasPrefix(a.Text, "≈ ") {
		line = e.String() + " " + a.Text
	}
	if names := e.Names(); len(names) > 0 {
		a.Confidence = 0.95 // as good as the documents
		var with []string
		for _, n := range names {
			k, _ := found.lookup(n)
			with = append(with, n+" = "+k.value.String())
			a.Sources = add(a.Sources, k.source)
		}
		list := strings.Join(with, ", ")
		a.Text += " (" + e.String() + ", with " + list + ")"
		line += ", with " + list
	}
	return Result{Text: line, Attempts: []Attempt{a}}, nil
}

func add(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	if s == "" {
		return list
	}
	return append(list, s)
}

// expression reads the arguments; a plain string in their place will do.
func expression(args json.RawMessage) (string, error) {
	text, plain := plainText(bytes.TrimSpace(args))
	if !plain {
		var in struct {
			Expression string `json:"expression"`
		}
		v, err := jsonfix.Read(string(args))
		if err == nil && !v.Truncated {
			err = json.Unmarshal(v.JSON, &in)
		}
		if v.Truncated || err != nil {
			return "", &ArgumentsError{Problem: `write {"expression": "3*(4+5)"}`, Truncated: v.Truncated}
		}
		text = in.Expression
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", &ArgumentsError{Problem: `expression is empty; write {"expression": "3*(4+5)"}`}
	}
	return text, nil
}

// propose offers the arithmetic that the task asks for, if it has a result.
func (calculator) propose(c Call) []json.RawMessage {
	found := &constants{work: c.Work}
	text, ok := arith.Read(c.Prompt, found.name)
	if !ok {
		return nil
	}
	if e, err := arith.Parse(text); err != nil {
		return nil
	} else if _, err := e.Eval(found.value); err != nil {
		return nil
	}
	args, err := encode(struct {
		Expression string `json:"expression"`
	}{text})
	if err != nil {
		return nil
	}
	return []json.RawMessage{args}
}

// constants finds the values of names in the documents of a workspace.
type constants struct {
	work  Workspace
	known map[string]constant
}

type constant struct {
	value  arith.Value
	source string // id of the document
	ok     bool
}

// name is the resolver of arith.Read that keeps names as they are.
func (k *constants) name(name string) (string, bool) {
	_, ok := k.lookup(name)
	return name, ok
}

func (k *constants) value(name string) (arith.Value, bool) {
	c, ok := k.lookup(name)
	return c.value, ok
}

// lookup returns the constant that the best places agree on. A name with a
// qualifier is looked for where that is written before it, else in documents
// that are about the qualifier by id, title, URL or package clause.
func (k *constants) lookup(name string) (constant, bool) {
	if c, ok := k.known[name]; ok {
		return c, c.ok
	}
	qualifier, base := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		base = name[i+1:]
		qualifier = name[strings.LastIndexAny(name[:i], "./")+1 : i]
	}
	var best constant
	strength := 0
	for _, d := range k.work.Documents() {
		about := 1
		if qualifier != "" {
			about = subject(d, qualifier)
		}
		definitions(d.Title+"\n"+d.Text, base, func(before string, v arith.Value) {
			s := about
			switch {
			case before == "":
			case qualifier == "" || strings.EqualFold(before, qualifier):
				s = 3
			default:
				return // the constant of another package
			}
			if qualifier == "" {
				s = 1
			}
			switch {
			case s < strength || s == 0:
			case s > strength:
				best, strength = constant{value: v, source: d.ID, ok: true}, s
			case best.value.Rat().Cmp(v.Rat()) != 0:
				best.ok = false
			}
		})
	}
	if k.known == nil {
		k.known = map[string]constant{}
	}
	k.known[name] = best
	return best, best.ok
}

// subject says how surely a document is about a package or type: 2 by its id,
// title or URL, 1 by a package clause in its text, 0 not at all.
func subject(d Document, qualifier string) int {
	for word := range strings.FieldsFuncSeq(d.ID+" "+d.Title+" "+d.URL, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if strings.EqualFold(word, qualifier) {
			return 2
		}
	}
	for rest := d.Text; ; {
		i := strings.Index(rest, "package "+qualifier)
		if i < 0 {
			return 0
		}
		if rest = rest[i+len("package ")+len(qualifier):]; rest == "" || !wordByte(rest[0]) {
			return 1
		}
	}
}

// What may stand between the name of a constant and its value.
var assigned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[ \t]+(?:untyped[ \t]+)?[a-z]\w*)?[ \t]*:?=[ \t]*`)
})

// definitions calls f for each place in text that gives the constant base a
// plain number, with what qualifies the name there.
func definitions(text, base string, f func(qualifier string, v arith.Value)) {
	for at := 0; ; {
		i := strings.Index(text[at:], base)
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(base)
		qualifier := ""
		if start > 0 && text[start-1] == '.' {
			from := start - 1
			for from > 0 && wordByte(text[from-1]) {
				from--
			}
			if qualifier = text[from : start-1]; qualifier == "" {
				continue
			}
		} else if start > 0 && wordByte(text[start-1]) {
			continue
		}
		line, _, _ := strings.Cut(text[at:], "\n")
		m := assigned().FindString(line)
		if m == "" {
			continue
		}
		if v, ok := plainNumber(line[len(m):]); ok {
			f(qualifier, v)
		}
	}
}

// plainNumber reads the exact number that a line begins with. Operators that
// programming languages and mathematics disagree on are refused.
func plainNumber(line string) (arith.Value, bool) {
	line, _, _ = strings.Cut(line, "//")
	line, _, _ = strings.Cut(line, "/*")
	if len(line) > 200 {
		line = line[:200]
	}
	e, rest, err := arith.ParsePrefix(line)
	if err != nil || strings.ContainsAny(line[:len(line)-len(rest)], "/%^!√²³") {
		return arith.Value{}, false
	}
	rest = strings.TrimLeft(rest, " \t\r")
	if rest != "" && (strings.ContainsRune("/%^!|&<>=*+-\"'[{", rune(rest[0])) || '0' <= rest[0] && rest[0] <= '9') {
		return arith.Value{}, false // goes on, in a way that is not understood
	}
	v, err := e.Eval(nil)
	return v, err == nil && v.Exact()
}

func wordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' || b >= 0x80
}
