package gpu

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sysfs looks for AMD's GPUs where the Linux driver shows them.
func sysfs(_ context.Context, s Sources) ([]Device, string) {
	if s.GOOS != "linux" {
		return nil, "only on Linux"
	}
	cards, _ := filepath.Glob(filepath.Join(s.Root, "sys/class/drm/card*")) // the pattern is right
	slices.SortFunc(cards, func(a, b string) int { return number(a) - number(b) })
	archs := s.kfd()
	var devices []Device
	for _, card := range cards {
		dir := filepath.Join(card, "device")
		if number(card) < 0 || word(dir, "vendor") != "0x1002" {
			continue // "card0-HDMI-A-1", or another vendor's
		}
		total, err := strconv.ParseInt(word(dir, "mem_info_vram_total"), 10, 64)
		if err != nil || total <= 0 {
			continue
		}
		used, err := strconv.ParseInt(word(dir, "mem_info_vram_used"), 10, 64)
		if err != nil || used < 0 {
			used = 0
		}
		d := Device{Index: len(devices), Name: word(dir, "product_name"), Vendor: "amd", Total: total, Free: max(total-used, 0)}
		if d.Name == "" {
			d.Name = "AMD GPU " + word(dir, "device")
		}
		if id := word(dir, "unique_id"); id != "" {
			d.UUID = "GPU-" + id
		}
		if i := len(devices); i < len(archs) {
			d.Compute = archs[i]
		}
		devices = append(devices, d)
	}
	if len(devices) == 0 {
		return nil, "no AMD GPU with memory of its own"
	}
	return devices, ""
}

// number is the n of ".../cardn", or -1.
func number(path string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "card"))
	if err != nil {
		return -1
	}
	return n
}

// word is what a small file says.
func word(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || len(b) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// kfd lists the architectures of AMD's GPUs, in the driver's order.
func (s Sources) kfd() (archs []string) {
	nodes, _ := filepath.Glob(filepath.Join(s.Root, "sys/class/kfd/kfd/topology/nodes/*")) // the pattern is right
	slices.SortFunc(nodes, func(a, b string) int {
		x, _ := strconv.Atoi(filepath.Base(a)) // 0 will do
		y, _ := strconv.Atoi(filepath.Base(b))
		return x - y
	})
	for _, n := range nodes {
		for line := range strings.Lines(word(n, "properties")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			v, err := strconv.Atoi(value)
			if name != "gfx_target_version" || err != nil || v == 0 { // 0 = a processor
				continue
			}
			// 110000 is gfx1100, 90010 is gfx90a: the last two are hexadecimal.
			archs = append(archs, "gfx"+strconv.Itoa(v/10000)+strconv.FormatInt(int64(v/100%100), 16)+strconv.FormatInt(int64(v%100), 16))
		}
	}
	return archs
}
