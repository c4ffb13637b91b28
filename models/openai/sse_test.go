package openai

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads every event as "name|data", and the final error.
func all(r io.Reader) ([]string, error) {
	var out []string
	ev := newEvents(r)
	for {
		name, data, err := ev.next()
		if data != nil {
			out = append(out, name+"|"+string(data))
		}
		if err != nil {
			return out, err
		}
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []string{"|a"}},
		{"no space", "data:a\n\ndata:  b\n\n", []string{"|a", "| b"}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"comments", ": hi\n\n:\n\ndata: a\n: in between\n\n", []string{"|a"}},
		{"several lines", "data: a\ndata:\ndata: b\n\n", []string{"|a\n\nb"}},
		{"names", "event: error\ndata: a\nid: 7\nretry: 10\n\ndata: b\n\n", []string{"error|a", "|b"}},
		{"a name without data", "event: ping\n\ndata: a\n\n", []string{"|a"}},
		{"empty data", "data\n\ndata:\n\n", []string{"|", "|"}},
		{"cut before the empty line", "data: a\n", []string{"|a"}},
		{"cut in a line", "data: a", []string{"|a"}},
		{"byte order mark", "\uFEFFdata: a\n\n", []string{"|a"}},
		{"more empty lines", "\n\n\ndata: a\n\n\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"a long line", "data: " + long + "\n\ndata: b\n\n", []string{"|" + long, "|b"}},
		{"a bare object", "data: a\n\n{\"error\":\"x\"}\n", []string{"|a", `|{"error":"x"}`}},
		{"unknown fields", "foo: a\nbar\n\ndata: a\n\n", []string{"|a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":            strings.NewReader(tt.in),
				"byte by byte":     iotest.OneByteReader(strings.NewReader(tt.in)),
				"halves":           iotest.HalfReader(strings.NewReader(tt.in)),
				"data beside EOF":  iotest.DataErrReader(strings.NewReader(tt.in)),
				"byte and EOF too": iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(tt.in))),
			} {
				got, err := all(r)
				if !slices.Equal(got, tt.want) || err != io.EOF {
					t.Errorf("%s: got %.100q, %v, want %.100q", how, got, err, tt.want)
				}
			}
		})
	}
}

func TestEventTooLong(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"line":  io.MultiReader(strings.NewReader("data: "), endless('x')),
		"lines": strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20)),
	} {
		if got, err := all(r); len(got) > 0 || !errors.Is(err, errEventTooLong) {
			t.Errorf("%s: got %d events, %v", name, len(got), err)
		}
	}
	// The limit itself is allowed.
	got, err := all(strings.NewReader("data: " + strings.Repeat("x", maxEvent) + "\n\n"))
	if len(got) != 1 || err != io.EOF {
		t.Errorf("at the limit: got %d events, %v", len(got), err)
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: error\r\ndata: {\"a\":1}\ndata: b\r\n\r\n: c\n\n{\"error\":1}\ndata: [DONE]"))
	f.Add([]byte("\uFEFFdata\n\n\r\n\rdata: a\r\r\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		want, err := all(strings.NewReader(string(in)))
		if err != io.EOF {
			t.Fatal(err)
		}
		// Where the pieces of the transport begin and end makes no difference.
		got, _ := all(iotest.OneByteReader(strings.NewReader(string(in))))
		if !slices.Equal(got, want) {
			t.Errorf("byte by byte %q, whole %q", got, want)
		}
	})
}
