package gpu

import (
	"errors"
	"strings"
)

// What can be wrong with a local server. A *ServerError has one of these.
var (
	// ErrServerConfig means that the configuration cannot be meant.
	ErrServerConfig = errors.New("gpu: invalid configuration of the server")
	// ErrServerMissing means that there is no such program, or none that runs.
	ErrServerMissing = errors.New("gpu: no Ollama to run: install it from https://ollama.com/download, or give the path of its program")
	// ErrServerStart means that the system did not start it.
	ErrServerStart = errors.New("gpu: the server could not be started")
	// ErrServerPort means that its port is in use.
	ErrServerPort = errors.New("gpu: the server's port is taken: stop what listens there, or leave OLLAMA_HOST unset for a free one")
	// ErrServerExited means that it ended by itself.
	ErrServerExited = errors.New("gpu: the server ended by itself")
	// ErrServerNotReady means that it did not answer in time.
	ErrServerNotReady = errors.New("gpu: the server did not answer")
	// ErrServerRefused means that nothing listens there.
	ErrServerRefused = errors.New("gpu: nothing listens there: start the server with `ollama serve`, or correct the address")
	// ErrServerForeign means that something answers which is not Ollama.
	ErrServerForeign = errors.New("gpu: what answers there is not Ollama: correct the address")
	// ErrServerStuck means that processes do not die although they were killed.
	ErrServerStuck = errors.New("gpu: processes of the server do not end although killed: the system or its GPU driver holds them")
)

// errorLog bounds the log in an error.
const errorLog = 4 << 10

// ServerError is a failure of a local server.
type ServerError struct {
	Kind   error  // one of ErrServer…
	Binary string // the program that was run, if one was
	URL    string // the server's address, if it is known
	Log    string // the end of what it wrote, as it wrote it; at most 4 KiB
	Err    error  // the cause; may be nil
}

// Error says what happened, what to do about it, and how the server's log ends.
func (e *ServerError) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.Error())
	for _, where := range []string{e.Binary, e.URL} {
		if where != "" {
			b.WriteString(" (" + where + ")")
		}
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "gpu: "))
	}
	if log := strings.TrimSpace(e.Log); log != "" {
		b.WriteString("; its log ends:\n" + log)
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (e *ServerError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
