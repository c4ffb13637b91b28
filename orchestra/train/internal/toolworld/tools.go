package toolworld

import (
	"context"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// searches and runners are ways to describe the tools that find and that
// compute; the last quarter is for held-out tasks.
var searches = []dress{
	{},
	{},
	{name: "web_search", about: "Search the web for pages about a topic and return their texts."},
	{name: "wiki", about: "Looks up articles of an encyclopedia that fit a query."},
	{name: "docs_lookup", about: "Find passages in the documentation of our products."},
	{name: "knowledge_base", about: "Retrieve documents from the knowledge base by a query."},
	{name: "find_documents", about: "Returns the documents of the archive that match the words of the query."},
	{name: "library", about: "Finds books and articles in the library and gathers their text."},
}

var runners = []dress{
	{},
	{},
	{name: "run_code", about: "An expert writes a program for the problem; it is run in a sandbox, and its output returned."},
	{name: "python", about: "Execute code to compute intermediate results."},
	{name: "solve_by_program", about: "Writes and runs code that calculates what the problem needs."},
	{name: "simulate", about: "Run a simulation or an exact computation as a small program."},
	{name: "code_interpreter", about: "Code interpreter: computes numbers with a program."},
	{name: "compute", about: "Have a program written and executed for calculations that are hard by hand."},
}

// retriever is the world's index. What was found once is kept: rollouts of one
// instance ask alike.
type retriever World

// Name is the source's name.
func (r *retriever) Name() string { return "world" }

// Retrieve finds documents.
func (r *retriever) Retrieve(ctx context.Context, query string, k int) ([]tools.Document, error) {
	r.mu.Lock()
	docs, ok := r.found[query]
	r.mu.Unlock()
	if ok {
		return docs, nil
	}
	docs, err := r.index.Retrieve(ctx, query, k)
	if err == nil {
		r.mu.Lock()
		r.found[query] = docs
		r.mu.Unlock()
	}
	return docs, err
}

// interpreter runs programs once.
type interpreter World

// Language is that of the programs.
func (x *interpreter) Language() string { return x.js.Language() }

// Run runs a program, or returns what it printed before.
func (x *interpreter) Run(ctx context.Context, code string) (tools.CodeRun, error) {
	x.mu.Lock()
	run, ok := x.memo[code]
	x.mu.Unlock()
	if ok {
		return run, nil
	}
	run, err := x.js.Run(ctx, code)
	if err == nil {
		x.mu.Lock()
		x.memo[code] = run
		x.mu.Unlock()
	}
	return run, err
}

// Run runs a program.
func (w *World) Run(ctx context.Context, code string) (tools.CodeRun, error) {
	return (*interpreter)(w).Run(ctx, code)
}

// noJS is an interpreter that is only described.
type noJS struct{}

func (noJS) Language() string { return "javascript" }
func (noJS) Run(context.Context, string) (tools.CodeRun, error) {
	return tools.CodeRun{}, nil
}
