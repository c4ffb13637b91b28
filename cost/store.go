package cost

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps what several meters, runs and processes have spent together. It
// only keeps: what may be spent is decided here, in transactions, so that every
// Store gives the same guarantee. NewMemory is one process's; package
// cost/sqlite has one that processes share and that outlives them.
type Store interface {
	// Update runs f in a transaction. Nobody else reads or writes what f reads
	// until it is over. All that f wrote is kept, and survives a crash as far as
	// the Store promises it, when Update returns nil; f's error and every failure
	// keep nothing, and f's error is returned as it is. f may be run again if the
	// transaction has to be; it must not use the Tx afterwards. An Update that
	// cannot be done is a *StoreError. It is safe for concurrent use.
	Update(ctx context.Context, f func(Tx) error) error
}

// Tx is one transaction of a Store. It is for one goroutine. Its errors end the
// transaction.
type Tx interface {
	// Account is the balance of one window of a scope; zero if there is none.
	Account(Key) (Balance, error)
	// PutAccount replaces it.
	PutAccount(Key, Balance) error
	// Hold finds a hold by its id.
	Hold(id string) (h StoredHold, ok bool, err error)
	// PutHold adds or replaces the hold with h.ID.
	PutHold(h StoredHold) error
	// Due lists up to 100 open holds that StoredHold.Due says are due.
	Due(now time.Time) ([]StoredHold, error)
	// PutRow adds row number n of a hold to the ledger, or replaces it.
	PutRow(hold string, n int, r Row) error
	// DeleteRow removes it, if it is there.
	DeleteRow(hold string, n int) error
}

// Key names one account: what one scope spends in one window.
type Key struct {
	Scope string `json:"scope"`
	Every Period `json:"every,omitempty"`
	Start int64  `json:"start,omitempty"` // of the window, in Unix seconds; 0 for Forever
}

// String is the key for people.
func (k Key) String() string {
	if k.Every == Forever {
		return k.Scope
	}
	return fmt.Sprintf("%s, %v from %s", k.Scope, k.Every, time.Unix(k.Start, 0).UTC().Format(time.RFC3339))
}

// Balance is the state of one account. Both parts count against its limits.
type Balance struct {
	Spent Spend `json:"spent"`
	Held  Spend `json:"held"`
}

// valid says whether the numbers are such as we write.
func (b Balance) valid() bool { return b.Spent.valid() && b.Held.valid() }

func (s Spend) valid() bool {
	return s.USD >= 0 && s.Tokens >= 0 && s.Calls >= 0 && s.GPU >= 0 && s.Unpriced >= 0
}

func (h *StoredHold) valid() bool {
	return h.ID != "" && len(h.Keys) > 0 && h.Granted.valid() && h.Spent.valid() && h.State <= HoldSettled
}

// HoldState is how far a stored hold has come.
type HoldState uint8

const (
	HoldOpen    HoldState = iota // its owner may spend it
	HoldLapsed                   // its owner was not heard of in time: charged in full
	HoldSettled                  // its owner has said what it spent
)

// String is the name of the state.
func (s HoldState) String() string {
	switch s {
	case HoldOpen:
		return "open"
	case HoldLapsed:
		return "lapsed"
	case HoldSettled:
		return "settled"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// StoredHold is what a Lease has set aside in a Store.
type StoredHold struct {
	ID      string    `json:"id"`
	Owner   string    `json:"owner"` // host, process and a random part
	Keys    []Key     `json:"keys"`  // the accounts that count it
	Granted Spend     `json:"granted"`
	Spent   Spend     `json:"spent"` // as far as its owner has said
	State   HoldState `json:"state"`
	Begun   time.Time `json:"begun"`
	Beat    time.Time `json:"beat"`  // when its owner was last heard of, by the owner's clock
	Until   time.Time `json:"until"` // when it lapses unless its owner is heard of again
}

// Due reports whether the hold should lapse: its time is over, or the clock has
// gone back so far that its time says nothing.
func (h *StoredHold) Due(now time.Time) bool {
	from, until := h.Span()
	return h.State == HoldOpen && (now.Before(from) || !now.Before(until))
}

// Span is the time outside which an open hold is due: as long before its last
// heartbeat as it lasts after it.
func (h *StoredHold) Span() (from, until time.Time) {
	return h.Beat.Add(-h.Until.Sub(h.Beat)), h.Until
}

// rem is what its owner may still spend of it.
func (h *StoredHold) rem() Spend {
	return h.Granted.units().minus(h.Spent.units()).spend()
}

var (
	// ErrStore is what every *StoreError is.
	ErrStore = errors.New("cost: the store of the shared budget failed")
	// ErrLeased means that a lease with this id exists or existed.
	ErrLeased = errors.New("cost: a lease with this id was taken before")
)

// StoreError is a Store that could not do its work: a full disk, a damaged or
// read-only file, a lock that stays taken. Nothing was admitted.
type StoreError struct {
	Op  string // what was tried, with the name of the store, for example "update /var/lib/budget.db"
	Fix string // what to do about it
	Err error
}

// Error says what happened, and what to do about it where that is known.
func (e *StoreError) Error() string {
	s := fmt.Sprintf("%v: %s: %v", ErrStore, e.Op, e.Err)
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	return s
}

// Unwrap gives the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrStore) true.
func (e *StoreError) Is(target error) bool { return target == ErrStore }
