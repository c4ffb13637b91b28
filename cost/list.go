package cost

// listed holds list prices in US dollars per million tokens: input, cache read,
// output; -1 = not stated. They are those of pydantic/genai-prices at 47df840a
// (MIT, see NOTICE) of August 2026, for the models with one price whatever the
// size of the prompt and the time of day. A price that you state wins.
var listed = map[[2]string][3]float64{
	{"openai", "gpt-5"}:                                     {1.25, 0.125, 10},
	{"openai", "gpt-5-mini"}:                                {0.25, 0.025, 2},
	{"openai", "gpt-5-nano"}:                                {0.05, 0.005, 0.4},
	{"openai", "gpt-5.1"}:                                   {1.25, 0.125, 10},
	{"openai", "gpt-5.2"}:                                   {1.75, 0.175, 14},
	{"openai", "gpt-4.1"}:                                   {2, 0.5, 8},
	{"openai", "gpt-4.1-mini"}:                              {0.4, 0.1, 1.6},
	{"openai", "gpt-4o"}:                                    {2.5, 1.25, 10},
	{"openai", "gpt-4o-mini"}:                               {0.15, 0.075, 0.6},
	{"openai", "o4-mini"}:                                   {1.1, 0.275, 4.4},
	{"groq", "qwen/qwen3-32b"}:                              {0.29, -1, 0.59},
	{"groq", "llama-3.3-70b-versatile"}:                     {0.59, -1, 0.79},
	{"groq", "openai/gpt-oss-120b"}:                         {0.15, 0.075, 0.6},
	{"together", "meta-llama/Llama-3.3-70B-Instruct-Turbo"}: {0.88, -1, 0.88},
	{"moonshotai", "kimi-k2-0905-preview"}:                  {0.6, 0.15, 2.5},
	{"deepseek", "deepseek-v3.2"}:                           {0.2288, -1, 0.3432},
}

// ListPrice is the list price of a provider's model, by exact names: the same
// model costs up to ten times as much elsewhere. ok false: not listed here.
func ListPrice(provider, model string) (p Price, ok bool) {
	r, ok := listed[[2]string{provider, model}]
	if !ok {
		return Price{}, false
	}
	p = Tokens(r[0], r[2])
	if r[1] >= 0 {
		p.CacheRead = Per(r[1])
	}
	return p, true
}
