package gpu

import (
	"context"
	"testing"
)

func TestBrokenGPUIsNotUnified(t *testing.T) {
	for _, mem := range []string{"[Unknown Error], [Unknown Error]", "[GPU requires reset], [GPU requires reset]", "[Insufficient Permissions], [Insufficient Permissions]"} {
		f := Discover(context.Background(), Sources{NVML: "-", GOOS: "linux", Lookup: func(string) (string, bool) { return "", false }, Run: func(_ context.Context, name string, _ ...string) ([]byte, error) {
			return []byte("0, GPU-1, NVIDIA A100, " + mem + ", 8.0, Disabled, 550\n"), nil
		}})
		if p, err := MakePlan(f, Want{}); err == nil {
			t.Errorf("%s: planned %v", mem, p.Why)
		}
	}
}

func TestParallelOverflow(t *testing.T) {
	f := Found{Devices: []Device{{Name: "g", Vendor: "nvidia", Total: 24 << 30, Free: 24 << 30}}}
	if p, err := MakePlan(f, Want{Parallel: 1 << 31}); err == nil {
		t.Errorf("planned %v", p.Why)
	}
}
