package cost

// Flavor is how a provider's replies say what was used. Providers differ in what
// their counts include: cached input tokens are inside the input of OpenAI's APIs
// and beside that of Anthropic's, reasoning is inside the output of OpenAI's and
// beside that of Google's.
type Flavor string

// The flavors.
const (
	Chat        Flavor = "chat"       // OpenAI's chat completions and completions, and those who serve the same: Groq, Mistral, Together, DeepSeek, OpenRouter (with its reported cost), Azure, vLLM and so on
	Embeddings  Flavor = "embeddings" // OpenAI's embeddings: input alone
	Responses   Flavor = "responses"  // OpenAI's responses
	Realtime    Flavor = "realtime"   // OpenAI's realtime events
	ImageModels Flavor = "images"     // OpenAI's image generation
	Anthropic   Flavor = "anthropic"  // Anthropic's messages, also at AWS, Azure, Google, MiniMax and Moonshot
	Google      Flavor = "google"     // Gemini's generateContent
	Bedrock     Flavor = "bedrock"    // AWS Bedrock's Converse
	Cohere      Flavor = "cohere"     // Cohere's chat and embed: what is billed
	Perplexity  Flavor = "perplexity" // chat, with reasoning and citations beside the completion
	XAI         Flavor = "xai"        // chat, with reasoning beside the completion
	OllamaAPI   Flavor = "ollama"     // Ollama's generate, chat and embed
)

// counter is one count of a reply.
type counter struct {
	path string // alternatives with spaces between; "a.b" is b in a, "a:B" the tokenCount of modality B in the list a
	to   []func(*Usage) *int64
}

type layout struct {
	root     string // the object of the counts; "" = the body
	counters []counter
}

func input(u *Usage) *int64       { return &u.Input }
func cacheRead(u *Usage) *int64   { return &u.CacheRead }
func cacheWrite(u *Usage) *int64  { return &u.CacheWrite }
func cacheHour(u *Usage) *int64   { return &u.CacheWrite1h }
func output(u *Usage) *int64      { return &u.Output }
func reasoning(u *Usage) *int64   { return &u.Reasoning }
func citations(u *Usage) *int64   { return &u.Citations }
func searches(u *Usage) *int64    { return &u.Searches }
func inputAudio(u *Usage) *int64  { return &u.InputMedia.Audio }
func inputImage(u *Usage) *int64  { return &u.InputMedia.Image }
func inputVideo(u *Usage) *int64  { return &u.InputMedia.Video }
func cacheAudio(u *Usage) *int64  { return &u.CacheMedia.Audio }
func cacheImage(u *Usage) *int64  { return &u.CacheMedia.Image }
func cacheVideo(u *Usage) *int64  { return &u.CacheMedia.Video }
func outputAudio(u *Usage) *int64 { return &u.OutputMedia.Audio }
func outputImage(u *Usage) *int64 { return &u.OutputMedia.Image }
func outputVideo(u *Usage) *int64 { return &u.OutputMedia.Video }

func count(path string, to ...func(*Usage) *int64) counter { return counter{path, to} }

var chatCounters = []counter{
	count("prompt_tokens", input),
	count("completion_tokens", output),
	count("prompt_tokens_details.cached_tokens cached_tokens prompt_cache_hit_tokens", cacheRead), // the last is DeepSeek's
	count("prompt_tokens_details.cache_write_tokens", cacheWrite),
	count("prompt_tokens_details.audio_tokens", inputAudio),
	count("completion_tokens_details.audio_tokens", outputAudio),
	count("prompt_tokens_details.image_tokens", inputImage), // OpenRouter, LiteLLM
	count("prompt_tokens_details.video_tokens", inputVideo),
	count("completion_tokens_details.image_tokens", outputImage),
	count("total_tokens"), // Tally.Usage compares it with its parts
}

