package ollama

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueue(t *testing.T) {
	t.Run("full", func(t *testing.T) {
		q := newQueue(1, 1, time.Minute)
		var leaves []func()
		for range 2 {
			leave, err := q.enter()
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		if _, err := q.enter(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "Config.MaxQueue") {
			t.Errorf("a third call: %v", err)
		}
		leaves[0]()
		if _, err := q.enter(); err != nil {
			t.Errorf("after one had left: %v", err)
		}
	})
	t.Run("none may wait", func(t *testing.T) {
		q := newQueue(2, -1, 0)
		for i := range 3 {
			if _, err := q.enter(); (err != nil) != (i == 2) {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
	t.Run("order and time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(1, 9, time.Minute)
			done, err := q.turn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			type outcome struct {
				n     int
				err   error
				after time.Duration
			}
			out := make(chan outcome, 9)
			start := time.Now()
			var wg sync.WaitGroup
			defer wg.Wait()
			for n := range 4 {
				wg.Go(func() {
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if n == 1 {
						go func() {
							time.Sleep(5 * time.Second)
							cancel(errors.New("changed my mind"))
						}()
					}
					done, err := q.turn(ctx)
					out <- outcome{n, err, time.Since(start)}
					if err == nil {
						time.Sleep(45 * time.Second)
						done()
					}
				})
				synctest.Wait() // they arrive in order
			}
			time.Sleep(30 * time.Second)
			done()
			for _, want := range []struct {
				n     int
				after time.Duration
				is    error
			}{{1, 5 * time.Second, context.Canceled}, {0, 30 * time.Second, nil}, {2, time.Minute, ErrBusy}, {3, time.Minute, ErrBusy}} {
				got := <-out
				if want.is == ErrBusy {
					want.n = got.n // at the same moment
				}
				if got.n != want.n || got.after != want.after || !errors.Is(got.err, want.is) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		})
	})
	t.Run("no bound in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(1, 9, -1)
			done, _ := q.turn(t.Context())
			time.AfterFunc(time.Hour, done)
			if _, err := q.turn(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}
