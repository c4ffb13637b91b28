// Package langchain joins this SDK with langchaingo (github.com/tmc/langchaingo,
// read and tested at v0.1.14): New makes a models.Model of a model of theirs,
// and Model makes a model of theirs of a models.Model.
//
//	llm, err := openai.New(openai.WithModel("gpt-4o-mini"))  // langchaingo's
//	m, err := langchain.New(llm, langchain.Config{Info: models.Info{Name: "gpt-4o-mini"}})
//
// Where a client of this SDK's own exists (models/openai), prefer it: what
// langchaingo does not pass on, nobody can read. The bridge mends what it can
// and turns the rest into typed errors:
//
//   - what a provider would drop is refused before anything is sent
//     (*UnsupportedError), unless Config.Honours vouches for it;
//   - an unset temperature is not sent as 0;
//   - a stream without an end, and an answer without content, are errors
//     (models.ErrTruncated, models.ErrMalformed), never a success;
//   - requests with tools are not streamed at the OpenAI provider, whose reader
//     of streams mixes calls up, and no request is at the Anthropic provider,
//     whose reader can leave a goroutine behind and crash the process: their
//     text comes as one delta;
//   - statuses are read out of the text of errors. Retry-After is lost;
//   - usage is counted once, however many choices repeat it, and unknown where
//     nobody said;
//   - panics of a provider over a reply are errors.
//
// The model that served a call is not known: Response.Model stays empty. Token
// ids and logprobs cannot be had. Reasoning in a history is not sent.
//
// Tools need no bridge of this package: tools.Text takes langchaingo's as they
// are, and tools.AsText makes what langchaingo takes. Tools of langchaingo often
// return their errors as text, which nothing can tell from a result.
package langchain
