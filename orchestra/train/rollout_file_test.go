package train_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// readAll reads a file of rollouts; lines that cannot be used come as errors.
func readAll(file string) (rs []*train.Rollout, errs []error) {
	for r, err := range train.ReadRollouts(strings.NewReader(file)) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rs = append(rs, r)
	}
	return rs, errs
}

func TestRolloutsComeBackAsTheyWereWritten(t *testing.T) {
	golden, err := os.ReadFile("testdata/rollout.golden")
	if err != nil {
		t.Fatal(err)
	}
	rs, errs := readAll(string(golden))
	if len(rs) != 1 || len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := lines(t, rs...); got != string(golden) {
		t.Errorf("got:\n%s\nwant:\n%s", got, golden)
	}
	second := *rs[0]
	second.ID, second.Reward, second.Advantage, second.Dropped, second.USD = "run-2", 1.5, -0.25, train.Flat, cost.Amount(1)
	file := lines(t, rs[0], &second)
	both, errs := readAll("\n" + strings.ReplaceAll(file, "\n", "\r\n\n"))
	if len(errs) > 0 || len(both) != 2 || !reflect.DeepEqual(both[1], &second) {
		t.Errorf("%v, %+v, want %+v", errs, both, second)
	}
	if !strings.Contains(file, `"cost_usd":"0.000000000001"`) {
		t.Error("money is not written exactly")
	}
}

// A later minor version may add fields; they are ignored.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	rs, errs := readAll(`{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"r","mood":{"a":[1]},"turns":[{"format_ok":true,"mood":1}]}`)
	if len(errs) > 0 || len(rs) != 1 || rs[0].Group != "g" || !rs[0].Turns[0].FormatOK {
		t.Errorf("%v, %+v", errs, rs)
	}
}

func TestBrokenLinesAreNamedAndPassedOver(t *testing.T) {
	const good = `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"good"}`
	row := func(fields string) string {
		return `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"bad",` + fields + `}`
	}
	for name, c := range map[string]struct {
		line   string
		schema bool // it is another format
		says   string
	}{
		"no JSON":             {`{"schema":`, false, "unexpected end"},
		"no object":           {`7`, false, "cannot unmarshal"},
		"torn":                {good[:40], false, "unexpected end"},
		"two objects":         {good + good, false, "after top-level value"},
		"no schema":           {`{"group_id":"g"}`, true, "toolorch.rollout/1"},
		"a later major":       {`{"schema":"toolorch.rollout/2","turns":7}`, true, `"toolorch.rollout/2"`},
		"a trajectory":        {`{"event":"started","schema":"toolorchestra.trajectory/1"}`, true, "trajectory"},
		"major without end":   {`{"schema":"toolorch.rollout/1x"}`, true, "1x"},
		"no ids":              {`{"schema":"toolorch.rollout/1"}`, false, "rollout_id"},
		"no id":               {`{"schema":"toolorch.rollout/1","group_id":"g"}`, false, "rollout_id"},
		"no group":            {`{"schema":"toolorch.rollout/1","rollout_id":"r"}`, false, "group_id"},
		"fields of no kind":   {row(`"turns":7`), false, "turns"},
		"a negative step":     {row(`"step":-1`), false, "step"},
		"a broken step":       {row(`"step":1.5`), false, "step"},
		"a negative cost":     {row(`"cost_usd":"-1"`), false, "cost_usd"},
		"money as a number":   {row(`"cost_usd":0.1`), false, "cost_usd"},
		"endless money":       {row(`"cost_usd":"1e99"`), false, "amount"},
		"a negative latency":  {row(`"latency_s":-1`), false, "latency_s"},
		"an endless reward":   {row(`"reward":1e999`), false, "reward"},
		"a heavy preference":  {row(`"pref_vec":{"a":2}`), false, "pref_vec"},
		"a dislike":           {row(`"pref_vec":{"a":-0.5}`), false, "pref_vec"},
		"a negative count":    {row(`"tool_counts":{"a":-1}`), false, "tool_counts"},
		"a negative token":    {row(`"turns":[{},{"response_token_ids":[-1]}]`), false, "turn 2"},
		"a token too large":   {row(`"turns":[{"prompt_token_ids":[4294967296]}]`), false, "prompt_token_ids"},
		"too few logprobs":    {row(`"turns":[{"response_token_ids":[1,2],"logprobs":[-1]}]`), false, "1 logprobs for 2"},
		"a probability of 2":  {row(`"turns":[{"response_token_ids":[1],"logprobs":[0.7]}]`), false, "logprob"},
		"a turn that refunds": {row(`"turns":[{"cost_usd":"-0.1"}]`), false, "turn 1"},
	} {
		rs, errs := readAll(good + "\n" + c.line + "\n\n" + good + "\n")
		var bad *train.RolloutError
		if len(rs) != 2 || len(errs) != 1 || !errors.As(errs[0], &bad) || bad.Line != 2 || !errors.Is(bad, train.ErrRollout) ||
			errors.Is(bad, train.ErrRolloutSchema) != c.schema || !strings.Contains(bad.Error(), c.says) || !strings.Contains(bad.Error(), "line 2") {
			t.Errorf("%s: %d rollouts, %v", name, len(rs), errs)
			continue
		}
		if strings.HasPrefix(c.line, `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"bad"`) && bad.ID != "bad" {
			t.Errorf("%s: the error does not name the rollout: %v", name, bad)
		}
	}
}

