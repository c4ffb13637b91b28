// Package ollama is a client for a local Ollama server.
//
//	m, err := ollama.New("qwen3:8b", ollama.Config{Context: 16384})
//
// A raw prompt (Request.Prompt) goes to /api/generate as it is, and what the
// model writes comes back as it is: this is the way to use models whose prompt
// and calls we render and parse. Messages go to /api/chat, where the server's
// template and parser stand between: a fallback, whose failures are typed.
//
// # What is a success
//
// Only a reply whose last line says that it is done, and that holds text or
// calls. Ollama answers with status 200 and ends the stream without a word when
// a token repeats too often; it drops calls that it cannot read, or files an
// answer under reasoning: each of these is a *models.Error, with what had
// arrived in its Partial. A prompt that does not fit into the context is refused
// (models.ErrContextOverflow) and never cut, by servers that know truncate and
// shift; older ones give themselves away by a prompt as long as the context,
// which is the same error. ErrNoModel, ErrBusy, ErrMemory and ErrEmpty say what
// to do about the failures that are Ollama's own.
//
// # Loading
//
// A server loads a model at its first request, drops the load when that request
// is cancelled, and loads again whenever num_ctx or another option of the runner
// changes. So a Model sends the same ones always, and loads with a request of
// its own that no caller's deadline cuts: one for all callers, bounded by
// Config.LoadTime and ended by Model.Close. A server queues without limit and
// without a sign; a Model has a bounded queue in front of it.
//
// # Limits
//
// Through /api/chat, servers keep only type, description, enum, items,
// properties and anyOf of a tool's schema, and pass numbers through floating
// point, so integers above 2⁵³ change. Text that looks like a control token
// (<|im_end|>, </s>, [INST] …) gets a space after its first character in
// messages, for servers would take it as one; a raw Prompt is the caller's.
// Token ids are not told by Ollama, only log probabilities (Request.Tokens).
// Tested against a server of version 0.17.4, on a CPU; what is said of others
// here follows their public bug reports.
//
// Calls are not retried and have no time limit but their context: see
// models.Retry and context.WithTimeout.
package ollama
