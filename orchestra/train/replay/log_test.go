package replay_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

const prices = `{"models": {"big": {"usd_per_mtok_in": 2, "usd_per_mtok_out": 8}, "small": {"usd_per_mtok_in": 0.1, "usd_per_mtok_out": 0.4}}}`

// row makes a row of the two models.
func row(id, answer, big, small string) string {
	quote := func(s string) string {
		if s == "null" {
			return s
		}
		return `"` + s + `"`
	}
	right := func(s string) int {
		if s == answer {
			return 1
		}
		return 0
	}
	return fmt.Sprintf(`{"id":%q,"category":"law","query":"question %s","answer":%q,"in_tok_est":100,"out_tok_est":{"big":50,"small":20},"pred":{"big":%s,"small":%s},"correct":{"big":%d,"small":%d}}`,
		id, id, answer, quote(big), quote(small), right(big), right(small))
}

func models(t testing.TB) []replay.Model {
	t.Helper()
	ms, err := replay.ReadModels(strings.NewReader(prices))
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func logOf(t testing.TB, rows ...string) *replay.Log {
	t.Helper()
	l, err := replay.Read(models(t), strings.NewReader(strings.Join(rows, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestReadKeepsWhatWasRecorded(t *testing.T) {
	l := logOf(t, row("1", "A", "A", "null"), "", row("2", "B", "x:K", "B"))
	if len(l.Rows) != 2 || l.Total != 2 || len(l.Broken) != 0 || l.Models[0].Name != "big" {
		t.Fatalf("%+v", l)
	}
	if r := l.Rows[0].Replies; !r[0].Right || r[0].Answer != "A" || r[1].Right || r[1].Answer != "" {
		t.Errorf("%+v", r)
	}
	if r := l.Rows[1].Replies; r[0].Answer != "" || r[0].Right || !r[1].Right {
		t.Errorf("%+v", r)
	}
	if c := l.Cost(&l.Rows[0], 0); c < 0.000599999 || c > 0.000600001 {
		t.Errorf("100 tokens at $2 and 50 at $8 a million cost %v", c)
	}
}

func TestBrokenRowsAreCountedAndNamed(t *testing.T) {
	good := row("good", "A", "A", "B")
	edit := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	bad := map[string]string{
		"not JSON":               `{"id":`,
		"an array":               `[1]`,
		"no query":               edit(`"question good"`, `" "`),
		"no answer":              edit(`"answer":"A"`, `"answer":""`),
		"a model is missing":     edit(`"small":20`, `"other":20`),
		"a prediction is absent": edit(`,"small":"B"`, ``),
		"negative tokens":        edit(`"big":50`, `"big":-1`),
		"huge tokens":            edit(`"big":50`, `"big":1e300`),
		"half right":             edit(`"correct":{"big":1`, `"correct":{"big":0.5`),
		"it contradicts itself":  edit(`"correct":{"big":1`, `"correct":{"big":0`),
		"right without answer":   edit(`"small":"B"},"correct":{"big":1,"small":0`, `"small":null},"correct":{"big":1,"small":1`),
		"too long":               strings.Repeat("x", 5<<20),
	}
	lines := []string{good}
	var names []string
	for name, b := range bad {
		if b == good {
			t.Fatalf("%s: the row was not changed", name)
		}
		lines, names = append(lines, b), append(names, name)
	}
	l, err := replay.Read(models(t), strings.NewReader(strings.Join(append(lines, good), "\n")))
	if err != nil || len(l.Rows) != 2 || l.Total != len(bad)+2 || len(l.Broken) != len(bad) {
		t.Fatalf("%d rows, %d broken, %d in all: %v", len(l.Rows), len(l.Broken), l.Total, err)
	}
	for i, b := range l.Broken {
		if b.Line != i+2 || b.Fix == "" || !strings.Contains(b.Error(), fmt.Sprintf("line %d", i+2)) {
			t.Errorf("%s: %v", names[i], b)
		}
	}
}

func TestUnusableLogs(t *testing.T) {
	for name, rows := range map[string]string{"empty": "", "nothing usable": "x\ny"} {
		if _, err := replay.Read(models(t), strings.NewReader(rows)); !errors.Is(err, replay.ErrLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := replay.Read(models(t), iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	for name, file := range map[string]string{
		"empty": "", "no models": `{}`, "none": `{"models":{}}`, "a list": `{"models":[]}`, "no price": `{"models":{"a":{"usd_per_mtok_in":1}}}`,
		"twice": `{"models":{"a":{"usd_per_mtok_in":1,"usd_per_mtok_out":1},"a":{"usd_per_mtok_in":1,"usd_per_mtok_out":1}}}`,
		"below": `{"models":{"a":{"usd_per_mtok_in":-1,"usd_per_mtok_out":1}}}`, "no name": `{"models":{"":{"usd_per_mtok_in":1,"usd_per_mtok_out":1}}}`,
		"a string": `{"models":{"a":"x"}}`,
	} {
		if _, err := replay.ReadModels(strings.NewReader(file)); !errors.Is(err, replay.ErrLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	m := write("models.json", []byte(prices))
	plain := write("rows.jsonl", []byte(row("1", "A", "A", "B")))
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(row("1", "A", "A", "B")))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, rows := range []string{plain, write("rows.jsonl.gz", []byte(b.String()))} {
		if l, err := replay.Open(m, rows); err != nil || len(l.Rows) != 1 {
			t.Errorf("%s: %v", rows, err)
		}
	}
	cut := write("cut.gz", []byte(b.String()[:b.Len()-6]))
	for _, bad := range [][2]string{{"none", plain}, {m, "none"}, {plain, plain}, {m, m}, {m, cut}, {m, write("no.gz", []byte("no"))}} {
		if _, err := replay.Open(bad[0], bad[1]); err == nil {
			t.Errorf("%v is opened", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(row("1", "A", "A", "null") + "\n{}\n" + row("2", "A", "x:B", "B"))
	ms, err := replay.ReadModels(strings.NewReader(prices))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rows string) {
		l, err := replay.Read(ms, strings.NewReader(rows))
		if (err == nil) != (len(l.Rows) > 0) || len(l.Rows)+len(l.Broken) != l.Total {
			t.Fatalf("%d rows, %d broken, %d in all: %v", len(l.Rows), len(l.Broken), l.Total, err)
		}
		for i := range l.Rows {
			for m := range ms {
				if c := l.Cost(&l.Rows[i], m); !(c >= 0) || l.Rows[i].Replies[m].Right != (l.Rows[i].Replies[m].Answer == l.Rows[i].Answer) {
					t.Fatalf("%+v", l.Rows[i])
				}
			}
		}
	})
}

func FuzzReadModels(f *testing.F) {
	f.Add(prices)
	f.Fuzz(func(t *testing.T, file string) {
		if ms, err := replay.ReadModels(strings.NewReader(file)); (err == nil) != (len(ms) > 0) {
			t.Fatal(ms, err)
		}
	})
}
