package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// at is a model for raw prompts at a server.
func at(s Server) Config {
	return Config{BaseURL: "http://localhost:8000/v1", Server: s, Info: models.Info{Raw: true, Schema: true, Tools: true}}
}

// Each server finds the schema where it looks for it.
func TestSchemaForEachServer(t *testing.T) {
	const schema = `{"type":"object","properties":{"b":{"const":"<x>"},"a":{}}}`
	const wrapped = `"response_format":{"json_schema":{"name":"output","schema":` + schema + `},"type":"json_schema"}`
	for server, want := range map[Server][2]string{ // with Prompt, with Messages
		"":          {wrapped, wrapped},
		VLLM:        {`"structured_outputs":{"json":` + schema + `}`, wrapped},
		VLLMGuided:  {`"guided_json":` + schema, wrapped},
		SGLang:      {`"json_schema":"{\"type\":\"object\",\"properties\":{\"b\":{\"const\":\"<x>\"},\"a\":{}}}"`, wrapped},
		LlamaServer: {`"json_schema":` + schema, wrapped},
		TensorRTLLM: {`"response_format":{"schema":` + schema + `,"type":"json"}`, `"response_format":{"schema":` + schema + `,"type":"json"}`},
	} {
		m := mustNew(t, "m", at(server))
		for i, r := range []models.Request{{Prompt: "x"}, {Messages: hello}} {
			_, plain, err := m.body(&r)
			if err != nil {
				t.Fatal(err)
			}
			r.Schema = json.RawMessage(schema)
			_, body, err := m.body(&r)
			if err != nil {
				t.Fatal(err)
			}
			var got, base map[string]json.RawMessage
			if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal(plain, &base)); err != nil {
				t.Fatal(err)
			}
			var added []string
			for name, value := range got {
				if _, ok := base[name]; !ok {
					added = append(added, fmt.Sprintf("%q:%s", name, value))
				}
			}
			if s := strings.Join(added, ","); s != want[i] {
				t.Errorf("%q: got %s, want %s", server, s, want[i])
			}
		}
	}
}

// trtllm-serve refuses fields that it does not know.
func TestTokensForEachServer(t *testing.T) {
	for server, want := range map[Server]bool{"": true, VLLM: true, SGLang: true, LlamaServer: true, TensorRTLLM: false} {
		_, body, err := mustNew(t, "m", at(server)).body(&models.Request{Prompt: "x", Tokens: true})
		if err != nil || strings.Contains(string(body), "return_token_ids") != want || !strings.Contains(string(body), `"logprobs":1`) {
			t.Errorf("%q: %s, %v", server, body, err)
		}
	}
}

func TestUnknownServer(t *testing.T) {
	_, err := New("m", Config{Server: "ollama"})
	var e *ConfigError
	if !errors.As(err, &e) || e.Field != "Server" || !strings.Contains(e.Fix, `"llama-server"`) {
		t.Error(err)
	}
}

