package tools

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
)

// Document is a piece of text that a tool found.
type Document struct {
	ID        string  `json:"id"`
	Title     string  `json:"title,omitempty"`
	URL       string  `json:"url,omitempty"`
	Text      string  `json:"text"`
	Source    string  `json:"source,omitempty"`    // name of the retriever
	Score     float64 `json:"score,omitempty"`     // higher is better; comparable within one retrieval only
	Untrusted bool    `json:"untrusted,omitempty"` // from the open web: may try to instruct models
}

// CodeRun is a program and what it printed.
type CodeRun struct {
	Language  string `json:"language"`
	Code      string `json:"code"`
	Output    string `json:"output,omitempty"`
	Err       string `json:"err,omitempty"`       // why the program failed, its traceback
	Truncated bool   `json:"truncated,omitempty"` // output was cut
}

// Attempt is a candidate answer.
type Attempt struct {
	ID         string   `json:"id,omitempty"` // given by the workspace: "attempt-1"
	By         string   `json:"by,omitempty"` // tool or model
	Text       string   `json:"text"`
	Confidence float64  `json:"confidence,omitempty"` // 0 to 1; 0 = not stated
	Sources    []string `json:"sources,omitempty"`    // ids of documents
	Truncated  bool     `json:"truncated,omitempty"`  // cut off at an output cap
}

// Result is what a call returns.
type Result struct {
	Text      string          `json:"text,omitempty"` // for the policy
	Documents []Document      `json:"documents,omitempty"`
	Runs      []CodeRun       `json:"runs,omitempty"`
	Attempts  []Attempt       `json:"attempts,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`      // for programs
	Truncated bool            `json:"truncated,omitempty"` // something of it was cut off
}

// Workspace is what a run has gathered. It is immutable: With makes the next
// one. The zero Workspace is empty.
type Workspace struct {
	docs  []Document
	runs  []CodeRun
	tries []Attempt
	// version changes when anything was added: calls that were useless before may
	// be useful then.
	version int
}

// Documents yields the documents, newest first.
func (w Workspace) Documents() iter.Seq2[int, Document] { return slices.All(w.docs) }

// Runs yields the programs that were run, oldest first.
func (w Workspace) Runs() iter.Seq2[int, CodeRun] { return slices.All(w.runs) }

// Attempts yields the candidate answers, oldest first.
func (w Workspace) Attempts() iter.Seq2[int, Attempt] { return slices.All(w.tries) }

// Len counts what the workspace holds.
func (w Workspace) Len() (docs, runs, attempts int) { return len(w.docs), len(w.runs), len(w.tries) }

// Version counts the results that added something. Two workspaces of one run
// with the same version are equal.
func (w Workspace) Version() int { return w.version }

// Attempt returns the attempt with that id.
func (w Workspace) Attempt(id string) (Attempt, bool) {
	for _, a := range w.tries {
		if a.ID == id {
			return a, true
		}
	}
	return Attempt{}, false
}

// With returns the workspace with what r adds: new documents first and each id
// once, attempts numbered. If r adds nothing, it returns w.
func (w Workspace) With(r Result) Workspace {
	var docs []Document
	for _, d := range r.Documents {
		same := func(o Document) bool { return o.ID == d.ID && (o.ID != "" || o.Text == d.Text) }
		if !slices.ContainsFunc(docs, same) && !slices.ContainsFunc(w.docs, same) {
			docs = append(docs, d)
		}
	}
	if len(docs) == 0 && len(r.Runs) == 0 && len(r.Attempts) == 0 {
		return w
	}
	next := Workspace{docs: w.docs, version: w.version + 1}
	if len(docs) > 0 {
		next.docs = append(docs, w.docs...)
	}
	next.runs = append(slices.Clip(w.runs), r.Runs...)
	next.tries = append(slices.Clip(w.tries), r.Attempts...)
	for i := len(w.tries); i < len(next.tries); i++ {
		next.tries[i].ID = "attempt-" + strconv.Itoa(i+1)
	}
	return next
}
