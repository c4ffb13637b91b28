package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/cost/sqlite"
)

// childVar has the orders of a process that spends from a shared budget.
const childVar = "COST_SQLITE_TEST_CHILD"

type orders struct {
	Path    string
	Limit   cost.Amount
	Workers int
	For     time.Duration
	Largest cost.Amount // that a lease asks for
	Gate    bool        // it begins when its standard input ends
}

// note is a line that a child prints.
type note struct {
	Lease  string
	USD    cost.Amount // that was spent, by the lease's own count
	Closed bool
}

// child spends until its time is over, and notes every cent of it.
func child() int {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(childVar)), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	store, err := sqlite.Open(o.Path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared := share(store, o.Limit)
	var mu sync.Mutex
	say := func(n note) {
		mu.Lock()
		defer mu.Unlock()
		line, _ := json.Marshal(n)
		os.Stdout.Write(append(line, '\n')) // at once: the process may be killed
	}
	say(note{})
	if o.Gate {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, o.Workers)
	for range o.Workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := spend(ctx, shared, o.Largest, say); err != nil {
					if !errors.Is(err, cost.ErrExceeded) && ctx.Err() == nil {
						errs <- err
					}
					return
				}
			}
		})
	}
	wg.Wait()
	if err := store.Close(); err != nil {
		errs <- err
	}
	select {
	case err := <-errs:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		return 0
	}
}

func share(store cost.Store, limit cost.Amount, opts ...cost.ShareOption) *cost.Shared {
	s, err := cost.Share(store, []cost.Scope{{Name: "all", Budget: cost.Budget{USD: cost.Max(limit)}}}, opts...)
	if err != nil {
		panic(err)
	}
	return s
}

// spend takes a lease and makes some calls of random prices.
func spend(ctx context.Context, shared *cost.Shared, largest cost.Amount, say func(note)) error {
	ask := largest/40 + rand.N(largest)
	l, err := shared.Lease(ctx, cost.Budget{USD: cost.Max(ask)}, cost.WithMinimum(largest/40), cost.WithWait(time.Minute))
	if err != nil {
		return err
	}
	var sum cost.Amount
	for i := range 1 + rand.N(5) {
		h, err := l.Meter().Reserve(cost.Estimate{Name: "model", ID: fmt.Sprint(l.ID(), "/", i), Priced: true, Worst: cost.Spend{USD: 1 + rand.N(ask)}})
		if err != nil {
			return err
		}
		usd := rand.N(h.Granted().USD + 1)
		if _, err := h.Settle(cost.Usage{Known: true, USD: &usd}, cost.Price{}, nil); err != nil {
			return err
		}
		sum += usd
		say(note{Lease: l.ID(), USD: sum})
		if rand.N(4) == 0 {
			if err := l.Renew(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	say(note{Lease: l.ID(), USD: sum, Closed: true})
	return nil
}

// start prepares a child and gives what it prints, as it does; errs gets what it
// complains of.
func start(t *testing.T, o orders, errs *bytes.Buffer) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVar+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// notes are the last words on each lease.
func notes(t *testing.T, out []byte) map[string]note {
	t.Helper()
	last := map[string]note{}
	for line := range bytes.Lines(out) {
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			if bytes.HasSuffix(line, []byte("\n")) {
				t.Fatalf("a child says %s", line)
			}
			continue // killed in the middle of a line
		}
		last[n.Lease] = n
	}
	delete(last, "")
	return last
}

func ledger(t *testing.T, s *sqlite.Store) (l cost.Ledger) {
	t.Helper()
	for r, err := range s.Ledger(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, r)
	}
	return l
}

// Eight processes with fifty goroutines each spend one dollar: all of it or
// nearly, never more, and all of them count the same.
func TestProcessesShareOneBudget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.db")
	limit := cost.Dollars(1)
	o := orders{Path: path, Limit: limit, Workers: 50, For: shareFor, Largest: cost.Dollars(shareLease), Gate: true}
	gate, ready, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	defer ready.Close()
	outs, errs := make([]bytes.Buffer, 8), make([]bytes.Buffer, 8)
	var working, over sync.WaitGroup
	for i := range outs {
		cmd, out := start(t, o, &errs[i])
		cmd.Stdin = gate
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(shareFor+90*time.Second, func() { _ = cmd.Process.Kill() })
		working.Add(1)
		over.Go(func() {
			_, _ = out.ReadString('\n') // it is ready, or dead
			working.Done()
			_, _ = outs[i].ReadFrom(out)
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, tail(errs[i].String()))
			}
			stuck.Stop()
		})
	}
	working.Wait()
	_ = ready.Close() // all at once
	over.Wait()
	if t.Failed() {
		return
	}
	var theirs cost.Amount
	leases, busy := 0, 0
	for i := range outs {
		n := notes(t, outs[i].Bytes())
		if leases += len(n); len(n) > 0 {
			busy++
		}
		for id, last := range n {
			if theirs += last.USD; !last.Closed {
				t.Errorf("lease %s is not closed", id)
			}
		}
	}
	store, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	b, err := share(store, limit).Balances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spent := b[0].Spent.USD
	if spent > limit || spent < cost.Dollars(0.9) {
		t.Errorf("spent %v of %v", spent, limit)
	}
	if rows := ledger(t, store).Total().USD; rows != spent || theirs != spent {
		t.Errorf("spent %v, the rows say %v and the processes %v", spent, rows, theirs)
	}
	if b[0].Held != (cost.Spend{}) {
		t.Errorf("still held: %+v", b[0].Held)
	}
	t.Logf("%v in %d leases of %d processes", spent, leases, busy)
}

