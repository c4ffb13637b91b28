package cost_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// rates makes a price of input, cache read, cache write and output; -1 = not
// stated.
func rates(in, read, write, out float64) cost.Price {
	var p cost.Price
	for _, r := range []struct {
		to  *cost.Rate
		usd float64
	}{{&p.Input, in}, {&p.CacheRead, read}, {&p.CacheWrite, write}, {&p.Output, out}} {
		if r.usd >= 0 {
			*r.to = cost.Per(r.usd)
		}
	}
	return p
}

// above adds a tier.
func above(p cost.Price, tokens int64, over cost.Price) cost.Price {
	p.Over = &cost.Tier{Above: tokens, Price: over}
	return p
}

// set changes a price.
func set(p cost.Price, f func(*cost.Price)) cost.Price { f(&p); return p }

// TestKnownBugs replays mistakes that other libraries made in counting usage and
// pricing it: the issue named, its figures, the prices that it had, and the right
// value. TestKnownBugsOfBudgets has the others.
func TestKnownBugs(t *testing.T) {
	gemini := above(rates(1.25, 0.3125, -1, 10), 200_000, rates(2.5, 0.625, -1, 15))
	sonnet := above(rates(3, 0.3, 3.75, 15), 200_000, rates(6, 0.6, 7.5, 22.5))
	opus := set(rates(5, 0.5, 6.25, 25), func(p *cost.Price) { p.CacheWrite1h = cost.Per(10) })
	searching := set(rates(1, -1, -1, 10), func(p *cost.Price) { p.Search = cost.Per(0.01) })
	flex, priority := rates(0.025, 0.0025, -1, 0.2), rates(0.1, 0.01, -1, 0.8)
	nano := set(rates(0.05, 0.005, -1, 0.4), func(p *cost.Price) { p.Flex, p.Priority = &flex, &priority })
	image := set(rates(2, -1, -1, 12), func(p *cost.Price) { p.OutputMedia.Image = cost.Per(120) })
	perImage := set(cost.Tokens(0, 30), func(p *cost.Price) { p.Image = cost.Per(0.039) })
	audio := set(rates(0.15, -1, -1, 0.6), func(p *cost.Price) { p.InputMedia.Audio = cost.Per(2.4) })
	known := func(u cost.Usage) *cost.Usage { u.Known = true; return &u }
	for _, c := range []struct {
		row    string // of the list that the cases were collected in
		issue  string
		price  cost.Price
		flavor cost.Flavor
		events string // one a line
		usage  *cost.Usage
		want   string
		basis  cost.Basis
	}{
		{"1", "BerriAI/litellm#6215", rates(2.5, 1.25, -1, 10), cost.Chat, `{"usage":{"prompt_tokens":2006,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":1920}}}`, known(cost.Usage{Input: 2006, CacheRead: 1920, Output: 300}), "0.005615", cost.Measured},
		{"2", "BerriAI/litellm#14849", gemini, cost.Google, `{"usageMetadata":{"promptTokenCount":262960,"cachedContentTokenCount":257955,"candidatesTokenCount":1744}}`, nil, "0.199894375", cost.Measured},
		{"3", "BerriAI/litellm#9812", rates(3, 0.3, 3.75, 15), cost.Anthropic, `{"usage":{"input_tokens":3,"cache_creation_input_tokens":12304,"output_tokens":550}}`, known(cost.Usage{Input: 12307, CacheWrite: 12304, Output: 550}), "0.054399", cost.Measured},
		{"5", "Aider-AI/aider#5516", rates(1, 0.1, -1, 5), cost.Chat, `{"usage":{"prompt_tokens":17111,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":17102}}}`, nil, "0.0017192", cost.Measured},
		{"6", "maximhq/bifrost#904", rates(1.25, 0.125, -1, 10), cost.Responses, `{"usage":{"input_tokens":1239328,"input_tokens_details":{"cached_tokens":1188096},"output_tokens":12909}}`, nil, "0.341642", cost.Measured},
		{"7", "earendil-works/pi#2148", rates(0.5, 0.05, -1, 3), cost.Google, `{"usageMetadata":{"promptTokenCount":20212,"cachedContentTokenCount":16298,"candidatesTokenCount":931}}`, nil, "0.0055649", cost.Measured},
		{"9", "maximhq/bifrost#1872", rates(2, -1, -1, 8), cost.Chat, `{"usage":{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":800}}}`, nil, "0.002", cost.Measured},
		{"10", "maximhq/bifrost#1800", above(rates(1.25, 0.3, -1, 10), 200_000, rates(2.5, -1, -1, 15)), cost.Chat, `{"usage":{"prompt_tokens":250000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":240000}}}`, nil, "0.625", cost.Measured},
		{"11", "pydantic/pydantic-ai#3850", rates(3, 0.3, 3.75, 15), cost.Bedrock, `{"usage":{"inputTokens":5,"cacheReadInputTokens":1000,"cacheWriteInputTokens":200,"outputTokens":10}}`, known(cost.Usage{Input: 1205, CacheRead: 1000, CacheWrite: 200, Output: 10}), "0.001215", cost.Measured},
		{"11", "langchain-ai/langsmith-sdk#1858", rates(3, 0.3, 3.75, 15), cost.Anthropic, `{"usage":{"input_tokens":5,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200,"output_tokens":10}}`, known(cost.Usage{Input: 1205, CacheRead: 1000, CacheWrite: 200, Output: 10}), "0.001215", cost.Measured},
		{"13", "can1357/oh-my-pi#6876", opus, cost.Anthropic, `{"usage":{"input_tokens":0,"cache_creation_input_tokens":344139,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":344139},"output_tokens":0}}`, known(cost.Usage{Input: 344139, CacheWrite1h: 344139}), "3.44139", cost.Measured},
		{"14", "earendil-works/pi#5738", opus, cost.Anthropic, `{"usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_5m_input_tokens":600000,"ephemeral_1h_input_tokens":400000},"output_tokens":0}}`, known(cost.Usage{Input: 1e6, CacheWrite: 600_000, CacheWrite1h: 400_000}), "7.75", cost.Measured},
		{"14", "the same, without the total", opus, cost.Anthropic, `{"usage":{"input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":600000,"ephemeral_1h_input_tokens":400000},"output_tokens":0}}`, known(cost.Usage{Input: 1e6, CacheWrite: 600_000, CacheWrite1h: 400_000}), "7.75", cost.Measured},
		{"15", "jarrodwatts/claude-hud#758", set(rates(3, 0.3, 3.75, 15), func(p *cost.Price) { p.CacheWrite1h = cost.Per(6) }), cost.Anthropic, `{"usage":{"input_tokens":0,"cache_creation_input_tokens":2000000,"cache_creation":{"ephemeral_1h_input_tokens":2000000},"output_tokens":0}}`, nil, "12", cost.Measured},
		{"17", "envoyproxy/ai-gateway#2236", rates(3, 0.3, 3.75, 15), cost.Anthropic, `{"type":"message_start","message":{"usage":{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":1}}}
			{"type":"content_block_delta","delta":{"text":"x"}}
			{"type":"message_delta","usage":{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":16}}`, known(cost.Usage{Input: 10, CacheRead: 1, Output: 16}), "0.0002673", cost.Measured},
		{"18", "symfony/ai#2178, microsoft/agent-framework#7143", rates(3, 0.3, 3.75, 15), cost.Anthropic, `{"type":"message_start","message":{"usage":{"input_tokens":2,"cache_creation_input_tokens":47119,"output_tokens":4}}}
			{"type":"message_delta","usage":{"input_tokens":2,"cache_creation_input_tokens":47119,"output_tokens":64}}`, known(cost.Usage{Input: 47121, CacheWrite: 47119, Output: 64}), "0.17766225", cost.Measured},
		{"19", "maximhq/bifrost#5355, #6598", rates(0.6, 0.15, -1, 2.5), cost.Anthropic, `{"type":"message_start","message":{"usage":{"input_tokens":8834,"output_tokens":0}}}
			{"type":"message_delta","usage":{"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":10}}`, known(cost.Usage{Input: 8849, CacheRead: 8831, Output: 10}), "0.00136045", cost.Measured},
		{"21", "decolua/9router#2762", rates(1, -1, -1, 10), cost.Chat, `{"usage":{"prompt_tokens":100,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":30,"text_tokens":50}}}`, known(cost.Usage{Input: 100, Output: 50, Reasoning: 30}), "0.0006", cost.Measured},
		{"21", "BerriAI/litellm#39850", rates(1, -1, -1, 10), cost.Responses, `{"usage":{"input_tokens":100,"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30}}}`, nil, "0.0006", cost.Measured},
		{"22", "NousResearch/hermes-agent#93678", above(rates(2, -1, -1, 12), 200_000, rates(4, -1, -1, 18)), cost.Google, `{"usageMetadata":{"promptTokenCount":250000}}`, nil, "1", cost.Measured},
		{"22", "the same, at the edge", above(rates(2, -1, -1, 12), 200_000, rates(4, -1, -1, 18)), cost.Google, `{"usageMetadata":{"promptTokenCount":200000}}`, nil, "0.4", cost.Measured},
		{"23", "ding113/claude-code-hub#869", gemini, cost.Google, `{"usageMetadata":{"promptTokenCount":250000,"candidatesTokenCount":1000}}`, nil, "0.64", cost.Measured},
		{"25", "synthetic-sciences/openscience#121", sonnet, cost.Anthropic, `{"usage":{"input_tokens":1000,"cache_read_input_tokens":100000,"cache_creation_input_tokens":150000,"output_tokens":0}}`, nil, "1.191", cost.Measured},
		{"26", "BerriAI/litellm#13810", nano, cost.Chat, `{"service_tier":"flex","usage":{"prompt_tokens":1000000,"completion_tokens":100000}}`, nil, "0.045", cost.Measured},
		{"27", "BerriAI/litellm#31837", nano, cost.Responses, `{"type":"response.created","response":{"service_tier":"priority"}}
			{"type":"response.completed","response":{"service_tier":"default","usage":{"input_tokens":1000000,"output_tokens":100000}}}`, nil, "0.09", cost.Measured},
		{"27", "the same, served with priority", nano, cost.Chat, `{"service_tier":"priority","usage":{"prompt_tokens":1000000,"completion_tokens":100000}}`, nil, "0.18", cost.Measured},
		{"27", "the same, where nobody states what priority costs", rates(0.05, -1, -1, 0.4), cost.Chat, `{"service_tier":"priority","usage":{"prompt_tokens":1000000,"completion_tokens":100000}}`, nil, "0.09", cost.Unpriced},
		{"29", "BerriAI/litellm#10384", searching, cost.Responses, `{"tools":[{"type":"web_search","search_context_size":"high"}],"output":[{"type":"message"}],"usage":{"input_tokens":1000,"output_tokens":100}}`, nil, "0.002", cost.Measured},
		{"30", "BerriAI/litellm#15227", searching, cost.Responses, `{"output":[{"type":"web_search_call","action":{"type":"search"}},{"type":"web_search_call"},{"type":"web_search_call","action":{"type":"open_page"}},{"type":"message"}],"usage":{"input_tokens":1000,"output_tokens":100}}`, nil, "0.022", cost.Measured},
		{"30", "langfuse/langfuse#15856", searching, cost.Anthropic, `{"usage":{"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":3}}}`, nil, "0.032", cost.Measured},
		{"30", "the same, where nobody states what a search costs", rates(1, -1, -1, 10), cost.Anthropic, `{"usage":{"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":3}}}`, nil, "0.002", cost.Unpriced},
		{"31", "BerriAI/litellm#17410", image, cost.Google, `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1120,"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":1120}],"thoughtsTokenCount":225}}`, nil, "0.13712", cost.Measured},
		{"33", "ENTERPILOT/GoModel#970", perImage, cost.ImageModels, `{"data":[{}],"usage":{"input_tokens":0,"output_tokens":1290}}`, nil, "0.0387", cost.Measured},
		{"33", "the same, without tokens", perImage, cost.ImageModels, `{"data":[{}],"usage":{"input_tokens":0,"output_tokens":0}}`, nil, "0.039", cost.Measured},
		{"34", "BerriAI/litellm#37661", rates(0.15, -1, -1, 0.6), cost.Chat, `{"usage":{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"audio_tokens":900}}}`, nil, "0.00015", cost.Measured},
		{"34", "PostHog/posthog#56878", audio, cost.Chat, `{"usage":{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"audio_tokens":900}}}`, nil, "0.002175", cost.Measured},
		{"47", "BerriAI/litellm#37992", rates(1, -1, -1, 10), cost.Chat, `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, known(cost.Usage{}), "0", cost.Measured},
	} {
		t.Run(c.row+" "+c.issue, func(t *testing.T) {
			tally := cost.Tally{Flavor: c.flavor}
			for event := range strings.Lines(c.events) {
				if err := tally.Add([]byte(strings.TrimSpace(event))); err != nil {
					t.Fatal(err)
				}
			}
			u := tally.Usage()
			if c.usage != nil && u != *c.usage {
				t.Errorf("usage %+v, want %+v", u, *c.usage)
			}
			got, basis, err := c.price.Of(u)
			if got != usd(c.want) || basis != c.basis || (err != nil) != (basis == cost.Unpriced) || !u.Known {
				t.Errorf("%v %v %v of %+v, want %s %v", got, basis, err, u, c.want, c.basis)
			}
		})
	}
}

// A stream that its reader left is charged its prompt and what it had delivered
// (rows 45 and 46: BerriAI/litellm#30630, #33736, bitrouter/bitrouter#537).
func TestCutStream(t *testing.T) {
	p := rates(3, 0.3, 3.75, 15)
	for _, c := range []struct {
		name   string
		flavor cost.Flavor
		events []string
		want   cost.Usage
		usd    string
	}{
		{"before usage", cost.Chat, []string{`{"choices":[{"delta":{"content":"x"}}]}`}, cost.Usage{Input: 1000, Output: 50, Known: true, Estimated: true}, "0.00375"},
		{"before anything", cost.Chat, nil, cost.Usage{Input: 1000, Output: 50, Known: true, Estimated: true}, "0.00375"},
		{"after the prompt was counted", cost.Anthropic, []string{`{"type":"message_start","message":{"usage":{"input_tokens":900,"cache_read_input_tokens":100,"output_tokens":1}}}`},
			cost.Usage{Input: 1000, CacheRead: 100, Output: 50, Known: true, Estimated: true}, "0.00348"},
		{"after all was counted", cost.Chat, []string{`{"usage":{"prompt_tokens":10,"completion_tokens":70}}`}, cost.Usage{Input: 10, Output: 70, Known: true, Estimated: true}, "0.00108"},
	} {
		tally := cost.Tally{Flavor: c.flavor}
		for _, e := range c.events {
			if err := tally.Add([]byte(e)); err != nil {
				t.Fatal(err)
			}
		}
		u := tally.Cut(1000, 50)
		if got, basis, err := p.Of(u); u != c.want || got != usd(c.usd) || basis != cost.Estimated || err != nil {
			t.Errorf("%s: %+v costs %v (%v, %v), want %+v and %s", c.name, u, got, basis, err, c.want, c.usd)
		}
	}
}

// The model of the reply decides, by its exact name or a declared pattern (rows
// 35 and 53: HKUDS/DeepTutor#1492, continuedev/continue#13184,
// ryoppippi/ccusage#934, superplane#6803, BerriAI/litellm#36561, #30715).
func TestNamesAreNotGuessed(t *testing.T) {
	c := cost.DefaultCatalog()
	at := time.Date(2026, 8, 21, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct{ model, usd string }{ // of a thousand tokens in and out
		{"gpt-4o-mini", "0.00075"}, {"gpt-4.1", "0.01"}, {"gpt-4.1-2025-04-14", "0.01"}, {"gpt-4", "0.09"}, {"gpt-5", "0.01125"}, {"gpt-5-mini", "0.00225"},
	} {
		p, ok := c.Lookup("openai", x.model, at)
		if got, _, err := p.Of(cost.Usage{Input: 1000, Output: 1000, Known: true}); !ok || err != nil || got != usd(x.usd) {
			t.Errorf("%s: %v %v %v, want %s", x.model, got, ok, err, x.usd)
		}
	}
	five, _ := c.Lookup("openai", "gpt-5", at)
	if mini, ok := c.Lookup("openai", "gpt-5.4-mini", at); !ok || mini == five {
		t.Errorf("gpt-5.4-mini: %v", mini)
	}
	for _, x := range [][2]string{{"openai", "gpt-4o-mini-x"}, {"openai", "gpt"}, {"openai", "my-gpt-5"}, {"openai", ""}, {"", "gpt-5"}, {"nobody", "gpt-5"}} {
		p, ok := c.Lookup(x[0], x[1], at)
		_, basis, err := p.Of(cost.Usage{Input: 1000, Output: 1000, Known: true})
		if ok || p.Known() || basis != cost.Unpriced || !errors.Is(err, cost.ErrUnpriced) {
			t.Errorf("%q has the price %v (%v)", x, p, basis)
		}
	}
}

// usd reads an exact amount.
func usd(s string) cost.Amount {
	a, err := cost.ParseAmount(s)
	if err != nil {
		panic(err) // a mistake in the test's own table
	}
	return a
}