// What a server refuses because of how it was started or addressed is named.
func TestMisfits(t *testing.T) {
	detail := func(message string) string {
		b, _ := json.Marshal(map[string]any{"object": "error", "message": message, "type": "BadRequestError", "code": 400})
		return string(b)
	}
	nested := func(kind, message string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": 400}})
		return string(b)
	}
	tools := models.Request{Messages: hello, Tools: []models.ToolDef{{Name: "f"}}}
	schema := models.Request{Prompt: "x", Schema: json.RawMessage(`{}`)}
	plain := models.Request{Prompt: "x"}
	for _, tt := range []struct {
		name   string
		server Server
		r      models.Request
		status int
		body   string
		is     error
		retry  bool
		say    string
	}{
		{"vLLM without its flags for tools", VLLM, tools, 400, nested("BadRequestError", `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`), ErrServer, false, "--tool-call-parser hermes"},
		{"vLLM without its flags for a forced tool", "", tools, 400, nested("BadRequestError", `tool_choice="required" requires --tool-call-parser to be set`), ErrServer, false, "--tool-call-parser hermes"},
		{"llama-server without its flag for tools", "", tools, 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, ErrServer, false, "with --jinja"},
		{"another model", "", plain, 404, file(t, "error_404_model.json"), ErrServer, false, "/models"},
		{"another model, OpenAI", "", plain, 404, `{"error":{"message":"No access to nope","code":"model_not_found"}}`, ErrServer, false, "/models"},
		{"another model, Ollama's /v1", "", plain, 404, `{"error":{"message":"model 'nope' not found","type":"api_error"}}`, ErrServer, false, "/models"},
		{"something else that is not there", "", plain, 404, `{"error":{"message":"adapter not found"}}`, nil, false, "adapter"},
		{"something of the model that is not there", "", plain, 400, `{"error":{"message":"model template not found"}}`, nil, false, "template"},
		{"a field that trtllm-serve does not know", "", plain, 400, detail(`[{'type': 'extra_forbidden', 'loc': ('body', 'return_token_ids'), 'msg': 'Extra inputs are not permitted', 'input': True}]`), ErrServer, false, "Config.Server"},
		{"a schema in such a field", VLLMGuided, schema, 400, detail(`[{'type': 'extra_forbidden', 'loc': ('body', 'guided_json'), 'msg': 'Extra inputs are not permitted', 'input': {}}]`), ErrSchema, false, "it does not know the field: set Config.Server"},
		{"a schema in such a field, OpenAI", "", schema, 400, nested("invalid_request_error", "Unrecognized request argument supplied: response_format"), ErrSchema, false, "it does not know the field"},
		{"a schema without trtllm-serve's backend", TensorRTLLM, schema, 400, detail("Request is specified with GuidedDecodingParams, but GuidedDecoder is not setup. Please provide a valid GuidedDecodingConfig to setup GuidedDecoder."), ErrSchema, false, "guided_decoding_backend: xgrammar"},
		{"a schema without SGLang's backend", SGLang, schema, 400, nested("BadRequestError", "Grammar-based generation (json_schema, regex, ebnf, structural_tag) is not supported when the server is launched with --grammar-backend none"), ErrSchema, false, "without --grammar-backend none"},
		{"a schema that is too hard", VLLM, schema, 400, nested("BadRequestError", "The provided JSON schema contains features not supported by xgrammar."), ErrSchema, false, "simplify the schema"},
		{"a schema that llama-server cannot convert", LlamaServer, schema, 500, `{"error":{"code":500,"message":"failed to parse grammar","type":"server_error"}}`, ErrSchema, false, "simplify the schema"},
		{"a grammar that nobody sent", "", plain, 500, `{"error":{"message":"failed to parse grammar"}}`, nil, true, ""},
		{"a busy server that speaks of grammar", "", schema, 503, `{"error":{"message":"grammar queue is full"}}`, nil, true, ""},
		{"too small a context, vLLM", VLLM, plain, 400, file(t, "error_400_context.json"), models.ErrContextOverflow, false, "vLLM with a larger --max-model-len"},
		{"too small a context, older vLLM", VLLMGuided, plain, 400, detail("The decoder prompt (length 12324) is longer than the maximum model length of 8192."), models.ErrContextOverflow, false, "--max-model-len, or set Config.Info.Context"},
		{"too large an output, vLLM", VLLM, plain, 400, nested("BadRequestError", "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 11 input tokens (8000 > 4096 - 11)."), models.ErrContextOverflow, false, "--max-model-len"},
		{"too small a context, llama-server", "", plain, 400, file(t, "error_400_llamaserver.json"), models.ErrContextOverflow, false, "a larger -c, which its --parallel slots share"},
		{"too small a context, SGLang", SGLang, plain, 400, detail("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate."), models.ErrContextOverflow, false, "--context-length"},
		{"too small a context, TensorRT-LLM", TensorRTLLM, plain, 400, detail("`default_max_tokens` (-152) must be greater than 0, `default_max_tokens` (-152) = max_seq_len (8192) - `splited_prompt_len` (8000) - `query_token_len` (344)"), models.ErrContextOverflow, false, "--max_seq_len"},
		{"too small a context, TensorRT engine", TensorRTLLM, plain, 400, detail("The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed max_seq_len (4096)"), models.ErrContextOverflow, false, "--max_seq_len"},
		{"too small a context, somewhere", "", schema, 400, file(t, "error_400_context.json"), models.ErrContextOverflow, false, `exceeds the context: {"error"`},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				r := tt.r
				if stream {
					r.OnDelta = func(models.Delta) { t.Error("a delta of an error") }
				}
				_, err := serve(t, at(tt.server), say(tt.status, tt.body)).Generate(t.Context(), &r)
				var e *models.Error
				if !errors.As(err, &e) || e.Status != tt.status || !e.Sent || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.say) {
					t.Fatalf("got %v: %+v", err, e)
				}
				for _, is := range []error{ErrServer, ErrSchema, models.ErrContextOverflow} {
					if errors.Is(err, is) != (is == tt.is) {
						t.Errorf("%v is %v", err, is)
					}
				}
			})
		}
	}
}

