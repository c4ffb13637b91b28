package orchestra

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// maxCalls bounds the calls of one decision; the rest is refused.
const maxCalls = 64

// act makes a decision's calls and returns what became of each, in their order.
// The error is that of a tool which must stop the run.
func (r *run) act(calls []policy.Call) ([]policy.Outcome, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	done := make([]policy.Outcome, len(calls))
	for i := range calls {
		done[i].Call = calls[i]
		done[i].ID = r.identify(calls, i)
	}
	fatal := r.carryOut(calls, done, nil)
	return done, fatal
}

// carryOut makes those of a decision's calls whose outcome is not known yet.
func (r *run) carryOut(calls []policy.Call, done []policy.Outcome, known []bool) error {
	jobs := r.jobs[:0]
	waiting := len(r.pending)
	for i := range calls {
		if known != nil && known[i] {
			continue
		}
		o := &done[i]
		j, err := r.admissible(calls, i)
		if err != nil {
			o.Err = err
			err.Tool, err.CallID = o.Call.Tool, o.ID
			continue
		}
		if why := j.tool.spec.Effects & (tools.NeedsApproval | tools.ClientSide); why&tools.ClientSide != 0 || why != 0 && !r.approved[o.ID] {
			r.pending = append(r.pending, Pending{ID: o.ID, Call: o.Call, Why: why})
			continue
		}
		j.out = o
		jobs = append(jobs, j)
	}
	r.jobs = jobs
	jobs = r.reserveFor(jobs)
	fatal := r.execute(jobs)
	for _, j := range jobs {
		if !j.given {
			r.free = append(r.free, j)
		}
	}
	for i := range done {
		if known != nil && known[i] || r.waits(done[i].ID) {
			continue
		}
		r.emit(Returned{done[i]})
		if done[i].Err == nil {
			r.state.Work = r.state.Work.With(done[i].Result)
		}
	}
	r.charged()
	for _, p := range r.pending[waiting:] {
		r.emit(Waiting{p})
	}
	return fatal
}

// waits reports whether a call waits for a reply.
func (r *run) waits(id string) bool {
	return slices.ContainsFunc(r.pending, func(p Pending) bool { return p.ID == id })
}

// identify gives each call of a run an id of its own.
func (r *run) identify(calls []policy.Call, i int) string {
	id := calls[i].ID
	if id != "" && !slices.Contains(r.ids, id) && len(id) <= 100 {
		r.ids = append(r.ids, id)
		return id
	}
	for {
		r.calls++
		if id = "call-" + strconv.Itoa(r.calls); !slices.Contains(r.ids, id) {
			r.ids = append(r.ids, id)
			return id
		}
	}
}

// admissible prepares call i, or says why it may not be made. Nothing is
// reserved yet.
func (r *run) admissible(calls []policy.Call, i int) (*job, *tools.Error) {
	c := calls[i]
	refuse := func(k tools.Kind, format string, args ...any) (*job, *tools.Error) {
		return nil, &tools.Error{Kind: k, Err: fmt.Errorf(format, args...)}
	}
	if i >= maxCalls {
		return refuse(tools.Refused, "at most %d calls are made in one turn", maxCalls)
	}
	if c.ID != "" && slices.ContainsFunc(calls[:i], func(o policy.Call) bool {
		return o.ID == c.ID && o.Tool == c.Tool && sameJSON(o.Args, c.Args)
	}) {
		return refuse(tools.Refused, "the same call, with the id %q, is made already", c.ID)
	}
	t := r.o.tool(c.Tool)
	if t == nil {
		return refuse(tools.Unknown, "there is no such tool: use one of %s", r.o.toolNames())
	}
	if len(c.Args) == 0 && c.Writer == "" {
		c.Args = noArgs
	}
	u, err := r.unitFor(t, c)
	switch {
	case err != nil:
		return nil, &tools.Error{Kind: tools.BadArguments, Err: err}
	case u == nil:
		return refuse(tools.Refused, "%q is not offered by this orchestrator", c.Tool)
	case u.now != "" && u.now != policy.Repeated && u.now != policy.NoArguments:
		return refuse(tools.Refused, "it may not be called now: %s", u.now)
	case u.forever == policy.Forbidden:
		return refuse(tools.Refused, "it may not be called: %s", u.forever)
	case len(c.Args) > 0 && r.repeated(t, c.Args):
		return refuse(tools.Refused, "the same call was made before, and nothing has changed since: %s", policy.Repeated)
	}
	j := r.newJob()
	*j = job{}
	j.tool, j.unit, j.estimate = t, u, u.offer.Estimate
	j.call = r.call("", t, c.Args)
	if c.Writer != "" {
		j.writer = u.writer
	} else if u.why != "" || !sameArgs(u.offer.Args, c.Args) {
		j.estimate = r.estimate(t, c.Args, nil)
	}
	return j, nil
}

var noArgs = json.RawMessage("{}")

// sameArgs is cheap equality: the arguments of an offer usually come back as
// they are.
func sameArgs(a, b json.RawMessage) bool { return a != nil && string(a) == string(b) }

func (o *Orchestrator) tool(name string) *tool {
	for i := range o.tools {
		if o.tools[i].spec.Name == name {
			return &o.tools[i]
		}
	}
	return nil
}

