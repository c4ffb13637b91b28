package cost

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

type genAIProvider struct {
	ID       string   `json:"id"`
	Fallback []string `json:"fallback_model_providers"`
	Models   []struct {
		ID     string          `json:"id"`
		Match  genAIMatch      `json:"match"`
		Prices json.RawMessage `json:"prices"` // an object of rates, or a list of them with constraints
	} `json:"models"`
}

type genAIMatch struct {
	Or       []genAIMatch `json:"or"`
	And      []genAIMatch `json:"and"`
	Equals   string       `json:"equals"`
	Starts   string       `json:"starts_with"`
	Ends     string       `json:"ends_with"`
	Contains string       `json:"contains"`
	Regex    string       `json:"regex"`
}

type genAIVersion struct {
	Constraint *struct {
		From  string `json:"start_date"`
		Start string `json:"start_time"`
		End   string `json:"end_time"`
	} `json:"constraint"`
	Prices map[string]json.RawMessage `json:"prices"`
}

// genAIUnits are the rates of genai-prices. Those that end in kcount are per
// thousand.
var genAIUnits = map[string]func(*Price) *Rate{
	"input_mtok":            func(p *Price) *Rate { return &p.Input },
	"cache_read_mtok":       func(p *Price) *Rate { return &p.CacheRead },
	"cache_write_mtok":      func(p *Price) *Rate { return &p.CacheWrite },
	"cache_write_1h_mtok":   func(p *Price) *Rate { return &p.CacheWrite1h },
	"input_audio_mtok":      func(p *Price) *Rate { return &p.InputMedia.Audio },
	"input_image_mtok":      func(p *Price) *Rate { return &p.InputMedia.Image },
	"input_video_mtok":      func(p *Price) *Rate { return &p.InputMedia.Video },
	"cache_audio_read_mtok": func(p *Price) *Rate { return &p.CacheMedia.Audio },
	"cache_image_read_mtok": func(p *Price) *Rate { return &p.CacheMedia.Image },
	"cache_video_read_mtok": func(p *Price) *Rate { return &p.CacheMedia.Video },
	"output_mtok":           func(p *Price) *Rate { return &p.Output },
	"output_reasoning_mtok": func(p *Price) *Rate { return &p.Reasoning },
	"output_citation_mtok":  func(p *Price) *Rate { return &p.Citation },
	"output_audio_mtok":     func(p *Price) *Rate { return &p.OutputMedia.Audio },
	"output_image_mtok":     func(p *Price) *Rate { return &p.OutputMedia.Image },
	"output_video_mtok":     func(p *Price) *Rate { return &p.OutputMedia.Video },
	"requests_kcount":       func(p *Price) *Rate { return &p.Request },
	"web_searches_kcount":   func(p *Price) *Rate { return &p.Search },
}

// readGenAI converts the data file of pydantic/genai-prices, format v2.
func readGenAI(b []byte) ([]*vendorFile, error) {
	var in []genAIProvider
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, &CatalogError{Err: err, Fix: "use data_slim.json of genai-prices, format v2"}
	}
	out := make([]*vendorFile, 0, len(in))
	for _, p := range in {
		v := &vendorFile{ID: p.ID, Fallback: p.Fallback}
		out = append(out, v)
		for _, m := range p.Models {
			l := &listedFile{ID: m.ID}
			ok := m.Match.flatten(&l.Match)
			l.Match = slices.DeleteFunc(l.Match, func(s string) bool { return s == "="+m.ID }) // found by its id
			if !ok {
				continue
			}
			if !l.genAIPrices(m.Prices) { // unpriced, and not what a later entry that matches it costs
				l.Prices = []versionFile{{}}
			}
			v.Models = append(v.Models, l)
		}
	}
	return out, nil
}

// flatten appends the alternatives of a match; ok false: it has others.
func (m *genAIMatch) flatten(to *[]string) (ok bool) {
	if len(m.And) > 0 {
		return false
	}
	for _, p := range [...]struct{ kind, text string }{{"=", m.Equals}, {"^", m.Starts}, {"$", m.Ends}, {"*", m.Contains}, {"~", m.Regex}} {
		if p.text != "" {
			*to = append(*to, p.kind+p.text)
		}
	}
	for i := range m.Or {
		if !m.Or[i].flatten(to) {
			return false
		}
	}
	return len(*to) > 0
}

// genAIPrices fills in the prices; ok false: they are not what Price can state.
func (l *listedFile) genAIPrices(b json.RawMessage) (ok bool) {
	var list []genAIVersion
	if json.Unmarshal(b, &list) != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal(b, &one) != nil {
			return false
		}
		list = []genAIVersion{{Prices: one}}
	}
	for _, v := range list {
		vf := versionFile{}
		if c := v.Constraint; c != nil {
			if vf.From = c.From; c.From == "" && c.Start == "" && c.End == "" {
				return false // one of another kind
			}
			if c.Start != "" || c.End != "" {
				start, ok1 := strings.CutSuffix(c.Start, ":00Z")
				end, ok2 := strings.CutSuffix(c.End, ":00Z")
				if !ok1 || !ok2 {
					return false
				}
				vf.Daily = start + "-" + end
			}
		}
		if !genAIPrice(v.Prices, &vf.Price) {
			return false
		}
		l.Prices = append(l.Prices, vf)
	}
	return len(l.Prices) > 0
}

type genAITier struct {
	Start int64       `json:"start"`
	Price json.Number `json:"price"`
}

func genAIPrice(rates map[string]json.RawMessage, p *Price) (ok bool) {
	steps := map[int64]bool{}
	tiered := map[string][]genAITier{}
	base := map[string]json.Number{}
	for unit, raw := range rates {
		if genAIUnits[unit] == nil {
			return false
		}
		var number json.Number
		var tiers struct {
			Base  json.Number `json:"base"`
			Tiers []genAITier `json:"tiers"`
		}
		switch {
		case json.Unmarshal(raw, &number) == nil:
		case json.Unmarshal(raw, &tiers) == nil:
			number = tiers.Base
		default:
			return false
		}
		slices.SortFunc(tiers.Tiers, func(a, b genAITier) int { return cmp.Compare(a.Start, b.Start) })
		base[unit], tiered[unit] = number, tiers.Tiers
		for _, t := range tiers.Tiers {
			steps[t.Start] = true
		}
	}
	starts := make([]int64, 0, len(steps))
	for s := range steps {
		starts = append(starts, s)
	}
	slices.Sort(starts)
	for i := -1; i < len(starts); i++ {
		if i >= 0 {
			p.Over = &Tier{Above: starts[i]}
			p = &p.Over.Price
		}
		for unit, number := range base {
			for _, t := range tiered[unit] {
				if i >= 0 && t.Start <= starts[i] {
					number = t.Price
				}
			}
			r, ok := genAIRate(unit, number)
			if !ok {
				return false
			}
			*genAIUnits[unit](p) = r
		}
	}
	return true
}

func genAIRate(unit string, n json.Number) (Rate, bool) {
	a, err := ParseAmount(n.String())
	if err != nil {
		f, err := strconv.ParseFloat(n.String(), 64) // with an exponent
		if err != nil {
			return Rate{}, false
		}
		a = Dollars(f)
	}
	if strings.HasSuffix(unit, "_kcount") && a.Valid() {
		a /= 1000
	}
	return PerAmount(a), a.Valid()
}