var layouts = map[Flavor]layout{
	Chat: {"usage", with(chatCounters,
		count("completion_tokens_details.reasoning_tokens reasoning_tokens", reasoning))},
	XAI: {"usage", with(chatCounters,
		count("completion_tokens_details.reasoning_tokens reasoning_tokens", output, reasoning),
		count("cached_prompt_text_tokens", cacheRead))},
	Perplexity: {"usage", with(chatCounters,
		count("reasoning_tokens", output, reasoning),
		count("citation_tokens", output, citations),
		count("num_search_queries", searches))},
	Embeddings: {"usage", []counter{
		count("prompt_tokens input_tokens", input),
	}},
	Responses: {"usage", []counter{
		count("input_tokens", input),
		count("input_tokens_details.cached_tokens", cacheRead),
		count("input_tokens_details.cache_write_tokens", cacheWrite),
		count("output_tokens", output),
		count("output_tokens_details.reasoning_tokens", reasoning),
	}},
	Realtime: {"usage", []counter{
		count("input_tokens", input),
		count("input_token_details.cached_tokens", cacheRead),
		count("input_token_details.audio_tokens", inputAudio),
		count("input_token_details.image_tokens", inputImage),
		count("input_token_details.cached_tokens_details.audio_tokens", cacheAudio),
		count("input_token_details.cached_tokens_details.image_tokens", cacheImage),
		count("output_tokens", output),
		count("output_token_details.audio_tokens", outputAudio),
	}},
	ImageModels: {"usage", []counter{
		count("input_tokens", input),
		count("input_tokens_details.image_tokens", inputImage),
		count("output_tokens", output),
		count("output_tokens_details.image_tokens", outputImage),
	}},
	Anthropic: {"usage", []counter{
		count("input_tokens", input),
		count("cache_read_input_tokens", input, cacheRead),
		count("cache_creation_input_tokens", input, cacheWrite), // of both durations: Tally.Usage takes them apart
		count("cache_creation.ephemeral_1h_input_tokens", cacheHour),
		count("cache_creation.ephemeral_5m_input_tokens"),
		count("output_tokens", output),
		count("output_tokens_details.thinking_tokens", reasoning),
		count("server_tool_use.web_search_requests", searches),
	}},
	Bedrock: {"usage", []counter{
		count("inputTokens", input),
		count("cacheReadInputTokens", input, cacheRead),
		count("cacheWriteInputTokens", input, cacheWrite),
		count("outputTokens", output),
	}},
	Google: {"usageMetadata", []counter{
		count("promptTokenCount", input),
		count("toolUsePromptTokenCount", input),
		count("cachedContentTokenCount", cacheRead),
		count("candidatesTokenCount", output),
		count("thoughtsTokenCount", output, reasoning),
		count("promptTokensDetails:AUDIO", inputAudio),
		count("promptTokensDetails:IMAGE", inputImage),
		count("promptTokensDetails:DOCUMENT", inputImage),
		count("promptTokensDetails:VIDEO", inputVideo),
		count("toolUsePromptTokensDetails:AUDIO", inputAudio),
		count("toolUsePromptTokensDetails:IMAGE", inputImage),
		count("toolUsePromptTokensDetails:DOCUMENT", inputImage),
		count("toolUsePromptTokensDetails:VIDEO", inputVideo),
		count("cacheTokensDetails:AUDIO", cacheAudio),
		count("cacheTokensDetails:IMAGE", cacheImage),
		count("cacheTokensDetails:DOCUMENT", cacheImage),
		count("cacheTokensDetails:VIDEO", cacheVideo),
		count("candidatesTokensDetails:AUDIO", outputAudio),
		count("candidatesTokensDetails:IMAGE", outputImage),
		count("candidatesTokensDetails:DOCUMENT", outputImage),
		count("candidatesTokensDetails:VIDEO", outputVideo),
	}},
	Cohere: {"usage", []counter{
		count("billed_units.input_tokens", input),
		count("billed_units.output_tokens", output),
		count("cached_tokens", cacheRead),
	}},
	OllamaAPI: {"", []counter{
		count("prompt_eval_count", input),
		count("eval_count", output),
	}},
}

func with(base []counter, more ...counter) []counter {
	return append(base[:len(base):len(base)], more...)
}
