package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fakeNVML compiles the stand-in for NVIDIA's library.
func fakeNVML(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || nvmlName() == "" {
		t.Skip("this build does not load NVML on Linux")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build the library with")
	}
	lib := filepath.Join(t.TempDir(), "fake_nvml.so")
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", lib, "testdata/fake_nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return lib
}

// A GPU that cannot say how much memory it has, because it is broken or may not
// be asked, is not one that shares the machine's memory.
func TestABrokenGPUIsNotUnified(t *testing.T) {
	for _, said := range []string{"[Unknown Error]", "[GPU is lost]", "[Insufficient Permissions]", "junk", "-1"} {
		t.Run("nvidia-smi "+said, func(t *testing.T) {
			s := bareMachine(t)
			s.Run = says("0, GPU-bad, A, "+said+", "+said+", 8.6, [N/A], 570\n1, GPU-good, B, 24576, 23000, 8.9, [N/A], 570\n", "")
			f := Discover(context.Background(), s)
			if len(f.Devices) != 1 || f.Devices[0].UUID != "GPU-good" {
				t.Errorf("%+v", f.Devices)
			}
			if !strings.Contains(strings.Join(f.Notes, "; "), "GPU 0") {
				t.Errorf("nothing says what became of GPU 0: %q", f.Notes)
			}
		})
	}
	t.Run("NVML", func(t *testing.T) {
		s := bareMachine(t)
		s.NVML = fakeNVML(t)
		t.Setenv("FAKE_NVML", "sick")
		f := Discover(context.Background(), s)
		if len(f.Devices) != 1 || f.Devices[0].UUID != "GPU-00000002" || !strings.Contains(strings.Join(f.Notes, "; "), "bus") {
			t.Errorf("%+v", f)
		}
	})
}

// A driver that never answers costs the caller no more than the context allows.
func TestNVMLHangs(t *testing.T) {
	s := bareMachine(t)
	s.NVML = fakeNVML(t)
	hold := filepath.Join(t.TempDir(), "hold")
	write(t, hold, "")
	t.Cleanup(func() { _ = os.Remove(hold) }) // lets the library go on
	t.Setenv("FAKE_NVML", "hang")
	t.Setenv("FAKE_NVML_HOLD", hold)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	done := make(chan Found, 1)
	go func() { done <- Discover(ctx, s) }()
	select {
	case f := <-done:
		if len(f.Devices) != 0 || !strings.Contains(strings.Join(f.Notes, "; "), "did not answer") {
			t.Errorf("%+v", f)
		}
	case <-time.After(5 * time.Second):
		_ = os.Remove(hold)
		<-done
		t.Error("it waited for the library")
	}
}

// Of a GPU in slices, CUDA takes the first slice for the whole.
func TestVisibleSlices(t *testing.T) {
	const table = "0, GPU-aaa, A100, 40960, 40000, 8.0, Enabled, 570\n1, GPU-bbb, A100, 40960, 40000, 8.0, Enabled, 570\n"
	const list = "GPU 0: A100 (UUID: GPU-aaa)\n  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n  MIG 3g.20gb     Device  1: (UUID: MIG-2)\nGPU 1: A100 (UUID: GPU-bbb)\n  MIG 3g.20gb     Device  0: (UUID: MIG-3)\n"
	for entry, want := range map[string]string{"0": "MIG-1", "1": "MIG-3", "2": "", "GPU-aaa": "MIG-1", "GPU-b": "MIG-3", "GPU-": "", "MIG-2": "MIG-2", "MIG-": ""} {
		s := bareMachine(t)
		s.Run = says(table, list)
		s.Lookup = env(map[string]string{"CUDA_VISIBLE_DEVICES": entry})
		var got string
		for _, d := range Discover(context.Background(), s).Devices {
			got += d.UUID
		}
		if got != want {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: %q, want %q", entry, got, want)
		}
	}
	t.Run("a whole GPU counts before slices", func(t *testing.T) {
		s := bareMachine(t)
		s.Run = says(strings.Replace(table, "GPU-bbb, A100, 40960, 40000, 8.0, Enabled", "GPU-bbb, A100, 40960, 40000, 8.0, Disabled", 1), list)
		for entry, want := range map[string]string{"0": "GPU-bbb", "1": "MIG-1"} {
			s.Lookup = env(map[string]string{"CUDA_VISIBLE_DEVICES": entry})
			if f := Discover(context.Background(), s); len(f.Devices) != 1 || f.Devices[0].UUID != want {
				t.Errorf("%s: %+v", entry, f.Devices)
			}
		}
	})
	t.Run("the older name of a slice", func(t *testing.T) {
		s := bareMachine(t)
		s.NVML = fakeNVML(t)
		t.Setenv("FAKE_NVML", "mig")
		s.Lookup = env(map[string]string{"CUDA_VISIBLE_DEVICES": "MIG-GPU-00000001/2/0"})
		if f := Discover(context.Background(), s); len(f.Devices) != 1 || f.Devices[0].UUID != "MIG-00000102" {
			t.Errorf("%+v", f)
		}
	})
}

