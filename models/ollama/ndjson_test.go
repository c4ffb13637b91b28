package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// all reads every line, and the final error.
func all(l *lines, r io.Reader) (out []string, err error) {
	l.reset(r)
	for {
		b, err := l.next()
		if err == nil || len(b) > 0 {
			out = append(out, string(b))
		}
		if err != nil {
			return out, err
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "a\n", []string{"a"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"crlf", "a\r\nb\r\n", []string{"a", "b"}},
		{"empty", "\n\na\n\n", []string{"", "", "a", ""}},
		{"long", long + "\n" + long + "y\nz\n", []string{long, long + "y", "z"}},
		{"as long as the buffer", strings.Repeat("x", firstRead) + "\n" + strings.Repeat("y", firstRead-1) + "\nz", []string{strings.Repeat("x", firstRead), strings.Repeat("y", firstRead-1), "z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := new(lines) // used again, as by calls
			for how, r := range map[string]io.Reader{
				"whole":            strings.NewReader(tt.in),
				"byte by byte":     iotest.OneByteReader(strings.NewReader(tt.in)),
				"halves":           iotest.HalfReader(strings.NewReader(tt.in)),
				"data beside EOF":  iotest.DataErrReader(strings.NewReader(tt.in)),
				"byte and EOF too": iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(tt.in))),
			} {
				got, err := all(l, r)
				if !slices.Equal(got, tt.want) || err != io.EOF {
					t.Errorf("%s: got %.100q, %v, want %.100q", how, got, err, tt.want)
				}
			}
		})
	}
}

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestRepliesEnd(t *testing.T) {
	for name, r := range map[string]io.Reader{"a line": &endless{text: strings.Repeat("x", 1<<16)}, "lines": &endless{text: strings.Repeat("x", 1<<16) + "\n"}} {
		l := new(lines)
		got, err := all(l, r)
		if !errors.Is(err, errTooLong) || name == "a line" && len(got) > 0 {
			t.Errorf("%s without end: %d lines, %v", name, len(got), err)
		}
		got, err = all(l, strings.NewReader("a\n"))
		if len(got) != 1 || err != io.EOF || cap(l.buf) > keepBytes {
			t.Errorf("%s: after it %q, %v, and a buffer of %d", name, got, err, cap(l.buf))
		}
	}
	got, err := all(new(lines), strings.NewReader(strings.Repeat("x", maxReply-1)+"\n"))
	if len(got) != 1 || err != io.EOF {
		t.Errorf("at the limit: %d lines, %v", len(got), err)
	}
	if _, err := all(new(lines), iotest.ErrReader(nil)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that reads nothing: %v", err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\n\n{}\nb"), byte(3))
	f.Fuzz(func(t *testing.T, in []byte, size byte) {
		l := &lines{buf: make([]byte, int(size)+1)} // lines may be as long as it, or longer
		want := strings.Split(string(in), "\n")
		for i := range want[:len(want)-1] {
			want[i] = strings.TrimSuffix(want[i], "\r")
		}
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(in)))} {
			if got, err := all(l, r); !slices.Equal(got, want) || err != io.EOF {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
	})
}

// The lines that servers send are read the fast way.
func TestFastLines(t *testing.T) {
	for _, name := range []string{"raw.ndjson", "raw_call.ndjson", "chat_thinking.ndjson", "loop.ndjson"} {
		for s := range strings.Lines(file(t, name)) {
			var l line
			if s = strings.TrimSpace(s); l.fast([]byte(s)) != strings.HasSuffix(s, `"done":false}`) {
				t.Errorf("%s: fast is %v for %s", name, !strings.HasSuffix(s, `"done":false}`), s)
			}
		}
	}
	var l line
	if !l.fast([]byte(`{"model":"m","response":"\u003c\"\\\/\n\t\r\u00e9é","done":false}`)) || string(l.text) != "<\"\\/\n\t\réé" {
		t.Errorf("got %q", l.text)
	}
	if l.clear(); l.fast([]byte(`{"model":"m","response":"a","done":false}{}`)) {
		t.Error("took two objects for one")
	}
}

// What the fast way reads is what encoding/json reads.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","created_at":"x","response":"a\u003cb","done":false}`,
		`{"model":"m","created_at":"x","message":{"role":"assistant","content":"a","thinking":"b"},"done":false}`,
		`{"model":"m","response":"\ud83d\ude00 \ud83d","done":false}`,
		`{"model":"m","response":"a","done":true,"done_reason":"stop","eval_count":3,"prompt_eval_count":"4"}`,
		`{"model":"m","response":"` + "a\xff" + `","done":false}`, `{"error":{"message":"x"}}`, `{"model":"m","response":"` + "\xff\x00" + `","done":false}`, `null`, `[]`, `{"a":`, `{"done":false}`, `{"done":true,"prompt_eval_count":-4,"eval_count":-4}`,
		`{"message":{"tool_calls":[{"id":1,"function":{"name":"a","arguments":"{}"}}]},"logprobs":[{"logprob":-1}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var quick, sure line
		fast := quick.fast(in)
		err := sure.slow(in)
		if err == nil && !json.Valid(in) {
			t.Fatal("took what is not JSON")
		}
		if !utf8.Valid(sure.text) || !utf8.Valid(sure.thinking) || sure.input < 0 || sure.output < 0 || sure.cached < 0 {
			t.Fatalf("got %+v", sure)
		}
		if fast && (err != nil || sure.fault != "" || sure.done || string(quick.text) != string(sure.text) ||
			string(quick.thinking) != string(sure.thinking) || string(quick.model) != string(sure.model)) {
			t.Fatalf("fast %q %q %q, slow %+v, %v", quick.model, quick.text, quick.thinking, sure, err)
		}
	})
}
