package code

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// Option sets a limit of an interpreter.
type Option interface{ apply(*javascript) }

type option func(*javascript)

func (f option) apply(j *javascript) { f(j) }

// WithTimeout bounds how long a program runs, from its start and not while it
// waits for others (see WithConcurrency). The default is 10 seconds. It must
// be positive.
func WithTimeout(d time.Duration) Option {
	return option(func(j *javascript) { j.timeout = d })
}

// WithMemory bounds the memory of a running program, in bytes: 4 MiB to 1 GiB,
// rounded up to 64 KB. The default is 128 MiB. It is taken from the system as
// the program touches it, outside Go's heap, and all of it is given back when
// the program ends. Beside it, the stack of a program that recurses as deep as
// it may takes some 16 MB (64 MB on darwin/arm64) until then.
func WithMemory(bytes int) Option {
	return option(func(j *javascript) { j.memory = bytes })
}

// WithOutput bounds what is kept of a program's output, in bytes. The default
// is 64 KiB. The rest is dropped, and the run is marked as truncated; the
// program goes on. It must be positive.
func WithOutput(bytes int) Option {
	return option(func(j *javascript) { j.output = bytes })
}

// WithConcurrency bounds how many programs run at the same time, and so how
// much memory they take together: further ones wait, as long as their context
// lets them. The default is the number of processors that Go uses
// (runtime.GOMAXPROCS). It must be positive.
func WithConcurrency(n int) Option {
	return option(func(j *javascript) { j.parallel = n })
}

const (
	leastMemory = 4 << 20
	mostMemory  = 1 << 30
	// grace is how long a program that was told to stop has until its memory is
	// taken away. The engine asks whether to stop every 10,000 steps of the
	// program: that is soon, unless a step is long.
	grace = 50 * time.Millisecond
)

type javascript struct {
	timeout  time.Duration
	memory   int
	output   int
	parallel int
	slots    chan struct{} // held by running programs
	prelude  string        // compiled
}

// JavaScript is an interpreter of ES2023 in this process: each program gets a
// fresh engine, without a network, files, modules, processes or the host's
// memory. The error is a *LimitError if an option has a value that cannot be
// used, and an *Error if the engine does not start on this machine. See the package for what programs find and how they are bounded. It is
// safe for concurrent use, and needs no closing.
func JavaScript(opts ...Option) (tools.Interpreter, error) {
	j := &javascript{timeout: 10 * time.Second, memory: 128 << 20, output: 64 << 10, parallel: runtime.GOMAXPROCS(0)}
	for _, o := range opts {
		if o != nil {
			o.apply(j)
		}
	}
	switch {
	case j.timeout <= 0:
		return nil, &LimitError{"WithTimeout", fmt.Sprintf("%v is no time: use a positive one, as in 5*time.Second", j.timeout)}
	case j.memory < leastMemory || j.memory > mostMemory:
		return nil, &LimitError{"WithMemory", fmt.Sprintf("%d bytes: use %d (4 MiB) to %d (1 GiB)", j.memory, leastMemory, mostMemory)}
	case j.output <= 0:
		return nil, &LimitError{"WithOutput", fmt.Sprintf("%d bytes: use a positive number", j.output)}
	case j.parallel <= 0:
		return nil, &LimitError{"WithConcurrency", fmt.Sprintf("%d programs: use a positive number", j.parallel)}
	}
	j.slots = make(chan struct{}, j.parallel)
	var err error
	if j.prelude, err = compile(); err != nil {
		return nil, &Error{"start", err}
	}
	return j, nil
}

// compile makes the prelude, in an engine of its own.
func compile() (code string, err error) {
	a, err := newArena(leastMemory)
	if err != nil {
		return "", err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m := &machine{arena: a}
		if code, err = m.compile(); err != nil {
			err = fmt.Errorf("%w: %w", ErrEngine, err)
		}
	}()
	<-done
	return code, errors.Join(err, a.free())
}

// Language is the name in a code fence.
func (j *javascript) Language() string { return "javascript" }

// Run runs a program. Its errors, and that it was stopped at the limit of time
// or memory, are in CodeRun.Err, with lines of the program. The error is an
// *Error: ctx ended before the program did (what it had printed is returned),
// or the engine failed.
func (j *javascript) Run(ctx context.Context, code string) (tools.CodeRun, error) {
	run := tools.CodeRun{Language: j.Language(), Code: code}
	if err := ctx.Err(); err != nil {
		return run, &Error{"wait", err}
	}
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		return run, &Error{"wait", fmt.Errorf("%d other programs run, which is the limit (see WithConcurrency): %w", j.parallel, ctx.Err())}
	}
	a, err := newArena(j.memory)
	if err != nil {
		return run, &Error{"start", err}
	}
	m := &machine{arena: a, out: output{cap: j.output}}
	o, stopped := j.supervise(ctx, m, code)
	run.Output, run.Truncated = m.out.String(), m.out.cut
	if err := a.free(); err != nil {
		return run, &Error{"run", err}
	}
	switch {
	case o == outcome{}:
	case stopped && ctx.Err() != nil:
		return run, &Error{"run", ctx.Err()}
	case stopped:
		f := failure{name: "stopped", stopped: true, message: fmt.Sprintf("it ran for %v, which is the limit; do less work, and print what is known early", j.timeout)}
		if o.failure != nil && o.failure.message == interrupted {
			f.stack = o.failure.stack
		}
		run.Err = f.text(code)
	case o.fault != nil:
		return run, &Error{"run", fmt.Errorf("%w: %v", ErrEngine, o.fault)}
	default:
		run.Err = o.failure.text(code)
	}
	return run, nil
}

// supervise runs the program on a goroutine of its own, and returns when that
// has ended. It tells the program to stop when ctx or the time is over. If that
// does not help, the program is within one long step, where the engine does not
// ask; then its memory is taken away, and it faults.
func (j *javascript) supervise(ctx context.Context, m *machine, code string) (o outcome, stopped bool) {
	done := make(chan outcome, 1)
	go func() { done <- m.execute(j.prelude, code) }()
	limit := time.NewTimer(j.timeout)
	defer limit.Stop()
	select {
	case o = <-done:
		return o, false
	case <-limit.C:
	case <-ctx.Done():
	}
	m.stop.Store(true)
	for wait := grace; ; wait = grace / 10 {
		select {
		case o = <-done:
			return o, true
		case <-time.After(wait):
		}
		if m.seize() == nil { // else the system had no room for the change: once more
			return <-done, true
		}
	}
}
