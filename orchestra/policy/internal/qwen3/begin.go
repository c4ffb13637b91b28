package qwen3

// CallBegin is what a prompt ends with so that the model goes on with the JSON
// of a call; Parse reads that text with CallBegin before it.
const CallBegin = callOpen + "\n"

// Thought is a closed think block: written behind a prompt of Render, it stands
// for what the model thought. The text must be neutral (Neutralise).
func Thought(text string) string {
	return thinkOpen + "\n" + text + "\n" + thinkClose + "\n\n"
}
