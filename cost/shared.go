package cost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Scope is a budget above runs that a Store keeps: a tenant's, a team's, a
// day's. What a lease spends counts in all scopes that it was taken from, so a
// tag is a scope, too: Scope{Name: "tag:project=atlas"}.
//
// The limits are the program's and not in the store, which only counts:
// processes that share a scope must state the same ones, and a new limit holds
// from the next lease on.
type Scope struct {
	Name     string         // of the account, for example "tenant:42"
	Budget   Budget         // USD, Tokens, Calls, GPU and AllowUnpriced count. A zero USD is DefaultUSD; other zero fields do not bound. PerName is refused: use a scope of its own
	Every    Period         // how often the budget starts anew; a Name may have several scopes that differ in it
	Location *time.Location // whose calendar Every follows; nil = UTC
}

// DefaultTTL is how long a lease lasts without a sign of life.
const DefaultTTL = 10 * time.Minute

// Shared is budgets that runs, and with a suitable Store processes, have in
// common. It is immutable and safe for concurrent use; make one per
// combination of scopes as you need them, they cost nothing.
//
//	shared, err := cost.Share(store, []cost.Scope{
//		{Name: "tenant:42", Budget: cost.Budget{USD: cost.USD(20)}, Every: cost.Day, Location: berlin},
//		{Name: "tag:project=atlas", Budget: cost.Budget{USD: cost.USD(500)}, Every: cost.Month},
//	})
//	lease, err := shared.Lease(ctx, cost.Budget{USD: cost.USD(0.10)}, cost.WithWait(5*time.Second))
//	defer lease.Close()
//	res, err := o.Run(lease.Context(ctx), task)
//
// # What is guaranteed
//
// A lease is a hold in the store, taken from all scopes at once or from none,
// and its meter spends no more than was granted. Held and spent count alike. So
// the sum of what all processes spend stays within each limit, whatever
// processes are killed, stopped or slow, whatever their clocks say, and whether
// or not a lease has lapsed. It is as hard as one meter's guarantee (see the
// package's documentation): what a provider bills beyond what was reserved is
// counted in full, and is the one way above a limit.
//
// What is given up for that is exactness from below: of a process that dies,
// whatever its leases had not reported counts as spent, in a ledger row marked
// Reserved. A limit holds by the clock of the process that takes a lease: a
// clock that is a day fast takes from tomorrow's window, and tomorrow has that
// much less. A lease counts in the windows in which it was taken, also what it
// spends after their end.
//
// When the store cannot be read or written, nothing is admitted.
type Shared struct {
	store  Store
	scopes []Scope
	ttl    time.Duration
	now    func() time.Time
}

// ShareOption is an option of Share.
type ShareOption interface{ share(*Shared) }

type shareOption func(*Shared)

func (f shareOption) share(s *Shared) { f(s) }

// WithTTL sets how long a lease lasts without Renew (DefaultTTL). One that lapses
// is charged in full until its owner reports. That changes nothing of what is
// admitted, so the time only says when a dead process's hold counts as spent.
func WithTTL(d time.Duration) ShareOption { return shareOption(func(s *Shared) { s.ttl = d }) }

// WithClock sets the clock by which windows and lapses go (time.Now).
func WithClock(now func() time.Time) ShareOption { return shareOption(func(s *Shared) { s.now = now }) }

