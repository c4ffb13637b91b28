package cost

import "context"

type contextKey struct{}

// NewContext returns a context that carries m: a budget travels like a
// deadline. Runs and metered models below it spend from m.
func NewContext(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, contextKey{}, m)
}

// FromContext returns the meter that ctx carries, or nil.
func FromContext(ctx context.Context) *Meter {
	m, _ := ctx.Value(contextKey{}).(*Meter)
	return m
}

// Context returns a context that carries the hold's Meter. Most calls of tools
// spend nothing of their own: the Meter is made when it is first asked for.
func (h *Hold) Context(ctx context.Context) context.Context { return &holdContext{ctx, h} }

type holdContext struct {
	context.Context
	hold *Hold
}

// Value is the hold's Meter, or what the context below carries.
func (c *holdContext) Value(key any) any {
	if key == (contextKey{}) {
		return c.hold.Meter()
	}
	return c.Context.Value(key)
}