func (o *Orchestrator) toolNames() string {
	names := make([]string, len(o.specs))
	for i := range o.specs {
		names[i] = o.specs[i].Name
	}
	return strings.Join(names, ", ")
}

// unitFor finds the unit that a call means. An expert that does not exist is
// an error; the tool itself says what is wrong with other arguments.
func (r *run) unitFor(t *tool, c policy.Call) (*unit, error) {
	alias := ""
	if len(t.choices) > 0 {
		var in struct {
			Model string `json:"model"`
		}
		if json.Unmarshal(c.Args, &in) == nil {
			alias = in.Model
		}
	}
	var first *unit
	for i := range r.units {
		u := &r.units[i]
		if u.tool != t {
			continue
		}
		if u.choice != nil && u.choice.Alias == alias || u.choice == nil && (u.writer == nil || c.Writer == "" || u.writer.alias == c.Writer) {
			return u, nil
		}
		if first == nil {
			first = u
		}
	}
	if first != nil && len(t.choices) > 0 {
		aliases := make([]string, len(t.choices))
		for i := range t.choices {
			aliases[i] = t.choices[i].Alias
		}
		return nil, &tools.ArgumentsError{Problem: fmt.Sprintf("model is %q: use one of %s", alias, strings.Join(aliases, ", "))}
	}
	return nil, nil
}

// reserveFor sets aside money for all jobs in one step and drops those that do
// not fit. A call that makes an attempt takes the place of the answer reserve,
// so it comes first.
func (r *run) reserveFor(jobs []*job) []*job {
	if len(jobs) == 0 {
		return nil
	}
	order := jobs
	var free []*cost.Hold
	if r.reserve != nil && slices.ContainsFunc(jobs, func(j *job) bool { return j.unit.answers() }) {
		free = []*cost.Hold{r.reserve}
		r.reserve = nil
		order = slices.Clone(jobs)
		slices.SortStableFunc(order, func(a, b *job) int {
			switch x, y := a.unit.answers(), b.unit.answers(); {
			case x && !y:
				return -1
			case y && !x:
				return 1
			}
			return 0
		})
	}
	refuse := func(j *job, err error) {
		if err != nil {
			j.out.Err = &tools.Error{Tool: j.tool.spec.Name, CallID: j.out.ID, Kind: tools.Refused, Err: err}
		}
	}
	if len(order) == 1 && free == nil { // the usual case, without the lists
		j := order[0]
		j.estimate.ID = j.out.ID
		var err error
		j.hold, err = r.meter.Reserve(j.estimate)
		refuse(j, err)
	} else {
		es := make([]cost.Estimate, len(order))
		for i, j := range order {
			j.estimate.ID = j.out.ID
			es[i] = j.estimate
		}
		holds, errs := r.meter.ReserveAll(es, free...)
		for i, j := range order {
			j.hold = holds[i]
			refuse(j, errs[i])
		}
	}
	return slices.DeleteFunc(jobs, func(j *job) bool { return j.hold == nil })
}

// settle ends the hold of a job that came back, or that was given up.
func (r *run) settle(j *job) {
	fee := j.tool.spec.Fee
	switch {
	case j.given:
		j.hold.Settle(cost.Usage{}, cost.Price{}, j.out.Err)
	case fee > 0 && (j.out.Err == nil || j.out.Err.Kind != tools.BadArguments): // then the tool did not run
		var failure error
		if j.out.Err != nil {
			failure = j.out.Err
		}
		j.hold.Settle(cost.Usage{Requests: 1, Known: true}, cost.Price{Request: cost.PerAmount(fee)}, failure)
	}
	j.out.USD = j.hold.Finish().USD
}

// longError is an error whose text was cut to fit into a trajectory.
type longError struct {
	text string
	err  error
}

// Error says what happened, and what to do about it where that is known.
func (e *longError) Error() string { return e.text + " …" }

// Unwrap gives the cause.
func (e *longError) Unwrap() error { return e.err }

// classify turns what a tool returned into an outcome.
func (r *run) classify(j *job) *tools.Error {
	if j.err == nil && j.panicked == nil {
		return nil
	}
	e := &tools.Error{Tool: j.tool.spec.Name, CallID: j.out.ID, Kind: tools.Failed, Err: j.err}
	if j.err != nil && len(j.err.Error()) > maxText {
		e.Err = &longError{brief(j.err.Error()), j.err}
	}
	var args *tools.ArgumentsError
	var inner *tools.Error
	switch {
	case j.panicked != nil:
		r.o.log.Error("orchestra: a tool panicked", "run", r.state.Run, "tool", e.Tool, "panic", j.panicked, "stack", j.stack)
		e.Kind, e.Err = tools.Panicked, fmt.Errorf("it panicked: %s", brief(fmt.Sprint(j.panicked)))
	case errors.Is(j.err, ErrNoAnswer): // of a run within: its kinds are its own
	case errors.As(j.err, &args):
		e.Kind = tools.BadArguments
	case errors.As(j.err, &inner):
		e.Kind = inner.Kind
	case j.late:
		e.Kind = tools.TimedOut
	}
	return e
}
