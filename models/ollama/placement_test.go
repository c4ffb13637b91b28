package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestPlacement(t *testing.T) {
	const a, b = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	blobs := map[string]string{"m": a, "alias:latest": a, "other:8b": b, "hidden:latest": ""}
	for _, tt := range []struct {
		name, tags, ps string
		loaded         bool
		is             error
	}{
		{"nothing runs", `"m:latest":"d1"`, ``, false, nil},
		{"by digest", `"m:latest":"d1"`, `"m:latest":"d1"`, true, nil},
		{"under another name, of the same digest", `"m:latest":"d1"`, `"x:latest":"d1"`, true, nil},
		{"under another name, of the same weights", `"m:latest":"d1","alias:latest":"d2"`, `"alias:latest":"d2"`, true, nil},
		{"other weights", `"m:latest":"d1","other:8b":"d3"`, `"other:8b":"d3"`, false, nil},
		{"older weights under the same name", `"m:latest":"d1"`, `"m:latest":"d0"`, false, nil},
		{"older weights under the name of an alias", `"m:latest":"d1","alias:latest":"d2"`, `"alias:latest":"d9"`, false, nil},
		{"weights that are not shown", `"m:latest":"d1","hidden:latest":"d4"`, `"hidden:latest":"d4"`, false, nil},
		{"not on the server", `"other:8b":"d3"`, `"other:8b":"d3"`, false, ErrNoModel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := func(pairs string) string {
				var all []string
				for p := range strings.SplitSeq(pairs, ",") {
					if name, digest, ok := strings.Cut(p, ":\""); ok {
						all = append(all, fmt.Sprintf(`{"name":%s,"digest":"%s,"size":400,"size_vram":100,"context_length":2048,"expires_at":"2319-03-14T05:34:08Z"}`, name, digest))
					}
				}
				return `{"models":[` + strings.Join(all, ",") + `]}`
			}
			m := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/tags":
					say(200, list(tt.tags))(w, r)
				case "/api/ps":
					say(200, list(tt.ps))(w, r)
				case "/api/show":
					var in struct{ Model string }
					if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
						t.Error(err)
					}
					blob, ok := blobs[in.Model]
					if !ok {
						t.Errorf("asked about %q", in.Model)
					}
					from := "FROM /srv/my models/blobs/sha256-" + blob
					if blob == "" {
						from = "FROM elsewhere"
					}
					modelfile, _ := json.Marshal("# FROM alias:latest\n\n" + from + "\nTEMPLATE {{ .Prompt }}\n")
					say(200, `{"modelfile":`+string(modelfile)+`}`)(w, r)
				}
			})
			p, err := m.Placement(t.Context())
			if !errors.Is(err, tt.is) || p.Loaded != tt.loaded {
				t.Fatalf("got %+v, %v", p, err)
			}
			if tt.loaded && (p.Size != 400 || p.VRAM != 100 || p.Context != 2048 || p.Until.Year() != 2319 || m.window() != 2048) {
				t.Errorf("got %+v, a window of %d", p, m.window())
			}
		})
	}
}

func TestPlacementSays(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		p                 Placement
		gpu, partial, cpu bool
		say               string
	}{
		{Placement{}, false, false, false, "not loaded"},
		{Placement{Size: gib, VRAM: gib}, false, false, false, "not loaded"},
		{Placement{Loaded: true, Size: 5 * gib, VRAM: 5 * gib}, true, false, false, "on the GPU (5.00 GiB)"},
		{Placement{Loaded: true, Size: 4 * gib, VRAM: gib}, false, true, false, "25% on the GPU (1.00 of 4.00 GiB), the rest on the CPU"},
		{Placement{Loaded: true, Size: gib}, false, false, true, "on the CPU (1.00 GiB)"},
	} {
		if p := tt.p; p.OnGPU() != tt.gpu || p.Partial() != tt.partial || p.OnCPU() != tt.cpu || p.String() != tt.say {
			t.Errorf("%+v: %v %v %v %s", p, p.OnGPU(), p.Partial(), p.OnCPU(), p)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"Qwen3": "qwen3:latest", "qwen3:8B": "qwen3:8b", "library/qwen3": "qwen3:latest",
		"registry.ollama.ai/library/qwen3:8b": "qwen3:8b", "host:5000/a/b": "host:5000/a/b:latest", "hf.co/a/b:Q4_K_M": "hf.co/a/b:q4_k_m",
	} {
		if got := full(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
