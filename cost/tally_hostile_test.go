package cost_test

import (
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Counts at odd places, and counts that are none: what is billed is never less
// than what the reply says was used.
func TestOddCountsAreNotFree(t *testing.T) {
	image := set(rates(2, -1, -1, 12), func(p *cost.Price) { p.OutputMedia.Image, p.InputMedia.Image = cost.Per(120), cost.Per(4) })
	for _, c := range []struct {
		name   string
		flavor cost.Flavor
		events []string
		price  cost.Price
		want   cost.Usage
		usd    string
	}{
		{"a prompt is not taken back by a zero beside the output", cost.Anthropic, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":2500,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"input_tokens":0,"output_tokens":64}}`,
		}, rates(3, 0.3, 3.75, 15), cost.Usage{Input: 2500, Output: 64, Known: true}, "0.00846"},
		{"nor by zeros of all its parts", cost.Anthropic, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":2500,"cache_read_input_tokens":100,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":64}}`,
		}, rates(3, 0.3, 3.75, 15), cost.Usage{Input: 2600, CacheRead: 100, Output: 64, Known: true}, "0.00849"},
		{"but by a prompt that was read from the cache", cost.Anthropic, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":2500,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"input_tokens":0,"cache_read_input_tokens":2500,"output_tokens":64}}`,
		}, rates(3, 0.3, 3.75, 15), cost.Usage{Input: 2500, CacheRead: 2500, Output: 64, Known: true}, "0.00171"},
		{"a total that is more than its parts has output that they leave out, as Google's chat has its thoughts", cost.Chat, []string{
			`{"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}}`,
		}, rates(1.25, -1, -1, 10), cost.Usage{Input: 35, Output: 74, Known: true}, "0.00078375"},
		{"a total that is less than its parts is not believed", cost.Chat, []string{
			`{"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":40}}`,
		}, rates(1.25, -1, -1, 10), cost.Usage{Input: 35, Output: 12, Known: true}, "0.00016375"},
		{"image tokens of a chat", cost.Chat, []string{
			`{"usage":{"prompt_tokens":10,"completion_tokens":1345,"total_tokens":1355,"completion_tokens_details":{"image_tokens":1120,"reasoning_tokens":225},"prompt_tokens_details":{"image_tokens":4,"video_tokens":1}}}`,
		}, image, cost.Usage{Input: 10, Output: 1345, Reasoning: 225, InputMedia: cost.Media{Image: 4, Video: 1}, OutputMedia: cost.Media{Image: 1120}, Known: true}, "0.137128"},
		{"the end of Cohere's stream", cost.Cohere, []string{
			`{"type":"message-start","id":"1","delta":{"message":{"role":"assistant"}}}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":30,"output_tokens":40},"tokens":{"input_tokens":300,"output_tokens":40}}}}`,
		}, rates(1, -1, -1, 2), cost.Usage{Input: 30, Output: 40, Known: true}, "0.00011"},
		{"a body that begins with a line end", cost.OllamaAPI, []string{
			"\r\n {\"done\":true,\"prompt_eval_count\":3,\"eval_count\":4}",
		}, rates(1, -1, -1, 2), cost.Usage{Input: 3, Output: 4, Known: true}, "0.000011"},
		{"a negative prompt is not known to be free", cost.Chat, []string{
			`{"usage":{"prompt_tokens":-1,"completion_tokens":500}}`,
		}, rates(1, -1, -1, 2), cost.Usage{Input: -1, Output: 500}, "0.001"},
		{"nor is a negative output", cost.Chat, []string{
			`{"usage":{"prompt_tokens":100,"completion_tokens":-7}}`,
		}, rates(1, -1, -1, 2), cost.Usage{Input: 100, Output: -7}, "0.0001"},
		{"nor a part of it that is counted beside", cost.Google, []string{
			`{"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"thoughtsTokenCount":-5}}`,
		}, rates(1, -1, -1, 2), cost.Usage{Input: 100, Output: 5, Reasoning: -5}, "0.00011"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := cost.Tally{Flavor: c.flavor}
			for _, e := range c.events {
				if err := tally.Add([]byte(e)); err != nil {
					t.Fatal(err)
				}
			}
			u := tally.Usage()
			if u != c.want {
				t.Errorf("%+v, want %+v", u, c.want)
			}
			if usd, _, _ := c.price.Of(u); usd.String() != "$"+c.usd {
				t.Errorf("costs %v, want %s", usd, c.usd)
			}
		})
	}
}

// A count that nobody can mean is unknown, so the whole hold is charged.
func TestANegativePromptIsChargedItsHold(t *testing.T) {
	u, err := cost.Extract(cost.Chat, []byte(`{"usage":{"prompt_tokens":-100000,"completion_tokens":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.NewMeter("x", cost.Budget{USD: cost.USD(1)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Reserve(cost.Estimate{Name: "x", Priced: true, Floor: cost.Spend{USD: cost.Dollars(0.1)}, Worst: cost.Spend{USD: cost.Dollars(0.1)}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := h.Settle(u, cost.Tokens(1, 2), nil)
	if err != nil || row.USD != cost.Dollars(0.1) || row.Basis != cost.Reserved {
		t.Errorf("%+v, %v", row, err)
	}
}

// Counts takes an object however it was cut out.
func TestCountsWithSpaceAround(t *testing.T) {
	tally := cost.Tally{Flavor: cost.Chat}
	tally.Counts([]byte("\n {\"prompt_tokens\":3,\"completion_tokens\":4} "))
	if u := tally.Usage(); u != (cost.Usage{Input: 3, Output: 4, Known: true}) {
		t.Errorf("%+v", u)
	}
}
