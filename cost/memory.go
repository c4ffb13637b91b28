package cost

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a Store of one process, which forgets everything with it: for
// windows and tags where nothing need survive. It is safe for concurrent use.
// Rows and settled holds are kept until Drain.
type Memory struct {
	mu       sync.Mutex
	accounts map[Key]Balance
	holds    map[string]StoredHold
	open     map[string]struct{} // of holds
	rows     map[rowKey]Row
}

type rowKey struct {
	hold string
	n    int
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{accounts: map[Key]Balance{}, holds: map[string]StoredHold{}, open: map[string]struct{}{}, rows: map[rowKey]Row{}}
}

// Ledger returns the rows that leases have reported, in the order in which they
// were reserved.
func (m *Memory) Ledger() Ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger()
}

// Drain returns the rows and forgets them, and the ids of leases that are
// settled; what was spent stays counted. It keeps the memory of a process that
// lives long in bounds.
func (m *Memory) Drain() Ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.ledger()
	clear(m.rows)
	maps.DeleteFunc(m.holds, func(_ string, h StoredHold) bool { return h.State == HoldSettled })
	return l
}

func (m *Memory) ledger() Ledger {
	l := make(Ledger, 0, len(m.rows))
	for _, r := range m.rows {
		l = append(l, r)
	}
	slices.SortFunc(l, func(a, b Row) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.ID, b.ID))
	})
	return l
}

// Update runs f. The error is f's or the context's.
func (m *Memory) Update(ctx context.Context, f func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{m: m, accounts: map[Key]Balance{}, holds: map[string]StoredHold{}, rows: map[rowKey]*Row{}}
	if err := f(tx); err != nil {
		return err
	}
	for k, b := range tx.accounts {
		m.accounts[k] = b
	}
	for id, h := range tx.holds {
		m.holds[id] = h
		if h.State == HoldOpen {
			m.open[id] = struct{}{}
		} else {
			delete(m.open, id)
		}
	}
	for k, r := range tx.rows {
		if r == nil {
			delete(m.rows, k)
		} else {
			m.rows[k] = *r
		}
	}
	return nil
}

// memoryTx keeps what was written until it is over.
type memoryTx struct {
	m        *Memory
	accounts map[Key]Balance
	holds    map[string]StoredHold
	rows     map[rowKey]*Row
}

// Account is the balance of an account; zero if there is none.
func (t *memoryTx) Account(k Key) (Balance, error) {
	if b, ok := t.accounts[k]; ok {
		return b, nil
	}
	return t.m.accounts[k], nil
}

// PutAccount replaces it.
func (t *memoryTx) PutAccount(k Key, b Balance) error { t.accounts[k] = b; return nil }

// Hold finds a hold by its id.
func (t *memoryTx) Hold(id string) (StoredHold, bool, error) {
	h, ok := t.holds[id]
	if !ok {
		h, ok = t.m.holds[id]
	}
	return h, ok, nil
}

// PutHold adds or replaces a hold.
func (t *memoryTx) PutHold(h StoredHold) error { t.holds[h.ID] = h; return nil }

// Due lists open holds that are due, at most 100.
func (t *memoryTx) Due(now time.Time) ([]StoredHold, error) {
	var due []StoredHold
	for id := range t.m.open {
		if h, _, _ := t.Hold(id); h.Due(now) && len(due) < 100 {
			due = append(due, h)
		}
	}
	return due, nil
}

// PutRow adds or replaces a row of a hold.
func (t *memoryTx) PutRow(hold string, n int, r Row) error {
	t.rows[rowKey{hold, n}] = &r
	return nil
}

// DeleteRow removes it, if it is there.
func (t *memoryTx) DeleteRow(hold string, n int) error {
	t.rows[rowKey{hold, n}] = nil
	return nil
}
