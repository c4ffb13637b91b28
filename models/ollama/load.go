package ollama

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

var errClosed = errors.New("the Model was closed")

// Load has the server load the model, and says where it ended up. Nothing but
// Close and Config.LoadTime cuts a load short: when ctx ends first, Load returns
// its error and the load goes on, for others or for the next call. Callers at
// the same time share one load. Calling it for a model that is loaded is cheap.
func (m *Model) Load(ctx context.Context) (Placement, error) {
	if err := wire.Ended(ctx); err != nil {
		return Placement{}, m.self().fail(models.Error{Err: err})
	}
	m.loads.cool()
	if e := m.loads.ready(ctx); e != nil {
		return Placement{}, m.self().fail(*e)
	}
	return m.Placement(ctx)
}

// load asks the server once: a request without a prompt does nothing else.
func (m *Model) load(ctx context.Context) *models.Error {
	if m.doubtful.Swap(false) {
		m.revive(ctx)
	}
	var reply struct {
		Done bool `json:"done"`
	}
	err := m.call(ctx, m.self(), http.MethodPost, pathGenerate, &api.GenerateRequest{
		Model: m.model, Raw: true, Stream: &no, Options: m.options, KeepAlive: m.keepAlive(),
	}, &reply)
	e, _ := errors.AsType[*models.Error](err)
	switch {
	case e == nil && !reply.Done:
		return m.malformed(fmt.Errorf("the model was to be loaded, but is not done: is that Ollama?"), nil)
	case errors.Is(err, errAbility): // it is made for embeddings
		err = m.call(ctx, m.self(), http.MethodPost, pathEmbed, &api.EmbedRequest{
			Model: m.model, Input: []string{}, Options: m.options, KeepAlive: m.keepAlive(),
		}, &struct{}{})
		e, _ = errors.AsType[*models.Error](err)
	}
	return e
}

// Times of reviving a model; the first is for one token.
const (
	aliveTime = 3 * time.Second
	goneTime  = 10 * time.Second
	lookEvery = 50 * time.Millisecond
)

// revive unloads the model if it is stuck. A server of version 0.17.4 that could
// not read a call at times keeps the call's place in the runner for ever; all
// later calls would wait for it. Whatever fails here shows in the load.
func (m *Model) revive(ctx context.Context) {
	options := maps.Clone(m.options)
	options["num_predict"] = 1
	var reply struct{}
	within := func(d time.Duration, in *api.GenerateRequest) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		in.Model, in.Raw, in.Stream = m.model, true, &no
		return m.call(ctx, m.self(), http.MethodPost, pathGenerate, in, &reply)
	}
	err := within(aliveTime, &api.GenerateRequest{Prompt: "\n", Options: options, KeepAlive: m.keepAlive()})
	if !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if within(aliveTime, &api.GenerateRequest{KeepAlive: &api.Duration{}}) != nil {
		return
	}
	// A load that came before it is gone would find it still there.
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if p, err := m.Placement(ctx); err != nil || !p.Loaded {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// loads runs one load at a time, for all who wait for it.
type loads struct {
	load  func(context.Context) *models.Error
	limit time.Duration

	mu      sync.Mutex
	loaded  bool // as far as is known
	closed  bool
	now     *loading // nil = none
	running sync.WaitGroup
}

type loading struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    *models.Error // when done
}

func newLoads(load func(context.Context) *models.Error, limit time.Duration) *loads {
	return &loads{load: load, limit: limit}
}

// ready returns when the model is loaded; its error is a copy of the load's, or
// why ctx ended.
func (l *loads) ready(ctx context.Context) *models.Error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &models.Error{Err: errClosed}
	}
	if l.loaded {
		l.mu.Unlock()
		return nil
	}
	now := l.now
	if now == nil {
		now = l.begin(ctx)
	}
	l.mu.Unlock()
	select {
	case <-now.done:
	case <-ctx.Done():
		return &models.Error{Err: fmt.Errorf("%w while the model was being loaded, which goes on", wire.Ended(ctx))}
	}
	if now.err == nil {
		return nil
	}
	e := *now.err
	e.Sent = false // the caller's own request was not
	return &e
}

// begin starts a load that keeps ctx's values but not its end. The caller holds
// the lock.
func (l *loads) begin(ctx context.Context) *loading {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	now := &loading{cancel: cancel, done: make(chan struct{})}
	l.now = now
	l.running.Go(func() {
		late := fmt.Errorf("not loaded within %s: raise Config.LoadTime, and look at the server's log", l.limit)
		t := time.AfterFunc(l.limit, func() { cancel(late) })
		e := l.load(ctx)
		t.Stop()
		if err := context.Cause(ctx); e != nil && err != nil {
			e = &models.Error{Err: err, Retryable: err == late}
		}
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now, l.loaded = nil, e == nil
		now.err = e
		close(now.done)
	})
	return now
}

// cool forgets that the model is loaded.
func (l *loads) cool() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = false
}

// close ends the load that runs, waits for it, and refuses others.
func (l *loads) close() {
	l.mu.Lock()
	l.closed = true
	if l.now != nil {
		l.now.cancel(errClosed)
	}
	l.mu.Unlock()
	l.running.Wait()
}
