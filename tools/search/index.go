package search

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Index is a set of documents that is searched by words. It implements
// tools.Retriever. It is safe for concurrent use; searches go on while
// documents are added.
type Index struct {
	path  string // "" = in memory
	name  string
	db    *sql.DB
	write chan struct{} // held while adding: waiters obey their context
}

var _ tools.Retriever = (*Index)(nil)

// Option configures an Index.
type Option interface{ apply(*Index) }

type option func(*Index)

func (f option) apply(x *Index) { f(x) }

// WithName sets the name that preferences and documents carry. The default is
// "local_search".
func WithName(name string) Option { return option(func(x *Index) { x.name = name }) }

// The file is marked as ours. The version changes whenever the tables change or
// text is cut into terms in another way.
const (
	application = 0x746f7278
	version     = 1
)

// Terms are made here and not by SQLite, so that its tokenizer has only to split
// at spaces: ranking and reading then see exactly the terms that were indexed.
const schema = `
CREATE TABLE docs (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, url TEXT NOT NULL, text TEXT NOT NULL, untrusted INTEGER NOT NULL);
CREATE VIRTUAL TABLE terms USING fts5(title, text, words, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('terms', 'row');`

// Open opens the index in the file at path, which is made if there is none. The
// path "" or ":memory:" is an index in memory, gone when it is closed. The
// error is an *Error; it wraps ErrUnusable if the file holds something else.
func Open(path string, opts ...Option) (*Index, error) {
	x := &Index{path: path, name: "local_search", write: make(chan struct{}, 1)}
	for _, o := range opts {
		o.apply(x)
	}
	dsn := "file::memory:?"
	conns := 1 // each connection to :memory: is a database of its own
	if path == "" || path == ":memory:" {
		x.path = ""
	} else {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, x.fail(context.Background(), "open", err)
		}
		slashed := "/" + strings.TrimPrefix(filepath.ToSlash(abs), "/") // C:/a and /a alike
		dsn = "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?"
		conns = runtime.GOMAXPROCS(0) + 1 // searches in parallel, and one writer
	}
	db, err := sql.Open("sqlite", dsn+"_pragma=busy_timeout(5000)&_pragma=synchronous(normal)&_txlock=immediate")
	if err != nil {
		return nil, x.fail(context.Background(), "open", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	x.db = db
	if err := x.prepare(); err != nil {
		_ = db.Close()
		return nil, x.fail(context.Background(), "open", err)
	}
	return x, nil
}

// prepare checks an old file, which it only reads, and makes the tables of a new
// one.
func (x *Index) prepare() error {
	fresh, err := check(x.db)
	if err != nil || !fresh {
		return err
	}
	// The file keeps this mode, in which searches need not wait for a writer. It
	// cannot be set inside a transaction.
	if _, err := x.db.Exec(`PRAGMA journal_mode=wal`); err != nil {
		return err
	}
	tx, err := x.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if fresh, err = check(tx); err != nil || !fresh {
		return err // somebody else was faster
	}
	if _, err := tx.Exec(schema + fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", application, version)); err != nil {
		return err
	}
	return tx.Commit()
}

// check reports whether a database is empty. It is an error if it is neither
// that nor an index.
func check(db interface {
	QueryRow(query string, args ...any) *sql.Row
}) (fresh bool, err error) {
	var app, ver, tables int
	err = db.QueryRow(`SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &ver, &tables)
	switch {
	case err != nil:
		return false, err
	case app == 0 && ver == 0 && tables == 0:
		return true, nil
	case app != application:
		return false, fmt.Errorf("%w (it belongs to another program)", ErrUnusable)
	case ver != version:
		return false, fmt.Errorf("%w (it has version %d, this is %d)", ErrUnusable, ver, version)
	}
	// Reading a row of each table finds missing ones and other damage early.
	var n int
	err = db.QueryRow(`SELECT (SELECT count(*) FROM (SELECT id, title, url, text, untrusted FROM docs LIMIT 1))
		+ (SELECT count(*) FROM (SELECT rowid FROM terms LIMIT 1)) + (SELECT count(*) FROM (SELECT doc FROM vocabulary LIMIT 1))`).Scan(&n)
	if err != nil {
		err = fmt.Errorf("%w (%w)", ErrUnusable, err)
	}
	return false, err
}

// Close releases the index. Calls that come later fail.
func (x *Index) Close() error { return x.fail(context.Background(), "close", x.db.Close()) }

// Name implements tools.Retriever.
func (x *Index) Name() string { return x.name }

// Len counts the documents.
func (x *Index) Len(ctx context.Context) (int, error) {
	var n int
	err := x.db.QueryRowContext(ctx, `SELECT count(*) FROM docs`).Scan(&n)
	return n, x.fail(ctx, "len", err)
}

// Add adds documents, all of them or, if there is an error, none. A document
// replaces the one that has the same ID; one without an ID gets an ID that
// depends only on its title, URL and text. Source and Score are not kept. Many
// documents in one call are much faster than as many calls.
func (x *Index) Add(ctx context.Context, docs ...tools.Document) error {
	if len(docs) == 0 {
		return nil
	}
	select {
	case x.write <- struct{}{}:
		defer func() { <-x.write }()
	case <-ctx.Done():
		return x.fail(ctx, "add", ctx.Err())
	}
	return x.fail(ctx, "add", x.add(ctx, docs))
}

func (x *Index) add(ctx context.Context, docs []tools.Document) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	doc, err := tx.PrepareContext(ctx, `INSERT INTO docs (id, title, url, text, untrusted) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title=excluded.title, url=excluded.url, text=excluded.text, untrusted=excluded.untrusted RETURNING n`)
	if err != nil {
		return err
	}
	defer doc.Close()
	terms, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO terms (rowid, title, text, words) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer terms.Close()
	for _, d := range docs {
		id := d.ID
		if id == "" {
			id = derived(d)
		}
		var n int64
		if err := doc.QueryRowContext(ctx, id, d.Title, d.URL, d.Text, d.Untrusted).Scan(&n); err != nil {
			return err
		}
		title, parts := joined(d.Title)
		text, more := joined(d.Text)
		if _, err := terms.ExecContext(ctx, n, title, text, parts+" "+more); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// derived makes an ID of what is in a document.
func derived(d tools.Document) string {
	h := sha256.New()
	for _, s := range []string{d.Title, d.URL, d.Text} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return "sha256-" + hex.EncodeToString(h.Sum(nil)[:16])
}
