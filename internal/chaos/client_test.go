package chaos_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/chaos"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// changed are faults after which a reply may say something else and still be
// well formed: nobody can tell.
var changed = []chaos.Kind{chaos.Garbage, chaos.Repeat, chaos.Drop}

// Real clients return what the model said, to the last letter, or a *models.Error:
// a reply that was cut is never a success, and what was streamed is what is
// returned.
func TestClients(t *testing.T) {
	for seed := range chaos.Seeds(t, runs(25)) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, chaos.Config{Rate: 0.8})
			chat := &models.Request{Messages: []models.Message{{Role: models.User, Text: "What is six times seven?"}}}
			raw := &models.Request{Prompt: "Six times seven is"}
			for _, c := range []struct {
				m models.Model
				r *models.Request
			}{{w.openai("chat", false), chat}, {w.openai("raw", true), raw}, {w.ollama("chat-local", false), chat}, {w.ollama("raw-local", false), raw}} {
				for range 3 {
					for _, stream := range []bool{false, true} {
						w.ask(c.m, *c.r, stream)
					}
				}
			}
		})
	}
}

func (w *world) ask(m models.Model, r models.Request, stream bool) {
	name := m.Info().Name
	before := w.plan.Drawn()
	var streamed strings.Builder
	if stream {
		r.OnDelta = func(d models.Delta) { streamed.WriteString(d.Text) }
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Millisecond)
	defer cancel()
	resp, err := m.Generate(ctx, &r)
	if e, ok := errors.AsType[*models.Error](err); ok {
		if e.Partial != nil && !strings.HasPrefix(e.Partial.Text, streamed.String()) {
			w.t.Errorf("%s: %q was streamed, and the Partial is %q", name, streamed.String(), e.Partial.Text)
		}
		return
	}
	if err != nil {
		return // typed has told
	}
	if stream && streamed.String() != resp.Text {
		w.t.Errorf("%s: %q was streamed, and the answer is %q", name, streamed.String(), resp.Text)
	}
	after := w.plan.Drawn()
	for _, k := range changed {
		if after[k] > before[k] {
			return
		}
	}
	if resp.Text != said {
		w.t.Errorf("%s: the model said %q, and the answer is %q", name, said, resp.Text)
	}
	if u := resp.Usage; u.Known && (u.Output != int64(len(said)+3)/4 || u.Input == 0) {
		w.t.Errorf("%s: the usage is %+v", name, u)
	}
}
