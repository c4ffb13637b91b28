package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

const (
	application = 0x746f6331 // "toc1", so that no other file is taken for a budget
	version     = 2          // 2: held_gpu
)

// Integers are what cost counts in: 10⁻¹² USD, tokens, calls, nanoseconds of
// GPU time; instants are Unix nanoseconds.
const schema = `
CREATE TABLE accounts (
	scope TEXT NOT NULL, every INTEGER NOT NULL, start INTEGER NOT NULL,
	usd INTEGER NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL, gpu INTEGER NOT NULL, unpriced INTEGER NOT NULL,
	held_usd INTEGER NOT NULL, held_tokens INTEGER NOT NULL, held_calls INTEGER NOT NULL, held_gpu INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (scope, every, start)
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
	id TEXT NOT NULL PRIMARY KEY, state INTEGER NOT NULL, due_before INTEGER NOT NULL, due_from INTEGER NOT NULL,
	hold TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX open_holds ON holds (due_before, due_from) WHERE state = 0;
CREATE TABLE ledger (
	hold TEXT NOT NULL, n INTEGER NOT NULL, start INTEGER NOT NULL, scope TEXT NOT NULL, usd INTEGER NOT NULL, entry TEXT NOT NULL,
	PRIMARY KEY (hold, n)
) STRICT, WITHOUT ROWID;
`

// Store is a cost.Store in a file. It is safe for concurrent use, by several
// processes, too. Close it after its last lease.
type Store struct {
	path string
	db   *sql.DB
	busy time.Duration
	turn chan struct{} // full while a transaction is under way
}

// Option is an option of Open.
type Option interface{ apply(*Store) }

type option func(*Store)

func (f option) apply(s *Store) { f(s) }

// WithBusyTimeout sets how long a transaction waits for those of other
// processes (10 s) before it fails with a *cost.StoreError.
func WithBusyTimeout(d time.Duration) Option {
	return option(func(s *Store) { s.busy = d })
}

// Open opens the file at path, or makes it; its folder must exist. Each
// transaction is on the disk before it counts, so that a power cut forgets
// nothing, either. The error is a *cost.StoreError.
func Open(path string, opts ...Option) (*Store, error) {
	s := &Store{path: path, busy: 10 * time.Second, turn: make(chan struct{}, 1)}
	for _, o := range opts {
		o.apply(s)
	}
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, &cost.StoreError{Op: "open", Err: errors.New("no path"), Fix: "give the path of a file, or use cost.NewMemory()"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, s.fail("open", err)
	}
	slashed := "/" + strings.TrimPrefix(filepath.ToSlash(abs), "/") // C:/a and /a alike
	dsn := "file://" + (&url.URL{Path: slashed}).EscapedPath()
	s.db, err = sql.Open("sqlite", dsn+"?_txlock=immediate&_pragma=busy_timeout(2)&_pragma=synchronous(full)")
	if err != nil {
		return nil, s.fail("open", err)
	}
	// One connection: within a process nobody polls the file's lock.
	s.db.SetMaxOpenConns(1)
	if err := s.prepare(); err != nil {
		_ = s.db.Close()
		return nil, s.fail("open", err)
	}
	return s, nil
}

// prepare makes the tables of a new file, brings those of an older version up to
// date, and checks that they are ours. A program of an older version that has
// the file open cannot write any more, and so admits nothing.
func (s *Store) prepare() error {
	ctx := context.Background()
	err := s.patiently(ctx, func() error {
		_, err := s.db.Exec(`PRAGMA journal_mode=wal`)
		return err
	})
	if err != nil {
		return err
	}
	var tx *sql.Tx
	if err := s.patiently(ctx, func() (err error) { tx, err = s.db.Begin(); return err }); err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	var app, ver, tables int
	err = tx.QueryRow(`SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &ver, &tables)
	switch {
	case err != nil:
		return err
	case app == 0 && ver == 0 && tables == 0:
		if _, err := tx.Exec(schema + fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", application, version)); err != nil {
			return err
		}
		return tx.Commit()
	case app != application:
		return fmt.Errorf("%w: another program's database", errForeign)
	case ver == 1: // it held no GPU time
		if _, err := tx.Exec(`ALTER TABLE accounts ADD COLUMN held_gpu INTEGER NOT NULL DEFAULT 0; PRAGMA user_version=2;`); err != nil {
			return err
		}
		return tx.Commit()
	case ver != version:
		return fmt.Errorf("%w: version %d, and this program knows %d", errForeign, ver, version)
	}
	return nil
}

// Close closes the file. Leases that are still open lapse.
func (s *Store) Close() error { return s.fail("close", s.db.Close()) }

// patiently tries again while others have the file. SQLite's own wait grows to
// a tenth of a second, in which a busy process takes the lock again and again;
// short random waits give each its turn. The error is f's last or ctx's.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	for end := time.Now().Add(s.busy); ; {
		err := f()
		if err == nil || !locked(err) || time.Now().After(end) {
			return err
		}
		t := time.NewTimer(200*time.Microsecond + rand.N(time.Millisecond))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// Update runs f in a transaction that excludes all others, of other processes,
// too. ctx ends the wait for it; a transaction that has begun is finished, since
// nobody could tell whether a cut one counted.
func (s *Store) Update(ctx context.Context, f func(cost.Tx) error) error {
	return s.update(ctx, func(t *transaction) error { return f(t) })
}

func (s *Store) update(ctx context.Context, f func(*transaction) error) error {
	select { // database/sql would serve those who wait at random
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.fail("update", err)
	}
	defer conn.Close()
	sure := context.WithoutCancel(ctx)
	var tx *sql.Tx
	err = s.patiently(ctx, func() (err error) { tx, err = conn.BeginTx(sure, nil); return err })
	if err != nil {
		if err == ctx.Err() {
			return err
		}
		return s.fail("update", err)
	}
	defer tx.Rollback() // does nothing after Commit
	if err := f(&transaction{s: s, ctx: sure, tx: tx}); err != nil {
		return err
	}
	return s.fail("update", tx.Commit())
}
