package cost

import (
	"bytes"
	_ "embed"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Catalog is a price list, keyed by provider and model: the same model costs up
// to ten times as much elsewhere. It is immutable and safe for concurrent use;
// With and Update return another one.
type Catalog struct {
	source    Source
	providers []*vendor // in the order of the file
	byID      map[string]*vendor
	own       map[[2]string]Price // With
	earlier   *Catalog            // what was listed before an Update; its own is not used
	until     time.Time           // of earlier
}

// Source says where a Catalog's prices come from.
type Source struct {
	Name   string    `json:"name,omitempty"`   // for example "pydantic/genai-prices"
	Commit string    `json:"commit,omitempty"` // of the source
	Date   time.Time `json:"date,omitzero"`    // when the source had these prices
}

type vendor struct {
	id       string
	fallback []string // providers whose models it resells at their prices
	models   []*listed
	byID     map[string]*listed
}

// listed is a model's entry.
type listed struct {
	id       string
	match    []pattern
	versions []version // of those that hold at a time, the last one counts
}

// pattern is one way in which a provider writes a model's name, as its list
// states it. Names are compared in lower case.
type pattern struct {
	kind byte // '=' equals, '^' starts with, '$' ends with, '*' contains, '~' regular expression
	text string
	re   *regexp.Regexp // of '~'
}

func (p *pattern) matches(lower string) bool {
	switch p.kind {
	case '=':
		return lower == p.text
	case '^':
		return strings.HasPrefix(lower, p.text)
	case '$':
		return strings.HasSuffix(lower, p.text)
	case '*':
		return strings.Contains(lower, p.text)
	}
	return p.re.MatchString(lower)
}

// version is a price and when it holds. A version with the zero Price ends those
// before it.
type version struct {
	from  time.Time // zero: always
	daily bool      // only from start to end, which may be past midnight
	start int       // minutes since midnight UTC
	end   int
	price Price
}

func (v *version) holds(at time.Time) bool {
	if at.Before(v.from) {
		return false
	}
	if !v.daily {
		return true
	}
	at = at.UTC()
	m := at.Hour()*60 + at.Minute()
	if v.start <= v.end {
		return v.start <= m && m < v.end
	}
	return m >= v.start || m < v.end
}

func (l *listed) at(t time.Time) Price {
	for i := len(l.versions) - 1; i >= 0; i-- {
		if l.versions[i].holds(t) {
			return l.versions[i].price
		}
	}
	return Price{}
}

//go:embed catalog.json
var embedded []byte

var defaultCatalog = sync.OnceValue(func() *Catalog {
	c, err := Load(bytes.NewReader(embedded))
	if err != nil {
		return &Catalog{} // every price is unknown; a test reads the file
	}
	return c
})

// DefaultCatalog is the price list that comes with this module; Source says of
// when it is. It is read at the first use, in a few milliseconds.
func DefaultCatalog() *Catalog { return defaultCatalog() }

// ListPrice is the DefaultCatalog's price of a provider's model now. ok false:
// it is not listed, and the Price unknown.
func ListPrice(provider, model string) (p Price, ok bool) {
	return DefaultCatalog().Lookup(provider, model, time.Now())
}

// Source says where the prices come from.
func (c *Catalog) Source() Source { return c.source }

// Lookup is the price of a provider's model at a time: what With stated, else
// that of the entry of exactly this name (or of this name
// in lower case), else of the first entry that the
// provider's list declares to match it (by a pattern of the list's own, never by
// resemblance), else what the providers cost whose models it resells. Provider
// names are the list's: "openai", "anthropic", "google", "aws", "azure",
// "openrouter", "groq", "together" and so on. ok false: unpriced.
func (c *Catalog) Lookup(provider, model string, at time.Time) (p Price, ok bool) {
	if p, ok = c.own[[2]string{provider, model}]; ok {
		return p, p.Known()
	}
	if l := c.priced(provider, model, at); l != nil {
		p = l.at(at)
	}
	return p, p.Known()
}

// priced is the entry that has a name's price at a time, or nil. A price that a name
// has only since an Update, it had always.
func (c *Catalog) priced(provider, model string, at time.Time) (priced *listed) {
	for ; c != nil; c = c.earlier {
		if l := c.entry(provider, model); l != nil {
			if p := l.at(at); p.Known() {
				priced = l
			}
		}
		if !at.Before(c.until) {
			break
		}
	}
	return priced
}

// entry is what the list has for a provider's model, or nil.
func (c *Catalog) entry(provider, model string) *listed {
	v := c.byID[provider]
	if v == nil {
		return nil
	}
	if l := v.find(model); l != nil {
		return l
	}
	for _, id := range v.fallback {
		if w := c.byID[id]; w != nil {
			if l := w.find(model); l != nil {
				return l
			}
		}
	}
	return nil
}

func (v *vendor) find(model string) *listed {
	if l := v.byID[model]; l != nil {
		return l
	}
	lower := strings.ToLower(model)
	if l := v.byID[lower]; l != nil {
		return l
	}
	for _, l := range v.models {
		for i := range l.match {
			if l.match[i].matches(lower) {
				return l
			}
		}
	}
	return nil
}

// With returns a catalog in which a provider's model has this price, at all
// times and whatever the list says or is updated to. The zero Price makes it
// unpriced. What is wrong with p is an *InvalidError.
func (c *Catalog) With(provider, model string, p Price) (*Catalog, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	d := *c
	d.own = maps.Clone(c.own)
	if d.own == nil {
		d.own = map[[2]string]Price{}
	}
	d.own[[2]string{provider, model}] = p
	return &d, nil
}

// From returns the same prices with another Source, for lists that do not state
// theirs.
func (c *Catalog) From(s Source) *Catalog {
	d := *c
	d.source = s
	return &d
}
