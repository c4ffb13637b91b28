package gpu

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// NVML's codes, and bounds on what it says.
const (
	nvmlSuccess       = 0
	nvmlNotSupported  = 3
	nvmlNameSize      = 96
	nvmlMaxDevices    = 1024 // more is nonsense
	nvmlMaxMIGDevices = 16
	migEnabled        = 1
)

var nvmlErrors = map[uintptr]string{
	1: "it is not initialised", 2: "invalid argument", nvmlNotSupported: "not supported", 4: "no permission", 6: "not found",
	9: "the driver is not loaded", 12: "the library is missing", 15: "the GPU fell off the bus",
	18: "the library and the driver have different versions: restart the machine or reload the driver", 999: "unknown error",
}

func nvmlError(code uintptr) error {
	text, ok := nvmlErrors[code]
	if !ok {
		text = "error " + strconv.FormatUint(uint64(code), 10)
	}
	return fmt.Errorf("NVML: %s", text)
}

// nvmlTime is how long the library may take: it wakes each GPU up, one after the
// other, and with a broken driver it hangs.
const nvmlTime = 10 * time.Second

// nvml asks NVIDIA's management library, and does not wait for one that hangs.
// Nothing ends a call into a driver, so its goroutine is left to return when it
// may: the one exception to the rule that none outlives Discover.
func nvml(ctx context.Context, s Sources) ([]Device, string) {
	ctx, cancel := context.WithTimeout(ctx, nvmlTime)
	defer cancel()
	type answer struct {
		devices []Device
		note    string
	}
	c := make(chan answer, 1)
	go func() {
		devices, note := askNVML(s)
		c <- answer{devices, note}
	}()
	select {
	case a := <-c:
		return a.devices, a.note
	case <-ctx.Done():
		return nil, "NVIDIA's library did not answer: " + context.Cause(ctx).Error()
	}
}

func askNVML(s Sources) (devices []Device, note string) {
	name := s.NVML
	switch {
	case name == "-":
		return nil, "not to be loaded"
	case name == "" && s.GOOS != nvmlGOOS:
		return nil, "not on this system"
	case name == "":
		name = nvmlName()
	}
	lib, err := openLibrary(name)
	if err != nil {
		return nil, err.Error()
	}
	defer lib.close()
	n := nvmlLibrary{lib}
	if code := n.call("nvmlInit_v2"); code != nvmlSuccess {
		return nil, nvmlError(code).Error()
	}
	defer n.call("nvmlShutdown")
	var count uint32
	if code := n.call("nvmlDeviceGetCount_v2", uintptr(unsafe.Pointer(&count))); code != nvmlSuccess {
		return nil, nvmlError(code).Error()
	}
	if count > nvmlMaxDevices {
		return nil, fmt.Sprintf("NVML counts %d GPUs", count)
	}
	var notes []string
	driver := n.text("nvmlSystemGetDriverVersion", 0)
	for i := range count {
		var handle uintptr
		if code := n.call("nvmlDeviceGetHandleByIndex_v2", uintptr(i), uintptr(unsafe.Pointer(&handle))); code != nvmlSuccess {
			notes = append(notes, fmt.Sprintf("GPU %d: %v", i, nvmlError(code)))
			continue
		}
		d, err := n.device(handle, int(i), driver)
		slices, sliced := n.slices(handle, d)
		switch {
		case !sliced && err != nil:
			notes = append(notes, fmt.Sprintf("GPU %d does not say how much memory it has: %v", i, err))
		case !sliced:
			devices = append(devices, d)
		case len(slices) == 0:
			notes = append(notes, fmt.Sprintf("GPU %d is in MIG mode and has no slice", i))
		default:
			devices = append(devices, slices...)
		}
	}
	if len(devices) == 0 && len(notes) == 0 {
		notes = []string{"NVML lists no GPU"}
	}
	return devices, strings.Join(notes, "; ")
}

