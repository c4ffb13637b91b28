package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/internal/conform"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// plain is a request that every model can answer.
func plain() *models.Request {
	return &models.Request{Messages: []models.Message{{Role: models.User, Text: question}}}
}

func checkInfo(p *probe, m models.Model) {
	info := m.Info()
	if info.Name == "" {
		p.Errorf("Info.Name is empty: ledgers, budgets and preferences need a name")
	}
	if err := info.Price.Validate(); err != nil {
		p.Errorf("Info.Price: %w", err)
	}
	if info.Context < 0 || info.MaxOutput < 0 || info.MinOutput < 0 || info.Latency < 0 {
		p.Errorf("Info has a negative number: %+v", info)
	}
	p.ask(m, plain())
	if again := m.Info(); !reflect.DeepEqual(info, again) {
		p.Errorf("Info changed after a call, from %+v to %+v", info, again)
	}
}

func checkAnswer(p *probe, m models.Model) {
	if resp := p.ask(m, plain()); resp != nil {
		p.response(resp)
	}
}

// response checks a complete response to question.
func (p *probe) response(r *models.Response) {
	if r.Text == "" && len(r.Calls) == 0 {
		p.Errorf("the response has neither text nor calls")
	}
	if r.Finish == "" {
		p.Errorf("the response has no Finish: say why the model stopped")
	}
	u := r.Usage
	if !u.Known {
		return
	}
	for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Output, u.Reasoning, u.Requests, int64(u.Wall), int64(u.GPU)} {
		if n < 0 {
			p.Errorf("the usage has a negative number: %+v", u)
			break
		}
	}
	if u.Reasoning > u.Output {
		p.Errorf("usage: Reasoning (%d) is more than Output (%d), which includes it", u.Reasoning, u.Output)
	}
	if parts := u.CacheRead + u.CacheWrite + u.CacheWrite1h; parts > u.Input {
		p.Errorf("usage: cached tokens (%d) are more than Input (%d), which includes them", parts, u.Input)
	}
	if u.Input == 0 || u.Output == 0 && (r.Text != "" || len(r.Calls) > 0) {
		p.Errorf("usage: %d tokens in and %d out are claimed to be known for a real answer; if the server did not say, leave Known false", u.Input, u.Output)
	}
}

func checkStream(p *probe, m models.Model) {
	s := &recorder{}
	r := plain()
	r.OnDelta = s.add
	resp := p.ask(m, r)
	s.Close()
	if resp != nil {
		p.response(resp)
		if got := s.text.String(); got != resp.Text {
			p.Errorf("the deltas say %q, the response says %q", got, resp.Text)
		}
		if got := s.reasoning.String(); got != resp.Reasoning {
			p.Errorf("the deltas reason %q, the response %q", got, resp.Reasoning)
		}
	}
	s.Late(&p.Problems, "Generate")
}

// rich is a request with as much in it as the model takes. Its slices have
// room behind their end, where an append would go unseen.
func rich(info models.Info) *models.Request {
	temperature, seed := 0.5, int64(7)
	r := &models.Request{MaxOutput: 256, Temperature: &temperature, Seed: &seed, Affinity: "run-1"}
	r.Messages = append(make([]models.Message, 0, 16),
		models.Message{Role: models.System, Text: system},
		models.Message{Role: models.User, Text: "Hello."})
	r.Stop = append(make([]string, 0, 4), "###")
	if info.Tools {
		r.Tools = append(make([]models.ToolDef, 0, 4), models.ToolDef{
			Name: "multiply", Description: "Multiplies two numbers.",
			Schema: json.RawMessage(`{"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}}`),
		})
		r.Messages = append(r.Messages,
			models.Message{Role: models.Assistant, Calls: append(make([]models.ToolCall, 0, 4),
				models.ToolCall{ID: "c1", Name: "multiply", Args: json.RawMessage(`{"b": 2, "a": 3}`)})},
			models.Message{Role: models.ToolRole, CallID: "c1", Text: "6"})
	}
	if info.Schema {
		r.Schema = json.RawMessage(`{"type": "object", "properties": {"answer": {"type": "string"}}}`)
	}
	r.Messages = append(r.Messages, models.Message{Role: models.Assistant, Text: "Hello!"}, models.Message{Role: models.User, Text: question})
	return r
}

// whole shows a request with what lies behind the end of its slices.
func whole(r *models.Request) reflect.Value {
	w := *r
	w.OnDelta = nil
	w.Messages = w.Messages[:cap(w.Messages)]
	w.Tools = w.Tools[:cap(w.Tools)]
	w.Stop = w.Stop[:cap(w.Stop)]
	return reflect.ValueOf(w)
}

