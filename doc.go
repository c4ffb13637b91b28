// Package toolorchestra is the Go SDK of ToolOrchestra (arXiv 2511.21689): a
// small policy runs the expensive brains. Given a task, a budget, preferences
// and a price list of tools and expert models, it decides turn by turn what to
// call, until it can answer.
//
// This package holds nothing but documentation. Start with
//
//   - [github.com/toolorchestra/toolorchestra-go/orchestra]: New, Run, Stream
//   - [github.com/toolorchestra/toolorchestra-go/cost]: budgets that cannot be overspent
//   - [github.com/toolorchestra/toolorchestra-go/tools]: tools made of Go functions
//   - [github.com/toolorchestra/toolorchestra-go/models/openai]: experts on any OpenAI-compatible server
//   - [github.com/toolorchestra/toolorchestra-go/orchestra/policy]: Embedded; Local, Orchestrator-8B on this machine's GPU
//   - [github.com/toolorchestra/toolorchestra-go/prefs]: what a user prefers, and Parse for sentences
//   - [github.com/toolorchestra/toolorchestra-go/orchestra/train]: the embedded policy on your own logs and tasks
//   - [github.com/toolorchestra/toolorchestra-go/models/ollama]: experts on a local Ollama server
//   - [github.com/toolorchestra/toolorchestra-go/models/modeltest]: a scripted model for your tests
//
// and with the programs in the folder examples.
package toolorchestra