// A server may notice only when it has answered with status 200.
func TestMisfitInAReply(t *testing.T) {
	for _, tt := range []struct {
		message string
		is      error
		say     string
	}{
		{"Failed to compile json grammar: bad", ErrSchema, "simplify the schema"},
		{"The input (9 tokens) is longer than the model's context length (8 tokens).", models.ErrContextOverflow, "--context-length"},
	} {
		r := models.Request{Prompt: "x", Schema: json.RawMessage(`{}`), OnDelta: func(models.Delta) {}}
		body := chunk(fmt.Sprintf(`{"error":{"object":"error","message":%q,"type":"BadRequestError","code":400}}`, tt.message)) + done
		_, err := serve(t, at(SGLang), say(200, body)).Generate(t.Context(), &r)
		var e *models.Error
		if !errors.As(err, &e) || !errors.Is(err, tt.is) || e.Retryable || e.Status != 400 || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("got %v: %+v", err, e)
		}
	}
}

// Servers that do not know the field of a schema ignore it and answer. That is
// no success.
func TestSchemaIgnored(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server Server
		text   string
		finish string
		say    string // "" = it is taken
	}{
		{"obeyed", "", `{"a": 1}`, "stop", ""},
		{"with space around", "", "\n\n{\"a\": 1}\n", "stop", ""},
		{"a string", "", `"a"`, "stop", ""},
		{"with the end of what the prompt began", "", "{\"name\": \"f\"}\n</tool_call>", "stop", ""},
		{"cut by the cap", "", `{"a": `, "length", ""},
		{"ignored", "", `Sure! {"a": 1}`, "stop", "set Config.Server to what runs there"},
		{"empty", "", "", "stop", "set Config.Server"},
		{"ended in its midst", "", `{"a": `, "stop", "no stop string"},
		{"ignored by vLLM", VLLM, "Sure!", "stop", "VLLMGuided if it is older"},
		{"ignored by old vLLM", VLLMGuided, "Sure!", "stop", "to VLLM if it is"},
		{"ignored by trtllm-serve", TensorRTLLM, "Sure!", "stop", "guided_decoding_backend"},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				text, _ := json.Marshal(tt.text)
				body := fmt.Sprintf(`{"choices":[{"text":%s,"finish_reason":%q}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, text, tt.finish)
				r := models.Request{Prompt: "x", Schema: json.RawMessage(`{}`)}
				if stream {
					body = chunk(body) + done
					r.OnDelta = func(models.Delta) {}
				}
				m := serve(t, at(tt.server), say(200, body))
				resp, err := m.Generate(t.Context(), &r)
				if tt.say == "" {
					if err != nil || resp.Text != tt.text {
						t.Errorf("got %+v, %v", resp, err)
					}
					return
				}
				var e *models.Error
				if !errors.As(err, &e) || !errors.Is(err, ErrSchema) || e.Retryable || !e.Sent || !strings.Contains(err.Error(), tt.say) {
					t.Fatalf("got %v: %+v", err, e)
				}
				if e.Partial == nil || e.Partial.Text != tt.text || !e.Partial.Usage.Known || e.Partial.Usage.Output != 2 {
					t.Errorf("it cannot be billed: %+v", e.Partial)
				}
				// Without a schema any text is one.
				r.Schema = nil
				if resp, err := m.Generate(t.Context(), &r); err != nil || resp.Text != tt.text {
					t.Errorf("without a schema: %+v, %v", resp, err)
				}
			})
		}
	}
	t.Run("a chat may refuse", func(t *testing.T) {
		m := serve(t, at(""), say(200, `{"choices":[{"message":{"content":"I would rather not."},"finish_reason":"stop"}]}`))
		if _, err := m.Generate(t.Context(), &models.Request{Messages: hello, Schema: json.RawMessage(`{}`)}); err != nil {
			t.Error(err)
		}
	})
}