// nvmlLibrary calls the library's functions. One that it does not have is not
// supported.
type nvmlLibrary struct{ library }

// call calls a function whose arguments are numbers and pointers.
//
//go:uintptrescapes
func (n nvmlLibrary) call(function string, args ...uintptr) uintptr {
	address := n.symbol(function)
	if address == 0 {
		return nvmlNotSupported
	}
	return callAddress(address, args...) & 0xffffffff // an int
}

// text calls a function that fills a buffer; handle 0: one that is not about a
// device.
func (n nvmlLibrary) text(function string, handle uintptr) string {
	var b [nvmlNameSize]byte
	var code uintptr
	if handle == 0 {
		code = n.call(function, uintptr(unsafe.Pointer(&b[0])), nvmlNameSize)
	} else {
		code = n.call(function, handle, uintptr(unsafe.Pointer(&b[0])), nvmlNameSize)
	}
	if code != nvmlSuccess {
		return ""
	}
	text, _, _ := bytes.Cut(b[:], []byte{0})
	return string(text)
}

// device describes one GPU or slice. The error is why its memory is not known;
// that of a GPU which has none of its own is the machine's.
func (n nvmlLibrary) device(handle uintptr, index int, driver string) (Device, error) {
	d := Device{Index: index, Vendor: "nvidia", Driver: driver}
	d.Name = n.text("nvmlDeviceGetName", handle)
	d.UUID = n.text("nvmlDeviceGetUUID", handle)
	var memory struct{ total, free, used uint64 }
	var err error
	switch code := n.call("nvmlDeviceGetMemoryInfo", handle, uintptr(unsafe.Pointer(&memory))); {
	case code == nvmlNotSupported:
		d.Unified = true
	case code != nvmlSuccess:
		err = nvmlError(code)
	case memory.total == 0 || memory.total > 1<<50:
		err = fmt.Errorf("NVML: %d bytes", memory.total)
	default:
		d.Total, d.Free = int64(memory.total), int64(min(memory.free, memory.total))
	}
	var major, minor int32
	if n.call("nvmlDeviceGetCudaComputeCapability", handle, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))) == nvmlSuccess {
		d.Compute = fmt.Sprintf("%d.%d", major, minor)
	}
	return d, err
}

// slices lists the MIG slices of a GPU; ok false: it is not in MIG mode.
func (n nvmlLibrary) slices(handle uintptr, parent Device) (slices []Device, ok bool) {
	var now, next, most uint32
	if n.call("nvmlDeviceGetMigMode", handle, uintptr(unsafe.Pointer(&now)), uintptr(unsafe.Pointer(&next))) != nvmlSuccess || now != migEnabled {
		return nil, false
	}
	if n.call("nvmlDeviceGetMaxMigDeviceCount", handle, uintptr(unsafe.Pointer(&most))) != nvmlSuccess {
		return nil, true
	}
	for i := range min(most, nvmlMaxMIGDevices) {
		var slice uintptr
		if n.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, uintptr(i), uintptr(unsafe.Pointer(&slice))) != nvmlSuccess {
			continue // not every place is taken
		}
		d, err := n.device(slice, parent.Index, parent.Driver)
		if err != nil {
			continue
		}
		d.MIG, d.parent = true, parent.UUID
		var gpu, compute uint32
		if n.call("nvmlDeviceGetGpuInstanceId", slice, uintptr(unsafe.Pointer(&gpu))) == nvmlSuccess &&
			n.call("nvmlDeviceGetComputeInstanceId", slice, uintptr(unsafe.Pointer(&compute))) == nvmlSuccess {
			d.place = fmt.Sprintf("%d/%d", gpu, compute)
		}
		if d.Name == "" {
			d.Name = parent.Name + " MIG"
		}
		if d.Compute == "" {
			d.Compute = parent.Compute
		}
		slices = append(slices, d)
	}
	return slices, true
}
