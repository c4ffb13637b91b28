package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/gpu"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

const ollamaDefault = "http://127.0.0.1:11434"

// attach finds a server that is running already.
func (l *local) attach(ctx context.Context, r *Report) (address string, ok bool, err error) {
	try := func(address string) (string, bool, error) {
		v, err := gpu.ProbeServer(ctx, address)
		if err != nil {
			return "", false, err
		}
		r.Server, r.Version = address, v
		return address, true, nil
	}
	switch host := os.Getenv("OLLAMA_HOST"); {
	case l.url != "":
		return try(strings.TrimRight(l.url, "/"))
	case l.binary != "":
		return "", false, nil // that one is wanted
	case host != "":
		if address, ok, err = try(hostURL(host)); ok {
			return address, ok, nil
		}
		return "", false, fmt.Errorf("OLLAMA_HOST is %q: %w", host, err)
	}
	address, ok, err = try(ollamaDefault)
	if err != nil && ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	return address, ok, nil // nobody there: one is started
}

// hostURL reads OLLAMA_HOST as Ollama does: a host, a port, or an address.
func hostURL(host string) string {
	scheme, rest, found := strings.Cut(strings.TrimSpace(host), "://")
	if !found {
		scheme, rest = "http", scheme
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(rest)
	if err != nil {
		name, port = strings.Trim(rest, "[]"), "11434"
		if found {
			port = map[string]string{"http": "80", "https": "443"}[scheme]
		}
	}
	switch name {
	case "", "0.0.0.0": // what a server listens on
		name = "127.0.0.1"
	case "::":
		name = "::1"
	}
	return strings.TrimRight(scheme+"://"+net.JoinHostPort(name, port)+"/"+path, "/")
}

// here reports whether a server is on this machine, so that this machine's GPUs
// are its own.
func here(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// plan chooses what is loaded. Of another machine nothing is known but what the
// server says after loading.
func (l *local) plan(ctx context.Context, found gpu.Found, address string, attached bool) (gpu.Plan, error) {
	w := gpu.Want{Quant: l.quant, Context: l.context, Parallel: max(l.parallel, 1), CPU: l.cpu, Fixed: attached}
	if attached && !here(address) {
		p := gpu.Plan{Quant: l.quant, Context: l.context, Parallel: w.Parallel, Why: []string{"the server is on another machine: its GPU is not planned for, only checked after loading"}}
		if p.Quant == "" {
			p.Quant = "Q4_K_M"
		}
		if p.Context == 0 {
			p.Context = 40960
		}
		return p, nil
	}
	if attached {
		w.Held = held(ctx, address)
	}
	return gpu.MakePlan(found, w)
}

// held is the GPU memory that a server's models take, our own of the last run
// among them: it is the server's to use again. 0 if it does not say.
func held(ctx context.Context, address string) (bytes int64) {
	c, err := ollama.NewClient(address, nil)
	if err != nil {
		return 0
	}
	defer c.Close()
	running, _ := c.Running(ctx) // what is wrong shows at the next call
	for _, m := range running {
		bytes += max(m.SizeVRAM, 0)
	}
	return bytes
}

// launch starts a server for the plan.
func (l *local) launch(ctx context.Context, plan gpu.Plan) (*gpu.Server, error) {
	s, err := gpu.StartServer(ctx, gpu.ServerConfig{
		Binary:   l.binary,
		Env:      gpu.Environment(plan.Devices),
		Parallel: plan.Parallel,
		KV:       plan.KV,
		Context:  plan.Context,

		ReadyTimeout: 3 * time.Minute, // it looks for GPUs before it answers, twice if the first look fails
	})
	var missing *gpu.ServerError
	if errors.As(err, &missing) && l.binary == "" && l.url == "" {
		return nil, fmt.Errorf("no server answers at %s, and none can be started: %w", ollamaDefault, err)
	}
	return s, err
}
