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

// bareMachine is a place without any GPU, to which tests add.
func bareMachine(t testing.TB) Sources {
	root := t.TempDir()
	write(t, filepath.Join(root, "proc/meminfo"), "MemTotal:       125829120 kB\nMemFree: 1 kB\nMemAvailable:   104857600 kB\n")
	return Sources{
		Root: root, NVML: filepath.Join(root, "nothing.so"), GOOS: "linux",
		Lookup: func(string) (string, bool) { return "", false },
		Run:    func(context.Context, string, ...string) ([]byte, error) { return nil, errors.New("not installed") },
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// says answers nvidia-smi with a table and a list.
func says(table, list string) func(context.Context, string, ...string) ([]byte, error) {
	return func(_ context.Context, name string, args ...string) ([]byte, error) {
		switch {
		case name != "nvidia-smi":
			return nil, errors.New("not installed")
		case args[0] == "-L":
			return []byte(list), nil
		}
		return []byte(table), nil
	}
}

func env(vars map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := vars[k]; return v, ok }
}

func TestDiscoverNothing(t *testing.T) {
	f := Discover(context.Background(), bareMachine(t))
	if len(f.Devices) != 0 || f.Source != "" || len(f.Notes) != 4 {
		t.Errorf("%+v", f)
	}
	if f.MemTotal != 120<<30 || f.MemAvailable != 100<<30 {
		t.Errorf("memory %d of %d", f.MemAvailable, f.MemTotal)
	}
	f = Discover(context.Background(), Sources{Root: t.TempDir(), NVML: "-", GOOS: "plan9", Run: bareMachine(t).Run})
	if len(f.Devices) != 0 || len(f.Notes) != 4 {
		t.Errorf("%+v", f)
	}
}

func TestDiscoverConfigured(t *testing.T) {
	s := bareMachine(t)
	s.Devices = []Device{card(24)}
	if f := Discover(context.Background(), s); f.Source != "config" || len(f.Devices) != 1 {
		t.Errorf("%+v", f)
	}
	s.Devices = []Device{}
	s.Run = says("0, GPU-1, A, 1000, 1000, 9.0, Disabled, 1\n", "")
	if f := Discover(context.Background(), s); f.Source != "config" || len(f.Devices) != 0 {
		t.Errorf("configured to none: %+v", f)
	}
}

// This machine, whatever it is, is looked at without harm.
func TestDiscoverHere(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f := Discover(ctx, Sources{})
	t.Logf("%+v", f)
	if len(f.Devices) == 0 && len(f.Notes) == 0 {
		t.Error("nothing was found, and nothing says why")
	}
}

func TestSMI(t *testing.T) {
	const table = "0, GPU-aaa, NVIDIA GeForce RTX 3080 Ti, 12288, 11000, 8.6, [N/A], 570.1\n1, GPU-bbb, NVIDIA A100, 81920, 80000, 8.0, Disabled, 570.1\n"
	for _, tt := range []struct {
		name, table, list string
		env               map[string]string
		want              []string // UUIDs
		note              string
	}{
		{"two", table, "", nil, []string{"GPU-aaa", "GPU-bbb"}, ""},
		{"an index", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "1"}, []string{"GPU-bbb"}, "hides 1 of 2"},
		{"another order", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "1, 0"}, []string{"GPU-bbb", "GPU-aaa"}, ""},
		{"a short identifier", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-b"}, []string{"GPU-bbb"}, "hides"},
		{"an ambiguous one", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-"}, nil, "hides 2"},
		{"empty", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": ""}, nil, "hides 2"},
		{"-1", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "0,-1,1"}, []string{"GPU-aaa"}, "hides 1"},
		{"nonsense ends the list", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "0,x,1"}, []string{"GPU-aaa"}, "hides 1"},
		{"twice", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "1,1"}, []string{"GPU-bbb"}, "hides 1"},
		{"an index that is not there", table, "", map[string]string{"CUDA_VISIBLE_DEVICES": "7"}, nil, "hides 2"},
		{"unified memory", "0, GPU-gb10, NVIDIA GB10, [N/A], [N/A], 12.1, [N/A], 580.9\n", "", nil, []string{"GPU-gb10"}, ""},
		{"slices", "0, GPU-aaa, NVIDIA A100, 40960, 40000, 8.0, Enabled, 570\n1, GPU-bbb, NVIDIA A100, 40960, 40000, 8.0, Disabled, 570\n",
			"GPU 0: NVIDIA A100 (UUID: GPU-aaa)\n  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n  MIG 3g.20gb     Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA A100 (UUID: GPU-bbb)\n",
			nil, []string{"GPU-bbb", "MIG-1", "MIG-2"}, ""},
		{"one slice", "0, GPU-aaa, NVIDIA A100, 40960, 40000, 8.0, Enabled, 570\n", "GPU 0: NVIDIA A100 (UUID: GPU-aaa)\n  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n",
			map[string]string{"CUDA_VISIBLE_DEVICES": "MIG-1"}, []string{"MIG-1"}, ""},
		{"a message", "Failed to initialize NVML: Driver/library version mismatch\n", "", nil, nil, "version mismatch"},
		{"empty output", "", "", nil, nil, "no GPU"},
		{"garbage", "\x00\xff,\"\n\"\",,", "", nil, nil, "nvidia-smi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := bareMachine(t)
			s.Run = says(tt.table, tt.list)
			s.Lookup = env(tt.env)
			f := Discover(context.Background(), s)
			var got []string
			for _, d := range f.Devices {
				got = append(got, d.UUID)
				if d.Total <= 0 || d.Free <= 0 || d.Vendor != "nvidia" || d.MIG != strings.HasPrefix(d.UUID, "MIG") {
					t.Errorf("%+v", d)
				}
				if d.Unified && d.Free != 100<<30 {
					t.Errorf("unified memory: %+v", d)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") || (f.Source == "nvidia-smi") != (len(tt.want) > 0) {
				t.Errorf("%v from %q, want %v", got, f.Source, tt.want)
			}
			if !strings.Contains(strings.Join(f.Notes, "; "), tt.note) {
				t.Errorf("notes %q lack %q", f.Notes, tt.note)
			}
		})
	}
}

