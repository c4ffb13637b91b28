// Package policy decides what a run does next. A Policy sees a State (the task,
// what was gathered, what may be called at what price, what is left to spend)
// and returns a Decision.
//
// Embedded is a small learned policy that needs no model. Trained drives
// Orchestrator-8B, or another Qwen3 model, in the dialect that it was trained
// in, through any server of raw completions; Local starts it on this machine's
// GPU. Conversation keeps a chat history
// instead, for users' own chats and any model that calls tools.
package policy
