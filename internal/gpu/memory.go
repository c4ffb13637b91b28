package gpu

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memory is the machine's memory in bytes, as far as it says; 0 = unknown.
func (s Sources) memory(ctx context.Context) (total, available int64) {
	if s.GOOS == "darwin" {
		if out, err := s.Run(ctx, "sysctl", "-n", "hw.memsize"); err == nil {
			total, _ = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64) // 0 is unknown
		}
		return max(total, 0), max(total, 0) / 2
	}
	b, err := os.ReadFile(filepath.Join(s.Root, "proc/meminfo"))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = n << 10
		case "MemAvailable:":
			available = n << 10
		}
	}
	return total, available
}
