package toolworld

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
)

// Expert is a simulated model.
type Expert struct {
	Info    models.Info
	Quality float64 // share of the tasks without tools that it solves; the policy sees a measured estimate
	Tokens  int     // output of one answer
}

// How often an expert fails, and how often its answer is cut off.
const (
	failing = 0.03
	cutting = 0.06
)

// What an expert is asked for.
const (
	forAnswer = "answer"
	forQuery  = "query"
	forCode   = "code"
	forArgs   = "arguments"
)

// chance is how likely an expert of a quality does its work right, given what it
// was told.
func chance(q float64, t *Task, purpose string, told, ran bool) float64 {
	miss := 1 - q
	needsFacts := len(t.Facts) > 0
	switch {
	case purpose == forQuery:
		return 1
	case purpose == forArgs:
		return 1 - miss*0.1
	case purpose == forCode && (t.Code == "" || needsFacts && !told):
		return 0
	case purpose == forCode:
		return 1 - miss*0.3
	case needsFacts && !told:
		return 0.02
	}
	switch t.Kind {
	case LookUp, Custom:
		return 1 - miss*0.2
	case Both:
		if ran {
			return 1 - miss*0.1
		}
		return q * 0.7
	case Arithmetic:
		if ran {
			return 1 - miss*0.1
		}
		return q * 0.8
	case Program:
		if ran {
			return 1 - miss*0.1
		}
		return q * 0.3
	}
	return q
}

// played is an expert in one rollout.
type played struct {
	*Expert
	in    *Instance
	clock *atomic.Int64 // simulated time of the rollout, in nanoseconds
	tried sync.Map      // what it has been asked for: it fails the first time at most
}

// Info describes the model.
func (p *played) Info() models.Info { return p.Expert.Info }

// Generate answers after the request's purpose, which the built-in tools'
// instructions tell.
func (p *played) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.clock.Add(int64(p.Expert.Info.Latency))
	var all strings.Builder
	for _, m := range r.Messages {
		all.WriteString(m.Text)
		all.WriteByte('\n')
	}
	text := all.String()
	t := &p.in.Task
	told := true
	for _, f := range t.Facts {
		told = told && strings.Contains(text, f)
	}
	ran := strings.Contains(text, "Its output:\n"+t.Answer+"\n")
	purpose := forAnswer
	switch {
	case strings.Contains(text, "<query>"):
		purpose = forQuery
	case strings.Contains(text, "Write the arguments for one call"):
		purpose = forArgs
	case strings.Contains(text, "program, in a ```"):
		purpose = forCode
	}
	right := p.in.luck(p.Expert.Info.Name, purpose, told, ran) < chance(p.Quality, t, purpose, told, ran)
	reply, tokens := p.reply(purpose, right), p.Tokens
	finish := models.FinishStop
	switch {
	case p.in.luck(p.Expert.Info.Name, "fails", told, ran) < failing && p.first(purpose, told, ran):
		return nil, &models.Error{Model: p.Expert.Info.Name, Status: 503, Sent: true, Retryable: true, Body: "overloaded"}
	case purpose == forAnswer && p.in.luck(p.Expert.Info.Name, "is cut", told, ran) < cutting:
		reply, finish = "<answer>It is", models.FinishLength
	}
	if purpose != forAnswer {
		tokens = 30 + p.Tokens/4
	}
	return &models.Response{Text: reply, Finish: finish, Usage: cost.Usage{Input: int64(len(text) / 4), Output: int64(tokens), Known: true}}, nil
}

// first reports whether it is asked for the first time.
func (p *played) first(purpose string, told, ran bool) bool {
	_, again := p.tried.LoadOrStore(fmt.Sprint(purpose, told, ran), true)
	return !again
}

func (p *played) reply(purpose string, right bool) string {
	t := &p.in.Task
	switch purpose {
	case forQuery:
		return "<query>" + t.Prompt + "</query>"
	case forArgs:
		key := t.Key
		if !right || key == "" {
			key = "unknown"
		}
		b, _ := json.Marshal(map[string]string{"key": key})
		return string(b)
	case forCode:
		code := t.Code
		if !right {
			code = `print("` + t.Wrong + `")`
		}
		return "```javascript\n" + code + "\n```"
	}
	if right {
		return "<answer>" + t.Answer + "</answer>"
	}
	return "<answer>" + p.in.mistake(p.Expert.Info.Name) + "</answer>"
}

// luck is a number from 0 to 1 that depends on what is asked of whom alone: in
// all rollouts of an instance the same call has the same outcome.
func (in *Instance) luck(who, purpose string, told, ran bool) float64 {
	h := fnv.New64a()
	b := []byte{byte(in.Seed), byte(in.Seed >> 8), byte(in.Seed >> 16), byte(in.Seed >> 24), byte(in.Seed >> 32), 0, 0}
	if told {
		b[5] = 1
	}
	if ran {
		b[6] = 1
	}
	h.Write(b)
	h.Write([]byte(who + "/" + purpose))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// mistake is a wrong answer: often the one that others give too.
func (in *Instance) mistake(who string) string {
	if in.luck(who, "mistake", false, false) < 0.3 {
		return in.Task.Wrong
	}
	return in.Task.Wrong + " or " + who // no two alike
}

// Latencies of experts and tools are simulated: nobody waits.
var latencies = [...]time.Duration{time.Second, 3 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second}
