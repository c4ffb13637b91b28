// Package openai is a client for servers that speak OpenAI's chat and
// completion protocol: OpenAI itself, vLLM, SGLang, llama-server, Ollama's /v1,
// Together, OpenRouter and others.
//
//	m, err := openai.New("qwen3-8b", openai.Config{BaseURL: "http://localhost:8000/v1"})
//
// A call ends in a complete response or in a *models.Error; a stream that stops
// before the server said it was done is never a success. Nothing that a server
// sends is trusted: missing usage is reported as unknown, tool calls are put
// together from whatever deltas arrive, and arguments are passed on as written.
//
// Calls are not retried and have no time limit but their context: see
// models.Retry and context.WithTimeout.
//
// The package is tested against reply bodies written after the servers' public
// documentation and bug reports. No paid API was called. Not verified against
// the live services are in particular: OpenAI's strict schemas and its
// max_completion_tokens, OpenRouter's reported cost (usage.cost, is_byok),
// the token ids of vLLM (return_token_ids, vLLM 0.10.2 and later), and the fields
// in which vLLM, SGLang, llama-server and trtllm-serve take the schema of a raw
// completion (see Server).
package openai
