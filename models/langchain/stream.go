package langchain

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolorchestra/toolorchestra-go/models"

	"github.com/toolorchestra/toolorchestra-go/models/internal/wire"
)

// maxReply bounds what a reply may hold, in bytes.
const maxReply = 64 << 20

var (
	errTooLong = errors.New("the reply is longer than 64 MiB")
	errOver    = errors.New("the call is over")
)

// relay passes the pieces of a stream on until the call is over. Providers may
// call it from goroutines of their own.
type relay struct {
	ctx context.Context
	on  func(models.Delta) // nil: nobody listens

	mu              sync.Mutex
	over            bool
	text, reasoning strings.Builder
	failed          error // why the stream was stopped by us, if it was

	outside atomic.Bool // the listener is running: a panic is its own
}

func (s *relay) textChunk(_ context.Context, chunk []byte) error {
	return s.pass(models.Delta{Text: string(chunk)})
}

// reasoningChunk gets the text too, which textChunk has had already.
func (s *relay) reasoningChunk(_ context.Context, reasoning, _ []byte) error {
	return s.pass(models.Delta{Reasoning: string(reasoning)})
}

// pass hands a delta on, unless the call is over.
func (s *relay) pass(d models.Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return errOver
	case s.failed != nil:
		return s.failed
	case s.text.Len()+s.reasoning.Len()+len(d.Text)+len(d.Reasoning) > maxReply:
		s.failed = errTooLong
		return s.failed
	}
	if err := wire.Ended(s.ctx); err != nil {
		return err
	}
	s.say(d)
	return wire.Ended(s.ctx) // the listener may have cancelled: then nothing more is wanted
}

func (s *relay) say(d models.Delta) {
	if d.Restart {
		s.text.Reset()
		s.reasoning.Reset()
	}
	s.text.WriteString(d.Text)
	s.reasoning.WriteString(d.Reasoning)
	if s.on != nil && d != (models.Delta{}) {
		s.outside.Store(true)
		s.on(d)
		s.outside.Store(false)
	}
}

// close ends the stream and says what it brought.
func (s *relay) close() (text, reasoning string, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.text.String(), s.reasoning.String(), s.failed
}

// finish makes what was streamed agree with the whole reply: providers do not
// stream all of it, and some stream what is none of it. The call is over, so
// nothing else speaks.
func (s *relay) finish(r *models.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, okText := strings.CutPrefix(r.Text, s.text.String())
	reasoning, okReasoning := strings.CutPrefix(r.Reasoning, s.reasoning.String())
	switch {
	case !okText || !okReasoning:
		s.say(models.Delta{Restart: true})
		s.say(models.Delta{Text: r.Text, Reasoning: r.Reasoning})
	default:
		s.say(models.Delta{Text: text, Reasoning: reasoning})
	}
}
