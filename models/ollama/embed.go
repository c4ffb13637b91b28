package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

var errVectors = errors.New("there is not one whole vector for each text")

// Embed returns one vector per text, all of the same length, as the server
// normalises them. No text is cut: one that exceeds the context is
// models.ErrContextOverflow. Every error is a *models.Error. Without texts
// nothing is asked.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, cost.Usage, error) {
	if len(texts) == 0 {
		return nil, cost.Usage{Known: true}, nil
	}
	body, err := encode(&api.EmbedRequest{Model: m.model, Input: texts, Truncate: &no, Options: m.options, KeepAlive: m.keepAlive()})
	if err != nil {
		return nil, cost.Usage{}, m.self().fail(models.Error{Err: err})
	}
	var out [][]float32
	var usage cost.Usage
	e := m.ask(ctx, pathEmbed, body, func(r *reply, start time.Time) *models.Error {
		b, err := io.ReadAll(io.LimitReader(r.Body, maxReply+1))
		switch {
		case err != nil:
			e := wire.Cut(ctx, err)
			e.Sent = true
			return e
		case len(b) > maxReply:
			e := m.malformed(errTooLong, nil)
			e.Sent = true
			return e
		}
		var e *models.Error
		if out, usage, e = m.vectors(b, len(texts)); e != nil {
			e.Sent = true
		}
		usage.Wall = time.Since(start)
		return e
	})
	if e != nil {
		return nil, cost.Usage{}, e
	}
	return out, usage, nil
}

// vectors reads a reply for n texts.
func (m *Model) vectors(b []byte, n int) ([][]float32, cost.Usage, *models.Error) {
	var p struct {
		Embeddings [][]float32     `json:"embeddings"`
		Input      json.RawMessage `json:"prompt_eval_count"`
		Error      json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(b, &p)
	if s := said(p.Error); s != "" {
		return nil, cost.Usage{}, reported(s, false)
	}
	if err != nil {
		return nil, cost.Usage{}, m.malformed(err, b)
	}
	if len(p.Embeddings) != n {
		return nil, cost.Usage{}, m.malformed(fmt.Errorf("%w: %d for %d", errVectors, len(p.Embeddings), n), nil)
	}
	for i, v := range p.Embeddings {
		var norm float64
		for _, x := range v {
			norm += float64(x) * float64(x)
		}
		if len(v) == 0 || len(v) != len(p.Embeddings[0]) || norm == 0 || math.IsNaN(norm) {
			return nil, cost.Usage{}, m.malformed(fmt.Errorf("%w: number %d is empty, zero or of another length", errVectors, i), nil)
		}
	}
	u := cost.Usage{Input: count(p.Input), Requests: 1}
	u.Known = u.Input > 0
	return p.Embeddings, u, nil
}