// The memory in a profile's name is in decimal gigabytes.
func TestSliceMemoryIsDecimal(t *testing.T) {
	s := bareMachine(t)
	s.Run = says("0, GPU-aaa, H200, 143771, 143000, 9.0, Enabled, 570\n", "GPU 0: H200 (UUID: GPU-aaa)\n  MIG 1g.18gb     Device  0: (UUID: MIG-1)\n")
	if f := Discover(context.Background(), s); len(f.Devices) != 1 || f.Devices[0].Total != 18e9 {
		t.Errorf("%+v", f.Devices)
	}
}

// Drivers from before compute_cap and MIG are asked for what they know.
func TestOldSMI(t *testing.T) {
	s := bareMachine(t)
	s.Run = func(_ context.Context, name string, args ...string) ([]byte, error) {
		if name != "nvidia-smi" {
			return nil, errors.New("not installed")
		}
		if strings.Contains(args[0], "compute_cap") {
			return nil, errors.New(`nvidia-smi: exit status 2: Field "compute_cap" is not a valid field to query.`)
		}
		return []byte("0, GPU-old, Tesla P100, 16280, 16000\n"), nil
	}
	if f := Discover(context.Background(), s); len(f.Devices) != 1 || f.Devices[0].UUID != "GPU-old" || f.Devices[0].Total != 16280<<20 {
		t.Errorf("%+v", f)
	}
}

// AMD's two variables work one after the other, so the server's second must not
// count in the machine's numbers.
func TestAMDVisibleTwice(t *testing.T) {
	s := bareMachine(t)
	for _, n := range []string{"card0", "card1", "card2"} {
		dir := filepath.Join(s.Root, "sys/class/drm", n, "device")
		write(t, filepath.Join(dir, "vendor"), "0x1002\n")
		write(t, filepath.Join(dir, "unique_id"), n+"\n")
		write(t, filepath.Join(dir, "mem_info_vram_total"), "25753026560\n")
	}
	s.Lookup = env(map[string]string{"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"})
	f := Discover(context.Background(), s)
	if len(f.Devices) != 1 || f.Devices[0].UUID != "GPU-card2" {
		t.Errorf("%+v", f.Devices)
	}
	if got := strings.Join(Environment(f.Devices), " "); got != "ROCR_VISIBLE_DEVICES=GPU-card2 HIP_VISIBLE_DEVICES=0" {
		t.Errorf("%q", got)
	}
}

// What is asked for holds on the processor, too.
func TestCPUContext(t *testing.T) {
	for _, tt := range []struct {
		want    Want
		context int
	}{
		{Want{CPU: true}, 8192},
		{Want{CPU: true, MinContext: 16384}, 16384},
		{Want{CPU: true, Context: 40960}, 40960},
		{Want{CPU: true, Context: 4096}, 4096},
	} {
		p, err := MakePlan(Found{}, tt.want)
		if err != nil || p.Context != tt.context {
			t.Errorf("%+v: %d tokens, %v", tt.want, p.Context, err)
		}
	}
}
