package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/tools"
	"github.com/toolorchestra/toolorchestra-go/tools/search"
)

func workspace(docs ...tools.Document) tools.Workspace {
	return tools.Workspace{}.With(tools.Result{Documents: docs})
}

func TestReader(t *testing.T) {
	river := tools.Document{ID: "river", Title: "The Oda", Text: "The Oda is a river. It is 310 km long (i.e. Ulm is shorter). It rises near Brel.\n\nIts mouth is at Kest. Fishing needs a licence from the county office."}
	hill := tools.Document{ID: "hill", Title: "Mount Arn", Text: "Mount Arn is 310 m high."}
	for name, c := range map[string]struct {
		docs   []tools.Document
		ask    string
		text   string
		source string // "" = no attempt
	}{
		"no documents":    {nil, "How long is the Oda?", "there are no documents to answer from: search first", ""},
		"one sentence":    {[]tools.Document{hill, river}, "Where does the Oda rise?", "The Oda\nIt rises near Brel.", "river"},
		"abbreviation":    {[]tools.Document{hill, river}, "How many km long is the Oda?", "The Oda\nIt is 310 km long (i.e. Ulm is shorter).", "river"},
		"second document": {[]tools.Document{river, hill}, "How high is Mount Arn?", "Mount Arn\nMount Arn is 310 m high.", "hill"},
		"two sentences":   {[]tools.Document{river}, "Who gives a fishing licence at the mouth near Kest?", "The Oda\nIts mouth is at Kest. Fishing needs a licence from the county office.", "river"},
		"gap":             {[]tools.Document{river}, "In which county is the Oda 310 km long?", "The Oda\nIt is 310 km long (i.e. Ulm is shorter). … Fishing needs a licence from the county office.", "river"},
		"other question":  {[]tools.Document{river, hill}, "Who painted the ceiling of the chapel?", "the documents do not answer this", ""},
		"no question":     {[]tools.Document{river}, "?!", "the documents do not answer this", ""},
		"title only":      {[]tools.Document{{ID: "c", Title: "const limit = 64"}}, "What is the limit?", "const limit = 64", "c"},
		"no title":        {[]tools.Document{{ID: "c", Text: "The limit is 64"}}, "What is the limit?", "The limit is 64", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			call := tools.Call{Prompt: c.ask, Work: workspace(c.docs...)}
			res, err := search.Reader().Call(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if res.Text != c.text {
				t.Errorf("got  %q\nwant %q", res.Text, c.text)
			}
			if (len(res.Attempts) == 1) != (c.source != "") {
				t.Fatalf("attempts: %v", res.Attempts)
			}
			for _, a := range res.Attempts {
				if a.By != "extract" || a.Text != c.text || a.Confidence < 0.5 || a.Confidence > 1 || len(a.Sources) != 1 || a.Sources[0] != c.source {
					t.Errorf("attempt %+v", a)
				}
			}
			if again, _ := search.Reader().Call(t.Context(), call); !reflect.DeepEqual(again, res) {
				t.Error("not the same again")
			}
		})
	}
}

// Confidence grows with what is covered.
func TestReaderConfidence(t *testing.T) {
	last := 0.0
	r := search.Reader(search.WithMinConfidence(0), search.WithReaderName("quote"))
	for _, text := range []string{"Red.", "Red fox.", "Red fox jumps.", "Red fox jumps fence."} {
		res, err := r.Call(t.Context(), tools.Call{Prompt: "red fox jumps fence", Work: workspace(tools.Document{Text: text})})
		if err != nil || len(res.Attempts) != 1 {
			t.Fatal(res, err)
		}
		a := res.Attempts[0]
		if a.Confidence <= last || a.Confidence > 1 || a.By != "quote" || a.Sources != nil {
			t.Errorf("%s: %+v after %v", text, a, last)
		}
		last = a.Confidence
	}
}

func TestReaderSpec(t *testing.T) {
	r := search.Reader()
	s := r.Spec()
	if s.Name != "extract" || s.Effects != tools.ReadOnly|tools.Idempotent|tools.Answers || s.Description == "" || !json.Valid(s.Schema) {
		t.Errorf("%+v", s)
	}
	if got := s.Propose(tools.Call{}); got != nil {
		t.Errorf("without documents it proposes %s", got)
	}
	work := workspace(tools.Document{Text: "a"})
	got := s.Propose(tools.Call{Work: work})
	if len(got) != 1 || string(got[0]) != "{}" {
		t.Errorf("proposes %s", got)
	}
	for args, ok := range map[string]bool{"": true, " ": true, "{}": true, "null": true, `{"why":1}`: true, "[]": false, `"x"`: false, "{": false} {
		_, err := r.Call(t.Context(), tools.Call{Args: json.RawMessage(args), Work: work})
		var bad *tools.ArgumentsError
		if ok != (err == nil) || !ok && !errors.As(err, &bad) {
			t.Errorf("%q: %v", args, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Call(ctx, tools.Call{Prompt: "a word", Work: work}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReaderBounds(t *testing.T) {
	for name, text := range map[string]string{
		"one sentence": strings.Repeat("needle hay ", 1<<20),
		"points":       "needle" + strings.Repeat(".", 10<<20),
		"spaces":       "needle" + strings.Repeat(".  ", 4<<20),
		"lines":        "needle" + strings.Repeat(" \n", 4<<20),
	} {
		begin := time.Now()
		res, err := search.Reader().Call(t.Context(), tools.Call{Prompt: "needle", Work: workspace(tools.Document{ID: "a", Title: text, Text: text})})
		if err != nil || len(res.Attempts) != 1 || len(res.Text) > 5000 {
			t.Errorf("%s: %d bytes, %v", name, len(res.Text), err)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}
