package langchain

import (
	"encoding/json"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// read makes one response of the choices, and says why the model stopped in its
// own words; "" = it did not say. The usage is that of the first choice that has
// one: providers repeat it in each. Calls without an id get one, counted from id.
func (c *client) read(in *llms.ContentResponse, id int) (out *models.Response, stop string) {
	out = &models.Response{}
	if in == nil {
		return out, ""
	}
	var text, reasoning strings.Builder
	for _, ch := range in.Choices {
		if ch == nil {
			continue
		}
		text.WriteString(ch.Content)
		reasoning.WriteString(thoughts(ch))
		for _, call := range calls(ch) {
			if call.ID == "" {
				call.ID = callID(id)
			}
			id++
			out.Calls = append(out.Calls, call)
		}
		if stop == "" {
			stop = reason(ch.StopReason)
		}
		if !out.Usage.Known {
			out.Usage = usage(ch.GenerationInfo)
		}
		if !c.traits.blocks {
			break // the others are alternatives that nobody asked for
		}
	}
	out.Text, out.Reasoning = text.String(), reasoning.String()
	return out, stop
}

// thoughts is the reasoning of a choice. A choice with text may repeat in its
// info what stands in the text.
func thoughts(ch *llms.ContentChoice) string {
	if ch.ReasoningContent != "" || ch.Content != "" {
		return ch.ReasoningContent
	}
	s, _ := ch.GenerationInfo["ThinkingContent"].(string)
	return s
}

// calls lists the tool calls of a choice; FuncCall repeats the first of them.
func calls(ch *llms.ContentChoice) (out []models.ToolCall) {
	for _, t := range ch.ToolCalls {
		call := models.ToolCall{ID: t.ID}
		if f := t.FunctionCall; f != nil {
			call.Name, call.Args = f.Name, raw(f.Arguments)
		}
		out = append(out, call)
	}
	if f := ch.FuncCall; f != nil && len(out) == 0 {
		out = append(out, models.ToolCall{Name: f.Name, Args: raw(f.Arguments)})
	}
	return out
}

func raw(args string) json.RawMessage {
	if args == "" {
		return nil
	}
	return json.RawMessage(args)
}

// reason is a stop reason as it was given, or "" for those that say none.
func reason(s string) string {
	switch s {
	case "null", "<nil>", "FinishReasonUnspecified", "FINISH_REASON_UNSPECIFIED":
		return ""
	}
	return s
}

// finish translates a stop reason.
func finish(stop string, out *models.Response, maxOutput int) models.Finish {
	switch s := strings.ToLower(strings.TrimPrefix(stop, "FinishReason")); s {
	case "length", "max_tokens", "maxtokens", "model_context_window_exceeded":
		return models.FinishLength
	case "content_filter", "refusal", "safety", "recitation", "blocklist", "prohibitedcontent", "spii":
		return models.FinishFilter
	case "", "stop", "end_turn", "stop_sequence", "eos", "tool_calls", "tool_use", "function_call":
		switch {
		case len(out.Calls) > 0: // some servers say stop
			return models.FinishCalls
		case stop == "" && maxOutput > 0 && out.Usage.Known && out.Usage.Output >= int64(maxOutput):
			return models.FinishLength // nobody says so, but the cap is used up
		}
		return models.FinishStop
	}
	return models.Finish(stop)
}
