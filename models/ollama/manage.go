package ollama

import (
	"context"
	"net/http"

	"github.com/ollama/ollama/api"

	"github.com/toolorchestra/toolorchestra-go/models"
)

// Version is the server's version. Servers that were built by hand say "0.0.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	var out struct {
		Version string `json:"version"`
	}
	err := c.call(ctx, c.about(""), http.MethodGet, "api/version", nil, &out)
	if err == nil && out.Version == "" {
		e := c.malformed(c.hint(), nil)
		e.Sent, e.Retryable = true, false
		return "", c.about("").fail(*e)
	}
	return out.Version, err
}

// List returns the models that the server has.
func (c *Client) List(ctx context.Context) ([]api.ListModelResponse, error) {
	var out api.ListResponse
	err := c.call(ctx, c.about(""), http.MethodGet, "api/tags", nil, &out)
	return out.Models, err
}

// Running returns the models that are loaded.
func (c *Client) Running(ctx context.Context) ([]api.ProcessModelResponse, error) {
	var out api.ProcessResponse
	err := c.call(ctx, c.about(""), http.MethodGet, "api/ps", nil, &out)
	return out.Models, err
}

// Show describes a model of the server: template, parser, licence, capabilities
// and what the weights' file says of itself. ErrNoModel if it has none of that
// name.
func (c *Client) Show(ctx context.Context, model string) (*api.ShowResponse, error) {
	var out api.ShowResponse
	if err := c.call(ctx, c.about(model), http.MethodPost, "api/show", &api.ShowRequest{Model: model}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Delete removes a model from the server. Its weights stay as long as another
// model uses them.
func (c *Client) Delete(ctx context.Context, model string) error {
	return c.call(ctx, c.about(model), http.MethodDelete, "api/delete", &api.DeleteRequest{Model: model}, nil)
}

// missing is the error for a model that the server does not list.
func missing(status int) models.Error {
	return models.Error{Status: status, Sent: true, Err: ErrNoModel}
}
