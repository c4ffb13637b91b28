package gpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestServerConfigIsWhatTheServerIsTold(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OLLAMA_HOST", "0.0.0.0:11434")
	t.Setenv("OLLAMA_NUM_PARALLEL", "7")
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		c    ServerConfig
		want map[string]string // "" = not set
	}{
		{"nothing", ServerConfig{}, map[string]string{
			"OLLAMA_HOST": "127.0.0.1:0", "OLLAMA_NOPRUNE": "1", "OLLAMA_NUM_PARALLEL": "7", "OLLAMA_KV_CACHE_TYPE": "", "OLLAMA_MODELS": "", "HOME": os.Getenv("HOME")}},
		{"all", ServerConfig{Models: dir, Parallel: 2, KV: "q8_0", Context: 40960}, map[string]string{
			"OLLAMA_MODELS": dir, "OLLAMA_NUM_PARALLEL": "2", "OLLAMA_KV_CACHE_TYPE": "q8_0", "OLLAMA_FLASH_ATTENTION": "1", "OLLAMA_CONTEXT_LENGTH": "40960"}},
		{"f16 needs nothing", ServerConfig{KV: "f16"}, map[string]string{"OLLAMA_KV_CACHE_TYPE": "f16", "OLLAMA_FLASH_ATTENTION": ""}},
		{"its own environment wins", ServerConfig{Parallel: 2, Env: []string{"OLLAMA_NUM_PARALLEL=3", "OLLAMA_HOST=127.0.0.1:1", "HOME=/h"}}, map[string]string{
			"OLLAMA_NUM_PARALLEL": "3", "OLLAMA_HOST": "127.0.0.1:1", "HOME": "/h"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Binary, tt.c.Dir = exe, filepath.Join(dir, "records")
			cmd, where, err := tt.c.command()
			if err != nil || where != tt.c.Dir || !slices.Equal(cmd.Args, []string{exe, "serve"}) {
				t.Fatalf("%v in %s, %v", cmd, where, err)
			}
			env := map[string]string{}
			for _, e := range cmd.Environ() { // the last of each name
				name, value, _ := strings.Cut(e, "=")
				env[name] = value
			}
			for name, want := range tt.want {
				if env[name] != want {
					t.Errorf("%s is %q, want %q", name, env[name], want)
				}
			}
			if info, err := os.Stat(where); err != nil || !info.IsDir() {
				t.Errorf("its directory: %v", err)
			}
		})
	}
}

func TestServerDirIsTheUsersByDefault(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("this user has no cache directory:", err)
	}
	if dir, err := serverDir(""); err != nil || dir != filepath.Join(cache, "toolorchestra", "servers") {
		t.Errorf("serverDir = %s, %v", dir, err)
	}
}
