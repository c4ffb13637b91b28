package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// MaxRollout bounds a line of trajectories.jsonl, in bytes: as written, and as
// read.
const MaxRollout = 64 << 20

// ErrRolloutSchema means that a line is no rollout of this major version. It is
// an ErrRollout.
var ErrRolloutSchema = fmt.Errorf("%w: unknown schema", ErrRollout)

// RolloutError is a rollout that cannot be read or written.
type RolloutError struct {
	Line int    // from 1; of a rollout to be written, its number
	ID   string // "" = it states none
	Err  error
}

// Error says which line it is, and what is wrong with it.
func (e *RolloutError) Error() string {
	s := fmt.Sprintf("train: rollouts, line %d", e.Line)
	if e.ID != "" {
		s += fmt.Sprintf(" (%q)", e.ID)
	}
	return s + ": " + strings.TrimPrefix(e.Err.Error(), "train: ")
}

// Unwrap gives the cause.
func (e *RolloutError) Unwrap() error { return e.Err }

// WriteRollouts writes trajectories.jsonl: one JSON object a line, with
// RolloutSchema. The error is that of w, or a *RolloutError for a rollout that
// ReadRollouts would refuse; those before it are written then.
func WriteRollouts(w io.Writer, rollouts ...*Rollout) error {
	for i, r := range rollouts {
		if r == nil {
			return &RolloutError{Line: i + 1, Err: fmt.Errorf("%w: it is nil", ErrRollout)}
		}
		line, err := r.line()
		if err != nil {
			return &RolloutError{Line: i + 1, ID: r.ID, Err: err}
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// line is the rollout as written.
func (r *Rollout) line() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	c := *r
	c.Schema = RolloutSchema
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // prompts are full of < and >
	if err := e.Encode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRollout, err)
	}
	if b.Len() > MaxRollout {
		return nil, fmt.Errorf("%w: it has %d bytes, and a line at most %d", ErrRollout, b.Len(), MaxRollout)
	}
	return b.Bytes(), nil
}

// ReadRollouts reads what WriteRollouts wrote, a line at a time. A line that
// cannot be used is a *RolloutError beside a nil rollout, and reading goes on
// behind it; it wraps ErrRollout, and ErrRolloutSchema for another format or a
// later major version. Turns, and a turn's messages, tools and calls, are 16,384 at
// the most. Empty lines are skipped, and fields that this version
// does not know are ignored. An error of r comes as it is, and is the last.
func ReadRollouts(r io.Reader) iter.Seq2[*Rollout, error] {
	return func(yield func(*Rollout, error) bool) {
		lines := bufio.NewReaderSize(r, 1<<16)
		var text []byte
		for n := 1; ; n++ {
			var err error
			text, err = oneLine(lines, text[:0], MaxRollout)
			over := errors.Is(err, io.EOF)
			long := errors.Is(err, errLong)
			if err != nil && !over && !long {
				yield(nil, err)
				return
			}
			if line := bytes.TrimSpace(text); long || len(line) > 0 {
				rollout, err := readRollout(line, long)
				if err != nil {
					err.Line = n
					if !yield(nil, err) {
						return
					}
				} else if !yield(rollout, nil) {
					return
				}
			}
			if over {
				return
			}
		}
	}
}

var errLong = fmt.Errorf("%w: the line has more than %d bytes", ErrRollout, MaxRollout)

// oneLine appends the next line to buf, without more than limit bytes of it.
func oneLine(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(buf)+len(part) > limit+1; !long { // the line break does not count
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case long: // if it was the last, the next call says so
			return nil, errLong
		default:
			return buf, err
		}
	}
}

// readRollout reads one line.
func readRollout(text []byte, long bool) (*Rollout, *RolloutError) {
	if long {
		return nil, &RolloutError{Err: errLong}
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, &RolloutError{Err: fmt.Errorf("%w: %w", ErrRollout, err)}
	}
	if err := rolloutSchema(head.Schema); err != nil { // before the fields, which a later version may have changed
		return nil, &RolloutError{Err: err}
	}
	var in struct {
		rolloutFields
		Turns list[turn] `json:"turns"`
	}
	err := json.Unmarshal(text, &in)
	r := (*Rollout)(&in.rolloutFields)
	if err != nil {
		return nil, &RolloutError{ID: r.ID, Err: fmt.Errorf("%w: %w", ErrRollout, err)}
	}
	if in.Turns != nil {
		r.Turns = make([]RolloutTurn, len(in.Turns))
	}
	for i := range in.Turns {
		r.Turns[i] = RolloutTurn(in.Turns[i])
	}
	if err := r.check(); err != nil {
		return nil, &RolloutError{ID: r.ID, Err: err}
	}
	return r, nil
}

