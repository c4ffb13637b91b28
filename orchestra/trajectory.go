package orchestra

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

// Trajectory is what happened in a run: its durable events, in order. Task,
// Turns, Ledger and Result are derived from it. A trajectory is trusted input:
// it carries what was spent. It is not for concurrent use while its run goes on.
type Trajectory struct {
	events []Event
	lines  [][]byte // of a trajectory that was read: unknown fields are kept

	answer    string // of the run on its way
	sources   []string
	truncated bool
}

// Events yields the events.
func (t *Trajectory) Events() iter.Seq[Event] { return slices.Values(t.events) }

// Task is the task, with the defaults that the run filled in and the budget that
// was added later.
func (t *Trajectory) Task() Task {
	var task Task
	for _, e := range t.events {
		switch e := e.(type) {
		case Started:
			task = e.Task
		case Resumed:
			for _, p := range e.Replies {
				if p.kind == addBudget {
					task.Budget = task.Budget.Plus(p.budget)
				}
			}
		}
	}
	return task
}

// Turns lists the decisions and what became of their calls, as they returned.
func (t *Trajectory) Turns() []policy.Turn {
	var turns []policy.Turn
	for _, e := range t.events {
		switch e := e.(type) {
		case Decided:
			turns = append(turns, policy.Turn{N: e.Turn, Decision: e.Decision, Start: e.Start, Took: e.Took})
		case Returned:
			if n := len(turns); n > 0 {
				turns[n-1].Done = append(turns[n-1].Done, e.Outcome)
			}
		}
	}
	return turns
}

// Ledger lists every charge.
func (t *Trajectory) Ledger() cost.Ledger {
	n := 0
	for _, e := range t.events {
		if _, ok := e.(Charged); ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	rows := make(cost.Ledger, 0, n)
	for _, e := range t.events {
		if c, ok := e.(Charged); ok {
			rows = append(rows, c.Row)
		}
	}
	return rows
}

// Result is what the run came to. Of a run that was cut off, Stop is empty.
func (t *Trajectory) Result() *Result {
	r := &Result{Ledger: t.Ledger(), Trajectory: t}
	r.Spent = r.Ledger.Total()
	for _, e := range t.events {
		if s, ok := e.(Started); ok {
			r.Run = s.Run
		}
		switch e := e.(type) {
		case Resumed:
			r.Stop = ""
		case Stopped:
			r.Stop, r.Answer, r.Truncated, r.Sources, r.Spent = e.Stop, e.Answer, e.Truncated, e.Sources, e.Spent
		}
	}
	if r.Stop == Paused {
		r.Pending = t.pending()
	}
	return r
}

// pending are the calls that wait for a reply.
func (t *Trajectory) pending() (ps []Pending) {
	for _, e := range t.events {
		id := ""
		switch e := e.(type) {
		case Waiting:
			ps = slices.DeleteFunc(ps, func(p Pending) bool { return p.ID == e.ID })
			ps = append(ps, e.Pending)
		case Called:
			id = e.ID
		case Returned:
			id = e.ID
		}
		ps = slices.DeleteFunc(ps, func(p Pending) bool { return p.ID == id })
	}
	return ps
}

// WriteTo writes one JSON object a line, each with its "event".
func (t *Trajectory) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for i, e := range t.events {
		line := []byte(nil)
		if i < len(t.lines) {
			line = t.lines[i]
		} else {
			var err error
			if line, err = marshalEvent(e); err != nil {
				return written, err
			}
		}
		n, err := w.Write(append(slices.Clip(line), '\n'))
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// marshalEvent writes an event's fields after its name.
func marshalEvent(e Event) ([]byte, error) {
	if u, ok := e.(Unknown); ok {
		return u.Raw, nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("orchestra: event %q: %w", e.event(), err)
	}
	return append([]byte(`{"event":`+strconv.Quote(e.event())+`,`), b[1:]...), nil
}

// MaxLine bounds a line of a trajectory that is read, in bytes.
const MaxLine = 64 << 20

// ReadTrajectory reads what WriteTo wrote. Events and fields that this version
// does not know are kept. It returns ErrSchema for a later major version, and a
// *LineError for a line that is not an event; what was read before it is
// returned too, so that the torn tail of a crashed run loses only itself.
func ReadTrajectory(r io.Reader) (*Trajectory, error) {
	t := &Trajectory{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		e, err := unmarshalEvent(line)
		if err != nil {
			return t, &LineError{Line: n, Err: err}
		}
		started, first := e.(Started)
		if len(t.events) == 0 && !first {
			return t, &LineError{Line: n, Err: errors.New(`the first event must be "started"`)}
		}
		if first {
			if err := checkSchema(started.Schema); err != nil {
				return t, &LineError{Line: n, Err: err}
			}
		}
		t.events, t.lines = append(t.events, e), append(t.lines, line)
	}
	if err := lines.Err(); err != nil {
		return t, &LineError{Line: len(t.events) + 1, Err: err}
	}
	if len(t.events) == 0 {
		return t, &LineError{Line: 1, Err: errors.New("the trajectory is empty")}
	}
	return t, nil
}

func checkSchema(s string) error {
	name, major, ok := strings.Cut(s, "/")
	ours, _, _ := strings.Cut(Schema, "/")
	n, err := strconv.Atoi(major)
	if !ok || name != ours || err != nil || n != 1 {
		return fmt.Errorf("%w %q: this version reads %s", ErrSchema, s, Schema)
	}
	return nil
}

func unmarshalEvent(line []byte) (Event, error) {
	var head struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	switch head.Event {
	case "":
		return nil, errors.New(`it has no "event"`)
	case "started":
		return decode[Started](line)
	case "deciding":
		return decode[Deciding](line)
	case "decided":
		return decode[Decided](line)
	case "waiting":
		return decode[Waiting](line)
	case "resumed":
		return decode[Resumed](line)
	case "called":
		return decode[Called](line)
	case "returned":
		return decode[Returned](line)
	case "charged":
		return decode[Charged](line)
	case "noted":
		return decode[Noted](line)
	case "stopped":
		return decode[Stopped](line)
	}
	return Unknown{Kind: head.Event, Raw: line}, nil
}

func decode[E Event](line []byte) (Event, error) {
	var e E
	err := json.Unmarshal(line, &e)
	return e, err
}

// LineError is a line of a trajectory that cannot be read.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error says what happened, and what to do about it where that is known.
func (e *LineError) Error() string {
	return fmt.Sprintf("orchestra: trajectory, line %d: %v", e.Line, e.Err)
}

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.Err }
