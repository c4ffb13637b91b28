package ollama

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// transport answers loads, and every other request with a stream, without a
// network.
type transport func() io.Reader

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body := f()
	if r.URL.Path == "/api/generate" && strings.Contains(string(in), `"prompt":""`) {
		body = strings.NewReader(loaded)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
}

func overReader(t testing.TB, f func() io.Reader) *Model {
	t.Helper()
	m, err := New("m", Config{HTTP: &http.Client{Transport: transport(f)}, Info: models.Info{Tools: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Wherever a stream is cut, and however, what came before is never a success.
func TestCutAtEveryByte(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ndjson")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, name := range []string{"raw.ndjson", "raw_call.ndjson", "chat_thinking.ndjson", "chat_calls.ndjson"} {
		t.Run(name, func(t *testing.T) {
			full := file(t, name)
			r := models.Request{Messages: hello, Tools: tools}
			if strings.HasPrefix(name, "raw") {
				r = models.Request{Prompt: "x"}
			}
			var body io.Reader
			m := overReader(t, func() io.Reader { return body })
			body = iotest.OneByteReader(strings.NewReader(full))
			whole, err := m.Generate(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(full) {
				for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, errors.New("connection reset")} {
					body = io.MultiReader(strings.NewReader(full[:n]), iotest.ErrReader(end))
					got, err := m.Generate(t.Context(), &r)
					if n >= len(strings.TrimSpace(full)) { // only the line's end is missing
						if err != nil || got.Text != whole.Text {
							t.Fatalf("cut after %d of %d: %v", n, len(full), err)
						}
						continue
					}
					e := typed(t, err)
					if got != nil || !errors.Is(err, models.ErrTruncated) || !e.Sent || !e.Retryable {
						t.Fatalf("cut after %d by %v: %+v, %+v", n, end, got, e)
					}
					if p := e.Partial; p != nil && (!strings.HasPrefix(whole.Text, p.Text) || !strings.HasPrefix(whole.Reasoning, p.Reasoning) || len(p.Calls) > len(whole.Calls) || p.Finish != "" || p.Usage.Known) {
						t.Fatalf("cut after %d: partial %+v", n, p)
					}
				}
			}
		})
	}
}

// A line of 9 MB is a line like others.
func TestLongLine(t *testing.T) {
	text := strings.Repeat("é", 9<<19)
	m := serve(t, Config{}, warm(t, say(200, chat(text)+end)))
	got, err := m.Generate(t.Context(), &models.Request{Messages: hello})
	if err != nil || got.Text != text {
		t.Errorf("got %d bytes, %v", len(got.Text), err)
	}
}

func TestEndlessReply(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"lines": &endless{text: strings.Repeat(chat("xy")+chat("z"), 1000)},
		"blank": &endless{text: strings.Repeat(" ", 1<<16)},
		"empty": &endless{text: strings.Repeat(" ", 1<<10) + "\n"},
	} {
		m := overReader(t, func() io.Reader { return r })
		_, err := m.Generate(t.Context(), &models.Request{Messages: hello})
		if !errors.Is(err, models.ErrMalformed) || !errors.Is(err, errTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
