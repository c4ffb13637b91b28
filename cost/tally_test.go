package cost_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name   string
		flavor cost.Flavor
		body   string
		want   cost.Usage
	}{
		{"no counts", cost.Chat, `{"choices":[]}`, cost.Usage{}},
		{"null counts", cost.Chat, `{"usage":null}`, cost.Usage{}},
		{"counts of another kind", cost.Chat, `{"usage":[1]}`, cost.Usage{}},
		{"zero is said", cost.Chat, `{"usage":{"prompt_tokens":0}}`, cost.Usage{Known: true}},
		{"Groq's stream", cost.Chat, `{"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}`, cost.Usage{Input: 3, Output: 4, Known: true}},
		{"cache written", cost.Chat, `{"usage":{"prompt_tokens":30,"prompt_tokens_details":{"cache_write_tokens":20}}}`, cost.Usage{Input: 30, CacheWrite: 20, Known: true}},
		{"Moonshot's cache", cost.Chat, `{"usage":{"prompt_tokens":30,"cached_tokens":20}}`, cost.Usage{Input: 30, CacheRead: 20, Known: true}},
		{"audio", cost.Chat, `{"usage":{"prompt_tokens":30,"completion_tokens":9,"prompt_tokens_details":{"audio_tokens":20},"completion_tokens_details":{"audio_tokens":5}}}`, cost.Usage{Input: 30, Output: 9, InputMedia: cost.Media{Audio: 20}, OutputMedia: cost.Media{Audio: 5}, Known: true}},
		{"embeddings", cost.Embeddings, `{"usage":{"prompt_tokens":30,"completion_tokens":9,"total_tokens":30}}`, cost.Usage{Input: 30, Known: true}},
		{"xAI's reasoning is beside the completion", cost.XAI, `{"usage":{"prompt_tokens":30,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":100}}}`, cost.Usage{Input: 30, Output: 109, Reasoning: 100, Known: true}},
		{"Perplexity", cost.Perplexity, `{"usage":{"prompt_tokens":30,"completion_tokens":9,"reasoning_tokens":100,"citation_tokens":50,"num_search_queries":2}}`, cost.Usage{Input: 30, Output: 159, Reasoning: 100, Citations: 50, Searches: 2, Known: true}},
		{"realtime", cost.Realtime, `{"type":"response.done","response":{"usage":{"input_tokens":30,"output_tokens":9,"input_token_details":{"audio_tokens":20,"image_tokens":4,"cached_tokens":12,"cached_tokens_details":{"audio_tokens":10,"image_tokens":2}},"output_token_details":{"audio_tokens":5}}}}`,
			cost.Usage{Input: 30, CacheRead: 12, InputMedia: cost.Media{Audio: 20, Image: 4}, CacheMedia: cost.Media{Audio: 10, Image: 2}, Output: 9, OutputMedia: cost.Media{Audio: 5}, Known: true}},
		{"images", cost.ImageModels, `{"data":[{},{}],"usage":{"input_tokens":30,"input_tokens_details":{"image_tokens":20},"output_tokens":9,"output_tokens_details":{"image_tokens":8}}}`,
			cost.Usage{Input: 30, InputMedia: cost.Media{Image: 20}, Output: 9, OutputMedia: cost.Media{Image: 8}, Images: 2, Known: true}},
		{"Google", cost.Google, `{"usageMetadata":{"promptTokenCount":30,"toolUsePromptTokenCount":5,"cachedContentTokenCount":12,"candidatesTokenCount":9,"thoughtsTokenCount":7,"serviceTier":"FLEX",
			"promptTokensDetails":[{"modality":"TEXT","tokenCount":1},{"modality":"IMAGE","tokenCount":4},{"modality":"DOCUMENT","tokenCount":5},{"modality":"VIDEO","tokenCount":6}],
			"toolUsePromptTokensDetails":[{"modality":"AUDIO","tokenCount":3}],"cacheTokensDetails":[{"modality":"VIDEO","tokenCount":2},7],"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":8}]}}`,
			cost.Usage{Input: 35, CacheRead: 12, InputMedia: cost.Media{Audio: 3, Image: 9, Video: 6}, CacheMedia: cost.Media{Video: 2}, Output: 16, Reasoning: 7, OutputMedia: cost.Media{Image: 8}, Service: "flex", Known: true}},
		{"Bedrock's stream", cost.Bedrock, `{"metadata":{"usage":{"inputTokens":3,"outputTokens":4}}}`, cost.Usage{Input: 3, Output: 4, Known: true}},
		{"Cohere's chat", cost.Cohere, `{"usage":{"billed_units":{"input_tokens":3,"output_tokens":4},"tokens":{"input_tokens":300}}}`, cost.Usage{Input: 3, Output: 4, Known: true}},
		{"Cohere's embed", cost.Cohere, `{"meta":{"billed_units":{"input_tokens":3}}}`, cost.Usage{Input: 3, Known: true}},
		{"Ollama", cost.OllamaAPI, `{"done":true,"prompt_eval_count":3,"eval_count":4}`, cost.Usage{Input: 3, Output: 4, Known: true}},
		{"Anthropic's service", cost.Anthropic, `{"usage":{"input_tokens":3,"output_tokens":4,"service_tier":"batch"}}`, cost.Usage{Input: 3, Output: 4, Service: "batch", Known: true}},
		{"written for an hour, twice as much as in all", cost.Anthropic, `{"usage":{"input_tokens":0,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":20},"output_tokens":0}}`, cost.Usage{Input: 10, CacheWrite1h: 20, Known: true}},
	} {
		u, err := cost.Extract(c.flavor, []byte(c.body))
		if err != nil || u != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, u, err, c.want)
		}
	}
}