// A vendor's program that hangs is killed, with its children.
func TestRunHangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	start := time.Now()
	_, err := run(context.Background(), "sh", "-c", "sleep 60 & sleep 60")
	if err == nil || !strings.Contains(err.Error(), "did not answer") || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if _, err := run(context.Background(), "sh", "-c", "echo mismatch >&2; exit 9"); err == nil || !strings.Contains(err.Error(), "mismatch") {
		t.Errorf("a program that fails: %v", err)
	}
	if _, err := run(context.Background(), "no-such-program-anywhere"); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("no program: %v", err)
	}
	if out, err := run(context.Background(), "sh", "-c", "head -c 3000000 /dev/zero"); err != nil || len(out) != maxToolOutput {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestSysfs(t *testing.T) {
	s := bareMachine(t)
	card := func(n, vendor, total, used string) {
		dir := filepath.Join(s.Root, "sys/class/drm", n, "device")
		write(t, filepath.Join(dir, "vendor"), vendor+"\n")
		write(t, filepath.Join(dir, "device"), "0x744c\n")
		if total != "" {
			write(t, filepath.Join(dir, "mem_info_vram_total"), total+"\n")
			write(t, filepath.Join(dir, "mem_info_vram_used"), used+"\n")
		}
	}
	card("card0", "0x8086", "", "")
	card("card1", "0x1002", "25753026560", "1073741824")
	card("card10", "0x1002", "17163091968", "x")
	card("card2", "0x1002", "junk", "0")
	write(t, filepath.Join(s.Root, "sys/class/drm/card1/device/unique_id"), "a1b2\n")
	write(t, filepath.Join(s.Root, "sys/class/drm/card1-HDMI-A-1/device/vendor"), "0x1002\n")
	write(t, filepath.Join(s.Root, "sys/class/kfd/kfd/topology/nodes/0/properties"), "cpu_cores_count 8\ngfx_target_version 0\n")
	write(t, filepath.Join(s.Root, "sys/class/kfd/kfd/topology/nodes/1/properties"), "gfx_target_version 110000\n")
	write(t, filepath.Join(s.Root, "sys/class/kfd/kfd/topology/nodes/2/properties"), "gfx_target_version 90010\n")
	f := Discover(context.Background(), s)
	if f.Source != "sysfs" || len(f.Devices) != 2 {
		t.Fatalf("%+v", f)
	}
	a, b := f.Devices[0], f.Devices[1]
	if a.UUID != "GPU-a1b2" || a.Compute != "gfx1100" || a.Total != 25753026560 || a.Free != 25753026560-1<<30 || a.Unified {
		t.Errorf("%+v", a)
	}
	if b.Compute != "gfx90a" || b.Free != b.Total || b.Vendor != "amd" {
		t.Errorf("%+v", b)
	}
	s.Lookup = env(map[string]string{"HIP_VISIBLE_DEVICES": "1"})
	if f := Discover(context.Background(), s); len(f.Devices) != 1 || f.Devices[0].Compute != "gfx90a" {
		t.Errorf("the second alone: %+v", f)
	}
}

func TestMacOS(t *testing.T) {
	s := bareMachine(t)
	s.GOOS = "darwin"
	answer := "34359738368\nApple M3 Max\n1\n"
	s.Run = func(_ context.Context, name string, args ...string) ([]byte, error) {
		if name != "sysctl" {
			return nil, errors.New("not installed")
		}
		if len(args) == 2 {
			return []byte("34359738368\n"), nil
		}
		return []byte(answer), nil
	}
	f := Discover(context.Background(), s)
	if f.Source != "macos" || len(f.Devices) != 1 || f.Devices[0].Name != "Apple M3 Max" || !f.Devices[0].Unified || f.Devices[0].Free != 24<<30 {
		t.Errorf("%+v", f)
	}
	for _, answer = range []string{"34359738368\nIntel(R) Core(TM)\n0\n", "", "x\ny\n1\n", "12\n"} {
		if f := Discover(context.Background(), s); len(f.Devices) != 0 {
			t.Errorf("%q: %+v", answer, f)
		}
	}
}

// NVML is called by its real conventions, in a library that was compiled from C.
func TestNVML(t *testing.T) {
	lib := fakeNVML(t)
	empty := filepath.Join(t.TempDir(), "empty.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", empty, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		mode, lib string
		want      []string
		note      string
	}{
		{"two", lib, []string{"GPU-00000001", "GPU-00000002"}, ""},
		{"mig", lib, []string{"MIG-00000101", "MIG-00000102"}, ""},
		{"unified", lib, []string{"GPU-00000001"}, ""},
		{"none", lib, nil, "no GPU"},
		{"many", lib, nil, "100000"},
		{"lost", lib, []string{"GPU-00000002"}, ""},
		{"mismatch", lib, nil, "different versions"},
		{"no symbols", empty, nil, "not supported"},
		{"no library", "/nowhere.so", nil, "nowhere"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Setenv("FAKE_NVML", tt.mode)
			s := bareMachine(t)
			s.NVML = tt.lib
			f := Discover(context.Background(), s)
			var got []string
			for _, d := range f.Devices {
				got = append(got, d.UUID)
				if d.Compute != "9.0" || !strings.HasPrefix(d.Name, "Fake GPU") || d.Driver != "570.1" || d.Total <= 0 || d.Free <= 0 || d.Unified != (tt.mode == "unified") || d.MIG != (tt.mode == "mig") {
					t.Errorf("%+v", d)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") || len(got) > 0 && f.Source != "nvml" {
				t.Errorf("%v from %q, notes %v", got, f.Source, f.Notes)
			}
			if !strings.Contains(strings.Join(f.Notes, "; "), tt.note) {
				t.Errorf("notes %q lack %q", f.Notes, tt.note)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	got := strings.Join(Environment([]Device{{UUID: "GPU-1", Vendor: "nvidia"}, {UUID: "MIG-2", Vendor: "nvidia"}, {UUID: "GPU-a", Vendor: "amd"}, {Vendor: "apple"}}), " ")
	if want := "CUDA_VISIBLE_DEVICES=GPU-1,MIG-2 CUDA_DEVICE_ORDER=PCI_BUS_ID ROCR_VISIBLE_DEVICES=GPU-a HIP_VISIBLE_DEVICES=0"; got != want {
		t.Errorf("%q", got)
	}
	if e := Environment(nil); e != nil {
		t.Errorf("%q", e)
	}
}

func FuzzSMI(f *testing.F) {
	f.Add("0, GPU-aaa, A100, 40960, 40000, 8.0, Enabled, 570\n", "GPU 0: A (UUID: GPU-aaa)\n  MIG 1g.5gb  Device  0: (UUID: MIG-1)\n", "0,MIG-1")
	f.Fuzz(func(t *testing.T, table, list, visible string) {
		devices, sliced, _, err := parseSMI(table)
		if err != nil {
			return
		}
		devices = append(devices, parseSlices(list, sliced)...)
		for _, d := range choose(devices, visible) {
			if d.Total < 0 || d.Free < 0 || d.Index < 0 {
				t.Errorf("%+v", d)
			}
		}
		if _, err := MakePlan(Found{Devices: devices}, Want{CPU: true}); err != nil {
			t.Error(err)
		}
	})
}
