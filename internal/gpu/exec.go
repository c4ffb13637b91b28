package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// toolTime is how long a vendor's program may take: with a broken driver they
// hang.
const toolTime = 2 * time.Second

const maxToolOutput = 1 << 20

// run runs a program. Its output is cut at a megabyte.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	ownGroup(cmd)
	cmd.WaitDelay = time.Second // children that hold the pipe
	var out, said capped
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is not installed", name)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %v", name, toolTime)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", name, err, firstLine(said.String()+out.String()))
	}
	return out.Bytes(), nil
}

// capped is a buffer that drops what is too much.
type capped struct{ bytes.Buffer }

func (c *capped) Write(b []byte) (int, error) {
	if room := maxToolOutput - c.Len(); room < len(b) {
		_, _ = c.Buffer.Write(b[:max(room, 0)]) // never fails
		return len(b), nil
	}
	return c.Buffer.Write(b)
}

// ReadFrom is hidden: it would go past the cap.
func (c *capped) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 200 {
		line = line[:200]
	}
	return line
}
