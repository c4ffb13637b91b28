package cost

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// Meter is one scope of spending: a tenant, a run, a tool call. Meters nest; a
// call is reserved in all scopes above it or in none. A Meter is safe for
// concurrent use. The nil Meter refuses everything.
type Meter struct {
	mu     *sync.Mutex // one for a whole tree of meters
	path   string
	parent *Meter
	from   *Hold // the hold that this meter spends; nil for an ordinary scope

	limit  units
	subs   map[string]*subUse
	byName *Meter // the nearest scope from here upwards that has subs

	spent Spend
	held  units
	rows  []*Row // each once, whatever the number of scopes that list it
	live  *Hold  // of a hold's own meter: the calls under way below it

	allowUnpriced bool
	onTokens      bool // a scope from here upwards bounds tokens
	onGPUs        bool // a scope from here upwards bounds GPU time
	closed        bool
	quiet         bool // keeps no rows: the only scope within it does
}

// subUse is what one name has taken of a meter.
type subUse struct {
	usd, spent, held Amount
	made, limit      int
}

// NewMeter makes the outermost scope. A zero b.USD is DefaultUSD; other zero
// fields do not bound it. The error is an *InvalidError.
func NewMeter(name string, b Budget) (*Meter, error) {
	root := new(struct {
		Meter
		mutex sync.Mutex
	})
	if err := root.init(&root.mutex, nil, name, &b); err != nil {
		return nil, err
	}
	return &root.Meter, nil
}

// Child makes a scope within m: what it spends, m spends. Zero fields of b do
// not bound it, USD included: m does. Errors are *InvalidError and ErrNoMeter.
func (m *Meter) Child(name string, b Budget) (*Meter, error) {
	if m == nil {
		return nil, ErrNoMeter
	}
	if b.USD.IsZero() {
		b.USD = NoLimit()
	}
	c := new(Meter)
	if err := c.init(m.mu, m, m.path+"/"+name, &b); err != nil {
		return nil, err
	}
	return c, nil
}

func (m *Meter) init(mu *sync.Mutex, parent *Meter, path string, b *Budget) error {
	if err := b.Validate(); err != nil {
		return err
	}
	m.mu, m.parent, m.path, m.limit, m.allowUnpriced = mu, parent, path, b.bounds(), b.AllowUnpriced
	if parent != nil {
		m.byName, m.onTokens, m.onGPUs = parent.byName, parent.onTokens, parent.onGPUs
	}
	if len(b.PerName) > 0 {
		m.byName = m
	}
	m.onTokens, m.onGPUs = m.onTokens || b.Tokens > 0, m.onGPUs || b.GPU > 0
	for name, s := range b.PerName {
		if m.subs == nil {
			m.subs = make(map[string]*subUse, len(b.PerName))
		}
		u := &subUse{usd: s.USD.amount(MaxAmount), limit: boundless.calls}
		if s.Calls > 0 {
			u.limit = s.Calls
		}
		m.subs[name] = u
	}
	return nil
}

// above is the next scope above a byName.
func (m *Meter) above() *Meter {
	if m.parent == nil {
		return nil
	}
	return m.parent.byName
}

// Name is the path of the scope, as in ledger rows: "tenant:42/run-1".
func (m *Meter) Name() string {
	if m == nil {
		return ""
	}
	return m.path
}

