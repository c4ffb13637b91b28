package agl

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// State is where a rollout is in its life: queuing, running, and then succeeded
// or failed. The server lets it go no other way.
type State string

// The states.
const (
	Queuing   State = "queuing"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
)

// Over reports whether the state is final.
func (s State) Over() bool { return s == Succeeded || s == Failed }

// DefaultTimeout is how long a rollout may run that does not say.
const DefaultTimeout = time.Hour

// Rollout is one entry of the server's queue.
type Rollout struct {
	ID       string
	Input    json.RawMessage // the row of the trainer's data set
	Train    bool            // false: validation
	Timeout  time.Duration   // how long it may run; DefaultTimeout if the server does not say
	Metadata json.RawMessage
	State    State
	Attempt  string    // the newest attempt, whose events count; "" before the first
	Failure  string    // why it failed
	Created  time.Time // by the server's clock, as is Updated
	Updated  time.Time
}

// UnmarshalJSON reads the server's form. What could not be put into a path, or
// has no state that is known, is refused.
func (r *Rollout) UnmarshalJSON(b []byte) error {
	var w struct {
		ID     string          `json:"rollout_id"`
		Input  json.RawMessage `json:"input"`
		Train  *bool           `json:"is_train"`
		Config struct {
			Timeout float64 `json:"timeout_seconds"`
		} `json:"config"`
		Metadata json.RawMessage `json:"metadata"`
		Status   struct {
			State   State   `json:"state"`
			Attempt *string `json:"last_attempt_id"`
			Failure *string `json:"error_message"`
			Created float64 `json:"created_at"`
			Updated float64 `json:"updated_at"`
		} `json:"status"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = Rollout{ID: w.ID, Input: w.Input, Train: w.Train == nil || *w.Train, Timeout: seconds(w.Config.Timeout), Metadata: w.Metadata,
		State: w.Status.State, Created: at(w.Status.Created), Updated: at(w.Status.Updated)}
	if w.Status.Attempt != nil {
		r.Attempt = *w.Status.Attempt
	}
	if w.Status.Failure != nil {
		r.Failure = *w.Status.Failure
	}
	switch r.State {
	case Queuing, Running, Succeeded, Failed:
	default:
		return fmt.Errorf("the rollout %q is in the unknown state %q", r.ID, r.State)
	}
	if err := usable("rollout", r.ID); err != nil {
		return err
	}
	if r.Attempt != "" {
		return usable("attempt", r.Attempt)
	}
	return nil
}

// usable refuses ids that would make another path.
func usable(what, id string) error {
	if id == "" || len(id) > 256 || strings.Trim(id, ".") == "" || strings.ContainsAny(id, "/\\?#%") || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }) {
		return fmt.Errorf("%q is no id of a %s", id, what)
	}
	return nil
}

func seconds(s float64) time.Duration {
	if !(s > 0) {
		return DefaultTimeout
	}
	return time.Duration(min(s, (1000*time.Hour).Seconds()) * float64(time.Second))
}

func at(unix float64) time.Time {
	whole, part := math.Modf(min(max(unix, 0), 1<<40))
	return time.Unix(int64(whole), int64(part*1e9))
}

// Rollouts lists at most limit rollouts that are in one of the states, in the
// order in which they were put into the queue.
func (c *Client) Rollouts(ctx context.Context, limit int, states ...State) ([]Rollout, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	for _, s := range states {
		q.Add("state_in", string(s))
	}
	var out []Rollout
	err := c.call(ctx, http.MethodGet, "/api/rollouts", q, nil, &out)
	return out, err
}

// Rollout reads one rollout.
func (c *Client) Rollout(ctx context.Context, id string) (Rollout, error) {
	var out struct {
		Rollout Rollout `json:"rollout"`
	}
	path, err := rolloutPath(id)
	if err == nil {
		err = c.call(ctx, http.MethodGet, path, nil, nil, &out)
	}
	if err == nil && out.Rollout.ID == "" {
		err = &Error{Op: "GET " + path, Status: http.StatusOK, Retryable: true, Err: fmt.Errorf("%w: it holds no rollout", ErrMalformed)}
	}
	return out.Rollout, err
}

// NewRollout is a rollout to be put into the queue, as the trainer does.
type NewRollout struct {
	ID       string          // "" = the server draws one. Enqueuing an id twice changes nothing
	Input    json.RawMessage // any JSON
	Train    bool
	Timeout  time.Duration // whole seconds; 0 = the server's default
	Metadata map[string]any
}

// MarshalJSON writes the server's form.
func (r NewRollout) MarshalJSON() ([]byte, error) {
	w := map[string]any{"input": r.Input, "is_train": r.Train}
	if r.ID != "" {
		w["rollout_id"] = r.ID
	}
	if r.Timeout > 0 {
		w["config"] = map[string]any{"timeout_seconds": max(int64(r.Timeout/time.Second), 1)}
	}
	if r.Metadata != nil {
		w["metadata"] = r.Metadata
	}
	return json.Marshal(w)
}

// Enqueue puts rollouts into the queue and returns them as the server has them.
func (c *Client) Enqueue(ctx context.Context, rollouts ...NewRollout) ([]Rollout, error) {
	if len(rollouts) == 0 {
		return nil, nil
	}
	var out []Rollout
	err := c.call(ctx, http.MethodPost, "/api/rollouts", nil, rollouts, &out)
	return out, err
}

// Patch is a change of a rollout's state. Empty fields stay as they are.
type Patch struct {
	State   State  `json:"state,omitempty"`
	Attempt string `json:"last_attempt_id,omitempty"` // whose events count from now on
	Failure string `json:"error_message,omitempty"`
}

// Patch changes a rollout and returns it as it is then. The error wraps
// ErrConflict where its state does not allow that, and ErrGone where it was
// deleted.
func (c *Client) Patch(ctx context.Context, id string, p Patch) (Rollout, error) {
	var out Rollout
	path, err := rolloutPath(id)
	if err == nil {
		err = c.call(ctx, http.MethodPatch, path, nil, map[string]Patch{"status": p}, &out)
	}
	return out, err
}

func rolloutPath(id string, more ...string) (string, error) {
	if err := usable("rollout", id); err != nil {
		return "", fmt.Errorf("agl: %w", err)
	}
	return "/api/rollouts/" + url.PathEscape(id) + strings.Join(more, ""), nil
}

// Server is an OpenAI-compatible server of the model under training.
type Server struct {
	Model    string `json:"model"`    // as the gateway's default_proxy.model_name says
	Endpoint string `json:"endpoint"` // with /v1
	Version  int    `json:"version"`  // of the weights: the training step
}

// Register tells the gateway of model servers. The trainer does it.
func (c *Client) Register(ctx context.Context, servers ...Server) error {
	return c.call(ctx, http.MethodPost, "/api/models", nil, servers, nil)
}

// Unregister makes the gateway forget all model servers: the API has no way to
// name one.
func (c *Client) Unregister(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/api/models", nil, nil, nil)
}

// Gateway is the base URL of an OpenAI-compatible server that stands for the
// model under training and records what one attempt samples. It takes chats and
// raw prompts, and does not stream. Its temperature, and the model's name, are
// the gateway's own.
func (c *Client) Gateway(id, attempt string, train bool) (string, error) {
	for what, id := range map[string]string{"rollout": id, "attempt": attempt} {
		if err := usable(what, id); err != nil {
			return "", fmt.Errorf("agl: %w", err)
		}
	}
	mode := "val"
	if train {
		mode = "train"
	}
	return c.base.String() + "/proxy/rollout/" + url.PathEscape(id) + "/attempt/" + url.PathEscape(attempt) + "/mode/" + mode + "/openai/v1", nil
}
