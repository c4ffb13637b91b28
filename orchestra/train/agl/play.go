package agl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

var errTimeout = errors.New("agl: the rollout took longer than its timeout_seconds")

// one is what became of a rollout.
type one struct {
	job   *Job
	res   *orchestra.Result
	right bool
	err   error // as Play returned it
	late  bool  // it took too long
}

// playAll plays rollouts at once and waits for all.
func (r *run) playAll(ctx context.Context, members []Rollout) []one {
	plays := make([]one, len(members))
	ctx, cancel := context.WithTimeoutCause(ctx, timeout(members), errTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() {
			p := &plays[i]
			if p.job, p.err = r.newJob(&members[i], r.attempt); p.err != nil {
				return
			}
			p.res, p.right, p.err = r.guarded(ctx, p.job)
			if p.err == nil && p.res == nil {
				p.err = errNoPlay
			}
			p.late = p.err != nil && errors.Is(context.Cause(ctx), errTimeout)
		})
	}
	wg.Wait()
	return plays
}

// guarded is Play without its panics.
func (r *run) guarded(ctx context.Context, j *Job) (res *orchestra.Result, right bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("agl: Play panicked", "rollout", j.Rollout.ID, "panic", v, "stack", string(debug.Stack()))
			res, right, err = nil, false, fmt.Errorf("agl: Play panicked: %v", v)
		}
	}()
	return r.play(ctx, j)
}

// crashed says why a rollout is no rollout, or "".
func (p *one) crashed() string {
	switch {
	case p.late:
		return errTimeout.Error()
	case p.err != nil && (p.res == nil || !errors.Is(p.err, orchestra.ErrNoAnswer)):
		return p.err.Error()
	case p.res.Stop == orchestra.Failed:
		return p.failure()
	}
	return ""
}

// failure is why a run failed. It may have an answer all the same, which is then
// what the loop could save, and no error.
func (p *one) failure() string {
	why := "the run failed"
	if p.err != nil {
		why = p.err.Error()
	}
	if p.res.Trajectory != nil {
		for e := range p.res.Trajectory.Events() {
			if s, ok := e.(orchestra.Stopped); ok && s.Err != "" {
				why = s.Err
			}
		}
	}
	return why
}

// row folds a rollout's trajectory.
func (p *one) row(group string) (*train.Rollout, error) {
	if p.res == nil {
		return nil, p.err
	}
	opts := []train.RolloutOption{train.InGroup(0, group), train.Judged(p.right)}
	if p.job.task != "" {
		opts = append(opts, train.OfTask(p.job.task, p.job.category))
	}
	row, err := train.FoldRollout(p.res.Trajectory, opts...)
	if err != nil {
		return nil, err
	}
	row.ID = p.job.Rollout.ID
	row.Seconds = max(row.Seconds-p.job.paused.total().Seconds(), 0)
	return row, nil
}
