package models

import (
	"context"
	"math/bits"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// OnGPUs says that a server of one's own answers m's calls on the GPUs g, and
// measures each call's share of their time: Usage.GPU, unless the model reports
// it itself, of complete responses and of what an *Error has as Partial. Calls
// of all models with the same g share it. It is for models that Metered charges,
// which then reserves GPUs × time, within Budget.GPU, and cuts calls that take
// longer than was granted, at most MaxWall; Info.Price.GPUHour says what the time
// costs, and cost.Free() that only the time itself is bounded.
//
// The share is measured from here, so waiting in the server's queue counts like
// being answered. OnGPUs goes to the leaves of a Composite: models on other GPUs
// have to be wrapped before they are put together. Wrapping twice measures once,
// on the last g. A nil g, or model, changes nothing.
func OnGPUs(m Model, g *cost.GPUs) Model {
	if g == nil {
		return m
	}
	switch x := m.(type) {
	case nil:
		return nil
	case *onGPUs:
		return &onGPUs{x.m, g}
	case *metered: // it settles what is measured within
		return &metered{OnGPUs(x.m, g)}
	case Composite:
		return x.Map(func(m Model) Model { return OnGPUs(m, g) })
	}
	return &onGPUs{m, g}
}

type onGPUs struct {
	m Model
	g *cost.GPUs
}

// Info describes the model.
func (x *onGPUs) Info() Info { return x.m.Info() }

// Unwrap gives the model.
func (x *onGPUs) Unwrap() Model { return x.m }

// Generate asks the model.
func (x *onGPUs) Generate(ctx context.Context, r *Request) (*Response, error) {
	use := x.g.Start()
	defer use.Stop() // whatever the model does, panic included; again is nothing
	resp, err := x.m.Generate(ctx, r)
	took := use.Stop()
	if err == nil {
		return withGPU(resp, took), nil
	}
	if e, ok := err.(*Error); ok && e != nil && e.Partial != nil { // one within others cannot be copied
		c := *e
		c.Partial, err = withGPU(e.Partial, took), &c
	}
	return resp, err
}

// withGPU is a copy of a response, which may be the model's own, that says how
// much GPU time it took.
func withGPU(r *Response, took time.Duration) *Response {
	if r == nil || r.Usage.GPU > 0 {
		return r
	}
	c := *r
	c.Usage.GPU = took
	return &c
}

// gpusOf is the number of GPUs that a call of m occupies: those of OnGPUs, or
// one where its time has a price.
func gpusOf(m Model, info Info) int {
	if x, ok := As[*onGPUs](m); ok {
		return x.g.Count()
	}
	if !info.Price.GPUHour.IsZero() {
		return 1
	}
	return 0
}

// clock fills in how long a call took that was cut after wall: what came after
// that was not asked for any more, so it is not charged.
func clock(u *cost.Usage, took, wall time.Duration, gpus int) {
	if u.Wall == 0 {
		u.Wall = took
	}
	u.Wall = min(u.Wall, wall)
	switch {
	case u.GPU <= 0:
		u.GPU = gpuTime(min(took, wall), gpus)
	case took > wall && wall > 0 && gpus > 0:
		hi, lo := bits.Mul64(uint64(u.GPU), uint64(wall))
		part, _ := bits.Div64(hi, lo, uint64(took)) // hi < took, since wall is
		u.GPU = time.Duration(part)
	}
}

// gpuTime is the time of all GPUs together, saturated.
func gpuTime(wall time.Duration, gpus int) time.Duration {
	if gpus > 0 && wall > (1<<63-1)/time.Duration(gpus) {
		return 1<<63 - 1
	}
	return wall * time.Duration(gpus)
}
