//go:build unix

package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/tools"
)

// bare is the least of a client that a raw model needs.
type bare struct {
	url  string
	http http.Client
}

func (m *bare) Info() models.Info {
	return models.Info{Name: "script", Raw: true, Schema: true, Price: cost.Free(), Context: 8192, MaxOutput: 200}
}

func (m *bare) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	body := map[string]any{"model": "script", "raw": true, "stream": false, "prompt": r.Prompt,
		"options": map[string]any{"num_thread": 1, "num_ctx": 8192, "num_predict": r.MaxOutput, "seed": *r.Seed, "temperature": *r.Temperature}}
	if len(r.Schema) > 0 {
		body["format"] = r.Schema
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/api/generate", bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	resp, err := m.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		Response, Error string
		DoneReason      string `json:"done_reason"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Error != "" {
		return nil, &models.Error{Model: "script", Status: resp.StatusCode, Body: out.Error, Err: err}
	}
	return &models.Response{Text: out.Response, Finish: models.Finish(out.DoneReason), Usage: cost.Usage{Known: true}}, nil
}

// A real server, whose model only thinks, is held to the grammar: the one call
// that is offered comes back.
func TestForcedOnARealServer(t *testing.T) {
	server := ollamatest.Start(t)
	server.Create(t, "script", "{{ .Prompt }}", "")
	m := &bare{url: server.URL, http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	p, err := Trained(m)
	if err != nil {
		t.Fatal(err)
	}
	s := paperState()
	s.Prompt += " [[S18]]" // the script that thinks and stops
	s.Offers = []Offer{{Tool: "search", Choice: "search-3"}}
	d, err := p.Decide(metered(t), s)
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ Model string }
	if len(d.Calls) != 1 || d.Calls[0].Tool != "search" || json.Unmarshal(d.Calls[0].Args, &in) != nil || in.Model != "search-3" || !d.Forced || !strings.Contains(d.Reasoning, "thinking18") {
		t.Errorf("%+v", d)
	}

	// The server makes a grammar of whatever schema a tool has. What comes back
	// within the cap is random here, but never an error of the server.
	s.Tools = append(s.Tools, tools.Spec{Name: "plot", Schema: json.RawMessage(`{"type":"object","$defs":{"p":{"type":"number"}},"properties":{
		"z":{"type":["string","null"],"pattern":"a(?=b)","minLength":2,"format":"x"},"a":{"type":"array","items":{"$ref":"#/$defs/p"},"maxItems":3},
		"m":{"oneOf":[{"type":"integer","minimum":1},true]},"e":{"enum":["a",1,null]},"d":{"type":"object","additionalProperties":{"type":"number"}}},"required":["z","a","m","d"]}`)}, tools.Spec{Name: "ping"})
	s.Offers = []Offer{{Tool: "plot"}, {Tool: "ping"}}
	_, err = p.Decide(metered(t), s)
	var out *OutputError
	var refused *models.Error
	if errors.As(err, &out) && errors.As(out.Forced, &refused) || err != nil && out == nil {
		t.Errorf("the server refused the grammar: %v", err)
	}
}
