package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

// Log is a set of recorded answers. It is not changed after it was read, so it
// may be used by many goroutines.
type Log struct {
	Models []Model
	Rows   []Row
	Broken []*RowError // rows that could not be used, in order
	Total  int         // rows seen, broken ones included
}

// Model is one whose answers were recorded.
type Model struct {
	Name string
	In   float64 // USD per million input tokens
	Out  float64 // USD per million output tokens
}

// Price is the model's price.
func (m Model) Price() cost.Price { return cost.Tokens(m.In, m.Out) }

// Row is one task, with what each model answered.
type Row struct {
	ID       string
	Category string // "" = not stated
	Query    string
	Answer   string  // the right one
	In       int     // input tokens, the same for all models
	Replies  []Reply // in the order of Log.Models
}

// Reply is what one model answered.
type Reply struct {
	Answer string // "" = nothing usable
	Right  bool
	Out    int // output tokens
}

// Cost is what it cost to ask model m, in USD.
func (l *Log) Cost(r *Row, m int) float64 {
	return (float64(r.In)*l.Models[m].In + float64(r.Replies[m].Out)*l.Models[m].Out) / 1e6
}

// ErrLog means that a log has no usable row, or its list of models none.
var ErrLog = errors.New("replay: unusable log")

// RowError is a row that could not be used.
type RowError struct {
	Line int    // from 1
	ID   string // "" = it states none
	Fix  string // what is wrong
	Err  error  // the cause, where there is one
}

// Error says which row it is, and what is wrong with it.
func (e *RowError) Error() string {
	s := fmt.Sprintf("replay: line %d", e.Line)
	if e.ID != "" {
		s += fmt.Sprintf(" (%q)", e.ID)
	}
	s += ": " + e.Fix
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *RowError) Unwrap() error { return e.Err }

// Bounds on what is read.
const (
	maxLine   = 4 << 20 // bytes of a row
	maxModels = 64
	maxTokens = 1 << 30 // of one answer
)

