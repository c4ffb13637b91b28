package policy

import (
	"fmt"
	"math"
)

// Option varies both what Trained and what Conversation make.
type Option interface {
	TrainedOption
	ConversationOption
}

// sampling is how a policy's model is asked, in any dialect.
type sampling struct {
	temperature float64
	topP        float64
	topK        int
	chosen      bool // the three above are the caller's
	maxOutput   int
	tokens      bool
	noThink     bool
}

type samplingOption func(*sampling)

func (f samplingOption) apply(t *trained)         { f(&t.sampling) }
func (f samplingOption) converse(c *conversation) { f(&c.sampling) }
func (f samplingOption) applyLocal(l *local)      { l.trained = append(l.trained, f) }

// WithSampling sets the temperature, and top-p and top-k unless they are 0: then
// the server's defaults count. The default of Trained is temperature 1, as in
// training; that of Conversation is the server's own or, for raw models, what
// Qwen3's authors advise.
func WithSampling(temperature, topP float64, topK int) Option {
	return samplingOption(func(s *sampling) { s.temperature, s.topP, s.topK, s.chosen = temperature, topP, topK, true })
}

// WithMaxOutput caps a decision's output, thinking included, in tokens. The
// default of Trained is 12,000 as in the released evaluation or the model's own
// cap if that is lower, and 8,000 of a model that states none; that of
// Conversation is 8,000, or what is lower of the model's own cap and a third of
// its context.
func WithMaxOutput(tokens int) Option {
	return samplingOption(func(s *sampling) { s.maxOutput = tokens })
}

// WithTokens asks the model for token ids and log probabilities, for training
// rows (Decision.Sample).
func WithTokens() Option { return samplingOption(func(s *sampling) { s.tokens = true }) }

// WithoutThinking asks for calls without reasoning: faster by an order of
// magnitude, and no better than a fixed rule in the measurements that exist.
func WithoutThinking() Option { return samplingOption(func(s *sampling) { s.noThink = true }) }

// check says what is wrong, or "".
func (s *sampling) check() string {
	switch {
	case math.IsNaN(s.temperature) || s.temperature < 0 || math.IsNaN(s.topP) || s.topP < 0 || s.topP > 1 || s.topK < 0:
		return fmt.Sprintf("cannot sample with temperature %v, top-p %v, top-k %d: use 0 or more, and top-p up to 1", s.temperature, s.topP, s.topK)
	case s.maxOutput < 0:
		return fmt.Sprintf("cannot write %d tokens: use a positive number, or 0 for the default", s.maxOutput)
	}
	return ""
}
