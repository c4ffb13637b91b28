package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// best is the best plan that fits, if any does.
func (o options) best(devices []Device) (Plan, bool) {
	roomy := slices.Clone(devices) // the roomiest first
	slices.SortStableFunc(roomy, func(a, b Device) int {
		return cmp.Compare(usable(b, o.overhead), usable(a, o.overhead))
	})
	whole := slices.DeleteFunc(slices.Clone(roomy), func(d Device) bool { return d.MIG || d.Unified || d.Vendor != roomy[0].Vendor })
	for _, context := range o.contexts {
		for _, k := range o.kv {
			if len(roomy) > 0 {
				if q, vram, ok := o.fit(roomy[:1], k, context); ok {
					return o.plan(q, k, context, roomy[:1], vram), true
				}
			}
			for n := 2; n <= len(whole); n++ {
				if q, vram, ok := o.fit(whole[:n], k, context); ok {
					return o.plan(q, k, context, whole[:n], vram), true
				}
			}
		}
	}
	return Plan{}, false
}

// givenUp counts memory that a server's models hold as free. On which GPUs it is,
// the server does not say: the fullest are taken for them.
func givenUp(devices []Device, held int64) []Device {
	devices = slices.Clone(devices)
	order := make([]int, len(devices))
	for i := range order {
		order[i] = i
	}
	taken := func(i int) int64 { return max(devices[i].Total-devices[i].Free, 0) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(taken(b), taken(a)) })
	for _, i := range order {
		back := min(max(held, 0), taken(i))
		devices[i].Free += back
		held -= back
	}
	return devices
}

// fit is the best quantisation that fits on the devices together.
func (o options) fit(devices []Device, k kvType, context int) (quantisation, int64, bool) {
	room := int64(0)
	for _, d := range devices {
		room += max(usable(d, o.overhead), 0)
	}
	for _, q := range o.quants {
		need, buffer := size(q, k, context, o.parallel)
		n := int64(len(devices))
		need += n*perDevice + (n-1)*buffer
		if need <= room {
			return q, need, true
		}
	}
	return quantisation{}, 0, false
}

func (o options) plan(q quantisation, k kvType, context int, devices []Device, vram int64) Plan {
	p := Plan{Quant: q.name, Weights: q.weights, Context: context, KV: k.name, Parallel: o.parallel, Devices: slices.Clone(devices), VRAM: vram, Split: len(devices) > 1}
	p.Why = append(p.Why, fmt.Sprintf("%s with %d tokens of context, KV %s, %d at once: about %s on %s", q.name, context, k.name, o.parallel, gib(vram), names(devices)))
	if context < o.wanted {
		p.Why = append(p.Why, fmt.Sprintf("%d tokens were wanted and do not fit", o.wanted))
	}
	if q.name != o.quants[0].name {
		p.Why = append(p.Why, "a better quantisation does not fit with that context")
	}
	if p.Split {
		p.Why = append(p.Why, "no single GPU holds it, so it is split")
	}
	return p
}

// onCPU is the plan for the processor: the smallest, for the sake of its speed.
func (o options) onCPU(f Found) Plan {
	q, k := o.quants[len(o.quants)-1], o.kv[0]
	context := o.least // more makes it slower still
	if o.asked {
		context = o.wanted
	}
	p := Plan{Quant: q.name, Weights: q.weights, Context: context, KV: k.name, Parallel: o.parallel, CPU: true}
	need, _ := size(q, k, context, o.parallel)
	p.Why = append(p.Why, fmt.Sprintf("%s with %d tokens of context on the processor, slower by one or two orders of magnitude: about %s of memory", q.name, context, gib(need+q.embedding)))
	if f.MemAvailable > 0 && need+q.embedding > f.MemAvailable {
		p.Why = append(p.Why, fmt.Sprintf("only %s of memory are available: the server may refuse", gib(f.MemAvailable)))
	}
	return p
}

// noFit says what was needed and what would fit.
func (o options) noFit(f Found, w Want) error {
	e := &NoFitError{Devices: f.Devices}
	if len(f.Devices) == 0 {
		return e
	}
	q, k, context := o.quants[len(o.quants)-1], o.kv[len(o.kv)-1], o.contexts[len(o.contexts)-1]
	need, _ := size(q, k, context, o.parallel)
	e.Quant, e.KV, e.Context, e.Need = q.name, k.name, context, need+perDevice
	for _, d := range f.Devices {
		e.Usable = max(e.Usable, usable(d, o.overhead))
	}
	least, err := Want{KV: "q8_0", Overhead: w.Overhead}.options()
	if err == nil && (w.Quant != "" || w.Context != 0 || w.MinContext != 0 || w.Parallel > 1 || w.Fixed || w.KV != "") {
		if p, ok := least.best(f.Devices); ok {
			e.Fits = fmt.Sprintf("%s with %d tokens, KV q8_0, one decision at a time", p.Quant, p.Context)
			if w.Fixed {
				e.Fits += " (on a server that was started with OLLAMA_KV_CACHE_TYPE=q8_0)"
			}
		}
	}
	return e
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }

func names(devices []Device) string {
	var all []string
	for _, d := range devices {
		all = append(all, fmt.Sprintf("%s (%s free)", d.Name, gib(d.Free)))
	}
	return strings.Join(all, " and ")
}
