package cost

import (
	"fmt"
	"time"
)

// The rules of shared budgets, as transactions on any Store. In each account
// spent + held never exceeds a limit but by what providers bill beyond what was
// reserved: a claim is admitted only below it, a report moves from held to
// spent, a lapse does the same with all that is held.

// account is one bound that a claim has to respect.
type account struct {
	Key
	limit units
}

// load reads an account that only we should have written.
func load(tx Tx, k Key) (Balance, error) {
	b, err := tx.Account(k)
	if err == nil && !b.valid() {
		err = damaged("the account "+k.String(), b)
	}
	return b, err
}

// damaged is a record that no program of ours writes.
func damaged(what string, record any) error {
	return &StoreError{Op: "read " + what, Err: fmt.Errorf("it says %+v", record), Fix: "the store is damaged: restore it from a copy"}
}

// claim sets aside at least floor and at most worst in all accounts, or in none.
// It is idempotent: the same hold of the same owner is granted once.
func claim(tx Tx, h *StoredHold, accounts []account, floor, worst Spend) error {
	old, ok, err := tx.Hold(h.ID)
	switch {
	case err != nil:
		return err
	case ok && old.Owner == h.Owner && old.State == HoldOpen:
		*h = old
		return nil
	case ok:
		return fmt.Errorf("%w: %q, %v, by %s: give another id", ErrLeased, clip(h.ID, 100), old.State, old.Owner)
	}
	if err := lapseDue(tx, h.Begun); err != nil {
		return err
	}
	grant := worst
	balances := make([]Balance, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		b, err := load(tx, a.Key)
		if err != nil {
			return err
		}
		need, held := floor.units(), b.Held.units()
		left := a.limit.left(&b.Spent, &held)
		if unit := need.over(&left); unit != "" {
			return &ExceededError{Scope: a.Key.String(), Unit: unit, Name: "the lease", Need: floor, Spent: b.Spent, Held: b.Held, Limit: a.limit.spend()}
		}
		grant = grant.units().upTo(left).spend()
		balances[i] = b
	}
	h.Keys = make([]Key, len(accounts))
	for i := range accounts {
		h.Keys[i] = accounts[i].Key
		balances[i].Held = balances[i].Held.Add(grant)
		if err := tx.PutAccount(h.Keys[i], balances[i]); err != nil {
			return err
		}
	}
	h.Granted = grant
	return tx.PutHold(*h)
}

// move changes what a hold has in all its accounts.
func move(tx Tx, h *StoredHold, change func(*Balance)) error {
	for _, k := range h.Keys {
		b, err := load(tx, k)
		if err != nil {
			return err
		}
		change(&b)
		if err := tx.PutAccount(k, b); err != nil {
			return err
		}
	}
	return nil
}

func (b *Balance) take(s Spend) {
	b.Held = b.Held.units().minus(s.units()).spend()
}

// report is what an owner says of its hold. Sums are since the beginning, so
// that a report which is sent twice counts once.
type report struct {
	id, owner string
	spent     Spend
	first     int // number of rows[0]
	rows      Ledger
	beat      time.Time
	until     time.Time
	done      bool
}

// lapsedRow numbers the row that says what a lapse charged.
const lapsedRow = -1

// book applies a report. A hold that lapsed meanwhile is open again: what the
// lapse charged is replaced by what its owner says.
func book(tx Tx, r *report) error {
	h, ok, err := tx.Hold(r.id)
	switch {
	case err != nil:
		return err
	case !ok:
		return &StoreError{Op: "settle the lease " + r.id, Err: fmt.Errorf("it is not in the store"), Fix: "do not remove the store while leases are open"}
	case h.Owner != r.owner:
		return fmt.Errorf("%w: %q is %s's", ErrLeased, clip(r.id, 100), h.Owner)
	case !h.valid():
		return damaged("the lease "+clip(r.id, 100), h)
	case h.State == HoldSettled:
		return nil // the answer to the first report was lost
	}
	before, lapsed := h.rem(), h.State == HoldLapsed
	delta := Spend{USD: sub(r.spent.USD, h.Spent.USD), Tokens: sub(r.spent.Tokens, h.Spent.Tokens), Calls: sub(r.spent.Calls, h.Spent.Calls),
		GPU: sub(r.spent.GPU, h.Spent.GPU), Unpriced: sub(r.spent.Unpriced, h.Spent.Unpriced)}
	h.Spent = h.Spent.Add(delta)
	h.State, h.Beat, h.Until = HoldOpen, r.beat, r.until
	after := h.rem()
	if r.done {
		h.State, after = HoldSettled, Spend{}
	}
	if lapsed {
		if err := tx.DeleteRow(h.ID, lapsedRow); err != nil {
			return err
		}
	}
	err = move(tx, &h, func(b *Balance) {
		if lapsed {
			b.Spent.USD, b.Spent.Tokens, b.Spent.Calls = sub(b.Spent.USD, before.USD), sub(b.Spent.Tokens, before.Tokens), sub(b.Spent.Calls, before.Calls)
			b.Spent.GPU = sub(b.Spent.GPU, before.GPU)
		} else {
			b.take(before)
		}
		b.Held = b.Held.Add(after)
		b.Spent = b.Spent.Add(delta)
	})
	if err != nil {
		return err
	}
	for i := range r.rows {
		if err := tx.PutRow(h.ID, r.first+i, r.rows[i]); err != nil {
			return err
		}
	}
	return tx.PutHold(h)
}

// lapseDue charges the holds whose owners were not heard of in time, in full.
// It admits nothing and refuses nothing, as held and spent count alike; it says
// in the ledger what became of the money.
func lapseDue(tx Tx, now time.Time) error {
	due, err := tx.Due(now)
	if err != nil {
		return err
	}
	for i := range due {
		h := &due[i]
		switch {
		case !h.valid():
			return damaged("the lease "+clip(h.ID, 100), *h)
		case !h.Due(now):
			continue
		}
		rem := h.rem()
		err := move(tx, h, func(b *Balance) {
			b.take(rem)
			b.Spent = b.Spent.Add(rem)
		})
		if err != nil {
			return err
		}
		if rem.USD > 0 || rem.Tokens > 0 || rem.GPU > 0 {
			row := Row{ID: h.ID, Scope: h.scope(), Name: "lapsed lease", Usage: Usage{Input: rem.Tokens, GPU: rem.GPU}, USD: rem.USD, Held: rem.USD, Basis: Reserved,
				Start: h.Begun, Err: "nothing was heard of " + h.Owner + " since " + h.Beat.UTC().Format(time.RFC3339) + ": the whole hold is charged"}
			if err := tx.PutRow(h.ID, lapsedRow, row); err != nil {
				return err
			}
		}
		h.State = HoldLapsed
		if err := tx.PutHold(*h); err != nil {
			return err
		}
	}
	return nil
}

// scope is the name that rows of the hold bear.
func (h *StoredHold) scope() string {
	if len(h.Keys) == 0 {
		return h.ID
	}
	return h.Keys[0].Scope + "/" + h.ID
}
