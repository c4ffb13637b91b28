package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

const hint = `
The policy here is the embedded one. policy.Local(ctx) puts Orchestrator-8B in its place, on this
machine's GPU (weights of NVIDIA, for research and development only): see go run ./examples/local.
On another machine, serve it as raw completions and give policy.Trained a model of models/openai:
    vllm serve nvidia/Nemotron-Orchestrator-8B --max-model-len 40960
`

// show prints what a run does while it does it, then what it came to.
func show(w io.Writer, question string, s *orchestra.Stream) {
	fmt.Fprintf(w, "\n━━ %s\n", question)
	for e := range s.Events() {
		switch e := e.(type) {
		case orchestra.Decided:
			showDecision(w, e)
		case orchestra.Returned:
			what := oneLine(e.Result.Text, 100)
			if e.Err != nil {
				what = oneLine(e.Err.Error(), 160)
			}
			fmt.Fprintf(w, "     ← %s   [%v, %s]\n", what, e.USD, took(e.Took))
		case orchestra.Noted:
			fmt.Fprintf(w, "     ! %s %s\n", e.Text, e.Err)
		}
	}
	res, err := s.Result()
	if err != nil {
		fmt.Fprintf(w, "   No answer: %v\n", err)
	} else {
		fmt.Fprintf(w, "   Answer: %s\n", strings.ReplaceAll(res.Answer, "\n", "\n           "))
		if c := confidence(res); c > 0 {
			fmt.Fprintf(w, "   Confidence: %.2f\n", c)
		}
	}
	if len(res.Sources) > 0 {
		fmt.Fprintf(w, "   Source: %s\n", strings.Join(res.Sources, ", "))
	}
	showLedger(w, res)
}

// confidence is what the attempt that became the answer said of itself; 0 if
// nothing.
func confidence(res *orchestra.Result) (c float64) {
	for _, turn := range res.Trajectory.Turns() {
		for _, call := range turn.Done {
			for _, a := range call.Result.Attempts {
				if a.Text == res.Answer {
					c = a.Confidence
				}
			}
		}
	}
	return c
}

func showDecision(w io.Writer, e orchestra.Decided) {
	fmt.Fprintf(w, "%2d ", e.Turn)
	switch d := e.Decision; {
	case e.Err != "":
		fmt.Fprintf(w, "no decision: %s", oneLine(e.Err, 160))
	case len(d.Calls) == 0:
		fmt.Fprint(w, "finish")
	default:
		for _, c := range d.Calls {
			fmt.Fprintf(w, "%s %s ", c.Tool, oneLine(string(c.Args), 90))
		}
	}
	left := "no limit"
	if e.Left.USD < cost.MaxAmount {
		left = e.Left.USD.String()
	}
	fmt.Fprintf(w, "  [decided in %s, %s and %s left]\n", took(e.Took), left, e.Left.Time.Round(time.Second))
	fmt.Fprintf(w, "     why: %s\n", oneLine(e.Decision.Reasoning, 200))
	if m := masked(e.Masked); m != "" {
		fmt.Fprintf(w, "     not offered: %s\n", m)
	}
}

func masked(ms []policy.Masked) string {
	var parts []string
	for _, m := range ms {
		name := m.Tool
		if m.Choice != "" {
			name = m.Choice
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, m.Why))
	}
	return strings.Join(parts, ", ")
}

func showLedger(w io.Writer, res *orchestra.Result) {
	var held cost.Amount
	for _, r := range res.Ledger {
		held += r.Held
		fmt.Fprintf(w, "   Bill: %-24s %6d in %6d out  %-14v %s\n", r.Name, r.Usage.Input, r.Usage.Output, r.USD, r.Basis)
	}
	fmt.Fprintf(w, "   Spent: %v in %d turns and %s", res.Spent.USD, res.Spent.Turns, took(res.Spent.Time))
	if held > 0 {
		fmt.Fprintf(w, "; settled/reserved %.0f %%", 100*res.Spent.USD.Dollars()/held.Dollars())
	}
	fmt.Fprintf(w, "; the ledger's rows sum to %v\n", res.Ledger.Total().USD)
}

// took is a duration with three digits.
func took(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}

func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + " …"
	}
	return s
}
