package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
)

// Extract reads what a provider's reply says was used: a whole body. A body
// without counts gives a Usage with Known false. Errors are *UsageError, where
// the body is not a JSON object, and *InvalidError for an unknown flavor.
func Extract(f Flavor, body []byte) (Usage, error) {
	t := Tally{Flavor: f}
	err := t.Add(body)
	return t.Usage(), err
}

// UsageError is a reply that usage cannot be read from.
type UsageError struct {
	Flavor Flavor
	Err    error
}

// Error says what happened, and what to do about it.
func (e *UsageError) Error() string {
	return fmt.Sprintf("cost: usage of a %s reply: %v: pass the JSON body, or the data of one event of a stream", e.Flavor, e.Err)
}

// Unwrap returns the reason.
func (e *UsageError) Unwrap() error { return e.Err }

// Tally gathers the counts of one reply, whole or in a stream's events. Counts
// of providers are cumulative, so each event replaces what it states and leaves
// what it does not; they are put together only in Usage, since which of them
// contain others differs by flavor. Set Flavor before the first use. It is for
// one goroutine.
type Tally struct {
	Flavor Flavor

	raw            map[string]int64 // by counter.path
	service        string
	searches       int64
	images         int64
	cost, upstream *Amount // of OpenRouter
	byok           bool
}

// envelope is where replies and events keep counts.
type envelope struct {
	Usage    json.RawMessage `json:"usage"`
	Google   json.RawMessage `json:"usageMetadata"`
	Response json.RawMessage `json:"response"` // events of responses and realtime
	Message  json.RawMessage `json:"message"`  // Anthropic's message_start
	Meta     json.RawMessage `json:"meta"`     // Cohere's embed
	Metadata json.RawMessage `json:"metadata"` // Bedrock's stream
	Groq     json.RawMessage `json:"x_groq"`
	Delta    json.RawMessage `json:"delta"` // Cohere's message-end
	Service  json.RawMessage `json:"service_tier"`
	Output   json.RawMessage `json:"output"` // of responses
	Data     json.RawMessage `json:"data"`   // of image generation
	Billed   json.RawMessage `json:"billed_units"`
}

// Add takes a whole body, or the data of one event of a stream. Events without
// counts change nothing. Errors are those of Extract.
func (t *Tally) Add(body []byte) error {
	if _, ok := layouts[t.Flavor]; !ok {
		return &InvalidError{Field: "Flavor", Value: strconv.Quote(clip(string(t.Flavor), 60)), Fix: "use one of the constants, such as cost.Chat"}
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return &UsageError{t.Flavor, err}
	}
	t.envelope(&e)
	for _, inner := range [...]json.RawMessage{e.Response, e.Message, e.Meta, e.Metadata, e.Groq, e.Delta} {
		var i envelope
		if len(inner) > 0 && inner[0] == '{' && json.Unmarshal(inner, &i) == nil {
			t.envelope(&i)
			if len(i.Billed) > 0 && t.Flavor == Cohere {
				t.Counts(inner)
			}
		}
	}
	if layouts[t.Flavor].root == "" {
		t.Counts(body)
	}
	return nil
}

func (t *Tally) envelope(e *envelope) {
	switch layouts[t.Flavor].root {
	case "usage":
		t.Counts(e.Usage)
	case "usageMetadata":
		t.Counts(e.Google)
	}
	t.Served(text(e.Service))
	switch t.Flavor {
	case Responses:
		t.output(e.Output)
	case ImageModels:
		var list []json.RawMessage
		if json.Unmarshal(e.Data, &list) == nil && len(list) > 0 {
			t.images = int64(len(list))
		}
	}
}

