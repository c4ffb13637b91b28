package gpu

import (
	"context"
	"strconv"
	"strings"
)

// macos takes an Apple computer's own memory for its GPU's, as Metal does.
func macos(ctx context.Context, s Sources) ([]Device, string) {
	if s.GOOS != "darwin" {
		return nil, "only on macOS"
	}
	out, err := s.Run(ctx, "sysctl", "-n", "hw.memsize", "machdep.cpu.brand_string", "hw.optional.arm64")
	if err != nil {
		return nil, err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	total, err := strconv.ParseInt(strings.TrimSpace(lines[0]), 10, 64)
	if err != nil || total <= 0 || len(lines) < 3 {
		return nil, "sysctl said " + strconv.Quote(firstLine(string(out)))
	}
	if strings.TrimSpace(lines[2]) != "1" {
		return nil, "this Mac's processor is not Apple's own"
	}
	return []Device{{Name: strings.TrimSpace(lines[1]), Vendor: "apple", Total: total, Free: total / 4 * 3, Unified: true}}, ""
}