// endless is a line of that many bytes, without an end.
func endless(n int) io.Reader {
	const part = 1 << 20
	zeros := strings.Repeat("0", part)
	var parts []io.Reader
	for ; n > 0; n -= part {
		parts = append(parts, strings.NewReader(zeros[:min(n, part)]))
	}
	return io.MultiReader(parts...)
}

func TestLongLinesArePassedOver(t *testing.T) {
	const good = `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"good"}`
	for name, c := range map[string]struct {
		after string
		rs    int
	}{"in between": {"\n" + good + "\n", 1}, "at the end": {"", 0}} {
		file := io.MultiReader(endless(train.MaxRollout+2), strings.NewReader(c.after))
		var rs, bad int
		for r, err := range train.ReadRollouts(file) {
			if r != nil {
				rs++
			} else if !errors.Is(err, train.ErrRollout) || !strings.Contains(err.Error(), "line 1: ") {
				t.Errorf("%s: %v", name, err)
			} else {
				bad++
			}
		}
		if rs != c.rs || bad != 1 {
			t.Errorf("%s: %d rollouts and %d broken lines", name, rs, bad)
		}
	}
}

func TestReadErrorsEndTheReading(t *testing.T) {
	const good = `{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"good"}` + "\n"
	down := errors.New("the disk is gone")
	file := io.MultiReader(strings.NewReader(good), iotest.ErrReader(down))
	var rs int
	var errs []error
	for r, err := range train.ReadRollouts(file) {
		if err != nil {
			errs = append(errs, err)
		} else if r != nil {
			rs++
		}
	}
	if rs != 1 || len(errs) != 1 || !errors.Is(errs[0], down) {
		t.Errorf("%d rollouts, %v", rs, errs)
	}
	for range train.ReadRollouts(strings.NewReader("x\n" + good)) {
		break // a consumer may leave at an error
	}
	for r := range train.ReadRollouts(strings.NewReader(good + good)) {
		if r.ID != "good" {
			t.Error(r.ID)
		}
		break // or at a rollout
	}
}

