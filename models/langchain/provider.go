package langchain

import (
	"reflect"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// Provider is the package of langchaingo that a model comes from: each keeps
// and drops other parts of a request.
type Provider string

// The providers that are known. OpenAI, Anthropic and Ollama are tested on the
// wire; of GoogleAI (vertex too) the source was read.
const (
	OpenAI    Provider = "openai"    // and servers that speak its protocol
	Anthropic Provider = "anthropic" // over the messages API
	Ollama    Provider = "ollama"
	GoogleAI  Provider = "googleai"
	// Other is a model of which nothing is known: it gets messages as the OpenAI
	// provider does, all its choices are one reply, a missing stop reason means
	// that it was done, and Config.Honours has to say what it obeys. It must
	// return when its context is done.
	Other Provider = "other"
)

// Feature is a set of those parts of a request that some providers drop without
// a word.
type Feature uint8

// The features.
const (
	Cap     Feature = 1 << iota // Request.MaxOutput. Without it a call has no bound and cannot be metered
	TopP                        // Request.TopP
	TopK                        // Request.TopK
	Seed                        // Request.Seed
	Stop                        // Request.Stop
	Tools                       // Request.Tools, and calls and their results in the history
	Streams                     // streaming; without it all text is one delta
)

// traits is how to deal with a provider.
type traits struct {
	honours     Feature
	temperature float64 // sent where the request sets none, as the server's own default; 0 = nothing is sent
	capAlways   bool    // the API wants a cap, and langchaingo makes one up
	onePart     bool    // only the first part of an assistant's message is sent
	joinSystem  bool    // of several system messages one survives, or they run into each other
	joinResults bool    // the results of one turn belong in one message
	rawSchema   bool    // schemas are encoded as they are, so their key order can be kept
	blocks      bool    // the choices are parts of one reply, not alternatives
	plainTools  bool    // with tools, streams are not to be trusted
	stops       bool    // a complete reply always has a stop reason
	stopsStream bool    // so has a complete stream
}

var providers = map[Provider]traits{
	OpenAI: {
		honours: Cap | Seed | Stop | Tools | Streams, temperature: 1,
		rawSchema: true, plainTools: true, stopsStream: true,
	},
	Anthropic: {
		honours: Cap | TopP | Stop | Tools, temperature: 1,
		capAlways: true, onePart: true, joinSystem: true, rawSchema: true, blocks: true, stops: true, stopsStream: true,
	},
	Ollama: {honours: Cap | TopP | TopK | Seed | Stop | Streams, temperature: 0.8},
	GoogleAI: {
		honours:    Cap | TopP | TopK | Stop | Streams,
		joinSystem: true, joinResults: true, stops: true, stopsStream: true,
	},
	Other: {blocks: true},
}

const providerPath = "github.com/tmc/langchaingo/llms/"

// detect names the provider that m's type comes from, or "".
func detect(m llms.Model) string {
	t := reflect.TypeOf(m)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return providerOf(t.PkgPath())
}

// providerOf is the first element of a package's path below langchaingo's llms,
// so googleai for vertex too; PaLM has another protocol than its neighbours.
func providerOf(path string) string {
	rest, ok := strings.CutPrefix(path, providerPath)
	switch {
	case !ok:
		return ""
	case rest == "googleai/palm":
		return "palm"
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