// Spent is what m and the scopes within it have been charged.
func (m *Meter) Spent() Spend {
	if m == nil {
		return Spend{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// Left is what may still be reserved here: limit − spent − held, over m and all
// scopes above. What is not bounded is at the largest value of its type.
func (m *Meter) Left() Spend {
	if m == nil {
		return Spend{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, open := m.left()
	if !open {
		return Spend{}
	}
	s := l.spend()
	s.Turns, s.Time = math.MaxInt, math.MaxInt64
	return s
}

// left is the least that m and the scopes above have left; open false: one of
// them is closed.
func (m *Meter) left() (l units, open bool) {
	l = boundless
	for ; m != nil; m = m.parent {
		if m.closed {
			return units{}, false
		}
		l = l.upTo(m.limit.left(&m.spent, &m.held))
		if m.from != nil {
			break // already held in the scopes above
		}
	}
	return l, true
}

// Ledger returns a copy of the rows of m and all scopes within it, in the order
// in which they were settled.
func (m *Meter) Ledger() Ledger {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return ledgerOf(m.rows)
}

// Drain returns the rows and forgets them; what was spent stays counted. It
// keeps the memory of a scope that lives long, such as a tenant's, in bounds.
func (m *Meter) Drain() Ledger {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := ledgerOf(m.rows)
	m.rows = nil
	return rows
}

// ledgerOf is the rows that pointers name.
func ledgerOf(rows []*Row) Ledger {
	if len(rows) == 0 {
		return nil
	}
	l := make(Ledger, len(rows))
	for i, r := range rows {
		l[i] = *r
	}
	return l
}

// Close refuses later reservations, here and in the scopes within. Calls that
// hold something may still settle. It returns what was spent.
func (m *Meter) Close() Spend {
	if m == nil {
		return Spend{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return m.spent
}

// Row is one line of the bill: one attempt to call one model or priced tool.
type Row struct {
	ID           string        `json:"id,omitempty"`   // of the call
	Scope        string        `json:"scope"`          // path of the meter
	Call         string        `json:"call,omitempty"` // id of the tool call within which it happened
	Name         string        `json:"name"`           // model or tool
	Usage        Usage         `json:"usage"`
	USD          Amount        `json:"usd"`
	Held         Amount        `json:"held"`                   // what had been set aside
	Over         Amount        `json:"over,omitempty"`         // charged beyond Held: the provider broke its word
	OverTokens   int64         `json:"over_tokens,omitempty"`  // used beyond what had been set aside, where a budget bounds tokens
	OverGPU      time.Duration `json:"over_gpu,omitempty"`     // the same of GPU time; nanoseconds in JSON
	Basis        Basis         `json:"basis"`                  // where USD comes from
	Inconsistent bool          `json:"inconsistent,omitempty"` // the usage contradicts itself and was clamped
	Start        time.Time     `json:"start"`                  // when it was reserved
	Took         time.Duration `json:"took"`                   // nanoseconds in JSON
	Err          string        `json:"err,omitempty"`          // why the call failed
}

// Ledger is a list of rows.
type Ledger []Row

// Total sums the rows. Calls is the number of rows, Time the sum of what they
// took.
func (l Ledger) Total() Spend {
	var s Spend
	for i := range l {
		r := &l[i]
		s = s.Add(Spend{USD: r.USD, Tokens: r.Usage.Tokens(), Calls: 1, Time: r.Took, GPU: max(r.Usage.GPU, 0)})
		if r.Basis == Unpriced {
			s.Unpriced++
		}
	}
	return s
}

var (
	// ErrExceeded is what every *ExceededError is.
	ErrExceeded = errors.New("cost: budget exceeded")
	// ErrNoMeter means that a metered call found no meter in its context.
	ErrNoMeter = errors.New("cost: no meter in the context: make the call within a run, or put one there with cost.NewContext")
	// ErrClosed means that the meter was closed, for instance because its run
	// has ended.
	ErrClosed = errors.New("cost: the meter is closed: its run or call has ended")
	// ErrSettled means that a hold had already been settled or released.
	ErrSettled = errors.New("cost: the hold was settled before")
)

// ExceededError is a reservation that did not fit.
type ExceededError struct {
	Scope string // path of the meter that refused
	Unit  string // "USD", "tokens", "calls" or "GPU"
	Name  string // model or tool
	Sub   bool   // the limit is Budget.PerName[Name]
	Limit Spend
	Spent Spend
	Held  Spend
	Need  Spend // the call's Floor
}

// Error says what happened, and what to do about it where that is known.
func (e *ExceededError) Error() string {
	limit, spent, held, need := e.Limit.USD.String(), e.Spent.USD.String(), e.Held.USD.String(), e.Need.USD.String()
	switch e.Unit {
	case "tokens":
		limit, spent, held, need = fmt.Sprint(e.Limit.Tokens), fmt.Sprint(e.Spent.Tokens), fmt.Sprint(e.Held.Tokens), fmt.Sprint(e.Need.Tokens)
	case "calls":
		limit, spent, held, need = fmt.Sprint(e.Limit.Calls), fmt.Sprint(e.Spent.Calls), fmt.Sprint(e.Held.Calls), fmt.Sprint(e.Need.Calls)
	case "GPU":
		limit, spent, held, need = e.Limit.GPU.String(), e.Spent.GPU.String(), e.Held.GPU.String(), e.Need.GPU.String()
	}
	field := "Budget." + strings.ToUpper(e.Unit[:1]) + e.Unit[1:]
	if e.Sub {
		field = fmt.Sprintf("Budget.PerName[%q]", e.Name)
	}
	unit := " " + e.Unit
	switch {
	case e.Unit == "USD":
		unit = "" // the amount says it
	case e.Unit == "GPU":
		unit = " of GPU time"
	case need == "1":
		unit = " " + strings.TrimSuffix(e.Unit, "s")
	}
	return fmt.Sprintf("%v: %s needs at least %s%s, and of %s in %q %s are spent and %s held: raise %s or allow something cheaper",
		ErrExceeded, e.Name, need, unit, limit, e.Scope, spent, held, field)
}

// Is makes errors.Is(err, ErrExceeded) true.
func (e *ExceededError) Is(target error) bool { return target == ErrExceeded }
