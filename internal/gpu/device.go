package gpu

import (
	"strconv"
	"strings"
)

// Device is one GPU, or one MIG slice of one.
type Device struct {
	Index   int    // as its driver counts
	UUID    string // "GPU-…" or "MIG-…"; "" if its driver gives none
	Name    string
	Vendor  string // "nvidia", "amd", "apple"
	Total   int64  // bytes of memory
	Free    int64  // bytes of it that nobody uses
	Unified bool   // the memory is the machine's own
	Compute string // compute capability ("9.0") or architecture ("gfx1100")
	MIG     bool   // a slice
	Driver  string // version

	parent string // of a slice: the UUID of its GPU
	place  string // of a slice: its instances, "2/0", as older drivers name it; "" = not known
}

// Found is what Discover came to.
type Found struct {
	Devices      []Device
	Source       string   // "config", "nvml", "nvidia-smi", "sysfs", "macos"; "" = no GPU
	Notes        []string // each way that was tried and found nothing, and why
	MemAvailable int64    // bytes of the machine's memory; 0 = unknown
	MemTotal     int64
}

// Environment makes a server use exactly these devices.
func Environment(devices []Device) []string {
	var nvidia, amd []string
	for _, d := range devices {
		switch {
		case d.Vendor == "nvidia" && d.UUID != "":
			nvidia = append(nvidia, d.UUID)
		case d.Vendor == "amd" && d.UUID != "":
			amd = append(amd, d.UUID)
		}
	}
	var env []string
	if len(nvidia) > 0 {
		env = append(env, "CUDA_VISIBLE_DEVICES="+strings.Join(nvidia, ","), "CUDA_DEVICE_ORDER=PCI_BUS_ID")
	}
	if len(amd) > 0 {
		// HIP counts in what ROCR leaves, so an inherited number would mean another.
		places := make([]string, len(amd))
		for i := range places {
			places[i] = strconv.Itoa(i)
		}
		env = append(env, "ROCR_VISIBLE_DEVICES="+strings.Join(amd, ","), "HIP_VISIBLE_DEVICES="+strings.Join(places, ","))
	}
	return env
}