func tail(s string) string { return s[max(0, len(s)-1000):] }

// Whenever a process is killed, what it spent is counted once, and nothing
// stays held.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.db")
	limit := cost.Dollars(1000)
	o := orders{Path: path, Limit: limit, Workers: 10, For: time.Minute, Largest: cost.Dollars(0.02)}
	all := map[string]note{}
	for range kills {
		var out, errs bytes.Buffer
		cmd, r := start(t, o, &errs)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadString('\n'); err != nil { // it is at work
			t.Fatal(err)
		}
		moment := time.AfterFunc(rand.N(150*time.Millisecond), func() { _ = cmd.Process.Kill() })
		if _, err := out.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); errs.Len() > 0 { // nothing but killed
			t.Error(errs.String())
		}
		moment.Stop()
		for id, n := range notes(t, out.Bytes()) {
			all[id] = n
		}
		audit(t, path, limit, all)
	}
}

// audit opens the file as a new process does, later than all leases last.
func audit(t *testing.T, path string, limit cost.Amount, all map[string]note) {
	t.Helper()
	store, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	later := func() time.Time { return time.Now().Add(2 * cost.DefaultTTL) }
	shared := share(store, limit, cost.WithClock(later))
	var b []cost.Balance
	for range 2 { // the second time, nothing is left to lapse
		if b, err = shared.Balances(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if b[0].Held != (cost.Spend{}) {
		t.Errorf("still held: %+v", b[0].Held)
	}
	rows := ledger(t, store)
	if total := rows.Total().USD; total != b[0].Spent.USD || total > limit {
		t.Errorf("rows %v, spent %v", total, b[0].Spent.USD)
	}
	charged := map[string]cost.Amount{}
	var ids []string
	lapsed := 0
	for _, r := range rows {
		id := strings.TrimPrefix(r.Scope, "all/")
		charged[id] += r.USD
		ids = append(ids, r.ID)
		if r.Name == "lapsed lease" {
			lapsed++
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d rows, and only %d calls", len(ids), n)
	}
	for id, n := range all {
		if got := charged[id]; got < n.USD || n.Closed && got != n.USD {
			t.Errorf("lease %s: %v is charged, %v was spent, closed: %v", id, got, n.USD, n.Closed)
		}
	}
	if lapsed == 0 && len(all) > 0 && !allClosed(all) {
		t.Error("leases were cut off, and no row says so")
	}
}

func allClosed(all map[string]note) bool {
	for _, n := range all {
		if !n.Closed {
			return false
		}
	}
	return true
}
