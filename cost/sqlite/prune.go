package sqlite

import (
	"context"
	"time"
)

// longestWindow is a month and its longest shift of clocks and zones.
const longestWindow = 33 * 24 * time.Hour

// Prune removes what is over since before an instant: leases that were settled
// or lapsed, with their rows, and windows that have ended. What was spent of a
// scope that is never renewed stays counted. Export the Ledger first if it is
// wanted: later it sums up to less than was spent. The ids of pruned leases may
// be taken again, and a lapsed lease whose owner lives yet cannot be corrected
// any more. An instant in the future is now. The error is a *cost.StoreError or the context's.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	if now := time.Now(); before.After(now) {
		before = now
	}
	return s.update(ctx, func(t *transaction) error {
		const over = ` FROM holds WHERE state <> 0 AND due_from < ?`
		if err := t.exec(`DELETE FROM ledger WHERE hold IN (SELECT id`+over+`)`, nanos(before)); err != nil {
			return err
		}
		if err := t.exec(`DELETE`+over, nanos(before)); err != nil {
			return err
		}
		return t.exec(`DELETE FROM accounts WHERE every <> 0 AND start < ?`, before.Add(-longestWindow).Unix())
	})
}
