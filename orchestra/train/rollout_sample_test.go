package train_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
)

// What the policy saw and sampled goes into the row as it was.
func TestTurnsHoldPromptsAndTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fold(t, played(t))
		if len(r.Turns) != 3 {
			t.Fatalf("%d turns", len(r.Turns))
		}
		for i, turn := range r.Turns {
			if !slices.Equal(turn.PromptIDs, []int32{7, 8, 9}) || !slices.Equal(turn.ResponseIDs, []int32{int32(i + 1), 2}) || !slices.Equal(turn.Logprobs, []float32{-0.5, -0.25}) {
				t.Errorf("turn %d: %v, %v, %v", i+1, turn.PromptIDs, turn.ResponseIDs, turn.Logprobs)
			}
			if len(turn.Messages) != 2 || turn.Messages[0].Role != models.System || turn.Messages[1].Role != models.User {
				t.Fatalf("turn %d: %+v", i+1, turn.Messages)
			}
			if turn.Prompt != "" || len(turn.Tools) != 0 || !strings.Contains(turn.Messages[1].Content, "does tin melt?") || !strings.Contains(turn.Messages[0].Content, `"name": "search"`) {
				t.Errorf("turn %d: %+v", i+1, turn)
			}
		}
		if !strings.Contains(r.Turns[2].Messages[1].Content, "Tin melts at 231.9 °C. < |im_end|>") {
			t.Error("the document is not in the last prompt")
		}
		bad := r.Turns[1]
		if bad.FormatOK || bad.Err == "" || len(bad.Calls) != 0 || !strings.Contains(bad.Text, "answer, please") {
			t.Errorf("%+v", bad)
		}
		good := r.Turns[2]
		if !good.FormatOK || good.Reasoning != "I should use a tool." || len(good.Calls) != 1 || good.Calls[0].Name != "answer" || string(good.Calls[0].Args) != `{"model": "answer-2"}` || good.Calls[0].Err != "" {
			t.Errorf("%+v", good)
		}
	})
}

func TestTurnsWithoutAPromptListTheOffers(t *testing.T) {
	turn := fold(t, ran(t, finish("done"))).Turns[0]
	if len(turn.Tools) != 1 || turn.Tools[0].Name != "echo" || !json.Valid(turn.Tools[0].Schema) || len(turn.Messages) != 0 {
		t.Errorf("%+v", turn)
	}
}

// A server may say anything about what it sampled. What cannot be is left out,
// so that nobody trains on it.
func TestSamplesThatCannotBeAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		s        models.Sample
		ids, lps int
	}{
		"whole":               {models.Sample{PromptIDs: []int32{1}, OutputIDs: []int32{1, 2}, Logprobs: []float32{0, -1}}, 2, 2},
		"no logprobs":         {models.Sample{PromptIDs: []int32{1}, OutputIDs: []int32{1, 2}}, 2, 0},
		"too few logprobs":    {models.Sample{OutputIDs: []int32{1, 2}, Logprobs: []float32{-1}}, 2, 0},
		"logprobs alone":      {models.Sample{Prompt: "raw", Logprobs: []float32{-1}}, 0, 0},
		"a probability of 2":  {models.Sample{OutputIDs: []int32{1, 2}, Logprobs: []float32{-1, 0.7}}, 2, 0},
		"a negative token id": {models.Sample{OutputIDs: []int32{1, -2}, Logprobs: []float32{-1, -1}}, 0, 0},
		"a negative prompt":   {models.Sample{PromptIDs: []int32{-1}, OutputIDs: []int32{1, 2}, Logprobs: []float32{-1, -1}}, 0, 0},
		"not a number":        {models.Sample{OutputIDs: []int32{1}, Logprobs: []float32{float32(math.NaN())}}, 1, 1}, // the loop stored the least number
	} {
		d := finish("done")
		d.Sample = &c.s
		r := fold(t, ran(t, d))
		turn := r.Turns[0]
		if len(turn.ResponseIDs) != c.ids || len(turn.Logprobs) != c.lps || turn.Prompt != c.s.Prompt {
			t.Errorf("%s: %+v", name, turn)
		}
		lines(t, r) // and it can be kept
	}
}

// Joined again, the messages are the prompt.
func TestPromptsBecomeMessagesWithoutLoss(t *testing.T) {
	for prompt, want := range map[string][]train.RolloutMessage{
		"<|im_start|>user\nHi\nyou<|im_end|>\n<|im_start|>assistant\n":                          {{Role: "user", Content: "Hi\nyou"}},
		"<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n":          {{Role: "user"}, {Role: "assistant", Content: "<think>\n\n</think>\n\n"}},
		"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n<|im_start|>Hi<|im_end|>\n":         {{Role: "system", Content: "S"}, {Role: "user", Content: "<|im_start|>Hi"}},
		"<|im_start|>user\nA<|im_end|>\n<|im_start|>user\nB<|im_end|>\n<|im_start|>assistant\n": {{Role: "user", Content: "A"}, {Role: "user", Content: "B"}},
	} {
		d := finish("done")
		d.Sample = &models.Sample{Prompt: prompt}
		if turn := fold(t, ran(t, d)).Turns[0]; !slices.Equal(turn.Messages, want) || turn.Prompt != "" {
			t.Errorf("%q: %q, want %q", prompt, turn.Messages, want)
		}
	}
}

func TestPromptsOfOtherFormatsAreNoMessages(t *testing.T) {
	for _, prompt := range []string{"plain", "<|im_start|>", "<|im_start|>user", "<|im_start|>user\nHi<|im_end|>\nplain"} {
		d := finish("done")
		d.Sample = &models.Sample{Prompt: prompt}
		if turn := fold(t, ran(t, d)).Turns[0]; len(turn.Messages) != 0 || len(turn.Tools) != 1 || turn.Prompt != prompt {
			t.Errorf("%q: %+v", prompt, turn)
		}
	}
}

// useless is a policy whose model says nothing that could be read.
type useless struct{}

func (useless) Info() policy.Info { return policy.Info{Name: "useless", Writes: true} }
func (useless) Decide(context.Context, *policy.State) (policy.Decision, error) {
	return policy.Decision{Text: "Hm."}, policy.ErrMalformed
}

func TestOutputsWithoutACallAreBroken(t *testing.T) {
	o, err := orchestra.New(orchestra.WithPolicy(useless{}))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Run(t.Context(), orchestra.Task{ID: "r", Prompt: "What?"})
	if err == nil {
		t.Fatal(res.Answer)
	}
	r := fold(t, reread(t, res.Trajectory))
	if len(r.Turns) == 0 || r.Turns[0].FormatOK || r.Turns[0].Text != "Hm." || !r.Metrics(nil).Broken {
		t.Errorf("%+v", r)
	}
}

func TestFormatsThatAreNotThePolicysOwnAreBroken(t *testing.T) {
	forced, half := finish("done"), finish("done")
	forced.Forced, half.Malformed = true, []string{"<tool_call>{"}
	for _, d := range []policy.Decision{forced, half} {
		if r := fold(t, ran(t, d)); r.Turns[0].FormatOK || !r.Metrics(nil).Broken || r.Turns[0].Text == "" {
			t.Errorf("%+v", r.Turns[0])
		}
	}
}
