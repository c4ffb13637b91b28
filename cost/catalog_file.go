package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	catalogSchema = "toolorchestra.prices/1"
	maxCatalog    = 16 << 20 // bytes
)

// CatalogError is a price list that cannot be used.
type CatalogError struct {
	Where string // the part that is wrong, for example `openai "gpt-5"`
	Fix   string // what is wrong, and what to do about it
	Err   error  // what reading or decoding failed with, or nil
}

// Error says what happened, and what to do about it where that is known.
func (e *CatalogError) Error() string {
	s := "cost: price list"
	if e.Where != "" {
		s += ": " + e.Where
	}
	if e.Err != nil {
		s += ": " + clip(e.Err.Error(), 300)
	}
	return s + ": " + e.Fix
}

// Unwrap returns Err.
func (e *CatalogError) Unwrap() error { return e.Err }

type catalogFile struct {
	Schema string `json:"schema"`
	listFile
	Earlier []earlierFile `json:"earlier,omitempty"` // before updates, the latest first
}

type listFile struct {
	Source    sourceFile    `json:"source"`
	Providers []*vendorFile `json:"providers"`
}

// earlierFile is a list that was updated. In it a provider may be the same as in
// the list that followed, and so may a model: that is one without a price.
type earlierFile struct {
	Until string `json:"until"` // a date, or a time in RFC 3339
	listFile
}

type sourceFile struct {
	Name   string `json:"name,omitempty"`
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
}

type vendorFile struct {
	ID       string        `json:"id"`
	Same     bool          `json:"same,omitempty"`
	Fallback []string      `json:"fallback,omitempty"`
	Models   []*listedFile `json:"models"`
}

type listedFile struct {
	ID     string        `json:"id"`
	Match  []string      `json:"match,omitempty"`  // kind and text: "^gpt-5-2025"
	Price  *Price        `json:"price,omitempty"`  // the only one
	Prices []versionFile `json:"prices,omitempty"` // or several
}

type versionFile struct {
	From  string `json:"from,omitempty"`  // a date, or a time in RFC 3339
	Daily string `json:"daily,omitempty"` // "00:30-16:30", UTC
	Price Price  `json:"price"`
}

// Load reads a price list of at most 16 MiB: one that Save wrote, or the data
// file of pydantic/genai-prices (its format v2), which does not say of when it is.
// Errors are *CatalogError: not JSON, another schema, names that occur twice,
// patterns that do not compile, rates that are negative or beyond what any model
// costs per million tokens, as those are that were meant per token or per
// thousand. An entry of genai-prices that charges for what a Price cannot state
// is unpriced.
func Load(r io.Reader) (*Catalog, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxCatalog+1))
	switch {
	case err != nil:
		return nil, &CatalogError{Err: err, Fix: "read it again"}
	case len(b) > maxCatalog:
		return nil, &CatalogError{Fix: "it is longer than 16 MiB; leave out what is not needed"}
	}
	var f catalogFile
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		if f.Providers, err = readGenAI(b); err != nil {
			return nil, err
		}
		return f.catalog()
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields() // a misspelt rate would be a missing one
	if err = d.Decode(&f); err != nil {
		var head struct {
			Schema string `json:"schema"`
		}
		if json.Unmarshal(b, &head) != nil || head.Schema == catalogSchema {
			return nil, &CatalogError{Err: err, Fix: "use a file that Catalog.Save wrote"}
		}
		f.Schema = head.Schema
	}
	if _, err := d.Token(); f.Schema == catalogSchema && err != io.EOF {
		return nil, &CatalogError{Err: err, Fix: "something follows the list: use a file that Catalog.Save wrote"}
	}
	if f.Schema != catalogSchema {
		return nil, &CatalogError{Where: "schema " + strconv.Quote(clip(f.Schema, 60)), Fix: "this version reads " + catalogSchema}
	}
	return f.catalog()
}

func (f *catalogFile) catalog() (*Catalog, error) {
	first, err := f.read(nil)
	if err != nil {
		return nil, err
	}
	c := first
	for i, e := range f.Earlier {
		where := fmt.Sprintf("earlier[%d]", i)
		var bad error
		if c.until, bad = moment(e.Until); bad != nil || c.until.IsZero() {
			return nil, &CatalogError{Where: where, Err: bad, Fix: "write in until when the list was updated, like 2026-08-21"}
		}
		if c.earlier, err = e.read(c); err != nil {
			err.Where = where + " " + err.Where
			return nil, err
		}
		c = c.earlier
	}
	return first, nil
}

