package gpu

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func card(gb float64) Device {
	return Device{Name: "card", UUID: "GPU-1", Vendor: "nvidia", Total: gibibytes(gb), Free: gibibytes(gb)}
}

// What is taken agrees with the measured table, before what servers keep free,
// within 2 %.
func TestSize(t *testing.T) {
	for quant, row := range map[string][5]float64{
		"Q4_K_M": {5.62, 9.06, 7.01, 10.21, 7.66},
		"Q8_0":   {8.76, 12.20, 10.15, 13.35, 10.80},
		"F16":    {15.36, 18.81, 16.76, 19.96, 17.41},
	} {
		for i, c := range []struct {
			context int
			kv      string
		}{{8192, "f16"}, {32768, "f16"}, {32768, "q8_0"}, {40960, "f16"}, {40960, "q8_0"}} {
			p, err := MakePlan(Found{Devices: []Device{card(200)}}, Want{Quant: quant, Context: c.context, KV: c.kv})
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(p.VRAM-perDevice) / (1 << 30); math.Abs(got-row[i]) > 0.02*row[i] {
				t.Errorf("%s, %d tokens, %s: %.2f GiB, measured %.2f", quant, c.context, c.kv, got, row[i])
			}
		}
	}
}

func TestMakePlan(t *testing.T) {
	second := card(12)
	second.UUID = "GPU-2"
	unified := Device{Name: "GB10", Vendor: "nvidia", Total: 119 << 30, Free: 100 << 30, Unified: true}
	mac := Device{Name: "Apple M3", Vendor: "apple", Total: 16 << 30, Free: 12 << 30, Unified: true}
	slice := Device{Name: "A100 MIG 1g.10gb", UUID: "MIG-1", Vendor: "nvidia", Total: 10 << 30, Free: 10 << 30, MIG: true}
	busy := card(24)
	busy.Free = 6 << 30
	for _, tt := range []struct {
		name    string
		devices []Device
		want    Want
		quant   string
		context int
		kv      string
		gpus    int
	}{
		{"8 GB", []Device{card(8)}, Want{}, "Q4_K_M", 24576, "q8_0", 1},
		{"12 GB", []Device{card(12)}, Want{}, "Q4_K_M", 40960, "f16", 1},
		{"16 GB", []Device{card(16)}, Want{}, "Q8_0", 40960, "f16", 1},
		{"24 GB", []Device{card(24)}, Want{}, "F16", 40960, "f16", 1},
		{"24 GB, two at once", []Device{card(24)}, Want{Parallel: 2}, "Q8_0", 40960, "f16", 1},
		{"48 GB", []Device{card(48)}, Want{}, "F16", 40960, "f16", 1},
		{"80 GB", []Device{card(80)}, Want{Parallel: 8}, "F16", 40960, "f16", 1},
		{"141 GB", []Device{card(141)}, Want{Parallel: 16}, "F16", 40960, "f16", 1},
		{"two unequal GPUs, the larger suffices", []Device{second, card(24)}, Want{}, "F16", 40960, "f16", 1},
		{"two unequal GPUs, together", []Device{card(6), card(8)}, Want{}, "Q6_K", 40960, "f16", 2},
		{"unified memory", []Device{unified}, Want{}, "F16", 40960, "f16", 1},
		{"a Mac", []Device{mac}, Want{}, "Q4_K_M", 40960, "f16", 1},
		{"a MIG slice", []Device{slice}, Want{}, "Q5_K_M", 40960, "q8_0", 1},
		{"MIG slices are not combined", []Device{slice, slice}, Want{}, "Q5_K_M", 40960, "q8_0", 1},
		{"a busy GPU", []Device{busy}, Want{}, "Q4_K_M", 8192, "q8_0", 1},
		{"a server that is there", []Device{card(8)}, Want{Fixed: true}, "Q4_K_M", 16384, "f16", 1},
		{"a server's own model is in the way", []Device{busy}, Want{Fixed: true, Held: 18 << 30}, "F16", 40960, "f16", 1},
		{"no more than a GPU has", []Device{busy}, Want{Held: 1 << 40}, "F16", 40960, "f16", 1},
		{"less context is enough", []Device{card(8)}, Want{Context: 8192}, "Q5_K_M", 8192, "f16", 1},
		{"an odd context", []Device{card(12)}, Want{Context: 30000}, "Q6_K", 30000, "f16", 1},
		{"no GPU, the processor allowed", nil, Want{CPU: true}, "Q4_K_M", 8192, "f16", 0},
		{"a small GPU, the processor allowed", []Device{card(4)}, Want{CPU: true, Context: 16384}, "Q4_K_M", 16384, "f16", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := MakePlan(Found{Devices: tt.devices}, tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if p.Quant != tt.quant || p.Context != tt.context || p.KV != tt.kv || len(p.Devices) != tt.gpus || p.Split != (tt.gpus > 1) || p.CPU != (tt.gpus == 0) {
				t.Errorf("%+v", p)
			}
			room := int64(0)
			for _, d := range p.Devices {
				room += d.Free
				if d.Free > d.Total {
					t.Errorf("more is free than there is: %+v", d)
				}
			}
			if p.VRAM > room || len(p.Why) == 0 {
				t.Errorf("%s of %s: %v", gib(p.VRAM), gib(room), p.Why)
			}
			if (p.Context < 40960 && tt.want.Context == 0 && !p.CPU) != strings.Contains(strings.Join(p.Why, " "), "were wanted") {
				t.Errorf("why: %v", p.Why)
			}
		})
	}
}

// What does not fit is refused, with what would; the processor is never taken
// unasked.
func TestNoFit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		devices []Device
		want    Want
		says    []string
	}{
		{"none", nil, Want{}, []string{"no GPU", "WithCPU"}},
		{"4 GB", []Device{card(4)}, Want{}, []string{"Q4_K_M", "8192 tokens", "4.00 GiB free", "WithCPU"}},
		{"too much asked for", []Device{card(12)}, Want{Quant: "F16"}, []string{"F16", "would fit", "Q6_K with 40960"}},
		{"no shrinking", []Device{card(8)}, Want{MinContext: 40960}, []string{"40960 tokens", "Q4_K_M with 24576"}},
		{"a server's own KV", []Device{card(6)}, Want{Fixed: true}, []string{"OLLAMA_KV_CACHE_TYPE=q8_0"}},
		{"overhead", []Device{card(8)}, Want{Overhead: 4 << 30}, []string{"3.43 GiB can be used"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := MakePlan(Found{Devices: tt.devices}, tt.want)
			var e *NoFitError
			if !errors.As(err, &e) {
				t.Fatalf("%+v, %v", p, err)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q lacks %q", err, s)
				}
			}
		})
	}
	for _, w := range []Want{{Quant: "Q9"}, {KV: "f8"}, {Context: -1}, {Context: 100_000}, {Parallel: -1}} {
		var e *ArgumentError
		if _, err := MakePlan(Found{Devices: []Device{card(24)}}, w); !errors.As(err, &e) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