func checkRequest(p *probe, m models.Model) {
	s := &recorder{}
	for _, on := range []func(models.Delta){nil, s.add} {
		r, asked := rich(m.Info()), rich(m.Info())
		r.OnDelta = on
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if o := generate(ctx, m, r); o.err != nil {
			p.failure(ctx, o) // a model need not take all of it
		}
		cancel()
		before, after := whole(asked), whole(r)
		for i := range before.NumField() {
			if !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
				p.Errorf("Generate changed Request.%s: work on a copy (append writes into the caller's array)", before.Type().Field(i).Name)
			}
		}
		if (r.OnDelta == nil) != (on == nil) {
			p.Errorf("Generate changed Request.OnDelta")
		}
	}
	s.Close()
	s.Late(&p.Problems, "Generate")
}

func checkInvalid(p *probe, m models.Model) {
	both := plain()
	both.Prompt = question
	for name, r := range map[string]*models.Request{"an empty request": {}, "a request with both Messages and Prompt": both} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		o := generate(ctx, m, r)
		cancel()
		if o.err == nil {
			p.Errorf("%s was answered", name)
			continue
		}
		if conform.IsPanic(o.err) {
			p.Errorf("%s: the call panicked: %w", name, o.err)
			continue
		}
		if !errors.Is(o.err, models.ErrInvalidRequest) {
			p.Errorf("%s: the error does not wrap models.ErrInvalidRequest: %w", name, o.err)
		}
		if o.resp != nil {
			p.Errorf("%s: a response came with the error", name)
		}
		p.notSent(o.err)
	}
}

// notSent checks the error of a call that must not have reached a server.
func (p *probe) notSent(err error) {
	var e *models.Error
	if errors.As(err, &e) && e.Sent {
		p.Errorf("Sent is true, so it would be billed, but nothing was to be sent: %w", err)
	}
}

func checkConcurrent(p *probe, m models.Model) {
	info := m.Info()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			s := &recorder{}
			r := plain()
			if i%2 == 0 {
				r.OnDelta = s.add
			}
			resp := p.ask(m, r)
			s.Close()
			if again := m.Info(); !reflect.DeepEqual(info, again) {
				p.Errorf("Info changed beside calls, from %+v to %+v", info, again)
			}
			if resp == nil {
				return
			}
			p.response(resp)
			if got := s.text.String(); r.OnDelta != nil && got != resp.Text {
				p.Errorf("beside other calls the deltas say %q, the response says %q", got, resp.Text)
			}
		})
	}
	wg.Wait()
}

func checkBefore(p *probe, m models.Model) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	back := make(chan outcome, 1)
	go func() { back <- generate(ctx, m, plain()) }()
	o, ok := conform.Wait(&p.Problems, back)
	switch {
	case !ok:
	case o.err == nil:
		p.Errorf("a call whose context was cancelled before was answered")
	default:
		p.cancelled(ctx, o)
		p.notSent(o.err)
	}
}

// checkDuring cancels a call from inside its first delta.
func checkDuring(p *probe, m models.Model) {
	reference := &recorder{}
	r := plain()
	r.OnDelta = reference.add
	p.ask(m, r)
	reference.Close()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := &recorder{}
	r = plain()
	r.OnDelta = func(d models.Delta) {
		s.add(d)
		if s.said() {
			cancel()
		}
	}
	back := make(chan outcome, 1)
	go func() {
		o := generate(ctx, m, r)
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
	switch {
	case o.err != nil:
		if ctx.Err() == nil {
			p.Errorf("the call failed before it was cancelled: %w", o.err)
			return
		}
		p.cancelled(ctx, o)
		var e *models.Error
		if errors.As(o.err, &e) && e.Partial != nil && !strings.HasPrefix(e.Partial.Text, s.text.String()) {
			p.Errorf("Partial (%q) lacks text that was streamed (%q)", e.Partial.Text, s.text.String())
		}
	case reference.deltas > 1:
		// With one delta the answer may have been complete when it was cancelled.
		text := ""
		if o.resp != nil {
			text = o.resp.Text
		}
		p.Errorf("a call that was cancelled in its first delta returned %q and no error", text)
	}
	s.Late(&p.Problems, "Generate")
}

// said reports whether there was text or reasoning.
func (s *recorder) said() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Len()+s.reasoning.Len() > 0
}

// checkDeadline lets a deadline strike at any moment: the call may still
// succeed, but only as a whole.
func checkDeadline(p *probe, m models.Model) {
	ctx, cancel := context.WithTimeout(context.Background(), midway)
	defer cancel()
	back := make(chan outcome, 1)
	go func() { back <- generate(ctx, m, plain()) }()
	select {
	case o := <-back:
		p.whole(ctx, o)
	case <-ctx.Done():
		if o, ok := conform.Wait(&p.Problems, back); ok {
			p.whole(ctx, o)
		}
	}
}

// whole expects a complete response or the context's error.
func (p *probe) whole(ctx context.Context, o outcome) {
	switch {
	case o.err == nil && o.resp == nil:
		p.Errorf("the call returned neither a response nor an error")
	case o.err == nil:
		p.response(o.resp)
	case ctx.Err() == nil:
		p.Errorf("the call failed before its deadline: %w", o.err)
	default:
		p.cancelled(ctx, o)
	}
}
