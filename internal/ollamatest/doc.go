// Package ollamatest runs a real Ollama server for tests, with a tiny model
// whose outputs are scripted, so that what real servers do is tested without a
// GPU and without downloads.
package ollamatest
