package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
	"github.com/toolorchestra/toolorchestra-go/models/openai"
)

// The client passes the suite that every model has to, over a real socket.
func TestConform(t *testing.T) {
	modeltest.Conform(t, func(t *testing.T) models.Model {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			const usage = `"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}`
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), `"stream":true`) {
				fmt.Fprint(w, `{"id":"c1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a whole sentence"},"finish_reason":"stop"}],`+usage+`}`)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, piece := range []string{"a ", "whole ", "sentence"} {
				fmt.Fprintf(w, "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
				w.(http.Flusher).Flush()
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],"+usage+"}\n\ndata: [DONE]\n\n")
		}))
		t.Cleanup(s.Close)
		m, err := openai.New("m", openai.Config{BaseURL: s.URL, Info: models.Info{Price: cost.Tokens(1, 2)}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}
