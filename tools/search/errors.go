package search

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnusable means that a file is no index that this version can read: another
// kind of file, another version's index, or a damaged one. Delete it, or give
// another path, and add the documents again.
var ErrUnusable = errors.New("not a usable index; delete the file or give another path, and add the documents again")

// Error is an operation of an Index that failed. It wraps the cause: the
// context's error, ErrUnusable, or an error of the database.
type Error struct {
	Op   string // "open", "add", "len", "retrieve" or "close"
	Path string // of the index; "" = in memory
	Err  error
}

// Error says what happened, and what to do about it where that is known.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("search: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("search: %s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail wraps err, unless it is nil, for the caller.
func (x *Index) fail(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err() // database/sql may only say that the transaction is gone
	}
	var db *sqlite.Error
	if errors.As(err, &db) {
		switch db.Code() & 0xff { // the rest of the code says in which part of SQLite
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			err = fmt.Errorf("%w (%w)", ErrUnusable, err)
		case sqlite3.SQLITE_CANTOPEN:
			err = fmt.Errorf("the folder must exist and the file be readable and writable: %w", err)
		case sqlite3.SQLITE_READONLY:
			err = fmt.Errorf("the file and its folder must be writable: %w", err)
		case sqlite3.SQLITE_BUSY:
			err = fmt.Errorf("another process is writing; try again: %w", err)
		}
	}
	return &Error{Op: op, Path: x.path, Err: err}
}
