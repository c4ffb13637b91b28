package orchestra

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// history is what a trajectory says about a run that goes on.
type history struct {
	started  Started
	task     Task
	stop     Stop          // of its last part; "" = it was cut off
	active   time.Duration // time that it ran, pauses excluded
	rows     cost.Ledger
	calls    map[string]Called         // that were begun
	returned map[string]policy.Outcome // that are over
	charged  map[string]bool           // calls that are open, and whose charge is known
	waiting  map[string]Pending
	approved map[string]bool
	turns    []pastTurn
	deciding *Deciding // the policy was asked, and nothing is known of it
	missing  cost.Amount
	charges  []Charged // of what was under way, for Resume to make
	said     []Reply   // in all parts
}

// pastTurn is a decision, and the ids of its calls.
type pastTurn struct {
	Decided
	ids  []string
	done []policy.Outcome // in the order in which they returned

	cut   bool // its error is the end of the run, no failure of the policy
	fresh bool // failures are counted anew behind it
}

// readHistory folds the events. A trajectory is trusted, but may end anywhere.
func (r *run) readHistory(t *Trajectory) (*history, error) {
	h := &history{calls: map[string]Called{}, returned: map[string]policy.Outcome{}, charged: map[string]bool{}, waiting: map[string]Pending{}, approved: map[string]bool{}}
	var began, last time.Time
	known := cost.Amount(0) // what the last turn cost, by its outcomes
	listed := cost.Amount(0)
	seen := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	cut := func() { // the part before ended without a word
		if last.After(began) {
			h.active += last.Sub(began)
		}
	}
	for i, e := range t.events {
		switch e := e.(type) {
		case Started:
			if i > 0 {
				return nil, errors.New("orchestra: the trajectory starts twice")
			}
			h.started, h.task = e, e.Task
			began, last = e.At, e.At
		case Resumed:
			if h.stop == "" {
				cut()
			}
			h.stop, began, last = "", e.At, e.At
			h.apply(e.Replies)
		case Deciding:
			h.deciding = &e
		case Decided:
			h.deciding = nil
			p := pastTurn{Decided: e}
			for i := range e.Decision.Calls {
				if e.Err != "" {
					break // they were never made, nor named
				}
				p.ids = append(p.ids, r.identify(e.Decision.Calls, i))
			}
			h.turns = append(h.turns, p)
			known, listed = e.USD, 0
			seen(e.Start.Add(e.Took))
		case Called:
			h.calls[e.ID] = e
			delete(h.charged, e.ID)
			delete(h.waiting, e.ID)
			r.took(e.ID)
		case Waiting:
			h.waiting[e.ID] = e.Pending
			r.took(e.ID)
		case Returned:
			h.returned[e.ID] = e.Outcome
			delete(h.waiting, e.ID)
			r.took(e.ID)
			if e.Err == nil || e.Err.Kind != tools.Interrupted { // that was charged by Resume
				known += e.USD
			}
			if n := len(h.turns); n > 0 {
				h.turns[n-1].done = append(h.turns[n-1].done, e.Outcome)
			}
		case Charged:
			h.rows = append(h.rows, e.Row)
			switch {
			case !e.Lost:
				listed += e.USD
			case e.ID == "":
				h.deciding = nil
			default:
				h.charged[e.ID] = true
			}
			seen(e.Start.Add(e.Took))
		case Stopped:
			h.stop, h.active = e.Stop, e.Spent.Time
			h.deciding = nil // a part that says how it ended has charged everything
			for id := range h.calls {
				if _, open := h.open(id); open {
					h.charged[id] = true
				}
			}
			if n := len(h.turns); n > 0 {
				p := &h.turns[n-1]
				p.fresh = p.fresh || e.Stop == OutOfBudget || e.Stop == OutOfTurns || e.Stop == OutOfTime
				p.cut = p.cut || (e.Stop == OutOfBudget || e.Stop == OutOfTime || e.Stop == Canceled) && !p.Malformed
			}
		}
	}
	if h.started.Schema == "" {
		return nil, &InvalidError{Field: "the trajectory", Fix: "it has no first event: pass one that a run wrote"}
	}
	if h.stop == "" {
		cut()
		h.missing = max(known-listed, 0)
	}
	return h, nil
}

// took notes the id of a call that no decision asked for: of a last attempt.
func (r *run) took(id string) {
	if !slices.Contains(r.ids, id) {
		r.ids = append(r.ids, id)
		r.calls++
	}
}

// apply notes what replies change for good.
func (h *history) apply(replies []Reply) {
	h.said = append(h.said, replies...)
	for _, p := range replies {
		switch p.kind {
		case approve:
			h.approved[p.id] = true
		case addBudget:
			h.task.Budget = h.task.Budget.Plus(p.budget)
		}
	}
}

