package chaos_test

import (
	"io"
	"log"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs bytes that come after a reply, which are ours
	leak.Main(m)
}
