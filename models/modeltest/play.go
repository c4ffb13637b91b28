package modeltest

import (
	"context"
	"math"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// tokenBytes is what the scripted model takes for a token: its deltas, caps and
// honest usage agree on it.
const tokenBytes = 4

// play does what the step says and fills resp with what goes out.
func (s Step) play(ctx context.Context, r *models.Request, maxOutput int, resp *models.Response) *models.Error {
	if err := s.wait(ctx); err != nil {
		return &models.Error{Sent: true, Err: err}
	}
	if s.Cut == 0 && s.fails() {
		return s.failure(ctx)
	}
	text, reasoning, calls, capped := s.output(r.MaxOutput, maxOutput)
	if s.Cut != 0 {
		text, capped = head(text, max(s.Cut, 0)), false
		if s.Cut < 0 {
			reasoning = ""
		}
	}
	err := s.say(ctx, reasoning, &resp.Reasoning, r.OnDelta, func(t string) models.Delta { return models.Delta{Reasoning: t} })
	if err == nil {
		err = s.say(ctx, text, &resp.Text, r.OnDelta, func(t string) models.Delta { return models.Delta{Text: t} })
	}
	if err != nil {
		return &models.Error{Sent: true, Err: err}
	}
	if s.Cut != 0 {
		return s.failure(ctx)
	}
	resp.Calls = calls
	switch {
	case s.Finish != "":
		resp.Finish = s.Finish
	case capped:
		resp.Finish = models.FinishLength
	case len(calls) > 0:
		resp.Finish = models.FinishCalls
	default:
		resp.Finish = models.FinishStop
	}
	return nil
}

// wait sleeps for Delay.
func (s Step) wait(ctx context.Context) error {
	if s.Delay <= 0 {
		return nil
	}
	t := time.NewTimer(s.Delay)
	defer t.Stop()
	done := ctx.Done()
	if s.Deaf {
		done = nil
	}
	select {
	case <-t.C:
		return nil
	case <-done:
		return ctx.Err()
	}
}

func (s Step) fails() bool { return s.Hang || s.Err != nil || s.Status != 0 }

// failure is how the step ends when it does not answer.
func (s Step) failure(ctx context.Context) *models.Error {
	if s.Hang {
		<-ctx.Done()
		return &models.Error{Sent: true, Err: ctx.Err()}
	}
	e := models.Error{Sent: true, Err: s.Err}
	if given, ok := s.Err.(*models.Error); ok {
		e = *given // a copy: it will be completed, and a step may be taken again
	}
	switch {
	case s.Status != 0:
		e.Status, e.RetryAfter = s.Status, s.RetryAfter
		e.Retryable = s.Status == 408 || s.Status == 429 || s.Status >= 500
	case s.Err == nil:
		e.Err, e.Retryable = models.ErrTruncated, true
	}
	return &e
}

// output is what the step says under the caps, and whether they cut it.
func (s Step) output(caps ...int) (text, reasoning string, calls []models.ToolCall, capped bool) {
	room := math.MaxInt
	for _, tokens := range caps {
		if tokens > 0 && tokens <= math.MaxInt/tokenBytes && !s.DisobeyCap {
			room = min(room, tokens*tokenBytes)
		}
	}
	fit := func(t string) string {
		h := head(t, room)
		if room -= len(h); len(h) < len(t) {
			room, capped = 0, true
		}
		return h
	}
	reasoning = fit(s.Reasoning)
	text = fit(s.Text)
	for _, c := range s.Calls {
		if fit(c.Name) != c.Name {
			break // a call without a whole name is none
		}
		c.Args = []byte(fit(string(c.Args)))
		calls = append(calls, c)
	}
	return text, reasoning, calls, capped
}

// say streams t, a token at a time, and adds what went out to said.
func (s Step) say(ctx context.Context, t string, said *string, on func(models.Delta), delta func(string) models.Delta) error {
	if on == nil {
		*said = t
	}
	for at := 0; on != nil && at < len(t); {
		if err := ctx.Err(); err != nil && !s.Deaf {
			return err
		}
		piece := head(t[at:], tokenBytes)
		at += len(piece)
		*said = t[:at]
		on(delta(piece))
	}
	if err := ctx.Err(); err != nil && !s.Deaf {
		return err
	}
	return nil
}

// head is the longest start of t that has at most n bytes and ends where a
// character ends. Bytes that are not UTF-8 count as characters.
func head(t string, n int) string {
	if len(t) <= n {
		return t
	}
	for i := n; i > max(n-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(t[i]) {
			return t[:i]
		}
	}
	if n >= utf8.UTFMax || !utf8.RuneStart(t[0]) {
		return t[:n] // no character is that long
	}
	return t[:0]
}

// usage is what the step reports for a request and what went out.
func (s Step) usage(r *models.Request, resp *models.Response) cost.Usage {
	switch {
	case s.NoUsage:
		return cost.Usage{}
	case s.Usage != nil:
		return *s.Usage
	}
	in := len(r.Prompt) + len(r.Schema)
	for _, m := range r.Messages {
		in += len(m.Text) + len(m.Reasoning) + callBytes(m.Calls)
	}
	for _, t := range r.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return cost.Usage{
		Input:     tokens(in),
		Output:    tokens(len(resp.Text) + len(resp.Reasoning) + callBytes(resp.Calls)),
		Reasoning: tokens(len(resp.Reasoning)),
		Requests:  1,
		Known:     true,
	}
}

func callBytes(calls []models.ToolCall) (n int) {
	for _, c := range calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

func tokens(n int) int64 { return int64((n + tokenBytes - 1) / tokenBytes) }
