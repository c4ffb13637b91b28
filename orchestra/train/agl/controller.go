package agl

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// Play plays one rollout: it runs the task with the job's policy, and says what
// came of it and whether the answer is right. It is called for all rollouts of a
// group at once, and should end soon after ctx does.
//
// A run without an answer is a rollout like any other, with the reward 0, so
// what Run returns can be returned as it is. So is one that the policy did not
// finish itself (Result.Stop is not orchestra.Answered): the answer is then what
// the loop could save, and must not be learned from. An error without a result, a run
// that failed (orchestra.Failed) and a panic are crashes: the rollout keeps its
// place in the group, with the reward 0, but is marked as failed.
type Play func(ctx context.Context, j *Job) (res *orchestra.Result, right bool, err error)

// Config is what a Controller needs to know. Client, GroupSize and Play must be
// set.
type Config struct {
	Client *Client
	// GroupSize is n, how often the trainer plays a task in a step: verl's
	// actor_rollout_ref.rollout.n. Tasks of validation are played once.
	GroupSize int
	Play      Play
	// Key says which rollouts are of one task. Nil: those of one input.task_id, or,
	// where that is missing, of one input. A task may be in the queue once per
	// step: n rollouts in a row are a group.
	Key func(*Rollout) string
	// Model describes the model under training. The zero value of each field: the
	// name "orchestrator", 32,768 tokens of context, 8,768 of output, and no price,
	// since it runs on one's own GPUs.
	Model models.Info
	// Policy varies Job.Policy.
	Policy []policy.TrainedOption
	// Groups is how many groups are played at once at the most, so that there are
	// up to Groups × GroupSize rollouts. 0 = 16.
	Groups int
	// Formula is how metrics become rewards.
	Formula train.Formula
	// MinStd is the deviation of rewards below which a group teaches nothing: its
	// mean is posted for all its rollouts, so that their advantage is 0. 0 =
	// train.MinStd; below 0: rewards are posted as they are.
	MinStd float64
	// Poll is the time between looks at the queue. 0 = one second.
	Poll time.Duration
	// Patience is how long the server may be out of reach. 0 = five minutes.
	Patience time.Duration
	// Shared: other controllers work on the same queue, so rollouts that are
	// running already are theirs. Otherwise they are those of a controller that is
	// no more: see Run.
	Shared bool
	// OnGroup is told of each group that is over. It is called by one goroutine at
	// a time. May be nil.
	OnGroup func(*Group)
	// Log is told what is worth a look. Nil: silence.
	Log *slog.Logger
}

// Group is a group that was played.
type Group struct {
	Key     string
	Train   bool
	Flat    bool // rewards hardly differed, so that all were posted as their mean
	Members []Member
}

// Member is one rollout of a group.
type Member struct {
	ID      string
	Attempt string
	State   State   // where it was sent
	Failed  string  // why it has no reward
	Reward  float64 // as posted
	// Row is its line for trajectories.jsonl (train.WriteRollouts), with the reward
	// before a flat group was levelled. Its group is named after the first rollout,
	// since a task comes again in each epoch; the step is the trainer's secret, and
	// 0. Nil: it crashed before anything happened.
	Row *train.Rollout
}

// Controller plays the rollouts that a trainer asks for.
type Controller struct {
	client   *Client
	n        int
	play     Play
	key      func(*Rollout) string
	model    models.Info
	policy   []policy.TrainedOption
	groups   int
	formula  train.Formula
	minStd   float64
	poll     time.Duration
	patience time.Duration
	shared   bool
	onGroup  func(*Group)
	log      *slog.Logger
}

// New makes a controller. It does no I/O. Errors are *ConfigError, or those of
// policy.Trained.
func New(c Config) (*Controller, error) {
	bad := func(field, format string, args ...any) (*Controller, error) {
		return nil, &ConfigError{Field: "Config." + field, Fix: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Client == nil:
		return bad("Client", "it is nil: check the error of NewClient")
	case c.GroupSize < 1:
		return bad("GroupSize", "it is %d: set it to the trainer's actor_rollout_ref.rollout.n", c.GroupSize)
	case c.Play == nil:
		return bad("Play", "it is nil: it has to run the task")
	case c.Groups < 0 || c.Poll < 0 || c.Patience < 0:
		return bad("Groups, Poll and Patience", "they must not be negative: use 0 for the default")
	case c.Formula > train.Released:
		return bad("Formula", "there is no formula %d", c.Formula)
	}
	x := &Controller{client: c.Client, n: c.GroupSize, play: c.Play, key: c.Key, model: c.Model, policy: c.Policy, groups: c.Groups,
		formula: c.Formula, minStd: c.MinStd, poll: c.Poll, patience: c.Patience, shared: c.Shared, onGroup: c.OnGroup, log: c.Log}
	x.defaults()
	if _, err := x.newJob(&Rollout{ID: "check", Timeout: DefaultTimeout}, "check"); err != nil {
		return nil, err
	}
	return x, nil
}

// defaults fills in what the configuration leaves open.
func (c *Controller) defaults() {
	if c.key == nil {
		c.key = groupKey
	}
	if c.model.Name == "" {
		c.model.Name = "orchestrator"
	}
	if c.model.Context == 0 {
		c.model.Context = 32768
	}
	if c.model.MaxOutput == 0 {
		c.model.MaxOutput = 8768
	}
	if !c.model.Price.Known() {
		c.model.Price = cost.Free()
	}
	// Raw prompts are asked as they are in training; a schema would hold the model
	// to what it has yet to learn.
	c.model.Raw, c.model.Tools, c.model.Schema = true, true, false
	if c.groups == 0 {
		c.groups = 16
	}
	switch {
	case c.minStd == 0:
		c.minStd = train.MinStd
	case !(c.minStd > 0):
		c.minStd = 0
	}
	if c.poll == 0 {
		c.poll = time.Second
	}
	if c.patience == 0 {
		c.patience = 5 * time.Minute
	}
	if c.onGroup == nil {
		c.onGroup = func(*Group) {}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
}
