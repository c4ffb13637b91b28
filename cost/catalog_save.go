package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Save writes the list, a model a line, for Load, and those that were updated. What
// With stated is not of the list and is not written. The error is w's, or a
// *CatalogError where Load would refuse the length.
func (c *Catalog) Save(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"schema\":%q", catalogSchema)
	c.write(&b, nil)
	if c.earlier != nil {
		b.WriteString(",\n\"earlier\":[")
	}
	for later := c; later.earlier != nil; later = later.earlier {
		if later != c {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "{\"until\":%q", momentText(later.until))
		later.earlier.write(&b, later)
		b.WriteByte('}')
	}
	if c.earlier != nil {
		b.WriteByte(']')
	}
	b.WriteString("}\n")
	if b.Len() > maxCatalog {
		return &CatalogError{Fix: "with what was listed before its updates it is longer than the 16 MiB that Load reads: save the list that Update was given, and keep the file there is for what ran before"}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// write appends one list; later is the one that followed, or nil.
func (c *Catalog) write(b *bytes.Buffer, later *Catalog) {
	line := func(v any) {
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // strings and decimals: cannot fail
		b.Truncate(b.Len() - 1)
	}
	b.WriteString(",\n\"source\":")
	line(sourceFile{c.source.Name, c.source.Commit, momentText(c.source.Date)})
	b.WriteString(",\n\"providers\":[")
	for i, v := range c.providers {
		if i > 0 {
			b.WriteByte(',')
		}
		var after *vendor
		if later != nil {
			after = later.byID[v.id]
		}
		b.WriteString("\n{\"id\":")
		line(v.id)
		if v == after {
			b.WriteString(`,"same":true}`)
			continue
		}
		if len(v.fallback) > 0 {
			b.WriteString(`,"fallback":`)
			line(v.fallback)
		}
		b.WriteString(`,"models":[`)
		for j, l := range v.models {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			if after != nil && after.byID[l.id] == l {
				line(&listedFile{ID: l.id})
			} else {
				line(l.file())
			}
		}
		b.WriteString("]}")
	}
	b.WriteString("]")
}

func momentText(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(t.UTC().Truncate(24 * time.Hour)):
		return t.UTC().Format(time.DateOnly)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (l *listed) file() *listedFile {
	f := &listedFile{ID: l.id}
	for _, p := range l.match {
		f.Match = append(f.Match, string(p.kind)+p.text)
	}
	for _, v := range l.versions {
		vf := versionFile{From: momentText(v.from), Price: v.price}
		if v.daily {
			vf.Daily = fmt.Sprintf("%02d:%02d-%02d:%02d", v.start/60, v.start%60, v.end/60, v.end%60)
		}
		f.Prices = append(f.Prices, vf)
	}
	if len(f.Prices) == 1 && f.Prices[0].From == "" && f.Prices[0].Daily == "" {
		f.Price, f.Prices = &f.Prices[0].Price, nil
	}
	return f
}