func TestRolloutsThatCouldNotBeReadAreNotWritten(t *testing.T) {
	good := &train.Rollout{Group: "g", ID: "good"}
	with := func(f func(*train.Rollout)) *train.Rollout {
		r := &train.Rollout{Group: "g", ID: "bad"}
		f(r)
		return r
	}
	for name, r := range map[string]*train.Rollout{
		"nil":           nil,
		"no group":      with(func(r *train.Rollout) { r.Group = "" }),
		"no number":     with(func(r *train.Rollout) { r.Reward = math.NaN() }),
		"no time":       with(func(r *train.Rollout) { r.Seconds = math.Inf(1) }),
		"invalid money": with(func(r *train.Rollout) { r.USD = cost.Invalid }),
		"no JSON": with(func(r *train.Rollout) {
			r.Turns = []train.RolloutTurn{{Calls: []train.RolloutCall{{Args: json.RawMessage(`{`)}}}}
		}),
		"too long": with(func(r *train.Rollout) { r.Answer = strings.Repeat("a", train.MaxRollout) }),
	} {
		var b bytes.Buffer
		err := train.WriteRollouts(&b, good, r, good)
		var bad *train.RolloutError
		if !errors.As(err, &bad) || bad.Line != 2 || !errors.Is(err, train.ErrRollout) {
			t.Errorf("%s: %v", name, err)
		}
		if rs, errs := readAll(b.String()); len(rs) != 1 || len(errs) > 0 || rs[0].Schema != train.RolloutSchema {
			t.Errorf("%s: %d rollouts were written, %v", name, len(rs), errs)
		}
	}
	if good.Schema != "" {
		t.Error("writing changed the rollout")
	}
	if err := train.WriteRollouts(failing{}, good); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Whatever the file holds, each line is a rollout or a typed error, and what was
// read can be written and read again.
func FuzzReadRollouts(f *testing.F) {
	if golden, err := os.ReadFile("testdata/rollout.golden"); err == nil {
		f.Add(string(golden))
	}
	f.Add(`{"schema":"toolorch.rollout/1","group_id":"g","rollout_id":"r","cost_usd":"0.1","turns":[{"response_token_ids":[1],"logprobs":[-1],"tool_calls":[{"name":"a","args":{"b":[1]}}]}]}` + "\n")
	f.Add("\r\n\n{\"schema\":\"toolorch.rollout/2\"}\n{}")
	f.Fuzz(func(t *testing.T, file string) {
		rs, errs := readAll(file)
		if n := len(rs) + len(errs); n > strings.Count(file, "\n")+1 {
			t.Fatalf("%d lines came of %q", n, file)
		}
		last := 0
		for _, err := range errs {
			var bad *train.RolloutError
			if !errors.As(err, &bad) || !errors.Is(err, train.ErrRollout) || bad.Line <= last {
				t.Fatalf("%v after line %d", err, last)
			}
			last = bad.Line
		}
		var first, second bytes.Buffer
		if err := train.WriteRollouts(&first, rs...); err != nil {
			t.Fatal(err)
		}
		again, errs := readAll(first.String())
		if len(errs) > 0 || len(again) != len(rs) {
			t.Fatalf("%v", errs)
		}
		if err := train.WriteRollouts(&second, again...); err != nil || !slices.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v:\n%s\n%s", err, first.String(), second.String())
		}
		for _, r := range rs {
			m := r.Metrics([]string{"a"})
			if len(m.Calls) != 1 || m.USD < 0 {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// Whatever a trajectory says, its rollout can be kept, or it is refused.
func FuzzFoldRollout(f *testing.F) {
	const started = `{"event":"started","schema":"toolorchestra.trajectory/1","run":"r","task":{"prompt":"What?","prefer":{"accuracy":1,"use":{"a":1}}},"tools":[{"name":"a","fee":"0.1","choices":[{"alias":"a-1","info":{"name":"x"}}]}],"at":"2025-01-01T00:00:00Z"}` + "\n"
	f.Add(started)
	f.Add(started + `{"event":"decided","turn":1,"decision":{"calls":[{"tool":"a","args":{"model":"a-1"}}],"sample":{"prompt":"<|im_start|>user\nHi<|im_end|>\n","output_ids":[1],"logprobs":[-1]}},"offers":[{"tool":"a","choice":"a-1","names":["a","x"]}],"usd":"0.1","start":"2025-01-01T00:00:00Z","took":1}
{"event":"returned","id":"call-1","call":{"tool":"a","args":{"model":"a-1"}},"took":5,"usd":"0.1"}
{"event":"resumed","at":"2025-01-01T00:00:00Z","after":3}
{"event":"decided","turn":2,"decision":{"calls":[{"tool":"a","args":7}]},"usd":"0","start":"2024-01-01T00:00:00Z","took":-1}
{"event":"returned","id":"call-2","call":{"tool":"a","args":7},"err":{"tool":"a","kind":"bad_arguments","err":"no"},"took":-5,"usd":"0.1"}
{"event":"stopped","stop":"answered","answer":"42","spent":{"usd":"0.2","time":9}}
`)
	f.Fuzz(func(t *testing.T, file string) {
		tr, err := orchestra.ReadTrajectory(strings.NewReader(file))
		if err != nil {
			return
		}
		r, err := train.FoldRollout(tr)
		if err != nil {
			if r != nil || !errors.Is(err, train.ErrRollout) {
				t.Fatal(r, err)
			}
			return
		}
		kept := lines(t, r)
		rs, errs := readAll(kept)
		if len(errs) > 0 || len(rs) != 1 || lines(t, rs...) != kept {
			t.Fatalf("%v: %s", errs, kept)
		}
	})
}
