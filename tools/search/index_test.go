package search_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

func open(t testing.TB, path string, opts ...search.Option) *search.Index {
	t.Helper()
	x, err := search.Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func filled(t testing.TB, path string, docs ...tools.Document) *search.Index {
	t.Helper()
	x := open(t, path)
	if err := x.Add(t.Context(), docs...); err != nil {
		t.Fatal(err)
	}
	return x
}

func find(t testing.TB, x *search.Index, query string, k int) []tools.Document {
	t.Helper()
	docs, err := x.Retrieve(t.Context(), query, k)
	if err != nil {
		t.Fatalf("%.100q: %v", query, err)
	}
	return docs
}

func size(t testing.TB, x *search.Index) int {
	t.Helper()
	n, err := x.Len(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ids(docs []tools.Document) string {
	var s []string
	for _, d := range docs {
		s = append(s, d.ID)
	}
	return strings.Join(s, " ")
}

func TestWords(t *testing.T) {
	x := filled(t, "",
		tools.Document{ID: "snake", Text: "The field max_idle_conns limits the pool."},
		tools.Document{ID: "camel", Text: "See SetMaxOpenConns and HTTPServer for utf8."},
		tools.Document{ID: "cafe", Text: "Le cafe\u0301 est ferm\u00e9."},
		tools.Document{ID: "tokyo", Text: "東京都は日本の首都です。"},
		tools.Document{ID: "greek", Text: "Η Αθήνα είναι πρωτεύουσα."},
		tools.Document{ID: "verb", Text: "It verifies and compares signatures, stopping early. Encryption comes later."},
		tools.Document{ID: "stops", Text: "To be or not to be."},
	)
	for query, want := range map[string]string{
		"max_idle_conns":         "camel snake",
		"idle":                   "snake",
		"open":                   "camel",
		"setmaxopenconns":        "camel",
		"server":                 "camel",
		"UTF-8":                  "camel",
		"café FERMÉ":             "cafe",
		"ferme":                  "cafe",
		"京都":                     "tokyo",
		"αθηνα":                  "greek",
		"verify":                 "verb",
		"compare":                "verb",
		"stopped":                "verb",
		"encrypt":                "verb",
		"signature":              "verb",
		"to be":                  "stops", // nothing but stop words
		"what is the idle thing": "snake",
		"nowhere":                "",
		"":                       "",
		" \t\n":                  "",
		`"'()*:^-+ ?!`:           "",
		`idle" OR "open`:         "camel snake",
		"title: idle":            "snake",
		"NEAR(idle pool, 2)":     "snake",
		"idle AND NOT idle*":     "snake stops",
		"\x00\xff idle \xc3\x28": "snake",
	} {
		got := strings.Fields(ids(find(t, x, query, 0)))
		slices.Sort(got)
		if want := strings.Fields(want); !slices.Equal(got, want) {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
}

func TestRetrieveReturnsWhatWasAdded(t *testing.T) {
	x := open(t, "", search.WithName("notes"))
	d := tools.Document{ID: "a\x00b", Title: "A 'title'", URL: "https://example.com/?a=b", Text: "alpha\x00 beta \xff gamma", Untrusted: true, Source: "elsewhere", Score: 7}
	if err := x.Add(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	got := find(t, x, "gamma", 1)
	if len(got) != 1 {
		t.Fatalf("found %v", got)
	}
	if got[0].Score <= 0 || x.Name() != "notes" {
		t.Errorf("score %v, name %q", got[0].Score, x.Name())
	}
	d.Source, d.Score = "notes", got[0].Score
	if got[0] != d {
		t.Errorf("got  %#v\nwant %#v", got[0], d)
	}
}

func TestAddReplaces(t *testing.T) {
	x := filled(t, "", tools.Document{ID: "a", Text: "first"}, tools.Document{Text: "nameless"}, tools.Document{Text: "nameless"}, tools.Document{ID: "a", Text: "second"})
	if n := size(t, x); n != 2 {
		t.Errorf("%d documents, want 2", n)
	}
	if got := find(t, x, "first", 8); len(got) != 0 {
		t.Errorf("found what was replaced: %v", got)
	}
	if got := find(t, x, "second", 8); ids(got) != "a" {
		t.Errorf("found %v", got)
	}
	if got := find(t, x, "nameless", 8); len(got) != 1 || !strings.HasPrefix(got[0].ID, "sha256-") {
		t.Errorf("found %v", got)
	}
	if err := x.Add(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestK(t *testing.T) {
	var docs []tools.Document
	for i := range 120 {
		docs = append(docs, tools.Document{ID: fmt.Sprint(i), Text: strings.Repeat("needle ", 1+i%7) + "hay"})
	}
	x := filled(t, "", docs...)
	for k, want := range map[int]int{-1: 8, 0: 8, 1: 1, 50: 50, 100: 100, 1 << 40: 120} {
		got := find(t, x, "needle", k)
		if len(got) != want {
			t.Errorf("k=%d: %d documents, want %d", k, len(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b tools.Document) int {
			switch {
			case a.Score > b.Score:
				return -1
			case a.Score < b.Score:
				return 1
			}
			return 0
		}) {
			t.Errorf("k=%d: not best first", k)
		}
	}
}

func TestHugeQuery(t *testing.T) {
	x := filled(t, "", tools.Document{ID: "a", Text: "needle"})
	var many strings.Builder
	for i := range 1 << 20 {
		fmt.Fprint(&many, " word", i, "AndPart é")
	}
	for name, query := range map[string]string{
		"many terms": "needle" + many.String(),
		"one word":   "needle " + strings.Repeat("x", 10<<20),
		"many words": "needle " + strings.Repeat("ab cd é ", 10<<17),
		"stop words": strings.Repeat("the ", 10<<18),
		"points":     "needle" + strings.Repeat(".", 10<<20),
	} {
		begin := time.Now()
		got := find(t, x, query, 8)
		if name != "stop words" && ids(got) != "a" {
			t.Errorf("%s: found %v", name, got)
		}
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b%20c?d#é")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "my index.db")
	docs := passages(300)
	x, err := search.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Add(t.Context(), docs...); err != nil {
		t.Fatal(err)
	}
	query := docs[7].Text[:60]
	before := find(t, x, query, 10)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("a closed index is %d files", len(files))
	}
	y := open(t, path)
	if after := find(t, y, query, 10); !slices.Equal(before, after) || len(after) == 0 {
		t.Errorf("found\n%v\nthen\n%v", ids(before), ids(after))
	}
	if n := size(t, y); n != len(docs) {
		t.Errorf("%d documents, want %d", n, len(docs))
	}
	z := open(t, path) // a second one on the same file
	if err := z.Add(t.Context(), tools.Document{ID: "late", Text: "latecomer"}); err != nil {
		t.Fatal(err)
	}
	if got := find(t, y, "latecomer", 1); ids(got) != "late" {
		t.Errorf("the other index does not see it: %v", got)
	}
}

func TestUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	execute := func(path, stmt string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	good := filepath.Join(dir, "good")
	x, err := search.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Add(t.Context(), passages(200)...), x.Close()); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	const another = "belongs to another program"
	for name, spoil := range map[string]func(path string){
		"text":    func(p string) { os.WriteFile(p, []byte(strings.Repeat("no database ", 1000)), 0o600) },
		"foreign": func(p string) { execute(p, "CREATE TABLE t (a)") },
		"version": func(p string) { os.WriteFile(p, image, 0o600); execute(p, "PRAGMA user_version=99") },
		"table":   func(p string) { os.WriteFile(p, image, 0o600); execute(p, "DROP TABLE docs") },
		"cut":     func(p string) { os.WriteFile(p, image[:len(image)/3], 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			spoil(path)
			before, _ := os.ReadFile(path)
			x, err := search.Open(path)
			if err == nil { // some damage shows only when it is read
				_, err = x.Retrieve(t.Context(), passages(200)[150].Text, 100)
				x.Close()
			}
			var e *search.Error
			if !errors.As(err, &e) || e.Path != path || !errors.Is(err, search.ErrUnusable) || !strings.Contains(err.Error(), path) || (name == "foreign") != strings.Contains(err.Error(), another) {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "x")} {
		var e *search.Error
		if _, err := search.Open(path); !errors.As(err, &e) || e.Op != "open" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestClosed(t *testing.T) {
	x, err := search.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	_, err1 := x.Retrieve(t.Context(), "a word", 1)
	_, err2 := x.Len(t.Context())
	for _, err := range []error{err1, err2, x.Add(t.Context(), tools.Document{ID: "a"})} {
		var e *search.Error
		if !errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
	}
}

func TestContext(t *testing.T) {
	x := filled(t, "", passages(500)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := x.Retrieve(ctx, "a word", 1)
	_, err2 := x.Len(ctx)
	for _, err := range []error{err1, err2, x.Add(ctx, tools.Document{ID: "new"})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	// An index in memory outlives calls that are cancelled while they run, and
	// has either all documents of a call or none.
	more := passages(1000)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
		_, err1 := x.Retrieve(ctx, more[i].Text, 8)
		err2 := x.Add(ctx, more...)
		for _, err := range []error{err1, err2} {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		cancel()
		if n := size(t, x); n != 500 && n != 1000 {
			t.Fatalf("%d documents after a cancelled call", n)
		}
	}
}

func TestConcurrent(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "x")} {
		x := filled(t, path, passages(100)...)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 10 {
					if err := x.Add(t.Context(), tools.Document{ID: fmt.Sprint(g, "-", i), Text: "concurrent needle"}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for range 10 {
					if _, err := x.Retrieve(t.Context(), "a needle in "+passages(1)[0].Text[:40], 8); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := size(t, x); n != 140 {
			t.Errorf("%d documents, want 140", n)
		}
	}
}

// passages makes texts of about 600 characters of a made-up language whose
// words are as unevenly frequent as those of real ones.
func passages(n int) []tools.Document {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 4, 20000)
	docs := make([]tools.Document, n)
	for i := range docs {
		var b strings.Builder
		for b.Len() < 600 {
			b.WriteString(word(z.Uint64()))
			b.WriteString([]string{" ", " ", " ", " ", ", ", ". "}[r.IntN(6)])
		}
		docs[i] = tools.Document{ID: fmt.Sprint("p", i), Text: b.String()}
	}
	return docs
}

func word(n uint64) string {
	const c, v = "bdfgklmnprstvz", "aeiou"
	w := ""
	for n += 100; n > 0; n /= 70 {
		w += string(c[n%14]) + string(v[n/14%5])
	}
	return w
}

// TestKnownItem asks for passages by five of their words.
func TestKnownItem(t *testing.T) {
	docs := passages(300)
	x := filled(t, "", docs...)
	r := rand.New(rand.NewPCG(3, 4))
	hit, asked := 0, 100
	for range asked {
		d := docs[r.IntN(len(docs))]
		words := strings.FieldsFunc(d.Text, func(r rune) bool { return r == ' ' || r == ',' || r == '.' })
		var query []string
		for range 5 {
			query = append(query, words[r.IntN(len(words))])
		}
		if slices.ContainsFunc(find(t, x, strings.Join(query, " "), 10), func(f tools.Document) bool { return f.ID == d.ID }) {
			hit++
		}
	}
	t.Logf("hit@10 %d of %d", hit, asked)
	if hit < 90 {
		t.Errorf("found %d of %d known passages, want 90", hit, asked)
	}
}

func FuzzRetrieve(f *testing.F) {
	x := open(f, "")
	if err := x.Add(f.Context(), passages(50)...); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", `"`, `a" OR "b`, "NEAR(a b)", "a*", "^a", "text:a", "{a b}:c", "a\x00b", "\xff", "İ ǅ ß ﬁ ½", "東京", "e\u0301", "-- ; '", "CamelCase snake_case utf8"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, query string, k int) {
		docs, err := x.Retrieve(t.Context(), query, k)
		if err != nil {
			t.Fatalf("%q: %v", query, err)
		}
		// The reader takes the same text, as a question and as a document.
		y := tools.Workspace{}.With(tools.Result{Documents: append(docs, tools.Document{ID: "q", Text: query})})
		if _, err := search.Reader().Call(t.Context(), tools.Call{Prompt: query, Work: y}); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	docs := passages(1000)
	for b.Loop() {
		x, err := search.Open("")
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(x.Add(b.Context(), docs...), x.Close()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(docs)), "µs/doc")
}

// BenchmarkRetrieve asks 20,000 passages for their five longest words: with
// these frequencies, the rarer ones.
func BenchmarkRetrieve(b *testing.B) {
	docs := passages(20000)
	x := filled(b, "", docs...)
	queries := make([]string, 100)
	for i := range queries {
		words := strings.Fields(docs[i*100].Text)
		slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
		queries[i] = strings.Join(words[:5], " ")
	}
	for i := 0; b.Loop(); i++ {
		find(b, x, queries[i%len(queries)], 8)
	}
}
