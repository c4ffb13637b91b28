package train

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/fit"
)

// snapshotSchema names the format of snapshots, and its version.
const snapshotSchema = "toolorchestra.grpo/1"

// snapshot is all that GRPO goes on with.
type snapshot struct {
	Schema  string          `json:"schema"`
	Step    int             `json:"step"`
	Random  string          `json:"random"` // base64
	Adam    *fit.Adam       `json:"adam"`
	Weights json.RawMessage `json:"weights"`
}

// WithSnapshots has keep given all that GRPO needs to go on, before the first
// step and after every so many. An error of keep ends GRPO.
func WithSnapshots(every int, keep func([]byte) error) GRPOOption {
	return grpoOption(func(s *settings) { s.grpo.every, s.grpo.keep = max(every, 1), keep })
}

// WithRestart goes on from a snapshot of a GRPO with the same tasks and options.
// The weights are then the same, to the bit, as if it had not been interrupted.
func WithRestart(snapshot []byte) GRPOOption {
	return grpoOption(func(s *settings) { s.grpo.from = bytes.Clone(snapshot) })
}

// snapshot keeps the state, if it is time to.
func (t *tuner) snapshot() error {
	g := &t.s.grpo
	if g.keep == nil || t.step%g.every != 0 {
		return nil
	}
	var w bytes.Buffer
	if err := t.w.Write(&w); err != nil {
		return diverged(err)
	}
	random, err := t.source.MarshalBinary()
	if err != nil {
		return err
	}
	b, err := json.Marshal(snapshot{snapshotSchema, t.step, base64.StdEncoding.EncodeToString(random), t.adam, w.Bytes()})
	if err != nil { // of the optimiser
		return diverged(err)
	}
	return g.keep(b)
}

// restart takes the state from a snapshot, if there is one.
func (t *tuner) restart() error {
	if t.s.grpo.from == nil {
		return nil
	}
	bad := func(err error) error { return fmt.Errorf("%w: the snapshot cannot be used: %w", ErrTrain, err) }
	var s snapshot
	if err := json.Unmarshal(t.s.grpo.from, &s); err != nil {
		return bad(err)
	}
	if s.Schema != snapshotSchema || s.Adam == nil || s.Step < 0 {
		return bad(fmt.Errorf("its schema is %q, and this version reads %q", s.Schema, snapshotSchema))
	}
	w, err := general.Read(bytes.NewReader(s.Weights))
	if err != nil {
		return bad(fmt.Errorf("%w: %w", policy.ErrWeights, err))
	}
	w = w.Clone() // to be changed
	random, err := base64.StdEncoding.DecodeString(s.Random)
	if err != nil {
		return bad(err)
	}
	if err := t.source.UnmarshalBinary(random); err != nil {
		return bad(err)
	}
	adam := fit.NewAdam(w.Params())
	if !adam.Resume(s.Adam) {
		return bad(fmt.Errorf("its optimiser is of another network"))
	}
	t.w, t.adam, t.step, t.rng = w, adam, s.Step, rand.New(t.source)
	return nil
}
