package ollama

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Model is one model of a server. It is a models.Model and a models.Embedder,
// and has the methods of the server's Client. It is safe for concurrent use.
type Model struct {
	*Client
	model   string
	info    models.Info
	context int
	options map[string]any // of every request; never changed
	keep    time.Duration
	queue   *queue
	loads   *loads
	served  atomic.Int64 // the context in tokens that the server gave; 0 = not known

	doubtful atomic.Bool // the runner may be stuck
}

// New returns the model of that name at a server. It does no I/O: a wrong
// address or name shows at the first call. Errors are *ConfigError. Close it
// when it is not needed any more.
func New(model string, c Config) (*Model, error) {
	if err := c.check(model); err != nil {
		return nil, err
	}
	client, err := NewClient(c.BaseURL, c.HTTP)
	if err != nil {
		return nil, err
	}
	info := c.Info
	if info.Name == "" {
		info.Name = model
	}
	if info.Provider == "" {
		info.Provider = provider
	}
	if !info.Price.Known() {
		info.Price = cost.Free()
	}
	window := or(c.Context, or(info.Context, DefaultContext))
	if info.Context == 0 || info.Context > window {
		info.Context = window
	}
	info.Raw, info.Schema = true, true
	m := &Model{
		Client:  client,
		model:   model,
		info:    info,
		context: window,
		options: maps.Clone(c.Options),
		keep:    c.KeepAlive,
		queue:   newQueue(or(c.MaxInFlight, DefaultMaxInFlight), or(c.MaxQueue, DefaultMaxQueue), or(c.QueueTime, DefaultQueueTime)),
	}
	if m.options == nil {
		m.options = map[string]any{}
	}
	m.options["num_ctx"] = window
	m.loads = newLoads(m.load, or(c.LoadTime, DefaultLoadTime))
	return m, nil
}

// Info describes the model. It does no I/O and always returns the same.
func (m *Model) Info() models.Info { return m.info }

// Close ends a load that is in progress, waits for it, and closes idle
// connections. Calls that are being answered go on; later ones fail. Closing
// twice is closing once.
func (m *Model) Close() {
	m.loads.close()
	m.Client.Close()
}

func (m *Model) self() id { return id{m.info.Name, m.info.Provider} }

// or returns a, or b if a is zero.
func or[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}