// Share makes the scopes one budget, of which the smallest part that is left
// counts. The error is an *InvalidError. Nothing is read yet.
func Share(store Store, scopes []Scope, opts ...ShareOption) (*Shared, error) {
	s := &Shared{store: store, scopes: slices.Clone(scopes), ttl: DefaultTTL, now: time.Now}
	for _, o := range opts {
		o.share(s)
	}
	bad := func(field, value, fix string) (*Shared, error) {
		return nil, &InvalidError{Field: field, Value: value, Fix: fix}
	}
	switch {
	case store == nil:
		return bad("Share's store", "nil", "use cost.NewMemory() or sqlite.Open")
	case len(scopes) == 0:
		return bad("Share's scopes", "empty", "name at least one scope to count in")
	case s.ttl <= 0:
		return bad("WithTTL", s.ttl.String(), "use a positive duration")
	case s.now == nil:
		return bad("WithClock", "nil", "use time.Now")
	}
	for i, c := range scopes {
		field := fmt.Sprintf("Scope %q", clip(c.Name, 100))
		if err := c.Budget.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		switch {
		case c.Name == "":
			return bad("Scope.Name", `""`, "name the account, for example tenant:42")
		case !utf8.ValidString(c.Name): // a store would give it back as another
			return bad("Scope.Name", strconv.Quote(clip(c.Name, 100)), "use valid UTF-8")
		case int(c.Every) >= len(periodNames):
			return bad(field+".Every", c.Every.String(), "use Forever, Minute, Hour, Day or Month")
		case len(c.Budget.PerName) > 0:
			return bad(field+".Budget.PerName", strconv.Itoa(len(c.Budget.PerName))+" names", "limit names in the lease's budget, or lease from a scope of that name")
		}
		for _, d := range scopes[:i] {
			if d.Name == c.Name && d.Every == c.Every {
				return bad(field, "listed twice for "+c.Every.String(), "state one budget for a name and period")
			}
		}
	}
	return s, nil
}

// accounts is where a lease that is taken now counts, and when the first of its
// windows ends (zero: none does).
func (s *Shared) accounts(now time.Time) (as []account, end time.Time) {
	as = make([]account, len(s.scopes))
	for i, c := range s.scopes {
		a := account{Key: Key{Scope: c.Name, Every: c.Every}, limit: c.Budget.bounds()}
		if c.Every != Forever {
			start, next := c.Every.Window(now, c.Location)
			a.Start = start.Unix()
			if end.IsZero() || next.Before(end) {
				end = next
			}
		}
		as[i] = a
	}
	return as, end
}

// Balances says what is spent and held in the current window of each scope, in
// the order in which Share got them. Errors are *StoreError and the context's.
func (s *Shared) Balances(ctx context.Context) ([]Balance, error) {
	now := s.now()
	as, _ := s.accounts(now)
	bs := make([]Balance, len(as))
	err := s.store.Update(ctx, func(tx Tx) error {
		if err := lapseDue(tx, now); err != nil {
			return err
		}
		for i := range as {
			var err error
			if bs[i], err = load(tx, as[i].Key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bs, nil
}

// acquire claims, and waits up to the limit for others to give back what they
// hold, or for a new window.
func (s *Shared) acquire(ctx context.Context, h StoredHold, floor, worst Spend, wait time.Duration) (StoredHold, error) {
	deadline := time.Now().Add(wait)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		now := s.now()
		accounts, end := s.accounts(now)
		var got StoredHold
		err := s.store.Update(ctx, func(tx Tx) error {
			got = h
			got.Begun, got.Beat, got.Until = now, now, now.Add(s.ttl)
			return claim(tx, &got, accounts, floor, worst)
		})
		var short *ExceededError
		if err == nil || wait <= 0 || !errors.As(err, &short) {
			return got, err
		}
		left := time.Until(deadline)
		if left <= 0 || !short.mayPass() && (end.IsZero() || end.Sub(now) > left) {
			return got, err
		}
		// A random part keeps those who wait from asking all at once.
		t := time.NewTimer(min(left, pause/2+rand.N(pause)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return got, fmt.Errorf("cost: waiting for %s: %w", short.Scope, context.Cause(ctx))
		}
	}
}

// mayPass reports whether the call would fit if nothing were held.
func (e *ExceededError) mayPass() bool {
	need, limit := e.Need.units(), e.Limit.units()
	left := limit.left(&e.Spent, &units{})
	return need.over(&left) == ""
}