// lost are the rows of what was under way when the process ended: nobody knows
// what it cost, so each is charged all that was held for it.
func (h *history) lost(run string) (rows []Charged) {
	row := func(id, name string, held cost.Spend) {
		rows = append(rows, Charged{Lost: true, Row: cost.Row{ID: id, Scope: run, Name: name, USD: held.USD, Held: held.USD, Usage: cost.Usage{Input: held.Tokens, GPU: held.GPU}, Basis: cost.Reserved, Start: time.Now(),
			Err: "the process ended during the call: it is charged what was held for it"}})
	}
	if h.deciding != nil {
		row("", policyName, h.deciding.Held)
	}
	for _, p := range h.turns {
		for _, id := range p.ids {
			if c, ok := h.open(id); ok && !h.charged[id] {
				row(id, c.Call.Tool, c.Held)
			}
		}
	}
	for _, id := range h.strays() {
		if !h.charged[id] {
			row(id, h.calls[id].Call.Tool, h.calls[id].Held)
		}
	}
	if h.missing > 0 {
		rows = append(rows, Charged{Row: cost.Row{Scope: run, Name: "unlisted", USD: h.missing, Held: h.missing, Basis: cost.Reserved, Start: time.Now(),
			Err: "the process ended before the rows of the last turn were kept: this is their sum"}})
	}
	return rows
}

// strays are the open calls that no decision asked for: of a last attempt.
func (h *history) strays() (ids []string) {
	for id := range h.calls {
		if _, ok := h.open(id); ok && !slices.ContainsFunc(h.turns, func(p pastTurn) bool { return slices.Contains(p.ids, id) }) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// unfinished reports whether the last turn has something left to do.
func (h *history) unfinished() bool {
	n := len(h.turns)
	if n == 0 || h.turns[n-1].Err != "" {
		return false
	}
	return h.stop == "" || h.stop == Paused || h.stop == Canceled ||
		slices.ContainsFunc(h.turns[n-1].ids, func(id string) bool { _, over := h.returned[id]; return !over })
}

// open returns a call that was begun and is not over.
func (h *history) open(id string) (Called, bool) {
	c, begun := h.calls[id]
	_, over := h.returned[id]
	return c, begun && !over
}

// names are the tools of the calls that were begun, by id.
func (h *history) names() map[string]string {
	m := make(map[string]string, len(h.calls))
	for id, c := range h.calls {
		m[id] = c.Call.Tool
	}
	return m
}

// fits checks that the orchestrator has the tools and experts that the run had.
// Prices, texts and times may change: they are not what was decided on.
func (h *history) fits(o *Orchestrator) error {
	differs := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format+": resume it with what it was started with", append([]any{ErrMismatch}, args...)...)
	}
	if len(h.started.Tools) != len(o.specs) {
		return differs("it has %d tools, and this orchestrator %d", len(h.started.Tools), len(o.specs))
	}
	for i := range o.specs {
		was, is := &h.started.Tools[i], &o.specs[i]
		switch {
		case was.Name != is.Name:
			return differs("its tool %d is %q, and here it is %q", i+1, was.Name, is.Name)
		case !sameJSON(orNull(was.Schema), orNull(is.Schema)):
			return differs("the arguments of %q have another schema", is.Name)
		case was.Effects != is.Effects:
			return differs("%q had the effects %q, and has %q", is.Name, was.Effects, is.Effects)
		case !slices.EqualFunc(was.Choices, is.Choices, func(a, b tools.Choice) bool { return a.Alias == b.Alias && a.Info.Name == b.Info.Name }):
			return differs("%q has other experts", is.Name)
		}
	}
	return nil
}

func orNull(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}

// resumable says why the run cannot go on with these replies, or nil.
func (h *history) resumable(replies []Reply) error {
	more := slices.ContainsFunc(replies, func(p Reply) bool { return p.kind == addBudget })
	switch h.stop {
	case "", Paused, Canceled:
	case OutOfBudget, OutOfTurns, OutOfTime:
		if !more {
			return fmt.Errorf("%w (%s): AddBudget lets it go on", ErrOver, h.stop)
		}
	default:
		return fmt.Errorf("%w (%s)", ErrOver, h.stop)
	}
	answered := map[string]bool{}
	for i, p := range replies {
		field := fmt.Sprintf("reply %d", i+1)
		w, known := h.waiting[p.id]
		switch {
		case p.kind == addBudget:
			if err := p.budget.Validate(); err != nil {
				return &InvalidError{Field: field, Err: err}
			}
		case p.kind == "":
			return &InvalidError{Field: field, Fix: "it is empty: use Approve, Refuse, Provide or AddBudget"}
		case !known:
			return &InvalidError{Field: field, Fix: fmt.Sprintf("no call %q waits for one: see Result.Pending", p.id)}
		case answered[p.id]:
			return &InvalidError{Field: field, Fix: fmt.Sprintf("the call %q has two: decide for one", p.id)}
		case p.kind == approve && w.Why&tools.ClientSide != 0:
			return &InvalidError{Field: field, Fix: fmt.Sprintf("%q is run by you: give its result with Provide, or refuse it", w.Call.Tool)}
		case p.kind == provide && w.Why&tools.ClientSide == 0:
			return &InvalidError{Field: field, Fix: fmt.Sprintf("%q is run here: approve or refuse it", w.Call.Tool)}
		default:
			answered[p.id] = true
		}
	}
	return nil
}
