package search

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

const (
	defaultK  = 8
	pool      = 50       // candidates that are ranked again
	rankBytes = 16 << 10 // of a candidate's text
)

// Retrieve returns at most k documents, best first; k below 1 means 8. Every
// word is looked for, none must occur, and no character has a special meaning.
// It reads at most 64 different terms of the query, in its first 64 KB. A query
// without words finds nothing.
//
// BM25 finds candidates, with the title weighing more than the text. They are
// then ranked by BM25 together with how much of the query their title covers
// with their first and with their best sentence, where rare words count more.
func (x *Index) Retrieve(ctx context.Context, query string, k int) ([]tools.Document, error) {
	docs, err := x.retrieve(ctx, query, k)
	return docs, x.fail(ctx, "retrieve", err)
}

func (x *Index) retrieve(ctx context.Context, text string, k int) ([]tools.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if k < 1 {
		k = defaultK
	}
	q := parse(text)
	if len(q.terms) == 0 {
		return nil, nil
	}
	if err := x.weigh(ctx, q); err != nil {
		return nil, err
	}
	docs, err := x.match(ctx, q, max(k, pool))
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	top := docs[0].Score
	for i := range docs {
		docs[i].Score = rank(q, docs[i], docs[i].Score/top)
	}
	slices.SortStableFunc(docs, func(a, b tools.Document) int { return cmp.Compare(b.Score, a.Score) })
	return slices.Clip(docs[:min(k, len(docs))]), nil
}

// weigh gives the terms their inverse document frequencies.
func (x *Index) weigh(ctx context.Context, q *query) error {
	list, err := json.Marshal(q.terms)
	if err != nil {
		return err
	}
	rows, err := x.db.QueryContext(ctx, `SELECT v.term, v.doc, (SELECT max(n) FROM docs)
		FROM json_each(?) AS j CROSS JOIN vocabulary AS v ON v.term = j.value`, string(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	all, having := 0.0, make(map[string]float64)
	for rows.Next() {
		var t string
		var n float64
		if err := rows.Scan(&t, &n, &all); err != nil {
			return err
		}
		having[t] = n
	}
	q.weigh(func(t string) float64 { return math.Log1p((all - having[t] + 0.5) / (having[t] + 0.5)) })
	return rows.Err()
}

// match finds the n best documents by BM25 alone, with that score.
func (x *Index) match(ctx context.Context, q *query, n int) ([]tools.Document, error) {
	// Terms have no quotes in them: all of them are letters and digits.
	expr := `"` + strings.Join(q.terms, `" OR "`) + `"`
	rows, err := x.db.QueryContext(ctx, `SELECT d.id, d.title, d.url, d.text, d.untrusted, -t.rank
		FROM terms AS t CROSS JOIN docs AS d ON d.n = t.rowid
		WHERE terms MATCH ? AND t.rank MATCH 'bm25(4, 1, 2)' ORDER BY t.rank LIMIT ?`, expr, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var docs []tools.Document
	for rows.Next() {
		d := tools.Document{Source: x.name}
		if err := rows.Scan(&d.ID, &d.Title, &d.URL, &d.Text, &d.Untrusted, &d.Score); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, rows.Err()
}

// rank scores a candidate, given its BM25 as a share of the best one's.
func rank(q *query, d tools.Document, bm25 float64) float64 {
	r := read(q, d, rankBytes)
	return bm25 + q.share(r.first)/2 + q.share(r.best)/2
}

// reading is what one document says to a question.
type reading struct {
	sentences   []string
	in          []set // terms of the question in each sentence
	title       set
	top         int // sentence that covers most together with the title; -1 = there is none
	first, best set // terms in the title with the first sentence, and with the top one
}

// read reads the first limit bytes of a document's text. The first of its sentences counts on
// its own, because texts tend to say there what they are about.
func read(q *query, d tools.Document, limit int) reading {
	title := q.in(d.Title)
	r := reading{sentences: sentences(start(d.Text, limit)), title: title, top: -1, first: title, best: title}
	for i, s := range r.sentences {
		in := q.in(s)
		r.in = append(r.in, in)
		if i == 0 {
			r.first |= in
		}
		if r.top < 0 || q.share(title|in) > q.share(r.best) {
			r.top, r.best = i, title|in
		}
	}
	return r
}

// start cuts a text after at most n bytes, between characters.
func start(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
