//go:build unix

package orchestra_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
)

// BenchmarkStorm starts 10,000 runs of the work item at once, each decision
// asking a metered model that sleeps 50 ms, and reports CPU seconds, peak memory and what is left behind. The
// figures are of the whole process: run it alone (-run '^$' -bench Storm -benchtime 1x).
func BenchmarkStorm(b *testing.B) {
	item := workItem()
	model := models.Metered(modeltest.Func(models.Info{Name: "m", Price: cost.Tokens(0.1, 0.1), MaxOutput: 100}, func(context.Context, *models.Request) (*models.Response, error) {
		time.Sleep(50 * time.Millisecond)
		return &models.Response{Text: "x", Usage: cost.Usage{Input: 10, Output: 10, Known: true}}, nil
	}))
	slow := decideFunc(func(ctx context.Context, s *policy.State) (policy.Decision, error) {
		if _, err := model.Generate(ctx, &models.Request{Prompt: s.Prompt}); err != nil {
			return policy.Decision{}, err
		}
		return item.Decide(ctx, s)
	})
	o := newOrchestra(b, orchestra.WithPolicy(slow), orchestra.WithTools(noop("t", nil)))
	for b.Loop() {
		before, cpu := runtime.NumGoroutine(), cpuSeconds()
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() {
				if res, err := o.Run(context.Background(), orchestra.Task{Prompt: "x"}); err != nil || res.Answer != "done" {
					b.Error(res.Stop, err)
				}
			})
		}
		wg.Wait()
		spent := cpuSeconds() - cpu
		for range 100 { // workers end right after their run
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(spent, "cpu-s")
		b.ReportMetric(peakMB(), "peak-MB")
		b.ReportMetric(float64(runtime.NumGoroutine()-before), "goroutines-left")
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// peakMB is the process's peak memory, where /proc tells.
func peakMB() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return kb / 1024
}
