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
	kept = devices
	var hidden []string
	for _, v := range variables { // AMD's second counts in what the first leaves
		if list, set := s.Lookup(v); set {
			all := len(kept)
			if kept = choose(kept, list); len(kept) < all {
				hidden = append(hidden, fmt.Sprintf("%s=%q hides %d of %d GPUs", v, list, all-len(kept), all))
			}
		}
	}
	return kept, strings.Join(hidden, "; ")
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
		if counted := count(devices); n >= 0 && n < len(counted) {
			return counted[n]
		}
		return -1
	}
	if entry == "" {
		return -1
	}
	found := -1
	for i, d := range devices {
		switch {
		case d.UUID == entry, d.place != "" && entry == "MIG-"+d.parent+"/"+d.place:
			return i
		case strings.HasPrefix(d.UUID, entry), d.parent != "" && strings.HasPrefix(d.parent, entry):
			if found < 0 {
				found = i
			} else if d.parent != devices[found].parent || strings.HasPrefix(d.UUID, entry) {
				return -1 // it is short of two; the first slice stands for its GPU
			}
		}
	}
	return found
}

// count lists the places of the devices in the order of their numbers. Of a GPU
// in slices CUDA counts the first slice, after all GPUs that are whole.
func count(devices []Device) (places []int) {
	var first []int
	parents := map[int]bool{}
	for i, d := range devices {
		switch {
		case !d.MIG:
			places = append(places, i)
		case !parents[d.Index]:
			parents[d.Index] = true
			first = append(first, i)
		}
	}
	return append(places, first...)
}
