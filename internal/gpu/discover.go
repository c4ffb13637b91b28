package gpu

import (
	"context"
	"os"
	"runtime"
	"slices"
)

// Sources is where Discover looks. The zero Sources is this machine.
type Sources struct {
	// Devices, if not nil, are taken as they are.
	Devices []Device
	// Root is the directory that holds proc and sys; "" = "/".
	Root string
	// Lookup reads the environment; nil = os.LookupEnv.
	Lookup func(string) (string, bool)
	// NVML is the path of NVIDIA's management library; "" = its usual name, "-" =
	// do not load it.
	NVML string
	// Run runs a program and returns its output; nil = really. Programs are
	// killed when their context ends.
	Run func(ctx context.Context, name string, args ...string) ([]byte, error)
	// GOOS is the operating system; "" = this one.
	GOOS string
}

// Discover finds the GPUs: those that are configured, else by NVML, nvidia-smi,
// AMD's sysfs and macOS, whichever first finds one. CUDA_VISIBLE_DEVICES is
// obeyed. It never fails: Notes say why nothing was found. It takes a few
// seconds at most.
func Discover(ctx context.Context, s Sources) Found {
	s = s.withDefaults()
	f := Found{}
	f.MemTotal, f.MemAvailable = s.memory(ctx)
	if s.Devices != nil {
		f.Devices, f.Source = slices.Clone(s.Devices), "config"
		return f
	}
	for _, way := range []struct {
		source string
		find   func(context.Context, Sources) ([]Device, string)
	}{{"nvml", nvml}, {"nvidia-smi", smi}, {"sysfs", sysfs}, {"macos", macos}} {
		devices, note := way.find(ctx, s)
		if note != "" {
			f.Notes = append(f.Notes, way.source+": "+note)
		}
		if len(devices) == 0 {
			continue
		}
		for i := range devices {
			shared(&devices[i], f)
		}
		kept, why := s.visible(devices)
		if why != "" {
			f.Notes = append(f.Notes, way.source+": "+why)
		}
		// What one source of a vendor hides, the next must not bring back.
		if f.Devices, f.Source = kept, way.source; len(kept) == 0 {
			f.Source = ""
		}
		return f
	}
	return f
}

// shared fills in the memory of a device that has none of its own.
func shared(d *Device, f Found) {
	if d.Total > 0 && !d.Unified {
		return
	}
	d.Unified = true
	if d.Total == 0 {
		d.Total = f.MemTotal
	}
	if d.Free == 0 {
		d.Free = f.MemAvailable
	}
}

func (s Sources) withDefaults() Sources {
	if s.Root == "" {
		s.Root = "/"
	}
	if s.Lookup == nil {
		s.Lookup = os.LookupEnv
	}
	if s.Run == nil {
		s.Run = run
	}
	if s.GOOS == "" {
		s.GOOS = runtime.GOOS
	}
	return s
}
