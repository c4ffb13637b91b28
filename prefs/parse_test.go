package prefs_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/prefs"
)

// parseNames are tools, models and sources, two of which are words of the grammar.
var parseNames = []string{"answer", "search", "local_search", "web_search", "gpt-5", "gpt-5-mini", "o3", "llama-3.3-70b", "Qwen2.5-Coder-32B", "claude sonnet 4"}

type (
	V   = prefs.Vector
	use = map[string]float64
)

func weights(accuracy, cost, latency float64) V {
	return V{Accuracy: accuracy, Cost: cost, Latency: latency}
}

func same(a, b V) bool {
	return a.Accuracy == b.Accuracy && a.Cost == b.Cost && a.Latency == b.Latency && maps.Equal(a.Use, b.Use) &&
		slices.Equal(slices.Sorted(slices.Values(a.Never)), slices.Sorted(slices.Values(b.Never)))
}

var sentences = []struct {
	text string
	want V
}{
	// Nothing.
	{"", V{}},
	{" \n.\t", V{}},
	{"No preference.", V{}},
	{"Anything goes, thanks!", V{}},
	{"defaults are fine", V{}},
	{"I don't mind", V{}},

	// Cost.
	{"cheap", weights(1, 1, .2)},
	{"Cheap please!", weights(1, 1, .2)},
	{"Keep it cheap.", weights(1, 1, .2)},
	{"as cheap as possible", weights(.5, 1, .2)},
	{"use the cheapest model", weights(.5, 1, .2)},
	{"not too expensive", weights(1, 1, .2)},
	{"It shouldn't be expensive", weights(1, 1, .2)},
	{"avoid expensive models", weights(1, 1, .2)},
	{"don't use expensive models", weights(1, 1, .2)},
	{"please don't spend too much", weights(1, 1, .2)},
	{"I don’t want to spend a lot of money", weights(1, 1, .2)},
	{"spend as little as possible", weights(.5, 1, .2)},
	{"only cheap models", weights(1, 1, .2)},
	{"save money", weights(1, 1, .2)},
	{"keep the costs low", weights(1, 1, .2)},
	{"low cost", weights(1, 1, .2)},
	{"I care about cost", weights(1, 1, .2)},
	{"mind the cost", weights(1, 1, .2)},
	{"don't ignore the cost", weights(1, 1, .2)},
	{"I'm on a tight budget", weights(1, 1, .2)},
	{"less expensive, please", weights(1, 1, .2)},
	{"cost matters somewhat", weights(1, .5, .2)},
	{"fairly cheap", weights(1, .5, .2)},
	{"cost isn't very important", weights(1, .2, .2)},
	{"I don't care much about cost", weights(1, .2, .2)},
	{"the cost matters a little", weights(1, .2, .2)},
	{"cost is secondary", weights(1, .2, .2)},
	{"cost doesn't matter", weights(1, 0, .2)},
	{"not the cheapest", weights(1, .2, .2)},
	{"I'm cost-sensitive", weights(1, 1, .2)},
	{"cost is my main concern", weights(.5, 1, .2)},
	{"never mind the cost", weights(1, 0, .2)},
	{"I do not mind the cost at all", weights(1, 0, .2)},
	{"cost is not a concern", weights(1, 0, .2)},
	{"price is irrelevant", weights(1, 0, .2)},
	{"expensive is fine", weights(1, 0, .2)},
	{"it can be expensive", weights(1, 0, .2)},
	{"it may cost more", weights(1, 0, .2)},
	{"I don't mind paying more", weights(1, 0, .2)},
	{"it need not be cheap", weights(1, 0, .2)},
	{"doesn't have to be cheap", weights(1, 0, .2)},
	{"money is no object", weights(1, 0, .2)},
	{"whatever it costs", weights(1, 0, .2)},
	{"no matter the cost", weights(1, 0, .2)},
	{"I'm willing to pay more", weights(1, 0, .2)},
	{"cost isn't a priority", weights(1, .2, .2)},
	{"high cost is ok", weights(1, 0, .2)},

	// Latency.
	{"be quick", weights(1, .5, 1)},
	{"Answer quickly!", weights(1, .5, 1)},
	{"ASAP", weights(.5, .5, 1)},
	{"I'm in a hurry", weights(1, .5, 1)},
	{"hurry up please", weights(1, .5, 1)},
	{"not too slow", weights(1, .5, 1)},
	{"don't take too long", weights(1, .5, 1)},
	{"without delay", weights(1, .5, 1)},
	{"I don't want to wait", weights(1, .5, 1)},
	{"I can't wait", weights(1, .5, 1)},
	{"low latency", weights(1, .5, 1)},
	{"spend less time", weights(1, .5, 1)},
	{"delays are not acceptable", weights(1, .5, 1)},
	{"could you be quick?", weights(1, .5, 1)},
	{"speed!", weights(1, .5, 1)},
	{"no need to hurry", weights(1, .5, 0)},
	{"no rush", weights(1, .5, 0)},
	{"there's no hurry", weights(1, .5, 0)},
	{"I don't care about latency", weights(1, .5, 0)},
	{"I don't care how long it takes", weights(1, .5, 0)},
	{"I don't care if it is slow", weights(1, .5, 0)},
	{"I don't mind waiting", weights(1, .5, 0)},
	{"I can wait", weights(1, .5, 0)},
	{"take your time", weights(1, .5, 0)},
	{"slow is okay", weights(1, .5, 0)},
	{"slow answers are no problem", weights(1, .5, 0)},
	{"it's fine if it's slow", weights(1, .5, 0)},

	// Accuracy.
	{"be accurate", weights(1, .5, .2)},
	{"accuracy isn't critical", weights(.2, .5, .2)},
	{"I don't need high accuracy", weights(.2, .5, .2)},
	{"no mistakes", weights(1, .5, .2)},
	{"a rough answer is fine", weights(0, .5, .2)},
	{"Quality matters, speed doesn't", weights(1, .5, 0)},
	{"it doesn't need to be perfect", weights(.2, .5, .2)},
	{"it doesn't have to be the best", weights(.2, .5, .2)},

	// Several, and one above others.
	{"accuracy matters most, cost doesn't matter", weights(1, 0, .2)},
	{"cheap, fast and accurate", weights(1, 1, 1)},
	{"minimize cost and latency", weights(1, 1, 1)},
	{"low cost and time doesn't matter", weights(1, 1, 0)},
	{"cheap and quick", weights(1, 1, 1)},
	{"cheap, speed doesn't matter", weights(1, 1, 0)},
	{"be cheap but I don't mind waiting", weights(1, 1, 0)},
	{"cost and latency don't matter", weights(1, 0, 0)},
	{"neither cost nor latency matters", weights(1, 0, 0)},
	{"not expensive or slow", weights(1, 1, 1)},
	{"not expensive, slow is fine", weights(1, 1, 0)},
	{"slow or expensive is fine", weights(1, 0, 0)},
	{"need not be cheap or fast", weights(1, 0, 0)},
	{"not cheap but fast", weights(1, 0, 1)},
	{"cost matters most", weights(.5, 1, .2)},
	{"my top priority is speed", weights(.5, .5, 1)},
	{"quality above all", weights(1, .5, .2)},
	{"accuracy first", weights(1, .5, .2)},
	{"I only care about speed", weights(0, 0, 1)},
	{"accuracy is all that matters", weights(1, 0, 0)},
	{"accuracy over cost", weights(1, .2, .2)},
	{"I prefer speed to accuracy", weights(.2, .5, 1)},
	{"accuracy is more important than speed", weights(1, .5, .2)},
	{"speed is less important than cost", weights(1, 1, .2)},
	{"accuracy, not speed", weights(1, .5, 0)},
	{"be accurate even if it's slow", weights(1, .5, 0)},
	{"accurate regardless of cost", weights(1, 0, .2)},
	{"accurate at any price", weights(1, 0, .2)},

	// Names.
	{"prefer local search", V{Use: use{"local_search": 1}}},
	{"Prefer Local-Search.", V{Use: use{"local_search": 1}}},
	{"never gpt-5", V{Never: []string{"gpt-5"}}},
	{"never use GPT 5", V{Never: []string{"gpt-5"}}},
	{"under no circumstances use gpt-5", V{Never: []string{"gpt-5"}}},
	{"make sure you never use gpt-5", V{Never: []string{"gpt-5"}}},
	{"can you not use gpt-5?", V{Never: []string{"gpt-5"}}},
	{"can you use local search?", V{Use: use{"local_search": 1}}},
	{"never ever call gpt-5-mini", V{Never: []string{"gpt-5-mini"}}},
	{"never GPT 5 mini", V{Never: []string{"gpt-5-mini"}}},
	{"don't use the web", V{Never: []string{"web_search"}}},
	{"no internet", V{Never: []string{"web_search"}}},
	{"I don't want gpt-5 or o3", V{Never: []string{"gpt-5", "o3"}}},
	{"avoid gpt-5, gpt-5-mini and o3", V{Never: []string{"gpt-5", "gpt-5-mini", "o3"}}},
	{"you must not use o3", V{Never: []string{"o3"}}},
	{"o3 is off limits", V{Never: []string{"o3"}}},
	{"gpt-5 may not be used", V{Never: []string{"gpt-5"}}},
	{"stay away from o3 at all costs", V{Never: []string{"o3"}}},
	{"neither gpt-5 nor o3", V{Never: []string{"gpt-5", "o3"}}},
	{"never gpt", V{Never: []string{"gpt-5", "gpt-5-mini"}}},
	{"no Claude Sonnet 4, please", V{Never: []string{"claude sonnet 4"}}},
	{"never \"gpt-5\"", V{Never: []string{"gpt-5"}}},
	{"anything but o3", V{Never: []string{"o3"}}},
	{"I'd rather use open models like llama", V{Use: use{"llama-3.3-70b": 1}}},
	{"prefer open-source models, e.g. llama or qwen", V{Use: use{"llama-3.3-70b": 1, "Qwen2.5-Coder-32B": 1}}},
	{"I like llama", V{Use: use{"llama-3.3-70b": 1}}},
	{"use cheap models like gpt-5-mini", V{Accuracy: 1, Cost: 1, Latency: .2, Use: use{"gpt-5-mini": 1}}},
	{"avoid expensive models such as gpt-5", V{Accuracy: 1, Cost: 1, Latency: .2, Never: []string{"gpt-5"}}},
	{"go with o3", V{Use: use{"o3": 1}}},
	{"o3 is preferred", V{Use: use{"o3": 1}}},
	{"local search first", V{Use: use{"local_search": 1}}},
	{"prefer local search over web search", V{Use: use{"local_search": 1}}},
	{"use local search instead of the web", V{Use: use{"local_search": 1}}},
	{"use gpt-5-mini, not gpt-5", V{Use: use{"gpt-5-mini": 1}, Never: []string{"gpt-5"}}},
	{"use gpt-5-mini not gpt-5", V{Use: use{"gpt-5-mini": 1}, Never: []string{"gpt-5"}}},
	{"If in doubt, prefer o3", V{Use: use{"o3": .3}}},
	{"Prefer o3. If in doubt, prefer o3.", V{Use: use{"o3": 1}}},
	{"If in doubt, prefer o3. Prefer o3.", V{Use: use{"o3": 1}}},
	{"slightly prefer o3", V{Use: use{"o3": .3}}},
	{"if possible, use o3", V{Use: use{"o3": 1}}},
	{"o3 is fine", V{}},
	{"you may use gpt-5", V{}},
	{"use only local_search", V{Use: use{"local_search": 1}, Never: []string{"answer", "search", "web_search", "gpt-5", "gpt-5-mini", "o3", "llama-3.3-70b", "Qwen2.5-Coder-32B", "claude sonnet 4"}}},

	// All at once.
	{"cheap please, prefer local search, never gpt-5", V{Accuracy: 1, Cost: 1, Latency: .2, Use: use{"local_search": 1}, Never: []string{"gpt-5"}}},
	{"never gpt-5 and prefer o3", V{Use: use{"o3": 1}, Never: []string{"gpt-5"}}},
	{"never gpt-5, o3 is preferred", V{Use: use{"o3": 1}, Never: []string{"gpt-5"}}},
	{"Take your time; the best answer counts. No web search, though!", V{Accuracy: 1, Cost: .5, Never: []string{"web_search"}}},
	{"Use the search tool, and give me a quick answer", V{Accuracy: 1, Cost: .5, Latency: 1, Use: use{"search": 1}}},
}

func TestSentences(t *testing.T) {
	for _, c := range sentences {
		v, err := prefs.Parse(c.text, parseNames)
		if err != nil || !same(v, c.want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", c.text, v, err, c.want)
		}
		if err := v.Validate(parseNames); err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if len(sentences) < 60 {
		t.Errorf("%d sentences", len(sentences))
	}
}
