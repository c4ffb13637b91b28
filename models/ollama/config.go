package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// DefaultBaseURL is where a server listens that was told nothing else.
const DefaultBaseURL = "http://127.0.0.1:11434"

// What a zero Config means.
const (
	DefaultContext     = 8192        // tokens; a gibibyte or so of memory for an 8B model
	DefaultMaxInFlight = 4           // calls
	DefaultMaxQueue    = 128         // calls
	DefaultQueueTime   = time.Minute // for a place among those in flight
	DefaultLoadTime    = 10 * time.Minute
)

// Config says where a model is served and how to call it. The zero Config is a
// server on this machine.
type Config struct {
	// BaseURL is the address of the server, without /api or /v1. Empty:
	// DefaultBaseURL. The environment (OLLAMA_HOST) is not read.
	BaseURL string
	// Info describes the model. An empty Name becomes the model, an empty Provider
	// "ollama"; Raw and Schema are set; Tools stays as it is, for only some models
	// have a template for them. A Price that is not stated is cost.Free: state the
	// price of a GPU hour or a second where the machine costs money. Context is
	// the window that is asked for, see below.
	Info models.Info
	// Context is the window in tokens, prompt and output together (num_ctx). It is
	// sent with every request, because a server loads the model anew when it
	// changes: all who use a server should ask for the same. 0: Info.Context, else
	// DefaultContext. More than the model was trained for is cut by the server.
	Context int
	// Options are sent with every request, such as "num_thread", "num_gpu",
	// "min_p" or "repeat_penalty". What a request states itself (Temperature, TopP,
	// TopK, Seed) wins. num_ctx, num_predict and stop are refused: use Context and
	// the fields of models.Request. Servers ignore names that they do not know.
	Options map[string]any
	// KeepAlive is how long the server keeps the model loaded after a call.
	// 0: as the server was told (5 minutes, if nothing); below 0: forever.
	KeepAlive time.Duration
	// MaxInFlight is how many calls are sent at a time. 0: DefaultMaxInFlight. More
	// than the server's OLLAMA_NUM_PARALLEL only queue there.
	MaxInFlight int
	// MaxQueue is how many more calls may wait; others are refused at once with
	// ErrBusy. 0: DefaultMaxQueue; below 0: none.
	MaxQueue int
	// QueueTime is how long a call waits for its turn, after the model is loaded,
	// before it is refused with ErrBusy. 0: DefaultQueueTime; below 0: as long as
	// its context allows.
	QueueTime time.Duration
	// LoadTime is how long loading the model may take. 0: DefaultLoadTime.
	LoadTime time.Duration
	// HTTP makes the calls and is not changed. Nil: a client of this model's own
	// without time limits but ten seconds for dialling, which follows no redirects.
	HTTP *http.Client
}

// ConfigError is a Config that cannot work.
type ConfigError struct {
	Field string // of Config, or "model"
	Fix   string // what is wrong and what to do about it
}

// Error says what is wrong, and what to do about it.
func (e *ConfigError) Error() string { return fmt.Sprintf("ollama: %s: %s", e.Field, e.Fix) }

// reserved are the options that Config.Options must not set.
var reserved = [...]string{"num_ctx", "num_predict", "stop"}

// check reports what is wrong with c, beside the address.
func (c *Config) check(model string) error {
	bad := func(field, format string, args ...any) error {
		return &ConfigError{Field: field, Fix: fmt.Sprintf(format, args...)}
	}
	if strings.TrimSpace(model) == "" {
		return bad("model", "is empty; name a model of the server, see `ollama list`")
	}
	if min(c.Context, c.Info.Context, c.Info.MaxOutput, c.Info.MinOutput) < 0 {
		return bad("Context", "it and Info's are numbers of tokens; use 0 for the default")
	}
	if c.MaxInFlight < 0 {
		return bad("MaxInFlight", "is a number of calls; use 0 for the default")
	}
	if c.LoadTime < 0 {
		return bad("LoadTime", "has to end; use 0 for the default")
	}
	if err := c.Info.Price.Validate(); err != nil {
		return bad("Info.Price", "%v", err)
	}
	for name, value := range c.Options {
		if slices.Contains(reserved[:], name) {
			return bad("Options", "%q is set by the client; use Config.Context, or MaxOutput and Stop of models.Request", name)
		}
		if _, err := json.Marshal(value); err != nil {
			return bad("Options", "%q cannot be sent: %v", name, err)
		}
	}
	return nil
}

// address parses a BaseURL.
func address(s string) (*url.URL, error) {
	if s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, &ConfigError{"BaseURL", fmt.Sprintf("%q is no http address; write it like %q", s, DefaultBaseURL)}
	}
	if path := strings.TrimRight(u.Path, "/"); strings.HasSuffix(path, "/v1") || strings.HasSuffix(path, "/api") {
		return nil, &ConfigError{"BaseURL", fmt.Sprintf("%q names an API; leave out what follows the host", s)}
	}
	return u, nil
}
