package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServerConfig says how a local server is run. The zero value is "ollama" on the
// PATH with the user's own models and settings.
type ServerConfig struct {
	// Binary is the server's program. Empty = "ollama" on the PATH.
	Binary string
	// Dir is where the records of running servers are kept, by which those of a
	// crashed owner are found. Empty = a directory of ours in the user's cache.
	Dir string
	// Models is where the server keeps its models. Empty = where the user does.
	Models string
	// Env is added to this process's environment and wins over all else here:
	// GPUs, HOME, and OLLAMA_HOST for a fixed port.
	Env []string
	// Parallel is how many requests a model serves at once. 0 = Ollama's default.
	Parallel int
	// KV is the type of the KV cache: "f16", "q8_0" or "q4_0". Empty = Ollama's
	// default.
	KV string
	// Context is the default context of a request in tokens. 0 = Ollama's default.
	Context int
	// ReadyTimeout bounds the start. 0 = one minute.
	ReadyTimeout time.Duration
}

// command checks the configuration, and makes the command and the directory.
func (c ServerConfig) command() (*exec.Cmd, string, error) {
	wrong := func(kind, err error) (*exec.Cmd, string, error) {
		return nil, "", &ServerError{Kind: kind, Binary: c.Binary, Err: err}
	}
	switch {
	case c.Parallel < 0 || c.Context < 0:
		return wrong(ErrServerConfig, fmt.Errorf("parallel is %d and the context %d: give numbers above 0, or 0 for Ollama's own", c.Parallel, c.Context))
	case !slices.Contains([]string{"", "f16", "q8_0", "q4_0"}, c.KV):
		return wrong(ErrServerConfig, fmt.Errorf(`no type of KV cache is called %q: give "f16", "q8_0" or "q4_0"`, c.KV))
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.ContainsRune(e, 0) {
			return wrong(ErrServerConfig, fmt.Errorf("%q is no setting of an environment: write NAME=value", e))
		}
	}
	name := c.Binary
	if name == "" {
		name = "ollama"
	}
	bin, err := exec.LookPath(name)
	if err != nil {
		c.Binary = name
		return wrong(ErrServerMissing, err)
	}
	bin, err1 := filepath.Abs(bin)
	models := c.Models
	if models != "" {
		models, err = filepath.Abs(models)
	}
	if err := errors.Join(err1, err); err != nil {
		return wrong(ErrServerConfig, err)
	}
	dir, err := serverDir(c.Dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return wrong(ErrServerConfig, fmt.Errorf("the directory for its records: %w", err))
	}
	cmd := exec.Command(bin, "serve")
	cmd.Env = append(c.env(models), c.Env...)
	return cmd, dir, nil
}

// env is what the configuration means to Ollama.
func (c ServerConfig) env(models string) []string {
	env := append(os.Environ(),
		"OLLAMA_HOST=127.0.0.1:0", // any free port: the log says which
		"OLLAMA_NOPRUNE=1",        // another server may be using the same models
		"OLLAMA_NO_CLOUD=1",       // what is asked of it must stay here, and cost nothing
	)
	set := func(name, value string) { env = append(env, name+"="+value) }
	if models != "" {
		set("OLLAMA_MODELS", models)
	}
	if c.Parallel > 0 {
		set("OLLAMA_NUM_PARALLEL", strconv.Itoa(c.Parallel))
	}
	if c.Context > 0 {
		set("OLLAMA_CONTEXT_LENGTH", strconv.Itoa(c.Context))
	}
	if c.KV != "" {
		set("OLLAMA_KV_CACHE_TYPE", c.KV)
	}
	if c.KV == "q8_0" || c.KV == "q4_0" {
		set("OLLAMA_FLASH_ATTENTION", "1") // without it the type is ignored
	}
	return env
}

// serverDir is the directory of the records.
func serverDir(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "toolorchestra", "servers"), nil
}
