package langchain

import (
	"math"
	"reflect"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// usage reads what a provider put into a choice's info. Each has keys of its
// own. A count of zero means that nobody said: langchaingo fills in zeros.
func usage(info map[string]any) cost.Usage {
	var u cost.Usage
	if n := count(info, "InputTokens"); n > 0 || count(info, "OutputTokens") > 0 {
		// Anthropic counts what went through its cache apart.
		u.CacheRead = count(info, "CacheReadInputTokens")
		u.CacheWrite = count(info, "CacheCreationInputTokens")
		u.Input = sum(n, u.CacheRead, u.CacheWrite)
		u.Output = count(info, "OutputTokens")
	} else {
		u.Input = count(info, "PromptTokens", "input_tokens")
		u.Output = count(info, "CompletionTokens", "output_tokens")
		u.CacheRead = min(count(info, "PromptCachedTokens", "CachedTokens"), u.Input)
		u.Reasoning = min(count(info, "ReasoningTokens", "CompletionReasoningTokens", "ThinkingTokens"), u.Output)
	}
	u.Known = u.Input > 0 && u.Output > 0
	return u
}

// count is the first of the keys that holds a number above zero, or 0. The
// numbers are of any type: int, int32, named ones.
func count(info map[string]any, keys ...string) int64 {
	for _, k := range keys {
		v := reflect.ValueOf(info[k])
		var n int64
		switch v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			n = v.Int()
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			n = int64(min(v.Uint(), math.MaxInt64))
		case reflect.Float32, reflect.Float64:
			if f := v.Float(); f >= math.MaxInt64 {
				n = math.MaxInt64
			} else if f > 0 { // neither NaN
				n = int64(f)
			}
		}
		if n > 0 {
			return n
		}
	}
	return 0
}

// sum adds counts without overflow.
func sum(counts ...int64) (n int64) {
	for _, c := range counts {
		if n > math.MaxInt64-c {
			return math.MaxInt64
		}
		n += c
	}
	return n
}
