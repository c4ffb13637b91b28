package agl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"
)

// Reward is a scalar reward of a whole rollout.
type Reward struct {
	Value  float64 `json:"value"`
	Source string  `json:"source,omitempty"` // who says so
	Reason string  `json:"reason,omitempty"` // why, where it needs saying
}

// Reward posts a reward for an attempt. Of several, the trainer takes the last.
func (c *Client) Reward(ctx context.Context, id, attempt string, r Reward) error {
	if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return fmt.Errorf("agl: a reward of %v: use a finite number", r.Value)
	}
	if err := usable("attempt", attempt); err != nil {
		return fmt.Errorf("agl: %w", err)
	}
	path, err := rolloutPath(id, "/attempt/", url.PathEscape(attempt), "/events")
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, nil, map[string]any{"event_type": "reward", "data": r}, nil)
}

// Triplet is one call of the model, as the trainer reads it: a row to learn from.
type Triplet struct {
	Attempt     string
	At          time.Time // by the server's clock
	PromptIDs   []int32   // token ids
	ResponseIDs []int32
	Logprobs    []float64 // natural logarithms, one per response token; nil = none, or none that can be used
	Model       string    // that served it
	Version     int       // of its weights
	Status      int       // of HTTP, of the model server's reply; such rows as fail are not learned from
}

// Triplets reads what the trainer will learn from in a rollout's newest attempt:
// the calls of the model, and the reward that counts (nil = none). Of calls with
// the same prompt the server keeps the last, so a turn that was asked again, since
// its output was malformed, is learned from as it was at last.
func (c *Client) Triplets(ctx context.Context, id string) ([]Triplet, *Reward, error) {
	return c.events(ctx, id, url.Values{"format": {"triplet"}})
}

func (c *Client) events(ctx context.Context, id string, query url.Values) ([]Triplet, *Reward, error) {
	path, err := rolloutPath(id, "/events")
	if err != nil {
		return nil, nil, err
	}
	var out triplets
	err = c.call(ctx, http.MethodGet, path, query, nil, &out)
	return out.rows, out.reward, err
}

// reward reads only the reward that counts; nil = none.
func (c *Client) reward(ctx context.Context, id string) (*Reward, error) {
	_, r, err := c.events(ctx, id, url.Values{"event_type": {"reward"}})
	return r, err
}

// triplets reads a list of events.
type triplets struct {
	rows   []Triplet
	reward *Reward
}

// UnmarshalJSON keeps the kinds of events that it knows.
func (t *triplets) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	switch first, err := d.Token(); {
	case err != nil:
		return err
	case first != nil && first != json.Delim('['):
		return fmt.Errorf("it begins with %v: it is no list of events", first)
	}
	for i := 0; d.More(); i++ { // one at a time: a list of nothing would be long
		var e struct {
			Type    string          `json:"event_type"`
			Attempt string          `json:"attempt_id"`
			At      float64         `json:"timestamp"`
			Data    json.RawMessage `json:"data"`
		}
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		switch e.Type {
		case "reward":
			var r struct {
				Value  *float64 `json:"value"`
				Source string   `json:"source"`
				Reason string   `json:"reason"`
			}
			if err := json.Unmarshal(e.Data, &r); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			t.reward = nil // the trainer takes a reward that is no number for none
			if r.Value != nil {
				t.reward = &Reward{Value: *r.Value, Source: r.Source, Reason: r.Reason}
			}
		case "model_request":
			var r struct {
				Prompt   []int32   `json:"prompt_token_ids"`
				Response []int32   `json:"response_token_ids"`
				Logprobs []float64 `json:"response_log_probs"`
				Status   int       `json:"http_status"`
				Server   struct {
					Model   string `json:"model"`
					Version int    `json:"version"`
				} `json:"server"`
			}
			if err := json.Unmarshal(e.Data, &r); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			t.rows = append(t.rows, Triplet{Attempt: e.Attempt, At: at(e.At), PromptIDs: r.Prompt, ResponseIDs: r.Response, Logprobs: r.Logprobs,
				Model: r.Server.Model, Version: r.Server.Version, Status: r.Status})
		}
	}
	return nil
}
