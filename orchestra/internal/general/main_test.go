package general

import (
	"testing"

	"github.com/toolorchestra/toolorchestra-go/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
