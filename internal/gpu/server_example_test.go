package gpu

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
)

func ExampleProbeServer() {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	_, err := ProbeServer(context.Background(), site.URL)
	fmt.Println(errors.Is(err, ErrServerForeign))
	fmt.Println(ErrServerForeign)
	// Output:
	// true
	// gpu: what answers there is not Ollama: correct the address
}

func ExampleStartServer() {
	_, err := StartServer(context.Background(), ServerConfig{Binary: "/nowhere/ollama"})
	fmt.Println(errors.Is(err, ErrServerMissing))
	// Output:
	// true
}
