package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/internal/conform"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// described is a spec without what cannot be compared, and a copy of the rest.
func described(s tools.Spec) tools.Spec {
	s.Estimate, s.Propose = nil, nil
	s.Schema, s.Sources, s.Choices = slices.Clone(s.Schema), slices.Clone(s.Sources), slices.Clone(s.Choices)
	return s
}

// stable reports a spec that is not what it was.
func (p *probe) stable(was tools.Spec) {
	is := p.tool.Spec()
	if d := described(is); !reflect.DeepEqual(was, d) {
		p.Errorf("Spec changed, from %+v to %+v", was, d)
	}
	if (is.Estimate == nil) != (p.spec.Estimate == nil) || (is.Propose == nil) != (p.spec.Propose == nil) {
		p.Errorf("Spec changed: Estimate or Propose came or went")
	}
}

func checkSpec(p *probe) {
	was := described(p.spec)
	if err := tools.Check(p.spec); err != nil {
		p.Errorf("%w", err)
	}
	p.stable(was)
	p.call(context.Background(), p.with(p.args[0]))
	p.stable(was)
}

func checkCall(p *probe) {
	for _, args := range p.args {
		s := &conform.Gate{}
		c := p.with(args)
		c.OnDelta = func(models.Delta) { s.Pass() }
		p.estimate(c)
		o := p.call(context.Background(), c)
		s.Close()
		if o.err != nil {
			p.Errorf("the call with %s failed: %w", short(args), o.err)
		} else {
			p.result(args, o.result)
			if p.spec.Effects&tools.Answers != 0 && !slices.ContainsFunc(o.result.Attempts, func(a tools.Attempt) bool { return a.Text != "" }) {
				p.Errorf("the tool promises tools.Answers, but the result for %s has no attempt with a text", short(args))
			}
		}
		s.Late(&p.Problems, "Call")
	}
}

// estimate checks the estimate of a call.
func (p *probe) estimate(c tools.Call) {
	if p.spec.Estimate == nil {
		return
	}
	if err := conform.Catch(func() error {
		e := p.spec.Estimate(c)
		if e.Floor.USD < 0 || e.Worst.USD < e.Floor.USD {
			p.Errorf("Spec.Estimate of %s: Floor %v must not be negative, nor above Worst %v", short(c.Args), e.Floor.USD, e.Worst.USD)
		}
		return nil
	}); err != nil {
		p.Errorf("Spec.Estimate of %s: %w", short(c.Args), err)
	}
}

// result checks what a call returned without an error.
func (p *probe) result(args json.RawMessage, r tools.Result) {
	texts := map[string]string{"Text": r.Text}
	for _, d := range r.Documents {
		texts["Documents"] += d.ID + d.Title + d.URL + d.Text + d.Source
	}
	for _, c := range r.Runs {
		texts["Runs"] += c.Code + c.Output + c.Err
	}
	for _, a := range r.Attempts {
		texts["Attempts"] += a.Text
		if !(a.Confidence >= 0 && a.Confidence <= 1) {
			p.Errorf("the result for %s has an attempt with confidence %v; use 0 to 1", short(args), a.Confidence)
		}
	}
	for field, text := range texts {
		if !utf8.ValidString(text) {
			p.Errorf("the result for %s is not UTF-8 in its %s", short(args), field)
		}
	}
	if r.Data != nil && !json.Valid(r.Data) {
		p.Errorf("the result for %s has Data that are not JSON: %q", short(args), short(r.Data))
	}
}

// bad are arguments that hardly any tool can want, whatever its schema. Size is
// that of the longest string among them.
func bad(good []json.RawMessage, size int) []json.RawMessage {
	long := `"` + strings.Repeat("x", size) + `"`
	all := []json.RawMessage{
		nil, {}, json.RawMessage("null"), json.RawMessage("true"), json.RawMessage("-1e999"), json.RawMessage(`"text"`), json.RawMessage("[]"),
		json.RawMessage(`[{"a": 1}]`), json.RawMessage(`{}`), json.RawMessage("{"), json.RawMessage("not JSON"), json.RawMessage("\xff\xfe\x00"),
		json.RawMessage(`{"text": "\ud800 \u0000"}`), json.RawMessage(`{"": {"": {"": null}}}`), json.RawMessage(long),
		json.RawMessage(strings.Repeat("[", 1<<14)), json.RawMessage(strings.Repeat(`{"a":`, 1<<14) + "1" + strings.Repeat("}", 1<<14)),
	}
	for _, args := range good {
		all = append(all, args[:len(args)/2], args[:max(len(args)-1, 0)], slices.Concat(args, args), slices.Concat(args, json.RawMessage("}")))
		var fields map[string]json.RawMessage
		if json.Unmarshal(args, &fields) != nil {
			continue
		}
		for name, value := range fields {
			for _, other := range []string{"null", `"text"`, "-1", "1e300", "[null]", `{"a": []}`, "true", long} {
				fields[name] = json.RawMessage(other)
				if changed, err := json.Marshal(fields); err == nil {
					all = append(all, changed)
				}
			}
			fields[name] = value
		}
	}
	return all
}

