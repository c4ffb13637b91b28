package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// transaction is the cost.Tx of one Update.
type transaction struct {
	s   *Store
	ctx context.Context
	tx  *sql.Tx
}

// Account reads a balance.
func (t *transaction) Account(k cost.Key) (b cost.Balance, err error) {
	err = t.tx.QueryRowContext(t.ctx, `SELECT usd, tokens, calls, gpu, unpriced, held_usd, held_tokens, held_calls, held_gpu
		FROM accounts WHERE scope = ? AND every = ? AND start = ?`, k.Scope, int64(k.Every), k.Start).Scan(
		&b.Spent.USD, &b.Spent.Tokens, &b.Spent.Calls, &b.Spent.GPU, &b.Spent.Unpriced, &b.Held.USD, &b.Held.Tokens, &b.Held.Calls, &b.Held.GPU)
	if errors.Is(err, sql.ErrNoRows) {
		return cost.Balance{}, nil
	}
	return b, t.s.fail("read "+k.String()+" in", err)
}

// PutAccount writes a balance.
func (t *transaction) PutAccount(k cost.Key, b cost.Balance) error {
	return t.exec(`INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, k.Scope, int64(k.Every), k.Start,
		int64(b.Spent.USD), b.Spent.Tokens, b.Spent.Calls, int64(b.Spent.GPU), b.Spent.Unpriced, int64(b.Held.USD), b.Held.Tokens, b.Held.Calls, int64(b.Held.GPU))
}

// Hold reads a hold.
func (t *transaction) Hold(id string) (h cost.StoredHold, ok bool, err error) {
	var text string
	err = t.tx.QueryRowContext(t.ctx, `SELECT hold FROM holds WHERE id = ?`, id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return h, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &h)
	}
	return h, err == nil, t.s.fail("read a hold in", err)
}

// PutHold writes a hold.
func (t *transaction) PutHold(h cost.StoredHold) error {
	text, err := json.Marshal(h)
	if err != nil {
		return t.s.fail("write a hold in", err)
	}
	from, until := h.Span()
	return t.exec(`INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?, ?)`, h.ID, int64(h.State), nanos(from), nanos(until), string(text))
}

// Due lists open holds outside whose time now is.
func (t *transaction) Due(now time.Time) (due []cost.StoredHold, err error) {
	rows, err := t.tx.QueryContext(t.ctx, `SELECT hold FROM holds WHERE state = 0 AND due_from <= ?1
		UNION SELECT hold FROM holds WHERE state = 0 AND due_before > ?1 LIMIT 100`, nanos(now))
	if err != nil {
		return nil, t.s.fail("read holds in", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var h cost.StoredHold
		if err = rows.Scan(&text); err == nil {
			err = json.Unmarshal([]byte(text), &h)
		}
		if err != nil {
			return nil, t.s.fail("read holds in", err)
		}
		due = append(due, h)
	}
	return due, t.s.fail("read holds in", rows.Err())
}

// PutRow writes a row of the ledger.
func (t *transaction) PutRow(hold string, n int, r cost.Row) error {
	text, err := json.Marshal(r)
	if err != nil {
		return t.s.fail("write a row in", err)
	}
	return t.exec(`INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?)`, hold, n, nanos(r.Start), r.Scope, int64(r.USD), string(text))
}

// DeleteRow removes a row of the ledger.
func (t *transaction) DeleteRow(hold string, n int) error {
	return t.exec(`DELETE FROM ledger WHERE hold = ? AND n = ?`, hold, n)
}

func (t *transaction) exec(query string, args ...any) error {
	_, err := t.tx.ExecContext(t.ctx, query, args...)
	return t.s.fail("write", err)
}

// nanos is an instant as it is stored; those that do not fit are cut off.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	}
	return t.UnixNano()
}

// ledgerPage is how many rows are read at a time.
const ledgerPage = 500

// Ledger yields the rows that leases have reported, lease by lease. It reads
// them in parts, between which others may write; it ends after an error, which
// is a *cost.StoreError or the context's.
func (s *Store) Ledger(ctx context.Context) iter.Seq2[cost.Row, error] {
	return func(yield func(cost.Row, error) bool) {
		hold, n := "", math.MinInt64
		for {
			page, err := s.page(ctx, &hold, &n)
			if err != nil {
				yield(cost.Row{}, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) < ledgerPage {
				return
			}
		}
	}
}

// page reads the rows after row n of hold, and moves these on.
func (s *Store) page(ctx context.Context, hold *string, n *int) (page cost.Ledger, err error) {
	fail := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.fail("read the ledger in", err)
	}
	var rows *sql.Rows
	err = s.patiently(ctx, func() (err error) {
		rows, err = s.db.QueryContext(ctx, `SELECT hold, n, entry FROM ledger WHERE (hold, n) > (?, ?) ORDER BY hold, n LIMIT ?`, *hold, *n, ledgerPage)
		return err
	})
	if err != nil {
		return nil, fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var r cost.Row
		if err = rows.Scan(hold, n, &text); err == nil {
			err = json.Unmarshal([]byte(text), &r)
		}
		if err != nil {
			return nil, fail(err)
		}
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fail(err)
	}
	return page, nil
}