// output counts the web searches of a response: the calls that searched, not
// those that opened a page, and not the tool having been offered.
func (t *Tally) output(b json.RawMessage) {
	var items []struct {
		Type   json.RawMessage `json:"type"`
		Action struct {
			Type json.RawMessage `json:"type"`
		} `json:"action"`
	}
	if len(b) == 0 || json.Unmarshal(b, &items) != nil {
		return
	}
	n := int64(0)
	for _, i := range items {
		if a := text(i.Action.Type); text(i.Type) == "web_search_call" && (a == "" || a == "search") {
			n++
		}
	}
	if n > 0 {
		t.searches = n
	}
}

// Served notes the service tier that served the call, where a reply says it
// apart from its counts. Tiers that are priced like the ordinary one are not
// kept.
func (t *Tally) Served(service string) {
	switch s := strings.ToLower(service); s {
	case "batch", "flex", "priority":
		t.service = s
	case "":
	default:
		t.service = ""
	}
}

// Counts takes the object of counts by itself, for callers who have it parsed
// out. What is not an object changes nothing, nor do counts of zero after some
// that were not: some servers end a stream with an empty usage.
func (t *Tally) Counts(object []byte) {
	object = bytes.TrimSpace(object)
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if len(object) == 0 || object[0] != '{' || d.Decode(&m) != nil {
		return
	}
	fresh := map[string]int64{}
	empty := true
	stated := false // the input is
	counters := layouts[t.Flavor].counters
	for i := range counters {
		c := &counters[i]
		if n, ok := c.find(m); ok {
			fresh[c.path] = n
			empty = empty && n == 0
			stated = stated || i == 0
		}
	}
	if empty && stated && t.used() {
		return
	}
	t.keepInput(fresh)
	if t.raw == nil {
		t.raw = fresh
	} else {
		for path, n := range fresh {
			t.raw[path] = n
		}
	}
	for _, key := range [...]string{"service_tier", "serviceTier"} {
		if s, ok := m[key].(string); ok {
			t.Served(s)
		}
	}
	if t.Flavor == Chat {
		t.charged(m)
	}
}

// keepInput drops zeros of the input from fresh where all that it states of the
// input is zero and a prompt was counted before: no prompt has nothing, but some
// servers fill in a zero beside the output's count.
func (t *Tally) keepInput(fresh map[string]int64) {
	had, stated := false, false
	all := layouts[t.Flavor].counters
	for i := range all {
		if !all[i].counts(input) {
			continue
		}
		n, ok := fresh[all[i].path]
		if ok && n != 0 {
			return
		}
		stated = stated || ok && i == 0
		had = had || t.raw[all[i].path] != 0
	}
	if !had || !stated {
		return
	}
	for i := range all {
		if all[i].counts(input) {
			delete(fresh, all[i].path)
		}
	}
}

// charged reads what OpenRouter says the call cost.
func (t *Tally) charged(m map[string]any) {
	if a, ok := money(m["cost"]); ok {
		t.cost = &a
		t.byok, t.upstream = m["is_byok"] == true, nil
		if details, ok := m["cost_details"].(map[string]any); ok {
			if up, ok := money(details["upstream_inference_cost"]); ok && up >= 0 {
				t.upstream = &up
			}
		}
	}
}

func (t *Tally) used() bool {
	for _, n := range t.raw {
		if n != 0 {
			return true
		}
	}
	return false
}

