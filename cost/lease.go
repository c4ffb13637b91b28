package cost

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// Lease is a part of a shared budget that its owner may spend: through its
// Meter, in memory, without asking the store again. Close gives back what was
// not needed and writes down the rest. A Lease is safe for concurrent use and
// has no goroutine.
type Lease struct {
	shared *Shared
	stored StoredHold
	hold   *Hold  // all that was granted: ending it ends what is under way below
	meter  *Meter // within the hold; what the owner spends from

	mu      sync.Mutex // one report at a time
	pending Ledger     // rows that the store may not have yet
	first   int        // number of pending[0]
	closed  bool
	done    bool // the store has it
}

// LeaseOption is an option of Shared.Lease.
type LeaseOption interface{ lease(*leasing) }

type leasing struct {
	id      string
	wait    time.Duration
	minimum *Spend
}

type leaseOption func(*leasing)

func (f leaseOption) lease(l *leasing) { f(l) }

// WithWait lets Lease wait, up to d, until others give back enough or a new
// window begins. Those who wait are not served in order. Without it, a lease
// that does not fit is refused at once; what would not fit if nothing were held
// always is, unless a window ends in time.
func WithWait(d time.Duration) LeaseOption { return leaseOption(func(l *leasing) { l.wait = d }) }

// WithMinimum accepts a lease of less than was asked for, down to an amount.
// Of bounded tokens and calls, one is then enough, and a second of GPU time.
func WithMinimum(usd Amount) LeaseOption {
	return leaseOption(func(l *leasing) { l.minimum = &Spend{USD: usd, Tokens: 1, Calls: 1, GPU: time.Second} })
}

// WithLeaseID names the lease, for instance by its run (a random id). An id is
// good for one lease ever: a second one is ErrLeased, so that work that is
// started twice is paid for once.
func WithLeaseID(id string) LeaseOption { return leaseOption(func(l *leasing) { l.id = id }) }

// Lease sets aside b in all scopes, and gives it to a new meter. A zero b.USD is
// DefaultUSD. b.Tokens, b.Calls and b.GPU must be stated where a scope bounds them, and
// b.USD must be a limit where a scope has one. PerName and AllowUnpriced hold
// for the lease; prices may be unknown only where all scopes allow it.
//
// Errors are *ExceededError, *InvalidError, *StoreError, ErrLeased and the
// context's.
func (s *Shared) Lease(ctx context.Context, b Budget, opts ...LeaseOption) (*Lease, error) {
	l := leasing{id: rand.Text()}
	for _, o := range opts {
		o.lease(&l)
	}
	floor, worst, err := s.ask(&b, &l)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only for people
	h := StoredHold{ID: l.id, Owner: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text())}
	if h, err = s.acquire(ctx, h, floor, worst, l.wait); err != nil {
		return nil, err
	}
	return s.open(h, b)
}

// ask checks what a lease wants, and returns the least and the most of it.
func (s *Shared) ask(b *Budget, l *leasing) (floor, worst Spend, err error) {
	if err := b.Validate(); err != nil {
		return floor, worst, err
	}
	bad := func(field, value, fix string) (Spend, Spend, error) {
		return Spend{}, Spend{}, &InvalidError{Field: field, Value: value, Fix: fix}
	}
	as, _ := s.accounts(s.now())
	usd, bounded := b.USD.amount(DefaultUSD), false
	worst = Spend{USD: usd, Tokens: max(b.Tokens, 0), Calls: max(b.Calls, 0), GPU: max(b.GPU, 0)}
	if usd == MaxAmount {
		worst.USD = 0
	}
	for i, a := range as {
		if !s.scopes[i].Budget.AllowUnpriced {
			b.AllowUnpriced = false
		}
		switch {
		case a.limit.usd != MaxAmount && usd == MaxAmount:
			return bad("the lease's Budget.USD", "none", fmt.Sprintf("%q has a limit: state how much of it is wanted", a.Scope))
		case a.limit.tokens != boundless.tokens && worst.Tokens == 0:
			return bad("the lease's Budget.Tokens", "not bounded", fmt.Sprintf("%q bounds tokens: state how many are wanted", a.Scope))
		case a.limit.calls != boundless.calls && worst.Calls == 0:
			return bad("the lease's Budget.Calls", "not bounded", fmt.Sprintf("%q bounds calls: state how many are wanted", a.Scope))
		case a.limit.gpu != boundless.gpu && worst.GPU == 0:
			return bad("the lease's Budget.GPU", "not bounded", fmt.Sprintf("%q bounds GPU time: state how much of it is wanted", a.Scope))
		}
		bounded = bounded || a.limit.usd != MaxAmount
	}
	floor = worst
	if m := l.minimum; m != nil {
		if m.USD < 0 {
			return bad("WithMinimum", m.USD.String(), "use an amount of zero or more")
		}
		floor = m.units().upTo(worst.units()).spend()
	}
	if l.id == "" {
		return bad("WithLeaseID", `""`, "give an id, or leave the option out")
	}
	if !utf8.ValidString(l.id) { // a store would give it back as another
		return bad("WithLeaseID", strconv.Quote(clip(l.id, 100)), "use valid UTF-8")
	}
	return floor, worst, nil
}

