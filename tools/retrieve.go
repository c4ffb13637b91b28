package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/internal/jsonfix"
	"github.com/toolorchestra/toolorchestra-go/models"
)

const (
	searchName  = "search"
	searchAbout = "Search for information that is missing, and gather the documents found."
	searchK     = 8   // documents a search
	queryBytes  = 390 // longest query that an expert may write
)

// Search is the tool "search": it gathers documents from r. With experts, the
// chosen one writes the query, as in the paper. Without, the query is an
// argument, for which the task itself is proposed.
func Search(r Retriever, experts ...models.Model) (Tool, error) {
	if r == nil {
		return nil, &SpecError{Tool: searchName, Field: "retriever", Fix: "pass what finds documents, for example a search.Index"}
	}
	find := func(ctx context.Context, query string) (Result, error) {
		docs, err := r.Retrieve(ctx, query, searchK)
		if err != nil {
			return Result{}, err
		}
		for i := range docs {
			if docs[i].Source == "" {
				docs[i].Source = r.Name()
			}
		}
		return Result{Text: found(query, docs), Documents: docs}, nil
	}
	if len(experts) == 0 {
		return &searchTool{find: find, source: r.Name()}, nil
	}
	t, err := newExpertTool(searchName, searchAbout, "search",
		"Say what is missing to solve the problem, then write one search query for it between <query> and </query>.", experts)
	if err != nil {
		return nil, err
	}
	t.spec.Sources = []string{r.Name()}
	t.finish = func(ctx context.Context, c Call, _ models.Model, resp *models.Response) (Result, error) {
		query := c.Prompt
		if i := strings.LastIndex(resp.Text, "<query>"); i >= 0 {
			inner, _, _ := strings.Cut(resp.Text[i+len("<query>"):], "</query>")
			if inner = strings.TrimSpace(inner); inner != "" {
				query = inner
			}
		}
		return find(ctx, shorten(query, queryBytes))
	}
	return t, nil
}

func found(query string, docs []Document) string {
	if len(docs) == 0 {
		return fmt.Sprintf("Nothing was found for %q.", shorten(query, 80))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d documents:", len(docs))
	for _, d := range docs {
		title := d.Title
		if title == "" {
			title = shorten(d.Text, 60)
		}
		b.WriteString("\n- " + title)
	}
	return b.String()
}

// shorten cuts s to n bytes at a rune.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// searchTool is Search without experts.
type searchTool struct {
	find   func(context.Context, string) (Result, error)
	source string
}

// Spec describes the tool.
func (t *searchTool) Spec() Spec {
	return Spec{Name: searchName, Description: searchAbout, Effects: ReadOnly | Idempotent | Parallel, Sources: []string{t.source},
		Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"What to look for."}},"required":["query"],"additionalProperties":false}`),
		Propose: func(c Call) []json.RawMessage {
			if strings.TrimSpace(c.Prompt) == "" {
				return nil
			}
			args, err := json.Marshal(map[string]string{"query": c.Prompt})
			if err != nil {
				return nil
			}
			return []json.RawMessage{args}
		}}
}

// Call searches for the query in the arguments.
func (t *searchTool) Call(ctx context.Context, c Call) (Result, error) {
	var in struct {
		Query string `json:"query"`
	}
	v, err := jsonfix.Read(string(c.Args))
	if err == nil && !v.Truncated {
		err = json.Unmarshal(v.JSON, &in)
	}
	if v.Truncated || err != nil || strings.TrimSpace(in.Query) == "" {
		return Result{}, &ArgumentsError{Problem: `write {"query": "what to look for"}`, Truncated: v.Truncated}
	}
	return t.find(ctx, in.Query)
}
