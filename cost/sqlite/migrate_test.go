package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/cost/sqlite"
)

// versionOne is a file as version 1 wrote it, with one lease of $0.40 open,
// $0.10 of which its owner has reported.
const versionOne = `
CREATE TABLE accounts (
	scope TEXT NOT NULL, every INTEGER NOT NULL, start INTEGER NOT NULL,
	usd INTEGER NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL, gpu INTEGER NOT NULL, unpriced INTEGER NOT NULL,
	held_usd INTEGER NOT NULL, held_tokens INTEGER NOT NULL, held_calls INTEGER NOT NULL,
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
INSERT INTO accounts VALUES ('t', 0, 0, 100000000000, 7, 1, 3000000000, 0, 300000000000, 0, 0);
INSERT INTO holds VALUES ('old', 0, 1777974600000000000, 1777975800000000000,
	'{"id":"old","owner":"o","keys":[{"scope":"t"}],"granted":{"usd":"0.4"},"spent":{"usd":"0.1","tokens":7,"calls":1,"gpu":3000000000},"state":0,"begun":"2026-05-05T10:00:00Z","beat":"2026-05-05T10:00:00Z","until":"2026-05-05T10:10:00Z"}');
INSERT INTO ledger VALUES ('old', 0, 0, 't/old', 100000000000,
	'{"scope":"t/old","name":"m","usage":{"input":7,"gpu":3000000000,"known":true},"usd":"0.1","held":"0.1","basis":"measured","start":"2026-05-05T10:00:00Z","took":1}');
PRAGMA application_id=1953456945; PRAGMA user_version=1;
`

// A file of the first version goes on with what it says, and holds GPU time
// from then on.
func TestFileOfVersionOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.db")
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := old.Exec(versionOne); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 5, 10, 5, 0, 0, time.UTC)
	budget := cost.Budget{USD: cost.USD(1), GPU: 10 * time.Second}
	shared := func(s *sqlite.Store) *cost.Shared {
		b, err := cost.Share(s, []cost.Scope{{Name: "t", Budget: budget}}, cost.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	check := func(b *cost.Shared, spent, held cost.Spend) {
		t.Helper()
		if got, err := b.Balances(t.Context()); err != nil || got[0].Spent != spent || got[0].Held != held {
			t.Errorf("%+v, %v", got, err)
		}
	}
	file := open(t, path)
	b := shared(file)
	check(b, cost.Spend{USD: cost.Dollars(0.1), Tokens: 7, Calls: 1, GPU: 3 * time.Second}, cost.Spend{USD: cost.Dollars(0.3)})
	l, err := b.Lease(t.Context(), cost.Budget{USD: cost.USD(0.2), GPU: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	held := cost.Spend{USD: cost.Dollars(0.5), GPU: 6 * time.Second}
	check(b, cost.Spend{USD: cost.Dollars(0.1), Tokens: 7, Calls: 1, GPU: 3 * time.Second}, held)
	var exceeded *cost.ExceededError
	if _, err := b.Lease(t.Context(), cost.Budget{USD: cost.USD(0.1), GPU: 2 * time.Second}); !errors.As(err, &exceeded) || exceeded.Unit != "GPU" {
		t.Error(err)
	}
	// A program of the first version that has the file open can harm nothing.
	if _, err := old.Exec(`INSERT OR REPLACE INTO accounts VALUES ('t', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`); err == nil {
		t.Error("an older program can write")
	}
	check(shared(open(t, path)), cost.Spend{USD: cost.Dollars(0.1), Tokens: 7, Calls: 1, GPU: 3 * time.Second}, held) // opened a second time
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour) // the old lease lapses
	check(b, cost.Spend{USD: cost.Dollars(0.4), Tokens: 7, Calls: 1, GPU: 3 * time.Second}, cost.Spend{})
	if got := ledger(t, file).Total(); got.USD != cost.Dollars(0.4) || got.GPU != 3*time.Second {
		t.Errorf("%+v", got)
	}
}
