package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// ErrUnrecorded means that a model was asked something that is not in its log.
var ErrUnrecorded = errors.New("replay: not a recorded task")

// Experts are the log's models as experts of an ordinary orchestrator: asked a
// row's query, each gives the answer that it gave then, charges the tokens that
// it used then, and takes no time. An answer that was unusable is an empty text.
// Queries must differ: of equal ones the first row counts.
func (l *Log) Experts() []models.Model {
	rows := make(map[string]int, len(l.Rows))
	for i := range l.Rows {
		if _, ok := rows[l.Rows[i].Query]; !ok {
			rows[l.Rows[i].Query] = i
		}
	}
	var ms []models.Model
	for m := range l.Models {
		most := 1
		for i := range l.Rows {
			most = max(most, l.Rows[i].Replies[m].Out)
		}
		ms = append(ms, &recorded{log: l, rows: rows, model: m, info: models.Info{
			Name: l.Models[m].Name, Provider: "replay", Price: l.Models[m].Price(), MaxOutput: most, MinOutput: 1,
		}})
	}
	return ms
}

// recorded is a model that repeats itself.
type recorded struct {
	log   *Log
	rows  map[string]int
	model int
	info  models.Info
}

// Info describes the model.
func (m *recorded) Info() models.Info { return m.info }

// Generate gives the recorded answer.
func (m *recorded) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	row, ok := m.find(r)
	if !ok {
		return nil, fmt.Errorf("%w: ask %s one of the log's queries, word for word", ErrUnrecorded, m.info.Name)
	}
	p := &row.Replies[m.model]
	resp := &models.Response{Finish: models.FinishStop, Model: m.info.Name, Usage: cost.Usage{Input: int64(row.In), Output: int64(p.Out), Requests: 1, Known: true}}
	switch {
	case r.MaxOutput > 0 && p.Out > r.MaxOutput: // the answer stood at the end
		resp.Finish, resp.Usage.Output = models.FinishLength, int64(r.MaxOutput)
	case p.Answer != "":
		resp.Text = "<answer>" + p.Answer + "</answer>"
	}
	if r.OnDelta != nil && resp.Text != "" {
		r.OnDelta(models.Delta{Text: resp.Text})
	}
	return resp, nil
}

// find finds the row that is asked: the request's last text is its query, or
// ends with it after a heading.
func (m *recorded) find(r *models.Request) (*Row, bool) {
	text := r.Prompt
	if n := len(r.Messages); n > 0 {
		text = r.Messages[n-1].Text
	}
	for {
		if i, ok := m.rows[text]; ok {
			return &m.log.Rows[i], true
		}
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			return nil, false
		}
		text = rest
	}
}
