package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says where a model is served and how to call it. The zero Config is
// OpenAI's API without a key.
type Config struct {
	// BaseURL is the part of the address before /chat/completions, with or
	// without a trailing slash: "http://localhost:8000/v1". A query is kept and
	// sent with each call. Empty: DefaultBaseURL.
	BaseURL string
	// Key is sent as a bearer token. Empty: no Authorization header.
	Key string
	// Info describes the model. An empty Name becomes the model, an empty
	// Provider the service of a well-known host, else the host of BaseURL. Without
	// Raw, Tools and Schema are set, as servers for chat take both; with Raw they
	// stay as they are. A Price that is not stated is the provider's list price
	// (cost.ListPrice) where there is one, and else stays unknown.
	Info models.Info
	// Server is the software behind BaseURL. Set it where raw prompts are sent with
	// a Schema, and for trtllm-serve always. Empty: any server, which is taken to
	// know OpenAI's response_format.
	Server Server
	// HTTP makes the calls and is not changed. Nil: a client of this model's own
	// that keeps idle connections for 90 seconds, limits dialling and TLS to 10
	// seconds each and nothing else, and follows no redirects.
	HTTP *http.Client
	// Header is added to every call and replaces headers of the same name.
	Header http.Header
	// MaxTokensField is the field of a chat's body that caps the output, reasoning
	// included. Empty: "max_completion_tokens" at api.openai.com and "max_tokens"
	// elsewhere.
	MaxTokensField string
	// Extra are further fields of every body, such as "reasoning_effort": `"low"`,
	// or "usage": `{"include": true}` for OpenRouter's older accounting. What a
	// request sets itself wins. Fields that would change how a reply is read or
	// how much may be spent are refused by New.
	Extra map[string]json.RawMessage
}

// ConfigError is a Config that cannot work.
type ConfigError struct {
	Field string // of Config, or "model"
	Fix   string // what is wrong and what to do about it
}

// Error says what happened, and what to do about it where that is known.
func (e *ConfigError) Error() string { return fmt.Sprintf("openai: %s: %s", e.Field, e.Fix) }

// reserved are the fields that Extra must not set; the last two cap the output.
var reserved = [...]string{"model", "messages", "prompt", "stream", "stream_options", "n", "best_of", "max_tokens", "max_completion_tokens"}

type client struct {
	model     string
	info      models.Info
	http      *http.Client
	base      *url.URL
	key       string
	header    http.Header
	maxTokens string
	extra     map[string]json.RawMessage
	server    Server
	official  bool // OpenAI's own API, which refuses fields that it does not know
}

// New returns the model of that name at a server. It does no I/O: a wrong
// address or key shows at the first call. Errors are *ConfigError. The Model is
// safe for concurrent use.
func New(model string, c Config) (models.Model, error) {
	bad := func(field, format string, args ...any) (models.Model, error) {
		return nil, &ConfigError{Field: field, Fix: fmt.Sprintf(format, args...)}
	}
	if strings.TrimSpace(model) == "" {
		return bad("model", "is empty; name a model of the server, see its /models")
	}
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(strings.TrimSpace(c.BaseURL))
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return bad("BaseURL", `%q is no http address; write it like "http://localhost:8000/v1"`, c.BaseURL)
	case strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/completions"):
		return bad("BaseURL", "%q names an endpoint; leave out /chat/completions or /completions", c.BaseURL)
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return bad("Key", "has spaces, line breaks or other characters that no key has; trim it")
	}
	if !slices.Contains(servers, c.Server) {
		return bad("Server", "%q is not known; use one of %q, or leave it empty", c.Server, servers[1:])
	}
	for name, values := range c.Header {
		if name == "" || strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
			return bad("Header", "%q has a line break or no name", name)
		}
	}
	if slices.Contains(reserved[:7], c.MaxTokensField) {
		return bad("MaxTokensField", "%q means something else; most servers say max_tokens", c.MaxTokensField)
	}
	for name, value := range c.Extra {
		switch {
		case slices.Contains(reserved[:], name) || name == c.MaxTokensField:
			return bad("Extra", "%q is set by the client; use the fields of models.Request and Config", name)
		case !json.Valid(value):
			return bad("Extra", "the value of %q is not JSON; quote strings: `\"low\"`", name)
		}
	}
	info := c.Info
	if err := info.Price.Validate(); err != nil {
		return bad("Info.Price", "%v", err)
	}
	if min(info.Context, info.MaxOutput, info.MinOutput) < 0 {
		return bad("Info", "Context, MaxOutput and MinOutput are numbers of tokens; use 0 for unknown")
	}
	if info.Name == "" {
		info.Name = model
	}
	if info.Provider == "" {
		info.Provider = provider(base)
	}
	if !info.Price.Known() {
		info.Price, _ = cost.ListPrice(info.Provider, model)
	}
	if !info.Raw {
		info.Tools, info.Schema = true, true
	}
	m := &client{
		model:     model,
		info:      info,
		http:      c.HTTP,
		base:      base,
		key:       c.Key,
		header:    c.Header.Clone(),
		maxTokens: c.MaxTokensField,
		extra:     maps.Clone(c.Extra),
		server:    c.Server,
		official:  base.Hostname() == "api.openai.com",
	}
	if m.maxTokens == "" {
		m.maxTokens = "max_tokens"
		if m.official {
			m.maxTokens = "max_completion_tokens"
		}
	}
	if m.http == nil {
		m.http = wire.NewHTTP(true)
	}
	return m, nil
}

// Info implements models.Model.
func (m *client) Info() models.Info { return m.info }

// provider names who serves at a host, as price lists do.
func provider(base *url.URL) string {
	switch base.Hostname() {
	case "api.openai.com":
		return "openai"
	case "api.groq.com":
		return "groq"
	case "api.together.xyz", "api.together.ai":
		return "together"
	case "api.deepseek.com":
		return "deepseek"
	case "api.moonshot.ai":
		return "moonshotai"
	}
	return base.Host
}