// maxEntries bounds the entries of a list of objects: "{}," is three bytes of a
// line and three hundred of memory.
const maxEntries = 1 << 14

type rolloutFields Rollout

// list reads a list of at most maxEntries.
type list[T any] []T

// UnmarshalJSON reads entry by entry, and no more than are allowed.
func (l *list[T]) UnmarshalJSON(b []byte) error {
	*l = nil
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return json.Unmarshal(b, (*[]T)(l)) // which says what is wrong
	}
	*l = list[T]{}
	for d.More() {
		if len(*l) == maxEntries {
			return fmt.Errorf("a list has more than %d entries", maxEntries)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// turn reads a turn, whose lists are bounded.
type turn RolloutTurn

// UnmarshalJSON reads the fields of a RolloutTurn.
func (t *turn) UnmarshalJSON(b []byte) error {
	type fields turn
	var in struct {
		fields
		Messages list[RolloutMessage] `json:"messages"`
		Tools    list[models.ToolDef] `json:"tools"`
		Calls    list[RolloutCall]    `json:"tool_calls"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*t = turn(in.fields)
	t.Messages, t.Tools, t.Calls = in.Messages, in.Tools, in.Calls
	return nil
}

// rolloutSchema refuses other formats and later major versions.
func rolloutSchema(s string) error {
	name, major, _ := strings.Cut(s, "/")
	ours, _, _ := strings.Cut(RolloutSchema, "/")
	if n, err := strconv.Atoi(major); name != ours || err != nil || n != 1 {
		return fmt.Errorf("%w %q: this version reads %s", ErrRolloutSchema, s, RolloutSchema)
	}
	return nil
}

// check says what is wrong with a rollout that somebody else made, or nil.
func (r *Rollout) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRollout, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Group == "" || r.ID == "":
		return bad("group_id and rollout_id are needed")
	case r.Step < 0:
		return bad("step is %d: count from 0", r.Step)
	case !r.USD.Valid() || r.USD < 0:
		return bad("cost_usd is %s: it must be 0 or more", r.USD)
	case !amount(r.Seconds):
		return bad("latency_s is %v: it must be a number, 0 or more", r.Seconds)
	case len(r.Turns) > maxEntries:
		return bad("it has %d turns, and at most %d can be read", len(r.Turns), maxEntries)
	case !finite(r.Reward) || !finite(r.Advantage):
		return bad("reward %v and advantage %v must be finite", r.Reward, r.Advantage)
	}
	for n, w := range r.Prefer {
		if !amount(w) || w > 1 {
			return bad("pref_vec[%q] is %v: use 0 to 1", n, w)
		}
	}
	for n, c := range r.Calls {
		if c < 0 {
			return bad("tool_counts[%q] is %d", n, c)
		}
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		switch {
		case max(len(t.Messages), len(t.Tools), len(t.Calls)) > maxEntries:
			return bad("turn %d has %d messages, %d tools and %d calls, and at most %d of each can be read", i+1, len(t.Messages), len(t.Tools), len(t.Calls), maxEntries)
		case !tokens(t.PromptIDs) || !tokens(t.ResponseIDs):
			return bad("turn %d has a negative token id", i+1)
		case len(t.Logprobs) > 0 && len(t.Logprobs) != len(t.ResponseIDs):
			return bad("turn %d has %d logprobs for %d response tokens: give one each, or none", i+1, len(t.Logprobs), len(t.ResponseIDs))
		case !logprobs(t.Logprobs):
			return bad("turn %d has a logprob that is not a logarithm of a probability", i+1)
		case !t.USD.Valid() || t.USD < 0 || !amount(t.Seconds):
			return bad("turn %d costs %s and takes %v s: both must be 0 or more", i+1, t.USD, t.Seconds)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func amount(x float64) bool { return finite(x) && x >= 0 }

func tokens(ids []int32) bool {
	return !slices.ContainsFunc(ids, func(id int32) bool { return id < 0 })
}

func logprobs(ps []float32) bool {
	return !slices.ContainsFunc(ps, func(p float32) bool { return !finite(float64(p)) || p > 0 })
}
