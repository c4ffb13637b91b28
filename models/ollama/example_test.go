package ollama_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// A raw prompt, streamed; here by a server that speaks like one.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(speak))
	defer server.Close()

	m, err := ollama.New("qwen3:8b", ollama.Config{BaseURL: server.URL, Context: 16384})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	r, err := m.Generate(context.Background(), &models.Request{
		Prompt:    "<|im_start|>user\nSay something.<|im_end|>\n<|im_start|>assistant\n",
		MaxOutput: 100,
		OnDelta:   func(d models.Delta) { fmt.Print(d.Text, "|") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println()
	fmt.Println(r.Finish, r.Usage.Input, r.Usage.Output)
	// Output:
	// "a |whole |sentence"|
	// stop 9 4
}

// Errors say what to do, and errors.Is tells them apart.
func ExampleModel_Load() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":"model 'qwen3:9b' not found"}`)
	}))
	defer server.Close()

	m, err := ollama.New("qwen3:9b", ollama.Config{BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	_, err = m.Load(context.Background())
	fmt.Println(err)
	fmt.Println(errors.Is(err, ollama.ErrNoModel))
	// Output:
	// models: qwen3:9b at ollama: status 404: no such model: check its name, and pull it first: model 'qwen3:9b' not found
	// true
}

// A download with its progress.
func ExampleClient_Pull() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(`{"status":"pulling manifest"}
{"status":"pulling 1cc7077e20b3","digest":"sha256:1cc7","total":5000,"completed":1250}
{"status":"pulling 1cc7077e20b3","digest":"sha256:1cc7","total":5000,"completed":5000}
{"status":"success"}
`))
	}))
	defer server.Close()

	c, err := ollama.NewClient(server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	err = c.Pull(context.Background(), "qwen3:8b", func(p ollama.PullProgress) {
		fmt.Println(p.Status, p.Done, p.Total)
	})
	fmt.Println(err)
	// Output:
	// pulling manifest 0 0
	// pulling 1cc7077e20b3 1250 5000
	// pulling 1cc7077e20b3 5000 5000
	// success 5000 5000
	// <nil>
}

// A model that does not fit onto the GPU is served, but slowly; only its
// placement says so.
func ExamplePlacement() {
	p := ollama.Placement{Loaded: true, Size: 8 << 30, VRAM: 6 << 30}
	fmt.Println(p.OnGPU(), p.Partial())
	fmt.Println(p)
	// Output:
	// false true
	// 75% on the GPU (6.00 of 8.00 GiB), the rest on the CPU
}