// read reads one list; later is the one that followed, or nil.
func (f *listFile) read(later *Catalog) (*Catalog, *CatalogError) {
	c := &Catalog{source: Source{Name: f.Source.Name, Commit: f.Source.Commit}, byID: make(map[string]*vendor, len(f.Providers))}
	var err error
	if c.source.Date, err = moment(f.Source.Date); err != nil {
		return nil, &CatalogError{Where: "source", Err: err, Fix: "write the date like 2026-08-21"}
	}
	for _, vf := range f.Providers {
		if vf == nil || vf.ID == "" || c.byID[vf.ID] != nil {
			return nil, &CatalogError{Where: "providers", Fix: "each needs an id of its own"}
		}
		var after *vendor
		if later != nil {
			after = later.byID[vf.ID]
		}
		if vf.Same {
			if after == nil {
				return nil, &CatalogError{Where: vf.ID, Fix: "it is said to be the same as in the list that followed, and that has none"}
			}
			c.add(after)
			continue
		}
		v := &vendor{id: vf.ID, fallback: vf.Fallback, models: make([]*listed, 0, len(vf.Models)), byID: make(map[string]*listed, len(vf.Models))}
		c.add(v)
		for _, lf := range vf.Models {
			if lf == nil || lf.ID == "" || v.byID[lf.ID] != nil {
				return nil, &CatalogError{Where: v.id, Fix: "each model needs an id of its own"}
			}
			if after != nil && after.byID[lf.ID] != nil && lf.Price == nil && len(lf.Prices) == 0 {
				v.add(after.byID[lf.ID])
				continue
			}
			l, err := lf.listed()
			if err != nil {
				err.Where = v.id + " " + strconv.Quote(clip(lf.ID, 100)) + err.Where
				return nil, err
			}
			v.add(l)
		}
	}
	return c, nil
}

func (f *listedFile) listed() (*listed, *CatalogError) {
	l := &listed{id: f.ID, match: make([]pattern, 0, len(f.Match))}
	for _, m := range f.Match {
		if len(m) < 2 || !strings.Contains("=^$*~", m[:1]) {
			return nil, &CatalogError{Where: ".match", Fix: "write = ^ $ * or ~ and a text, as in ^gpt-5-2025"}
		}
		p := pattern{kind: m[0], text: m[1:]}
		if p.kind == '~' {
			re, err := regexp.Compile(p.text)
			if err != nil {
				return nil, &CatalogError{Where: ".match", Err: err, Fix: "write a regular expression of Go's package regexp"}
			}
			p.re = re
		} else {
			p.text = strings.ToLower(p.text)
		}
		l.match = append(l.match, p)
	}
	all := f.Prices
	if f.Price != nil {
		all = append([]versionFile{{Price: *f.Price}}, all...)
	}
	for _, vf := range all {
		v := version{price: vf.Price}
		var err error
		if v.from, err = moment(vf.From); err != nil {
			return nil, &CatalogError{Where: ".from", Err: err, Fix: "write a date like 2026-08-21, or a time in RFC 3339"}
		}
		if vf.Daily != "" {
			v.daily = true
			from, to, _ := strings.Cut(vf.Daily, "-")
			a, errA := time.Parse("15:04", from)
			b, errB := time.Parse("15:04", to)
			if errA != nil || errB != nil {
				return nil, &CatalogError{Where: ".daily", Fix: "write times of day in UTC, as in 00:30-16:30"}
			}
			v.start, v.end = a.Hour()*60+a.Minute(), b.Hour()*60+b.Minute()
		}
		if err := plausible(&v.price); err != nil {
			return nil, &CatalogError{Where: ".price", Err: err, Fix: "state US dollars per million tokens, per request, search, image, second or GPU-hour"}
		}
		l.versions = append(l.versions, v)
	}
	if len(l.versions) == 0 {
		return nil, &CatalogError{Fix: "it has no price; leave it out if it is unpriced"}
	}
	return l, nil
}

// What a million tokens cost lies far within these bounds: today from $0.002 to
// $600. Another unit does not.
const (
	leastPerMillion = Amount(picoPerUSD / 10_000)
	mostPerMillion  = Amount(picoPerUSD * 10_000)
)

// plausible is Validate, and a check that the unit is right.
func plausible(p *Price) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, s := range append(p.serviceList(), service{"", p}) {
		for q := s.price; ; q = &q.Over.Price {
			for i, r := range q.rates() {
				if r.set && (r.usd > mostPerMillion || i < tokenRates && r.usd > 0 && r.usd < leastPerMillion) {
					return &InvalidError{Field: r.name, Value: r.usd.String(), Fix: "no model costs that; check the unit"}
				}
			}
			if q.Over == nil {
				break
			}
		}
	}
	return nil
}

// moment reads a date or time; "" is the zero Time.
func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err
}
