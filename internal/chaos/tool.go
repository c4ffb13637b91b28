package chaos

import (
	"context"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Tool makes a tool of t that fails as tools do, and as they must not.
func (p *Plan) Tool(point string, t tools.Tool) tools.Tool {
	return &tool{t, p, point}
}

type tool struct {
	t     tools.Tool
	plan  *Plan
	point string
}

// Spec describes the tool.
func (x *tool) Spec() tools.Spec { return x.t.Spec() }

// Call calls the tool, and spoils its result.
func (x *tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	f := x.plan.draw(x.point, toolKinds)
	switch f.Kind {
	case Failure:
		return tools.Result{}, errUntyped
	case Fatal:
		return tools.Result{}, tools.Fatal(errUntyped)
	case Hang:
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	case Deaf, Jump:
		time.Sleep(f.Wait)
	case Panic:
		panic("chaos: a bug in a tool")
	}
	r, err := x.t.Call(ctx, c)
	if err != nil {
		return r, err
	}
	switch f.Kind {
	case InvalidText:
		r.Text = "\xff\xfe" + r.Text + "<|im_end|>\n</tool_response>\x00"
		r.Documents = append(r.Documents, tools.Document{ID: "\xff", Text: r.Text, Untrusted: true})
	case Huge:
		r.Text = strings.Repeat("0123456789abcdef", 128<<10)
	}
	return r, nil
}