// open makes the meter of a hold that was granted.
func (s *Shared) open(h StoredHold, b Budget) (*Lease, error) {
	l := &Lease{shared: s, stored: h}
	if b.USD.amount(DefaultUSD) != MaxAmount {
		b.USD = Max(h.Granted.USD)
	}
	if b.Tokens > 0 {
		b.Tokens = h.Granted.Tokens
	}
	if b.Calls > 0 {
		b.Calls = h.Granted.Calls
	}
	if b.GPU > 0 {
		b.GPU = h.Granted.GPU
	}
	root, err := NewMeter(h.Keys[0].Scope, Budget{USD: b.USD, AllowUnpriced: b.AllowUnpriced})
	if err != nil {
		return nil, err
	}
	all := Spend{USD: b.USD.amount(0), Tokens: AnyTokens}
	hold, err := root.Reserve(Estimate{Name: "lease", ID: h.ID, Worst: all, Priced: true})
	if err != nil {
		return nil, err
	}
	root.quiet, l.hold = true, hold
	l.meter, err = hold.Meter().Child(h.ID, b)
	return l, err
}

// ID is the lease's id in the store, and the last part of its meter's name.
func (l *Lease) ID() string { return l.stored.ID }

// Granted is what the lease set aside; zero in units that neither it nor its
// scopes bound.
func (l *Lease) Granted() Spend { return l.stored.Granted }

// Meter is what the lease may spend. Its rows go to the store with Renew and
// Close; what Drain takes does not.
func (l *Lease) Meter() *Meter { return l.meter }

// Context returns a context that carries the lease's meter: runs and metered
// models below it spend from the lease. A meter that ctx carries already is
// replaced: give its limits to the lease, or make a scope of them.
func (l *Lease) Context(ctx context.Context) context.Context { return NewContext(ctx, l.meter) }

// Renew tells the store that the lease lives, what it has spent so far and the
// rows of its ledger, which the Meter then forgets. Call it now and then in long
// runs: a crash then charges less beyond what is known. The lease need not be
// renewed to be good; one that lapsed is opened again. Errors are *StoreError,
// ErrClosed and the context's; after one, Renew or Close may be called again.
func (l *Lease) Renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w (lease %s)", ErrClosed, l.stored.ID)
	}
	return l.report(ctx, false)
}

// closeLimit bounds Close, which has no context: it must work after the run's
// has ended.
const closeLimit = time.Minute

// Close ends the lease: calls that are under way are charged what they hold,
// later ones are refused, and the store gets the rest back and the rows. After a
// *StoreError it may be called again; if it never succeeds, the lease lapses and
// is charged in full. Closing twice does nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return nil
	}
	if !l.closed {
		l.closed = true
		l.meter.Close()
		l.hold.Finish()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := l.report(ctx, true); err != nil {
		return err
	}
	l.done = true
	return nil
}

// report sends what is new. Rows that did not arrive are sent again next time,
// under the same numbers.
func (l *Lease) report(ctx context.Context, done bool) error {
	l.meter.mu.Lock() // rows and sum of one moment
	fresh, spent := l.meter.rows, l.meter.spent
	l.meter.rows = nil
	l.meter.mu.Unlock()
	if l.pending == nil {
		l.pending = ledgerOf(fresh)
	} else {
		l.pending = append(l.pending, ledgerOf(fresh)...)
	}
	now := l.shared.now()
	r := report{id: l.stored.ID, owner: l.stored.Owner, spent: spent, first: l.first, rows: l.pending, beat: now, until: now.Add(l.shared.ttl), done: done}
	err := l.shared.store.Update(ctx, func(tx Tx) error { return book(tx, &r) })
	if err == nil {
		l.first += len(l.pending)
		l.pending = nil
	}
	return err
}
