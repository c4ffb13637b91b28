package sqlite_test

import (
	"os"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
)

// The test binary is also the processes that share a budget.
func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(child())
	}
	leak.Main(m)
}