func checkBad(p *probe) {
	for _, args := range bad(p.args, 1<<20) {
		c := p.with(args)
		p.estimate(c)
		switch o := p.call(context.Background(), c); {
		case conform.IsPanic(o.err):
			p.Errorf("%s: %w", short(args), o.err)
		case tools.IsFatal(o.err):
			p.Errorf("%s: the error is fatal, so a model's slip would end the run: %w", short(args), o.err)
		case o.err == nil:
			p.result(args, o.result)
		}
	}
}

func checkUnchanged(p *probe) {
	for _, args := range slices.Concat(p.args, bad(p.args, 1<<10)) {
		c := p.with(args)
		before := bytes.Clone(c.Args[:cap(c.Args)])
		p.call(context.Background(), c)
		if !bytes.Equal(before, c.Args[:cap(c.Args)]) {
			p.Errorf("Call changed its arguments %s: work on a copy", short(args))
			return
		}
	}
}

func checkConcurrent(p *probe) {
	was := described(p.spec)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			args := p.args[i%len(p.args)]
			if o := p.call(context.Background(), p.with(args)); o.err != nil {
				p.Errorf("beside other calls the call with %s failed: %w", short(args), o.err)
			} else {
				p.result(args, o.result)
			}
			p.stable(was)
		})
	}
	wg.Wait()
}

func checkBefore(p *probe) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.stops(ctx)
}

func checkDuring(p *probe) {
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(midway, cancel).Stop()
	defer cancel()
	p.stops(ctx)
}

// stops expects a call to return soon after ctx is done, with whatever: a quick
// tool may have its result by then.
func (p *probe) stops(ctx context.Context) {
	s := &conform.Gate{}
	back := make(chan outcome, 1)
	go func() {
		c := p.with(p.args[0])
		c.OnDelta = func(models.Delta) { s.Pass() }
		o := p.call(ctx, c)
		s.Close()
		back <- o
	}()
	var o outcome
	select {
	case o = <-back:
	case <-ctx.Done():
		var ok bool
		if o, ok = conform.Wait(&p.Problems, back); !ok {
			return
		}
	}
	if conform.IsPanic(o.err) {
		p.Errorf("%w", o.err)
	}
	s.Late(&p.Problems, "Call")
}

// checkProposals makes the calls that the tool proposes, at the start of a run
// and in its midst.
func checkProposals(p *probe) {
	if p.spec.Propose == nil {
		return
	}
	full := tools.Workspace{}.With(tools.Result{
		Documents: []tools.Document{{ID: "d1", Title: "World cup", Text: "France won in 1998.", Source: "local_search"}},
		Runs:      []tools.CodeRun{{Language: "python", Code: "print(1)", Output: "1\n"}},
		Attempts:  []tools.Attempt{{By: "answer", Text: "Paris", Confidence: 0.9, Sources: []string{"d1"}}},
	})
	for _, c := range []tools.Call{{}, {Prompt: task}, {Prompt: task, Work: full}} {
		c.ID, c.Tool = "call-1", p.spec.Name
		var proposed []json.RawMessage
		if err := conform.Catch(func() error { proposed = p.spec.Propose(c); return nil }); err != nil {
			p.Errorf("Spec.Propose: %w", err)
		}
		for _, args := range proposed {
			if !json.Valid(args) {
				p.Errorf("Spec.Propose proposed %s, which is not JSON", short(args))
				continue
			}
			c.Args = args
			if o := p.call(context.Background(), c); o.err != nil {
				p.Errorf("the tool refused %s, which Spec.Propose had proposed: %w", short(args), o.err)
			}
		}
	}
}

// short shows arguments in a message.
func short(args json.RawMessage) string {
	const limit = 80
	switch {
	case args == nil:
		return "no arguments"
	case len(args) == 0:
		return "empty arguments"
	case len(args) > limit:
		return strings.ToValidUTF8(string(args[:limit]), "�") + "…"
	}
	return strings.ToValidUTF8(string(args), "�")
}
