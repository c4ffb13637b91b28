package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// PullProgress says how far a download is.
type PullProgress struct {
	Status string // what the server is doing, in its own words
	Done   int64  // bytes of all parts that are known so far
	Total  int64  // the same, when they are there; it grows as parts become known
}

var (
	errRegistry = errors.New("the server cannot reach the registry: is the machine online?")
	errOld      = errors.New("the model needs a newer server: update Ollama")
	errDisk     = errors.New("the server's disk is full: make room, or set OLLAMA_MODELS to another")
)

// Pull has the server download a model and returns when it has it; one that is
// there and up to date takes no time. Progress, if not nil, is called from
// Pull's goroutine for each sign of life. A download that was cut or cancelled
// goes on where it was at the next Pull. A name that the registry refuses, with
// whatever status, is ErrNoModel; trouble on the way is Retryable.
func (c *Client) Pull(ctx context.Context, model string, progress func(PullProgress)) error {
	parts := map[string][2]int64{}
	var sum PullProgress
	return c.follow(ctx, model, "api/pull", &api.PullRequest{Model: model, Stream: &yes}, func(p *api.ProgressResponse) {
		sum.Status = p.Status
		if p.Digest != "" && p.Total > 0 {
			had, now := parts[p.Digest], [2]int64{min(max(p.Completed, 0), p.Total), p.Total}
			sum.Done += now[0] - had[0]
			sum.Total += now[1] - had[1]
			parts[p.Digest] = now
		}
		if progress != nil {
			progress(sum)
		}
	})
}

// follow asks for something that takes time, and reads its progress until the
// server says that it succeeded.
func (c *Client) follow(ctx context.Context, model, path string, in any, f func(*api.ProgressResponse)) error {
	who := c.about(model)
	body, err := encode(in)
	if err != nil {
		return who.fail(models.Error{Err: err})
	}
	r, e := c.open(ctx, who, http.MethodPost, path, bytes.NewReader(body))
	if e != nil {
		if strings.Contains(strings.ToLower(e.Body), "invalid model name") {
			e.Err, e.Retryable = ErrNoModel, false
		}
		return e
	}
	defer r.close()
	e = c.stream(ctx, r, true, func(b []byte) (bool, *models.Error) {
		var line struct {
			api.ProgressResponse
			Error json.RawMessage `json:"error"`
		}
		err := json.Unmarshal(b, &line)
		if s := said(line.Error); s != "" {
			return false, refused(s)
		}
		if err != nil {
			return false, c.malformed(err, b)
		}
		if f != nil {
			f(&line.ProgressResponse)
		}
		return line.Status == "success", nil
	})
	if e != nil {
		e.Sent = true
		return who.fail(*e)
	}
	r.drain()
	return nil
}

// denied finds the status with which a registry refused a name.
var denied = regexp.MustCompile(`manifest: 4\d\d\b`)

// refused is the error of a pull or a creation, by the words of the server.
func refused(message string) *models.Error {
	e := reported(message, false)
	s := strings.ToLower(message)
	switch {
	case contains(s, []string{"newer version"}):
		e.Err, e.Retryable = errOld, false
	case contains(s, []string{"file does not exist", "not found", "unauthorized", "realm host", "invalid model name"}), denied.MatchString(s):
		e.Err, e.Retryable = ErrNoModel, false
	case contains(s, []string{"no space left"}):
		e.Err, e.Retryable = errDisk, false
	case contains(s, []string{"dial tcp", "no such host", "i/o timeout", "tls", "unexpected eof", "connection reset"}):
		e.Err, e.Retryable = fmt.Errorf("%w (the next try goes on where this one was)", errRegistry), true
	}
	return e
}