// Usage is what the reply has stated so far; Known, once its input is, unless what
// it says of input or output is negative, which nobody can mean. Counts are
// as stated, even where they contradict each other: Price.Of sees to that.
func (t *Tally) Usage() Usage {
	u := Usage{Service: t.service, Searches: t.searches, Images: t.images}
	negative := false
	for i := range layouts[t.Flavor].counters {
		c := &layouts[t.Flavor].counters[i]
		n, ok := t.raw[c.path]
		if !ok {
			continue
		}
		negative = negative || n < 0 && (c.counts(input) || c.counts(output))
		for _, to := range c.to {
			p := to(&u)
			*p = plusSat(*p, n)
		}
	}
	// Every flavor's first count is its input: an output alone would make it free.
	if c := layouts[t.Flavor].counters; len(c) > 0 {
		u.Known = t.stated(&c[0]) && !negative
	}
	// A total above its parts has output that they leave out, such as thoughts.
	if t.Flavor == Chat {
		if beside := add(max(u.Input, 0), max(u.Output, 0)); u.Known && t.raw["total_tokens"] > beside {
			u.Output = add(max(u.Output, 0), t.raw["total_tokens"]-beside)
		}
	}
	if t.Flavor == Anthropic {
		if _, ok := t.raw["cache_creation_input_tokens"]; ok { // the total of both durations
			u.CacheWrite = max(u.CacheWrite-max(u.CacheWrite1h, 0), min(u.CacheWrite, 0))
		} else {
			u.CacheWrite = t.raw["cache_creation.ephemeral_5m_input_tokens"]
			u.Input = plusSat(plusSat(u.Input, u.CacheWrite), u.CacheWrite1h)
		}
	}
	// With the user's own key at the provider, cost is OpenRouter's fee alone: the
	// whole is unknown if the provider's part is. What is negative stays so: Price.Of
	// does not believe it.
	if t.cost != nil && (!t.byok || t.upstream != nil || *t.cost < 0) {
		usd := *t.cost
		if t.byok && usd >= 0 {
			usd = add(usd, *t.upstream)
		}
		u.USD = &usd
	}
	return u
}

// Cut is the Usage of a stream that ended before its counts: what was stated,
// and for what was not, the caller's estimates of the prompt and of the output
// that was delivered. It is marked Estimated. Counts of output that a stream
// states at its start are not the whole: the larger number counts.
func (t *Tally) Cut(inputTokens, outputTokens int64) Usage {
	u := t.Usage()
	if c := layouts[t.Flavor].counters; len(c) == 0 || !t.stated(&c[0]) {
		u.Input = max(u.Input, inputTokens)
	}
	u.Output = max(u.Output, outputTokens)
	u.Known, u.Estimated = true, true
	return u
}

// stated reports whether the reply has said a count.
func (t *Tally) stated(c *counter) bool {
	_, ok := t.raw[c.path]
	return ok
}

// plusSat is a sum that stays within int64.
func plusSat(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

// counts reports whether c is counted in a field of Usage.
func (c *counter) counts(field func(*Usage) *int64) bool {
	var u Usage
	for _, to := range c.to {
		if to(&u) == field(&u) {
			return true
		}
	}
	return false
}

// find reads the first alternative that is a count.
func (c *counter) find(m map[string]any) (int64, bool) {
	for path := range strings.SplitSeq(c.path, " ") {
		if n, ok := jsonfix.Integer(numeral(lookup(m, path))); ok {
			return n, true
		}
	}
	return 0, false
}

func lookup(m map[string]any, path string) any {
	if list, modality, ok := strings.Cut(path, ":"); ok {
		all, _ := m[list].([]any)
		for _, e := range all {
			if o, ok := e.(map[string]any); ok && o["modality"] == modality {
				return o["tokenCount"]
			}
		}
		return nil
	}
	for {
		first, rest, more := strings.Cut(path, ".")
		if !more {
			return m[first]
		}
		m, _ = m[first].(map[string]any)
		path = rest
	}
}

func numeral(v any) string {
	switch v := v.(type) {
	case json.Number:
		return string(v)
	case string:
		return v
	}
	return ""
}

// money reads a number of US dollars, exactly as it is written.
func money(v any) (Amount, bool) {
	s := numeral(v)
	a, err := ParseAmount(s)
	if err != nil {
		f, err := strconv.ParseFloat(s, 64) // with an exponent
		if err != nil {
			return 0, false
		}
		a = Dollars(f)
	}
	return a, s != "" && a.Valid()
}

// text is a JSON string, "" for all else.
func text(b json.RawMessage) (s string) {
	if len(b) == 0 || json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}
