package modeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// request asks something of twelve bytes: three tokens.
func request() *models.Request {
	return &models.Request{Messages: []models.Message{{Role: models.User, Text: "twelve bytes"}}}
}

func ids(calls []models.ToolCall) (all []string) {
	for _, c := range calls {
		all = append(all, c.ID)
	}
	return all
}

func TestSteps(t *testing.T) {
	a, b := models.ToolCall{Name: "a"}, models.ToolCall{Name: "b", ID: "mine"}
	for name, c := range map[string]struct {
		step modeltest.Step
		max  int
		want models.Response
		ids  []string
	}{
		"nothing": {modeltest.Step{}, 0, models.Response{Finish: models.FinishStop, Usage: cost.Usage{Input: 3, Requests: 1, Known: true}}, nil},
		"text":    {modeltest.Say("12345"), 0, models.Response{Text: "12345", Finish: models.FinishStop, Usage: cost.Usage{Input: 3, Output: 2, Requests: 1, Known: true}}, nil},
		"reasoning": {modeltest.Step{Reasoning: "1234", Text: "1234"}, 0,
			models.Response{Text: "1234", Reasoning: "1234", Finish: models.FinishStop, Usage: cost.Usage{Input: 3, Output: 2, Reasoning: 1, Requests: 1, Known: true}}, nil},
		"cap": {modeltest.Say("123456789"), 2, models.Response{Text: "12345678", Finish: models.FinishLength, Usage: cost.Usage{Input: 3, Output: 2, Requests: 1, Known: true}}, nil},
		"cap in reasoning": {modeltest.Step{Reasoning: "12345", Text: "1"}, 1,
			models.Response{Reasoning: "1234", Finish: models.FinishLength, Usage: cost.Usage{Input: 3, Output: 1, Reasoning: 1, Requests: 1, Known: true}}, nil},
		"cap in a character": {modeltest.Say("1aéé"), 1, models.Response{Text: "1aé", Finish: models.FinishLength, Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, nil},
		"cap in a call": {modeltest.CallTool("ab", `{"x":1}`), 1, models.Response{
			Calls: []models.ToolCall{{ID: "call-1", Name: "ab", Args: json.RawMessage(`{"`)}}, Finish: models.FinishLength, Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, []string{"call-1"}},
		"cap ignored": {modeltest.Step{Text: "123456789", DisobeyCap: true}, 1, models.Response{Text: "123456789", Finish: models.FinishStop, Usage: cost.Usage{Input: 3, Output: 3, Requests: 1, Known: true}}, nil},
		"finish":      {modeltest.Step{Text: "1", Finish: models.FinishFilter}, 0, models.Response{Text: "1", Finish: models.FinishFilter, Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, nil},
		"no usage":    {modeltest.NoUsage(modeltest.Say("1")), 0, models.Response{Text: "1", Finish: models.FinishStop}, nil},
		"lie":         {modeltest.Lying(modeltest.Say("1"), cost.Usage{Output: 1e9}), 0, models.Response{Text: "1", Finish: models.FinishStop, Usage: cost.Usage{Output: 1e9, Known: true}}, nil},
		"calls": {modeltest.CallTools(a, b, a), 0, models.Response{Calls: []models.ToolCall{{ID: "call-1", Name: "a"}, b, {ID: "call-2", Name: "a"}}, Finish: models.FinishCalls,
			Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, []string{"call-1", "mine", "call-2"}},
		"no ids": {modeltest.Step{Calls: []models.ToolCall{a}}, 0, models.Response{Calls: []models.ToolCall{a}, Finish: models.FinishCalls, Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, []string{""}},
		"same ids": {modeltest.DuplicateIDs(a, b), 0, models.Response{Calls: []models.ToolCall{{ID: "call-1", Name: "a"}, {ID: "call-1", Name: "b"}}, Finish: models.FinishCalls,
			Usage: cost.Usage{Input: 3, Output: 1, Requests: 1, Known: true}}, []string{"call-1", "call-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := modeltest.New(info, c.step)
			r := request()
			r.MaxOutput = c.max
			resp, err := m.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Model = info.Name
			if got := ids(resp.Calls); !reflect.DeepEqual(got, c.ids) {
				t.Errorf("ids %v, want %v", got, c.ids)
			}
			for i := range c.want.Calls { // nil and empty arguments are the same
				if len(c.want.Calls[i].Args) == 0 {
					c.want.Calls[i].Args = resp.Calls[i].Args
				}
			}
			if !reflect.DeepEqual(*resp, c.want) {
				t.Errorf("got  %+v\nwant %+v", *resp, c.want)
			}
			m.AssertDone(t)
		})
	}
}

func TestInfoCapsOutput(t *testing.T) {
	m := modeltest.New(models.Info{Name: "small", MaxOutput: 1}, modeltest.Say("12345"))
	if resp, err := m.Generate(t.Context(), request()); err != nil || resp.Text != "1234" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestBadArguments(t *testing.T) {
	resp, err := modeltest.New(info, modeltest.BadArguments("search")).Generate(t.Context(), request())
	if err != nil || len(resp.Calls) != 1 || json.Valid(resp.Calls[0].Args) {
		t.Errorf("got %+v, %v; want one call with invalid JSON", resp, err)
	}
}

func TestFailures(t *testing.T) {
	oops := errors.New("oops")
	given := &models.Error{Model: "other", Status: 404}
	nameless := &models.Error{Status: 404}
	for name, c := range map[string]struct {
		step    modeltest.Step
		want    models.Error
		partial string
	}{
		"error":        {modeltest.Fail(oops), models.Error{Err: oops}, ""},
		"its own":      {modeltest.Fail(given), *given, ""},
		"cut by own":   {modeltest.Step{Text: "abc", Cut: 1, Err: nameless}, *nameless, "a"},
		"429":          {modeltest.RateLimited(time.Minute), models.Error{Status: 429, Retryable: true, RetryAfter: time.Minute}, ""},
		"500":          {modeltest.Step{Status: 500, Err: oops}, models.Error{Status: 500, Retryable: true, Err: oops}, ""},
		"400":          {modeltest.Step{Status: 400}, models.Error{Status: 400}, ""},
		"cut":          {modeltest.Cut("naïve", 3), models.Error{Err: models.ErrTruncated, Retryable: true}, "na"},
		"cut at start": {modeltest.Cut("naïve", 0), models.Error{Err: models.ErrTruncated, Retryable: true}, ""},
		"cut at end":   {modeltest.Cut("naïve", 99), models.Error{Err: models.ErrTruncated, Retryable: true}, "naïve"},
		"cut by":       {modeltest.Step{Text: "abc", Cut: 1, Err: oops}, models.Error{Err: oops}, "a"},
		"check":        {modeltest.Step{Check: func(*models.Request) error { return oops }}, models.Error{Err: oops}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := modeltest.New(info, modeltest.Repeat(2, c.step))
			for range 2 { // a step is not used up by its first failure
				var streamed string
				r := request()
				r.OnDelta = func(d models.Delta) { streamed += d.Text }
				resp, err := m.Generate(t.Context(), r)
				var e *models.Error
				if !errors.As(err, &e) || resp != nil {
					t.Fatalf("got %v, %v; want a *models.Error", resp, err)
				}
				if e.Status != c.want.Status || e.Retryable != c.want.Retryable || e.RetryAfter != c.want.RetryAfter || !errors.Is(err, c.want.Err) && c.want.Err != nil {
					t.Errorf("got %#v, want %#v", e, c.want)
				}
				if e.Model == "" || c.want.Model != "" && e.Model != c.want.Model {
					t.Errorf("model %q", e.Model)
				}
				if streamed != c.partial || (e.Partial == nil) != (c.partial == "") || e.Partial != nil && e.Partial.Text != c.partial {
					t.Errorf("streamed %q, partial %+v; want %q", streamed, e.Partial, c.partial)
				}
				if p := e.Partial; p != nil && (!p.Usage.Estimated || !p.Usage.Known || p.Usage.Input != 3 || p.Finish != "") {
					t.Errorf("partial: %+v", p)
				}
			}
		})
	}
	if nameless.Partial != nil || nameless.Model != "" {
		t.Errorf("the given error was changed: %+v", nameless)
	}
}

func TestInvalidTakesNoStep(t *testing.T) {
	m := modeltest.New(info, modeltest.Say("ok"))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		r    *models.Request
		want error
	}{
		{t.Context(), nil, models.ErrInvalidRequest},
		{t.Context(), &models.Request{}, models.ErrInvalidRequest},
		{done, request(), context.Canceled},
	} {
		var e *models.Error
		if _, err := m.Generate(c.ctx, c.r); !errors.Is(err, c.want) || !errors.As(err, &e) || e.Sent {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
	if n := len(m.Requests()); n != 0 {
		t.Errorf("%d requests were remembered", n)
	}
	if resp, err := m.Generate(t.Context(), &models.Request{Prompt: "raw"}); err != nil || resp.Text != "ok" {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestTime(t *testing.T) {
	for name, c := range map[string]struct {
		step    modeltest.Step
		took    time.Duration
		ok      bool
		partial string
	}{
		"slow":      {modeltest.Slow(time.Second, modeltest.Say("ok")), time.Second, true, ""},
		"too slow":  {modeltest.Slow(time.Hour, modeltest.Say("ok")), time.Minute, false, ""},
		"deaf":      {modeltest.Step{Delay: time.Hour, Deaf: true, Text: "ok"}, time.Hour, true, ""},
		"hang":      {modeltest.Step{Hang: true, Text: "ok"}, time.Minute, false, ""},
		"hang late": {modeltest.Step{Hang: true, Text: "ok and more", Cut: 2}, time.Minute, false, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				resp, err := modeltest.New(info, c.step).Generate(ctx, request())
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if (err == nil) != c.ok || (resp == nil) == c.ok {
					t.Fatalf("got %v, %v", resp, err)
				}
				var e *models.Error
				if !c.ok && (!errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || !e.Sent) {
					t.Errorf("got %v", err)
				}
				if e != nil && e.Partial != nil && e.Partial.Text != c.partial {
					t.Errorf("partial %q, want %q", e.Partial.Text, c.partial)
				}
			})
		})
	}
}

// A deaf step is taken even if the context was done before.
func TestDeafTakesCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if resp, err := modeltest.New(info, modeltest.Step{Text: "ok", Deaf: true}).Generate(ctx, request()); err != nil || resp.Text != "ok" {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestRequestsAreCopies(t *testing.T) {
	m := modeltest.New(info, modeltest.Forever(modeltest.Step{Check: func(r *models.Request) error {
		r.Messages[0].Text = "changed by a check"
		return nil
	}}))
	heat := 0.5
	r := &models.Request{
		Messages:    []models.Message{{Role: models.Assistant, Text: "hi", Calls: []models.ToolCall{{Args: json.RawMessage(`{}`)}}}},
		Tools:       []models.ToolDef{{Name: "a", Schema: json.RawMessage(`{}`)}},
		Temperature: &heat,
		OnDelta:     func(models.Delta) {},
	}
	if _, err := m.Generate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want := m.Requests()[0]
	for _, r := range []*models.Request{r, m.Requests()[0]} {
		r.Messages[0].Text = "changed"
		r.Messages[0].Calls[0].Args[0] = '['
		r.Tools[0].Schema[0] = '['
		*r.Temperature = 9
	}
	if got := m.Requests()[0]; !reflect.DeepEqual(got, want) || got.Messages[0].Text != "hi" || got.OnDelta != nil {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConcurrent(t *testing.T) {
	m := modeltest.New(info, modeltest.Repeat(50, modeltest.CallTool("a", "{}")), modeltest.Repeat(0, modeltest.Say("never")), modeltest.Repeat(50, modeltest.Say("b")))
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			resp, err := m.Generate(context.Background(), request())
			if err != nil {
				t.Error(err)
				return
			}
			m.Requests()
			mu.Lock()
			defer mu.Unlock()
			seen[resp.Text]++
			for _, c := range resp.Calls {
				seen[c.ID]++
			}
		})
	}
	wg.Wait()
	if seen[""] != 50 || seen["b"] != 50 || len(seen) != 52 {
		t.Errorf("%d different outcomes, want 50 ids once each, and two texts: %v", len(seen), seen)
	}
	m.AssertDone(t)
}

// notes is a testing.TB that only remembers.
type notes struct {
	testing.TB
	errors []string
}

func (*notes) Helper() {}
func (n *notes) Errorf(format string, args ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

func TestAssertDone(t *testing.T) {
	say, oops := modeltest.Say("x"), errors.New("oops")
	for name, c := range map[string]struct {
		steps []modeltest.Step
		asked int
		want  string // start of the message, "" = none
	}{
		"done":         {[]modeltest.Step{say, say}, 2, ""},
		"empty":        {nil, 0, ""},
		"left":         {[]modeltest.Step{say, modeltest.Repeat(3, say), say}, 2, "model expert: 3 steps of 5 were not taken"},
		"forever":      {[]modeltest.Step{say, modeltest.Forever(say)}, 5, ""},
		"forever, 0":   {[]modeltest.Step{say, modeltest.Forever(say)}, 1, ""},
		"before it":    {[]modeltest.Step{say, modeltest.Forever(say), say}, 0, "model expert: 1 steps of 1 were not taken"},
		"too often":    {[]modeltest.Step{say}, 2, "model expert: modeltest: no steps left: request 2, but the script has 1"},
		"failed check": {[]modeltest.Step{{Check: func(*models.Request) error { return oops }}}, 1, "model expert: modeltest: step check: oops"},
	} {
		t.Run(name, func(t *testing.T) {
			m := modeltest.New(info, c.steps...)
			for range c.asked {
				if _, err := m.Generate(t.Context(), request()); err != nil && !errors.Is(err, oops) && !errors.Is(err, modeltest.ErrExhausted) {
					t.Fatal(err)
				}
			}
			var n notes
			m.AssertDone(&n)
			if got := strings.Join(n.errors, "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The steps belong to the model: neither the caller's slices nor a response
// can change them.
func TestStepsAreCopied(t *testing.T) {
	calls := []models.ToolCall{{ID: "1", Args: json.RawMessage(`{}`)}}
	m := modeltest.New(info, modeltest.Forever(modeltest.CallTools(calls...)))
	calls[0].ID, calls[0].Args[0] = "2", '['
	for range 2 {
		resp, err := m.Generate(t.Context(), request())
		if err != nil || resp.Calls[0].ID != "1" || string(resp.Calls[0].Args) != "{}" {
			t.Fatalf("got %+v, %v", resp, err)
		}
		resp.Calls[0].ID, resp.Calls[0].Args[0] = "3", '['
	}
}

// Whatever the text is, deltas add up to what the cap lets through, none is
// empty or longer than a token, and characters stay whole.
func FuzzStream(f *testing.F) {
	f.Add("plain text", 2)
	f.Add("žluťoučký kůň 𝄞𝄞", 3)
	f.Add("\xf0\x80\x80\x80\x80\x80 not UTF-8 \xff", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<40 {
			return
		}
		var all strings.Builder
		r := request()
		r.MaxOutput = limit
		r.OnDelta = func(d models.Delta) {
			if d.Text == "" || len(d.Text) > 4 || utf8.ValidString(text) && !utf8.ValidString(d.Text) {
				t.Errorf("delta %q", d.Text)
			}
			all.WriteString(d.Text)
		}
		resp, err := modeltest.New(info, modeltest.Say(text)).Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if all.String() != resp.Text || !strings.HasPrefix(text, resp.Text) {
			t.Errorf("streamed %q, returned %q, of %q", all.String(), resp.Text, text)
		}
		if cut := resp.Text != text; cut != (resp.Finish == models.FinishLength) || limit > 0 && len(resp.Text) > 4*limit || cut && len(resp.Text) <= 4*limit-4 {
			t.Errorf("%d bytes of %d at %d tokens, finish %q", len(resp.Text), len(text), limit, resp.Finish)
		}
	})
}
