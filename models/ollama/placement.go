package ollama

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// Placement says where a server keeps a model.
type Placement struct {
	Loaded  bool
	Size    int64     // bytes in memory of all kinds
	VRAM    int64     // bytes of them on GPUs
	Context int       // tokens; less than was asked for if the model was trained for less; 0 = the server did not say
	Until   time.Time // when it is unloaded, if not used; centuries ahead = never
}

// OnGPU reports whether the model is on GPUs, all of it.
func (p Placement) OnGPU() bool { return p.Loaded && p.VRAM > 0 && p.VRAM >= p.Size }

// Partial reports whether a part of the model is on a GPU and the rest is not:
// much slower than all of it, and nothing else says so.
func (p Placement) Partial() bool { return p.Loaded && p.VRAM > 0 && p.VRAM < p.Size }

// OnCPU reports whether no part of the model is on a GPU.
func (p Placement) OnCPU() bool { return p.Loaded && p.VRAM <= 0 }

// String says it for people.
func (p Placement) String() string {
	const gib = 1 << 30
	switch {
	case !p.Loaded:
		return "not loaded"
	case p.OnGPU():
		return fmt.Sprintf("on the GPU (%.2f GiB)", float64(p.Size)/gib)
	case p.Partial():
		return fmt.Sprintf("%.0f%% on the GPU (%.2f of %.2f GiB), the rest on the CPU", 100*float64(p.VRAM)/float64(p.Size), float64(p.VRAM)/gib, float64(p.Size)/gib)
	}
	return fmt.Sprintf("on the CPU (%.2f GiB)", float64(p.Size)/gib)
}

// Placement asks where the model is now; it loads nothing. Models are told apart
// by their weights: a server runs two names of the same weights as one, and
// lists only the first.
func (m *Model) Placement(ctx context.Context) (Placement, error) {
	run, err := m.Running(ctx)
	if err != nil || len(run) == 0 {
		return Placement{}, err
	}
	found, err := m.find(ctx, run)
	if err != nil || found == nil {
		return Placement{}, err
	}
	if n := found.ContextLength; n > 0 {
		m.served.Store(int64(n))
	}
	return Placement{Loaded: true, Size: found.Size, VRAM: found.SizeVRAM, Context: found.ContextLength, Until: found.ExpiresAt}, nil
}

// window is the context in tokens as far as it is known.
func (m *Model) window() int64 {
	if n := m.served.Load(); n > 0 {
		return min(n, int64(m.context))
	}
	return int64(m.context)
}

// find returns the model among those that run, or nil.
func (m *Model) find(ctx context.Context, run []api.ProcessModelResponse) (*api.ProcessModelResponse, error) {
	have, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, h := range have {
		digests[full(or(h.Name, h.Model))] = h.Digest
	}
	mine, ok := digests[full(m.model)]
	if !ok {
		return nil, m.self().fail(missing(http.StatusOK))
	}
	for i := range run {
		if run[i].Digest == mine {
			return &run[i], nil
		}
	}
	blob, err := m.blob(ctx, m.model)
	if err != nil || blob == "" {
		return nil, err
	}
	for i, r := range run {
		name := or(r.Name, r.Model)
		if digests[full(name)] != r.Digest {
			continue // it was made anew under that name
		}
		other, err := m.blob(ctx, name)
		if err != nil {
			return nil, err
		}
		if other == blob {
			return &run[i], nil
		}
	}
	return nil, nil
}

// weights finds the blob in what a server shows of a model.
var weights = regexp.MustCompile(`(?m)^FROM\s.*(sha256)[-:]([0-9a-f]{64})\s*$`)

// blob is the digest of a model's weights; "" if the server does not show it.
func (c *Client) blob(ctx context.Context, model string) (string, error) {
	s, err := c.Show(ctx, model)
	if err != nil {
		return "", err
	}
	found := weights.FindStringSubmatch(s.Modelfile)
	if found == nil {
		return "", nil
	}
	return found[1] + ":" + found[2], nil
}

// full is a model's name as servers compare it.
func full(name string) string {
	name = strings.ToLower(strings.TrimPrefix(name, "registry.ollama.ai/"))
	name = strings.TrimPrefix(name, "library/")
	if at := strings.LastIndexByte(name, ':'); at <= strings.LastIndexByte(name, '/') {
		name += ":latest"
	}
	return name
}
