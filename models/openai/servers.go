package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Server is the software behind a BaseURL, named where it differs beyond the
// protocol: in how it takes a schema, in what it refuses, and in how it is
// started. Servers that do not know a field mostly ignore it and say nothing.
type Server string

// The servers that are known.
const (
	// VLLM is vLLM 0.11 and later.
	VLLM Server = "vllm"
	// VLLMGuided is vLLM before 0.12, such as the 0.9.2 that Orchestrator-8B's own
	// scripts use: with a raw prompt it ignores response_format, and it does not
	// know the field of later versions.
	VLLMGuided Server = "vllm-guided"
	// SGLang is SGLang.
	SGLang Server = "sglang"
	// LlamaServer is llama.cpp's llama-server.
	LlamaServer Server = "llama-server"
	// TensorRTLLM is trtllm-serve. It obeys a schema only if it was started with a
	// guided_decoding_backend, and else ignores it.
	TensorRTLLM Server = "tensorrt-llm"
)

var servers = []Server{"", VLLM, VLLMGuided, SGLang, LlamaServer, TensorRTLLM}

var (
	// ErrServer means that the server must be started differently, or another
	// Config be used: the error says which. It is the cause of a *models.Error.
	ErrServer = errors.New("the server is not set up for this")
	// ErrSchema means that the server refused Request.Schema, or answered a raw
	// prompt without obeying it. It is the cause of a *models.Error.
	ErrSchema = errors.New("the server does not obey the schema")
)

// constrain adds the schema of r to a body, where the server looks for it.
func (m *client) constrain(f map[string]any, r *models.Request) {
	switch raw := r.Prompt != ""; {
	case m.server == TensorRTLLM:
		// Version 1.2.1 takes the wrapper of OpenAI's form for the schema.
		f["response_format"] = map[string]any{"type": "json", "schema": r.Schema}
	case raw && m.server == VLLM:
		f["structured_outputs"] = map[string]any{"json": r.Schema}
	case raw && m.server == VLLMGuided:
		f["guided_json"] = r.Schema
	case raw && m.server == SGLang:
		f["json_schema"] = string(r.Schema)
	case raw && m.server == LlamaServer:
		f["json_schema"] = r.Schema
	default:
		f["response_format"] = map[string]any{"type": "json_schema", "json_schema": schemaOut{Name: "output", Schema: r.Schema, Strict: strict(r.Schema)}}
	}
}

// obeyed returns an error if a raw completion that ended by itself does not
// begin with JSON: the server ignored the schema. What follows the JSON is not
// looked at, as a server that ignores the schema may still write what the prompt
// had begun.
func (m *client) obeyed(r *models.Request, finish, text string) error {
	if r.Prompt == "" || len(r.Schema) == 0 || finish != "stop" {
		return nil
	}
	var first json.RawMessage
	if json.NewDecoder(strings.NewReader(text)).Decode(&first) == nil {
		return nil
	}
	fix := "set Config.Server to what runs there"
	switch m.server {
	case TensorRTLLM:
		fix = "start trtllm-serve with guided_decoding_backend: xgrammar in its extra options"
	case VLLM:
		fix = "set Config.Server to VLLMGuided if it is older than 0.11"
	case VLLMGuided:
		fix = "set Config.Server to VLLM if it is 0.12 or later"
	}
	return fmt.Errorf("%w: the text is not JSON: %s, and see that no stop string cuts it", ErrSchema, fix)
}

// misfit returns why a refused request and the server do not go together, or
// nil if that is not why.
func (m *client) misfit(c complaint, status int, r *models.Request) error {
	message := strings.ToLower(c.message)
	says := func(any ...string) bool {
		return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(message, s) })
	}
	switch {
	case says("--enable-auto-tool-choice", "--tool-call-parser"):
		return fmt.Errorf("%w: start vLLM with --enable-auto-tool-choice --tool-call-parser hermes (the parser for Qwen3 and Orchestrator-8B), or write the tools into Request.Prompt", ErrServer)
	case says("--jinja"):
		return fmt.Errorf("%w: start llama-server with --jinja, or write the tools into Request.Prompt", ErrServer)
	case len(r.Schema) > 0 && says("grammar", "guideddecod", "guided decod", "json schema", "json_schema", "response_format", "structured_outputs", "structured output", "guided_json"):
		return fmt.Errorf("%w: %s", ErrSchema, m.schemaFix(says))
	case says("extra_forbidden", "extra inputs are not permitted"):
		return fmt.Errorf("%w: it refuses a field that it does not know: set Config.Server to what runs there, and check Config.Extra", ErrServer)
	case status == 404 && (c.code == "model_not_found" || says("model") && says("does not exist", "not found")):
		return fmt.Errorf("%w: it serves another model: give New a name from its /models list (vLLM sets it with --served-model-name)", ErrServer)
	}
	return nil
}

// schemaFix says what to do about a schema that was refused.
func (m *client) schemaFix(says func(...string) bool) string {
	switch {
	case says("extra_forbidden", "extra inputs are not permitted", "unrecognized request argument", "unknown parameter"):
		return "it does not know the field: set Config.Server to what runs there"
	case says("--grammar-backend"):
		return "start SGLang without --grammar-backend none"
	case says("guideddecoder", "guided decoding is not enabled", "guided_decoding_backend"):
		return "start trtllm-serve with guided_decoding_backend: xgrammar in its extra options"
	}
	return "simplify the schema"
}

// tooLong is the cause of an error whose complaint is that the prompt, with the
// output that it asks for, exceeds the context. It says how to get a larger
// context where that is known.
func (m *client) tooLong(c complaint) error {
	server := m.server
	if c.kind == "exceed_context_size_error" { // nobody else says so
		server = LlamaServer
	}
	flag := ""
	switch server {
	case VLLM, VLLMGuided:
		flag = "vLLM with a larger --max-model-len"
	case SGLang:
		flag = "SGLang with a larger --context-length"
	case LlamaServer:
		flag = "llama-server with a larger -c, which its --parallel slots share"
	case TensorRTLLM:
		flag = "trtllm-serve with a larger --max_seq_len and --max_num_tokens"
	default:
		return models.ErrContextOverflow
	}
	return fmt.Errorf("%w: start %s, or set Config.Info.Context to what it has", models.ErrContextOverflow, flag)
}

// tellsIDs reports whether the server takes, or at least ignores, the field that
// asks for token ids.
func (m *client) tellsIDs() bool { return !m.official && m.server != TensorRTLLM }