func TestExtractRefuses(t *testing.T) {
	for _, body := range []string{``, `x`, `[]`, `"usage"`, `{"usage":{"prompt_tokens":1}`} {
		u, err := cost.Extract(cost.Chat, []byte(body))
		var bad *cost.UsageError
		if !errors.As(err, &bad) || bad.Unwrap() == nil || !strings.Contains(err.Error(), "chat reply") || u != (cost.Usage{}) {
			t.Errorf("%q: %+v, %v", body, u, err)
		}
	}
	var invalid *cost.InvalidError
	if _, err := cost.Extract("telepathy", []byte(`{}`)); !errors.As(err, &invalid) {
		t.Error(err)
	}
}

// An event replaces what it states; an empty one at the end does not.
func TestTallyOfAStream(t *testing.T) {
	tally := cost.Tally{Flavor: cost.Anthropic}
	for _, s := range []struct {
		event string
		want  cost.Usage
	}{
		{`{"message":{"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}`, cost.Usage{Input: 12, CacheRead: 7, Output: 1, Known: true}},
		{`{"type":"ping"}`, cost.Usage{Input: 12, CacheRead: 7, Output: 1, Known: true}},
		{`{"usage":{"output_tokens":20}}`, cost.Usage{Input: 12, CacheRead: 7, Output: 20, Known: true}},
		{`{"usage":{"cache_read_input_tokens":0,"output_tokens":21}}`, cost.Usage{Input: 5, Output: 21, Known: true}}, // zero is a value
		{`{"usage":{"output_tokens":0}}`, cost.Usage{Input: 5, Known: true}},
		{`{"usage":{"input_tokens":0,"output_tokens":0}}`, cost.Usage{Input: 5, Known: true}},
	} {
		if err := tally.Add([]byte(s.event)); err != nil {
			t.Fatal(err)
		}
		if u := tally.Usage(); u != s.want {
			t.Errorf("after %s: %+v, want %+v", s.event, u, s.want)
		}
	}
}

var flavors = []cost.Flavor{cost.Chat, cost.Embeddings, cost.Responses, cost.Realtime, cost.ImageModels, cost.Anthropic, cost.Google, cost.Bedrock, cost.Cohere, cost.Perplexity, cost.XAI, cost.OllamaAPI}

// Whatever a server says, the usage has a price that is neither negative nor a
// panic, and saying it twice changes nothing.
func FuzzExtract(f *testing.F) {
	for i, s := range []string{
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":1,"audio_tokens":9},"cost":1e-7,"is_byok":true,"cost_details":{"upstream_inference_cost":9e6}}}`,
		`{"message":{"usage":{"input_tokens":5,"cache_creation_input_tokens":1e30,"cache_creation":{"ephemeral_1h_input_tokens":-1e30}}}}`,
		`{"usageMetadata":{"promptTokenCount":"30","candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":8}]}}`,
		`{"output":[{"type":"web_search_call"}],"service_tier":"flex","data":[1]}`,
	} {
		f.Add(uint8(i), []byte(s))
	}
	p := set(rates(3, 0.3, 3.75, 15), func(p *cost.Price) { p.InputMedia.Audio, p.OutputMedia.Image = cost.Per(40), cost.Per(120) })
	f.Fuzz(func(t *testing.T, flavor uint8, b []byte) {
		tally := cost.Tally{Flavor: flavors[int(flavor)%len(flavors)]}
		err := tally.Add(b)
		u := tally.Usage()
		if got, _, _ := p.Of(u); got < 0 {
			t.Fatalf("%v for %+v", got, u)
		}
		if again := tally.Add(b); (again == nil) != (err == nil) {
			t.Fatalf("%v, then %v", err, again)
		}
		v := tally.Usage()
		if (u.USD == nil) != (v.USD == nil) || u.USD != nil && *u.USD != *v.USD {
			t.Fatal("the cost is another one at the second time")
		}
		if u.USD, v.USD = nil, nil; u != v {
			t.Fatalf("%+v, then %+v", u, v)
		}
		if c := tally.Cut(100, 10); !c.Known || !c.Estimated || c.Output < 10 {
			t.Fatalf("%+v", c)
		}
	})
}
