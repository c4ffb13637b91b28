package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Func makes a tool of a function. Unlike tools.New it checks neither spec nor
// arguments and adds nothing. A nil call answers "ok" to everything. The tool is
// as safe for concurrent use as call is.
func Func(spec tools.Spec, call func(context.Context, tools.Call) (tools.Result, error)) tools.Tool {
	if call == nil {
		call = func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "ok"}, nil }
	}
	return function{func() tools.Spec { return spec }, call}
}

type function struct {
	spec func() tools.Spec
	call func(context.Context, tools.Call) (tools.Result, error)
}

// Spec describes the tool.
func (f function) Spec() tools.Spec { return f.spec() }

// Call does the work.
func (f function) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return f.call(ctx, c)
}

// Broken returns makers of tools that each break one rule, under the name of
// what they do wrong. All accept {"text": "hello"}, and with such arguments
// Check finds a problem in every one of them. "deaf" takes three seconds a
// call, or no time in a bubble of testing/synctest.
func Broken() map[string]func() tools.Tool {
	return map[string]func() tools.Tool{
		"crash": crash, "deaf": deaf, "meddler": meddler, "fickle": fickle, "late": late, "evasive": evasive,
	}
}

func brokenSpec() tools.Spec {
	return tools.Spec{
		Name:        "broken",
		Description: "Says a text.",
		Schema:      json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}`),
	}
}

// say reads the arguments and returns the text.
func say(_ context.Context, c tools.Call) (tools.Result, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tools.Result{}, &tools.ArgumentsError{Problem: "text: " + err.Error()}
	}
	return tools.Result{Text: in.Text}, nil
}

// crash takes it for granted that the arguments are what they should be.
func crash() tools.Tool {
	return Func(brokenSpec(), func(_ context.Context, c tools.Call) (tools.Result, error) {
		var in map[string]any
		_ = json.Unmarshal(c.Args, &in)
		return tools.Result{Text: in["text"].(string)}, nil
	})
}

// deaf does not notice that its context is done.
func deaf() tools.Tool {
	return Func(brokenSpec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
		time.Sleep(3 * time.Second)
		return say(ctx, c)
	})
}

// meddler tidies its arguments up in place.
func meddler() tools.Tool {
	return Func(brokenSpec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
		r, err := say(ctx, c)
		copy(c.Args, bytes.ToUpper(c.Args))
		return r, err
	})
}

// fickle describes itself anew each time.
func fickle() tools.Tool {
	var n atomic.Int64
	return function{func() tools.Spec {
		s := brokenSpec()
		s.Latency = time.Duration(n.Add(1))
		return s
	}, say}
}

// late calls OnDelta after it has returned.
func late() tools.Tool {
	return Func(brokenSpec(), func(ctx context.Context, c tools.Call) (tools.Result, error) {
		if on := c.OnDelta; on != nil {
			time.AfterFunc(time.Millisecond, func() { on(models.Delta{Text: "!"}) })
		}
		return say(ctx, c)
	})
}

// evasive claims to answer, but makes no attempt.
func evasive() tools.Tool {
	s := brokenSpec()
	s.Effects = tools.Answers
	return Func(s, say)
}
