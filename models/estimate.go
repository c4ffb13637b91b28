package models

import (
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// What an Info that does not say is taken to mean.
const (
	DefaultMaxOutput = 4096 // tokens; sent as the cap, so it holds
	DefaultMinOutput = 256  // tokens
	// MaxWall bounds a call that is priced by the second or uses GPUs that are
	// counted, in money and in time.
	MaxWall = 10 * time.Minute
	// maxTokens keeps sums in range whatever an Info says.
	maxTokens = 1 << 31
	maxTiers  = 9 // that a valid Price has
)

// Estimate is what one call of m costs: Worst assumes a token per byte of input
// (byte-level tokenizers never make more) unless m counts exactly, the dearest
// rates and the whole output cap; Floor is the same with MinOutput tokens of
// output; Mean takes four bytes a token and a quarter of the cap. A model on
// GPUs (OnGPUs, or a price by the GPU hour) takes them for Info.Latency, at least
// a second, and at Worst for MaxWall. Of Retry and Fallback, Worst is all
// attempts. An Estimator knows better.
func Estimate(m Model, r *Request) cost.Estimate {
	if x, ok := m.(interface{ estimate(*Request) cost.Estimate }); ok {
		return x.estimate(r)
	}
	if x, ok := As[Estimator](m); ok {
		return x.Estimate(r)
	}
	info := m.Info()
	input, _ := inputTokens(m, r)
	likely := likelyInput(r)
	most, least := outputTokens(info, r, likely)
	p, gpus := info.Price, gpusOf(m, info)
	at := func(in, out int64, wall time.Duration) cost.Spend {
		return cost.Spend{USD: p.Bound(in, out, wall, max(gpus, 1)), Tokens: in + out, Calls: 1, GPU: gpuTime(wall, gpus)}
	}
	e := cost.Estimate{
		Name:  info.Name,
		Floor: at(input, least, max(info.Latency, time.Second)),
		Mean:  at(min(likely, input), max(least, most/4), max(info.Latency, time.Second)),
		Worst: at(input, most, max(info.Latency, MaxWall)),
	}
	e.Priced = true
	for _, n := range tierSizes(&p, input) {
		_, basis, _ := p.Of(cost.Usage{Input: n, Output: 1, Requests: 1, Known: true})
		e.Priced = e.Priced && basis != cost.Unpriced
	}
	e.Mean.Time = info.Latency
	return e
}

// tierSizes is a number of input tokens in each tier that so much input may fall
// into.
func tierSizes(p *cost.Price, input int64) []int64 {
	sizes := []int64{1}
	for t := p.Over; t != nil && t.Above < input && len(sizes) < maxTiers; t = t.Price.Over {
		sizes = append(sizes, t.Above+1)
	}
	return sizes
}

// inputTokens is the count of m, or an upper bound by bytes.
func inputTokens(m Model, r *Request) (n int64, exact bool) {
	if c, ok := As[Counter](m); ok {
		if n, exact := c.CountTokens(r); exact && n >= 0 {
			return n, true
		}
	}
	bytes, parts := inputBytes(r)
	return int64(bytes + 16*parts + 64), false
}

// likelyInput is the usual four bytes a token.
func likelyInput(r *Request) int64 {
	bytes, parts := inputBytes(r)
	return int64(bytes/4 + 4*parts + 8)
}

// inputBytes counts what a server renders into the prompt, and the parts that
// it wraps in markup of its own.
func inputBytes(r *Request) (bytes, parts int) {
	bytes = len(r.Prompt) + len(r.Schema)
	for i := range r.Messages {
		m := &r.Messages[i]
		bytes += len(m.Text) + len(m.Reasoning) + len(m.CallID)
		parts++
		for _, c := range m.Calls {
			bytes += len(c.ID) + len(c.Name) + len(c.Args)
			parts += 2
		}
	}
	for i := range r.Tools {
		// Servers render tools as indented JSON or as code: twice the bytes
		// covers what was seen of both.
		t := &r.Tools[i]
		bytes += len(t.Name) + len(t.Description) + 2*len(t.Schema)
		parts += 4
	}
	return bytes, parts
}

// outputTokens is the cap on output and the least that makes sense.
func outputTokens(info Info, r *Request, likelyInput int64) (most, least int64) {
	most = int64(info.MaxOutput)
	if most <= 0 {
		most = DefaultMaxOutput
	}
	if r.MaxOutput > 0 {
		most = min(int64(r.MaxOutput), most)
		if info.MaxOutput <= 0 {
			most = int64(r.MaxOutput)
		}
	}
	least = int64(max(r.MinOutput, 0))
	if least == 0 {
		least = int64(info.MinOutput)
	}
	if least <= 0 {
		least = DefaultMinOutput
	}
	most = min(most, maxTokens)
	least = min(least, maxTokens)
	if info.Context > 0 {
		most = min(most, max(int64(info.Context)-likelyInput, 1))
	}
	return most, min(least, most)
}