// ReadModels reads the list of models: a JSON object whose "models" maps names
// to {"usd_per_mtok_in": …, "usd_per_mtok_out": …}, in US dollars per million
// tokens. The order in the file is kept. Errors wrap ErrLog.
func ReadModels(r io.Reader) ([]Model, error) {
	bad := func(format string, args ...any) ([]Model, error) {
		return nil, fmt.Errorf("%w: the list of models: %s", ErrLog, fmt.Sprintf(format, args...))
	}
	var file struct {
		Models json.RawMessage `json:"models"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxLine)).Decode(&file); err != nil {
		return bad("%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(file.Models))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return bad(`write {"models": {"name": {"usd_per_mtok_in": 1, "usd_per_mtok_out": 2}}}`)
	}
	var models []Model
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return bad("%v", err)
		}
		if len(models) == maxModels {
			return bad("it has more than %d models", maxModels)
		}
		name, _ := t.(string)
		var price struct {
			In  *float64 `json:"usd_per_mtok_in"`
			Out *float64 `json:"usd_per_mtok_out"`
		}
		if err := d.Decode(&price); err != nil {
			return bad("%q: %v", name, err)
		}
		switch {
		case name == "" || slices.ContainsFunc(models, func(m Model) bool { return m.Name == name }):
			return bad("a name is empty or stated twice: %q", name)
		case price.In == nil || price.Out == nil || *price.In < 0 || *price.Out < 0:
			return bad("%q: state usd_per_mtok_in and usd_per_mtok_out, 0 or more", name)
		}
		models = append(models, Model{Name: name, In: *price.In, Out: *price.Out})
	}
	if len(models) == 0 {
		return bad("it has no models, and 1 to %d can be used", maxModels)
	}
	return models, nil
}

// line is a row as written.
type line struct {
	ID       string             `json:"id"`
	Category string             `json:"category"`
	Query    string             `json:"query"`
	Answer   string             `json:"answer"`
	In       float64            `json:"in_tok_est"`
	Out      map[string]float64 `json:"out_tok_est"`
	Pred     map[string]*string `json:"pred"`
	Correct  map[string]float64 `json:"correct"`
}

// Read reads rows, one JSON object a line:
//
//	{"id": "1", "category": "law", "query": "…\nOptions: (A) … (B) …", "answer": "B", "in_tok_est": 120,
//	 "out_tok_est": {"model": 80}, "pred": {"model": "B"}, "correct": {"model": 1}}
//
// correct is 1 exactly where pred is answer: for free texts that a judge found right,
// write answer's words as pred. A pred that is null or begins with "x:" is no usable answer. Models that are
// not listed are left out; category may be missing. A row that lacks a listed
// model or contradicts itself is broken: it is skipped and named in Broken. The
// error is that of r, or wraps ErrLog if no row can be used.
func Read(models []Model, r io.Reader) (*Log, error) {
	l := &Log{Models: slices.Clone(models)}
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		text, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
			return l, fmt.Errorf("replay: line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(text)) > 0 || errors.Is(err, errLong) {
			l.Total++
			if errors.Is(err, errLong) {
				l.Broken = append(l.Broken, &RowError{Line: n, Fix: err.Error()})
			} else if row, bad := l.row(text); bad != nil {
				bad.Line = n
				l.Broken = append(l.Broken, bad)
			} else {
				l.Rows = append(l.Rows, row)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if len(l.Rows) == 0 {
		err := fmt.Errorf("%w: none of its %d rows can be used", ErrLog, l.Total)
		if len(l.Broken) > 0 {
			err = fmt.Errorf("%w; the first: %w", err, l.Broken[0])
		}
		return l, err
	}
	return l, nil
}

var errLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// readLine reads a line, or skips one that is too long.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxLine; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			if err != nil {
				return nil, errors.Join(errLong, err)
			}
			return nil, errLong
		}
		return text, err
	}
}

// row checks one row.
func (l *Log) row(text []byte) (Row, *RowError) {
	var in line
	if err := json.Unmarshal(text, &in); err != nil {
		return Row{}, &RowError{ID: in.ID, Fix: "it is not a JSON object of this format", Err: err}
	}
	bad := func(format string, args ...any) (Row, *RowError) {
		return Row{}, &RowError{ID: in.ID, Fix: fmt.Sprintf(format, args...)}
	}
	switch {
	case strings.TrimSpace(in.Query) == "":
		return bad("its query is empty")
	case strings.TrimSpace(in.Answer) == "":
		return bad("its answer is empty")
	case !tokens(in.In):
		return bad("in_tok_est is %v: state a number of tokens", in.In)
	}
	r := Row{ID: in.ID, Category: in.Category, Query: in.Query, Answer: strings.TrimSpace(in.Answer), In: int(math.Round(in.In)), Replies: make([]Reply, len(l.Models))}
	for i, m := range l.Models {
		out, hasOut := in.Out[m.Name]
		pred, hasPred := in.Pred[m.Name]
		right, hasRight := in.Correct[m.Name]
		switch {
		case !hasOut || !hasPred || !hasRight:
			return bad("it lacks out_tok_est, pred or correct of %q", m.Name)
		case !tokens(out):
			return bad("out_tok_est of %q is %v: state a number of tokens", m.Name, out)
		case right != 0 && right != 1:
			return bad("correct of %q is %v: write 0 or 1", m.Name, right)
		}
		p := Reply{Right: right == 1, Out: int(math.Round(out))}
		if pred != nil && !strings.HasPrefix(*pred, "x:") {
			p.Answer = strings.TrimSpace(*pred)
		}
		if p.Right && p.Answer != r.Answer || !p.Right && p.Answer == r.Answer {
			return bad("correct of %q is %v, but it answered %q and the answer is %q", m.Name, right, p.Answer, r.Answer)
		}
		r.Replies[i] = p
	}
	return r, nil
}

func tokens(n float64) bool { return n >= 0 && n <= maxTokens }

// Open reads a list of models and rows from files; a name that ends in .gz is
// decompressed.
func Open(models, rows string) (*Log, error) {
	f, err := os.Open(models)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := ReadModels(f)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, models)
	}
	g, err := os.Open(rows)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var r io.Reader = g
	if strings.HasSuffix(rows, ".gz") {
		z, err := gzip.NewReader(g)
		if err != nil {
			return nil, fmt.Errorf("replay: %s: %w", rows, err)
		}
		defer z.Close()
		r = z
	}
	l, err := Read(list, r)
	if err != nil {
		return l, fmt.Errorf("%w (%s)", err, rows)
	}
	return l, nil
}
