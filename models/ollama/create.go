package ollama

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// RawTemplate is the template of a model that is given its prompt as it is.
const RawTemplate = "{{ .Prompt }}"

// Create makes an alias of a model that the server has, with RawTemplate and
// without a parser, so that the server neither rewrites a prompt nor takes
// anything out of a reply. Weights are shared, and so is the licence. An alias
// of that name is replaced. Without the model it is ErrNoModel.
func (c *Client) Create(ctx context.Context, alias, from string) error {
	show, err := c.Show(ctx, from)
	if err != nil {
		return err
	}
	in := &api.CreateRequest{Model: alias, From: from, Template: RawTemplate, Stream: &yes}
	if show.Parser != "" || show.Renderer != "" || inherited.MatchString(show.Modelfile) {
		// They would be inherited, so it is made of the weights alone.
		found := weights.FindStringSubmatch(show.Modelfile)
		if found == nil {
			return c.about(from).fail(models.Error{Sent: true, Err: fmt.Errorf("%w: its weights are not shown, so it cannot be had without its parser", ErrNoModel)})
		}
		in.From, in.Files = "", map[string]string{"model.gguf": found[1] + ":" + found[2]}
		if show.License != "" {
			in.License = show.License
		}
	}
	return c.follow(ctx, alias, "api/create", in, nil)
}

// inherited finds a parser or renderer in what a server shows of a model: 0.17.4
// shows them nowhere else.
var inherited = regexp.MustCompile(`(?m)^(PARSER|RENDERER)\s`)

// CreateFromBlob makes a model of the content of a GGUF file, with RawTemplate.
// It is read twice: once for its digest, and once if the server does not have it
// yet. An error of reading is the cause of the *models.Error.
func (c *Client) CreateFromBlob(ctx context.Context, name string, gguf io.ReadSeeker) error {
	who := c.about(name)
	bad := func(err error) error {
		return who.fail(models.Error{Err: fmt.Errorf("the file cannot be read: %w", err)})
	}
	if _, err := gguf.Seek(0, io.SeekStart); err != nil {
		return bad(err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, until(ctx, gguf)); err != nil {
		if end := wire.Ended(ctx); end != nil {
			return who.fail(models.Error{Err: end})
		}
		return bad(err)
	}
	digest := fmt.Sprintf("sha256:%x", sum.Sum(nil))
	r, e := c.open(ctx, who, http.MethodHead, "api/blobs/"+digest, nil)
	if e != nil && e.Status == http.StatusNotFound {
		if _, err := gguf.Seek(0, io.SeekStart); err != nil {
			return bad(err)
		}
		r, e = c.open(ctx, who, http.MethodPost, "api/blobs/"+digest, until(ctx, gguf))
	}
	if e != nil {
		return e
	}
	r.drain()
	r.close()
	return c.follow(ctx, name, "api/create", &api.CreateRequest{
		Model: name, Files: map[string]string{"model.gguf": digest}, Template: RawTemplate, Stream: &yes,
	}, nil)
}

// until reads from r until ctx ends. It hides r's Close from the transport.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := wire.Ended(ctx); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readFunc func([]byte) (int, error)

// Read calls f.
func (f readFunc) Read(p []byte) (int, error) { return f(p) }
