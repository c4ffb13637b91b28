package gpu

import (
	"context"
	"encoding/csv"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const mib = 1 << 20

// smi asks nvidia-smi, where NVML cannot be loaded.
func smi(ctx context.Context, s Sources) ([]Device, string) {
	const fields, format = "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits"
	out, err := s.Run(ctx, "nvidia-smi", fields+",compute_cap,mig.mode.current,driver_version", format)
	if err != nil && strings.Contains(err.Error(), "not a valid field") { // an older driver
		out, err = s.Run(ctx, "nvidia-smi", fields, format)
	}
	if err != nil {
		return nil, err.Error()
	}
	devices, sliced, broken, err := parseSMI(string(out))
	if err != nil {
		return nil, err.Error()
	}
	note := strings.Join(broken, "; ")
	if len(sliced) > 0 { // a GPU in slices cannot be used as a whole
		list, err := s.Run(ctx, "nvidia-smi", "-L")
		if err != nil {
			return devices, err.Error()
		}
		devices = append(devices, parseSlices(string(list), sliced)...)
	}
	if len(devices) == 0 && note == "" {
		note = "nvidia-smi lists no GPU"
	}
	return devices, note
}

// parseSMI reads nvidia-smi's table. GPUs in MIG mode come separately; broken
// says of which GPUs the memory cannot be known.
func parseSMI(text string) (devices, sliced []Device, broken []string, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("nvidia-smi's table cannot be read: %w", err)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		said := func() error { return fmt.Errorf("nvidia-smi said %q", firstLine(strings.Join(row, ", "))) }
		if len(row) < 5 {
			return nil, nil, nil, said()
		}
		index, err := strconv.Atoi(row[0])
		if err != nil || index < 0 {
			return nil, nil, nil, said()
		}
		d := Device{Index: index, UUID: row[1], Name: row[2], Vendor: "nvidia"}
		if len(row) > 5 {
			d.Compute = stated(row[5])
		}
		if len(row) > 7 {
			d.Driver = stated(row[7])
		}
		if len(row) > 6 && strings.EqualFold(row[6], "Enabled") {
			sliced = append(sliced, d)
			continue
		}
		switch row[3] {
		case "[N/A]", "N/A", "[Not Supported]": // it has no memory of its own
			d.Unified = true
		default:
			if d.Total, d.Free = mebibytes(row[3]), mebibytes(row[4]); d.Total == 0 {
				broken = append(broken, fmt.Sprintf("GPU %d says %q of its memory", index, row[3]))
				continue
			}
			d.Free = min(d.Free, d.Total)
		}
		devices = append(devices, d)
	}
	return devices, sliced, broken, nil
}

func mebibytes(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(s, "MiB")), 10, 64)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n * mib
}

// stated drops what nvidia-smi says instead of nothing.
func stated(s string) string {
	if strings.HasPrefix(s, "[") {
		return ""
	}
	return s
}

var (
	gpuLine   = regexp.MustCompile(`^GPU (\d+): .*\(UUID: (GPU-[^)\s]+)\)`)
	sliceLine = regexp.MustCompile(`^\s+MIG (\S+?(\d+)gb\S*)\s.*\(UUID: (MIG-[^)]+)\)`)
)

// parseSlices reads the slices of GPUs in MIG mode out of nvidia-smi -L. Their
// memory is in the name of their profile, "1g.10gb", in decimal gigabytes.
func parseSlices(text string, sliced []Device) (slices []Device) {
	var parent *Device
	for line := range strings.Lines(text) {
		if m := gpuLine.FindStringSubmatch(line); m != nil {
			parent = nil
			for i := range sliced {
				if sliced[i].UUID == m[2] {
					parent = &sliced[i]
				}
			}
			continue
		}
		m := sliceLine.FindStringSubmatch(line)
		if m == nil || parent == nil {
			continue
		}
		gb, err := strconv.ParseInt(m[2], 10, 16)
		if err != nil || gb == 0 {
			continue
		}
		d := *parent
		d.parent, d.UUID, d.Name, d.MIG = d.UUID, m[3], d.Name+" MIG "+m[1], true
		d.Total = gb * 1e9
		d.Free = d.Total // nobody says
		slices = append(slices, d)
	}
	return slices
}
