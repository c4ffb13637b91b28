package sqlite

import (
	"errors"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// errForeign means that a file is no budget that this version can use.
var errForeign = errors.New("not a budget of this version")

// fail wraps err, unless it is nil.
func (s *Store) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	e := &cost.StoreError{Op: op + " " + s.path, Err: err}
	if errors.Is(err, errForeign) {
		e.Fix = "give another path; this file was left as it is"
		return e
	}
	switch code(err) {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		e.Fix = "the file is damaged or no database: restore it from a copy, or give another path and set the limits to what is left"
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		e.Fix = "free space on the disk, and check it"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		e.Fix = "the file and its folder must be writable"
	case sqlite3.SQLITE_CANTOPEN:
		e.Fix = "the folder must exist, and the file be readable and writable"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		e.Fix = "another process keeps the file locked: try again, or raise WithBusyTimeout"
	}
	return e
}

// locked reports whether err says that somebody else has the file.
func locked(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// code is SQLite's primary result code; what it leaves out says in which part
// of SQLite it happened.
func code(err error) int {
	var db *sqlite.Error
	if errors.As(err, &db) {
		return db.Code() & 0xff
	}
	return 0
}
