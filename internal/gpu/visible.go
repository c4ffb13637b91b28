package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// visible keeps the devices that the environment lets programs see. why says
// what was hidden.
func (s Sources) visible(devices []Device) (kept []Device, why string) {
	var variables []string
	switch devices[0].Vendor {
	case "nvidia":
		variables = []string{"CUDA_VISIBLE_DEVICES"}
	case "amd":
		variables = []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}
	}
	for _, v := range variables {
		if list, set := s.Lookup(v); set {
			kept = choose(devices, list)
			if len(kept) < len(devices) {
				why = fmt.Sprintf("%s=%q hides %d of %d GPUs", v, list, len(devices)-len(kept), len(devices))
			}
			return kept, why
		}
	}
	return devices, ""
}

// choose reads a list as CUDA does: numbers, or identifiers that may be
// shortened; the first that is none ends the list. The order is the list's. An
// empty list is no device.
func choose(devices []Device, list string) (kept []Device) {
	used := map[int]bool{}
	for entry := range strings.SplitSeq(list, ",") {
		i := find(devices, strings.TrimSpace(entry))
		if i < 0 || used[i] { // a device that is named twice is an error, too
			return kept
		}
		used[i] = true
		kept = append(kept, devices[i])
	}
	return kept
}

// find returns the place of the device that an entry names, or -1.
func find(devices []Device, entry string) int {
	if n, err := strconv.Atoi(entry); err == nil {
		for i, d := range devices {
			if d.Index == n && !d.MIG {
				return i
			}
		}
		return -1
	}
	found := -1
	for i, d := range devices {
		if entry == "" || d.UUID == "" || !strings.HasPrefix(d.UUID, entry) {
			continue
		}
		if d.UUID == entry {
			return i
		}
		if found >= 0 {
			return -1 // it is short of two
		}
		found = i
	}
	return found
}
