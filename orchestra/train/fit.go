package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/fit"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// FitOption varies Fit.
type FitOption interface{ fit(*settings) }

// GRPOOption varies GRPO and, where that says so, Imitate.
type GRPOOption interface{ grpo(*settings) }

// Option varies all three.
type Option interface {
	FitOption
	GRPOOption
}

type fitOption func(*settings)

func (f fitOption) fit(s *settings) { f(s) }

type grpoOption func(*settings)

func (f grpoOption) grpo(s *settings) { f(s) }

type optionFunc func(*settings)

func (f optionFunc) fit(s *settings)  { f(s) }
func (f optionFunc) grpo(s *settings) { f(s) }

type settings struct {
	fit        fit.Options
	version    string
	about      string
	progress   func(Progress)
	checkpoint func(stage string, w *Weights) error
	grpo       grpoSettings
}

// WithSeed sets the seed of all draws; the default is 1. The same seed, log and
// options give the same weights, to the bit, on machines of one architecture and
// whatever their number of cores.
func WithSeed(seed uint64) Option { return optionFunc(func(s *settings) { s.fit.Seed = seed }) }

// Bound gives the log's models parameters of their own. The network is then
// worth a little more for them, and refuses to run with others.
func Bound() FitOption { return fitOption(func(s *settings) { s.fit.Bind = true }) }

// WithCalibration sets on how many tasks of each domain a card is measured for
// networks that are not bound, so that they learn how far to trust it; the
// default is 50.
func WithCalibration(tasks int) FitOption {
	return fitOption(func(s *settings) { s.fit.Calibration = tasks })
}

// WithEffort scales the length of training: 1 is the default, 0.1 a tenth.
func WithEffort(share float64) FitOption {
	return fitOption(func(s *settings) {
		if !(share > 0 && share <= 100) {
			share = math.NaN() // refused by Fit
		}
		n := func(x int) int { return max(int(float64(x)*share), 1) }
		if math.IsNaN(share) {
			n = func(int) int { return 0 }
		}
		s.fit.AnswerEpochs, s.fit.ValueSteps, s.fit.GradientSteps = n(answerEpochs), n(valueSteps), n(gradientSteps)
	})
}

// WithoutGradient leaves the policy gradient out: the network then looks one
// step ahead.
func WithoutGradient() FitOption {
	return fitOption(func(s *settings) { s.fit.Groups = 0 })
}

// WithVersion names the weights; the default is made of the seed.
func WithVersion(v string) Option { return optionFunc(func(s *settings) { s.version = v }) }

// WithAbout says where the log or the tasks come from; it is kept in the weights:
// Fit adds it to its own words, GRPO and Imitate put it in place of theirs.
func WithAbout(text string) Option { return optionFunc(func(s *settings) { s.about = text }) }

// WithProgress has f told how training goes: by Fit some hundred times, by GRPO
// after each step, from the goroutine that called them.
func WithProgress(f func(Progress)) Option {
	return optionFunc(func(s *settings) { s.progress = f })
}

// WithCheckpoint has f given the weights after each stage. From the stage
// "values" on they are a policy. An error of f ends Fit.
func WithCheckpoint(f func(stage string, w *Weights) error) FitOption {
	return fitOption(func(s *settings) { s.checkpoint = f })
}

// Progress is how far training is.
type Progress struct {
	Stage   string        // of Fit: text, answers, values, gradient; of GRPO: grpo
	Done    int           // steps of the stage …
	Of      int           // … of so many
	Figure  float64       // share of domains recognised, loss, loss, mean reward
	Flat    int           // of GRPO: groups of the step that taught nothing, their rewards being (nearly) equal
	Elapsed time.Duration // since it began
	Left    time.Duration // about how long it will take yet
}

// Default lengths of the stages.
const (
	answerEpochs  = 60
	valueSteps    = 6000
	gradientSteps = 3000
)

// minRows is the least log that can be learned from.
const minRows = 100

// ErrTrain means that nothing can be learned from a log, or with some options.
var ErrTrain = errors.New("train: cannot train")

// Fit learns a policy from recorded answers: to read tasks, to weigh answers by
// who gave them, and to ask on where that is worth its cost. It uses all cores.
// Errors wrap ErrTrain or the context's cause.
func Fit(ctx context.Context, l *replay.Log, opts ...FitOption) (*Weights, error) {
	s := settings{fit: fit.Options{
		Seed: 1, Calibration: 50, Draws: 8, Folds: 5,
		Sizes:        learned.Sizes{Answer: 48, Value1: 48, Value2: 24},
		AnswerEpochs: answerEpochs, AnswerRate: 2e-3, Decay: 0.15,
		ValueSteps: valueSteps, ValueRate: 2e-3,
		GradientSteps: gradientSteps, GradientRate: 1e-3, Groups: 24, Rollouts: 8, Passes: 1, Temperature: 0.03, ClipLow: 0.2, ClipHigh: 0.28,
		LambdaLow: learned.LambdaLow, LambdaHigh: learned.LambdaHigh,
	}}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: option %d is nil: leave it out", ErrTrain, i+1)
		}
		o.fit(&s)
	}
	if s.fit.Groups == 0 {
		s.fit.GradientSteps = 0
	}
	switch {
	case l == nil || len(l.Rows) < minRows:
		return nil, fmt.Errorf("%w: the log has fewer than %d usable rows", ErrTrain, minRows)
	case len(l.Models) < 2:
		return nil, fmt.Errorf("%w: the log has one model only, so there is nothing to choose", ErrTrain)
	case s.fit.ValueSteps < 1:
		return nil, fmt.Errorf("%w: WithEffort takes a share above 0, at most 100", ErrTrain)
	case s.fit.Calibration < 1:
		return nil, fmt.Errorf("%w: WithCalibration takes at least 1 task", ErrTrain)
	}
	if s.fit.Bind && len(l.Models) > learned.MaxBound {
		return nil, fmt.Errorf("%w: the log has %d models, and at most %d can be bound: leave some out, or Bound", ErrTrain, len(l.Models), learned.MaxBound)
	}
	domains := domainsOf(l)
	if len(domains) > maxDomains {
		return nil, fmt.Errorf("%w: the log has %d categories, and at most %d can be told apart: merge some", ErrTrain, len(domains), maxDomains)
	}
	d := dataOf(l, domains)
	all := make([]int, len(d.Rows))
	for i := range all {
		all[i] = i
	}
	cards := d.Cards(all)
	weights := func(stage string, n *learned.Net) *Weights {
		h := learned.Header{
			Version: s.version, Domains: domains, Prior: prior(cards), Sizes: s.fit.Sizes,
			About: fmt.Sprintf("Learned from %d recorded tasks and the answers of %d models.", len(l.Rows), len(l.Models)),
			Facts: map[string]string{"seed": strconv.FormatUint(s.fit.Seed, 10), "rows": strconv.Itoa(len(l.Rows)), "broken_rows": strconv.Itoa(len(l.Broken)), "stage": stage},
		}
		if s.about != "" {
			h.About += " " + s.about
		}
		if h.Version == "" {
			h.Version = "fit-" + h.Facts["seed"]
		}
		if s.fit.Bind {
			for _, m := range l.Models {
				h.Experts = append(h.Experts, m.Name)
			}
			h.Cards = cards
		}
		return &Weights{h: h, n: n}
	}
	begin := time.Now()
	if s.progress != nil {
		s.fit.Progress = func(stage string, done, of int, figure float64) {
			s.progress(progress(&s, stage, done, of, figure, time.Since(begin)))
		}
	}
	if s.checkpoint != nil {
		s.fit.Stage = func(stage string, n *learned.Net) error { return s.checkpoint(stage, weights(stage, n)) }
	}
	n, err := fit.Fit(ctx, d, s.fit)
	if err != nil {
		return nil, err
	}
	stage := "gradient"
	if s.fit.GradientSteps == 0 {
		stage = "values"
	}
	return weights(stage, n), nil
}

// maxDomains is what network files hold.
const maxDomains = 64

// progress says how long training will take, by what share of the whole each
// stage usually takes.
func progress(s *settings, stage string, done, of int, figure float64, elapsed time.Duration) Progress {
	p := Progress{Stage: stage, Done: done, Of: of, Figure: figure, Elapsed: elapsed}
	shares := []struct {
		stage string
		share float64
	}{{"text", 0.05}, {"answers", 0.3}, {"values", 0.2}, {"gradient", 0.45}}
	if s.fit.GradientSteps == 0 {
		shares = shares[:3]
	}
	var before, all float64
	for _, x := range shares {
		if x.stage == stage {
			before = all + x.share*float64(done)/float64(max(of, 1))
		}
		all += x.share
	}
	if before > 0 {
		p.Left = time.Duration(float64(elapsed) * (all - before) / before)
	}
	return p
}

// prior is the card of an expert that nobody measured: the mean of those that
// were.
func prior(cards []learned.Card) learned.Card {
	p := learned.Card{Skill: make([]float32, len(cards[0].Skill)), Tokens: make([]float32, len(cards[0].Skill)), LogTokens: make([]float32, len(cards[0].Skill))}
	n := float32(len(cards))
	for i := range cards {
		c := &cards[i]
		p.Mean += c.Mean / n
		p.Spread += c.Spread / n
		for k := range c.Skill {
			p.Skill[k] += c.Skill[k] / n
			p.Tokens[k] += c.Tokens[k] / n
			p.LogTokens[k] += c.LogTokens[k] / n
		}
	}
	return p
}

// Weights are what Fit learned. They are immutable.
type Weights struct {
	h learned.Header
	n *learned.Net
}

// Write writes the weights as a file for policy.ReadNetwork.
func (w *Weights) Write(to io.Writer) error { return learned.Write(to, w.h, w.n) }

// Domains are the kinds of tasks that the weights tell apart.
func (w *Weights) Domains() []string { return slices.Clone(w.h.Domains) }

// Cards measures the models of a log on up to perDomain tasks of each domain,
// drawn by the seed; 0 = all of them. Rows of categories that the weights do not
// know are left out.
func (w *Weights) Cards(l *replay.Log, perDomain int, seed uint64) []policy.Card {
	d := dataOf(l, w.h.Domains)
	var rows []int
	for i := range d.Rows {
		if c := category(&l.Rows[i]); slices.Contains(w.h.Domains, c) {
			rows = append(rows, i)
		}
	}
	if perDomain > 0 {
		rows = d.Draw(rows, perDomain, rand.New(rand.NewPCG(seed, 0x63617264)))
	}
	var out []policy.Card
	for m, c := range d.Cards(rows) {
		p := policy.Card{Name: l.Models[m].Name, Tasks: len(rows), Mean: float64(c.Mean), Spread: float64(c.Spread),
			Skill: map[string]float64{}, Tokens: map[string]float64{}, Logs: map[string]float64{}}
		for k, name := range w.h.Domains {
			p.Skill[name], p.Tokens[name], p.Logs[name] = float64(c.Skill[k]), float64(c.Tokens[k]), float64(c.LogTokens[k])
		}
		out = append(out, p)
	}
	return out
}

// Replay plays all rows of a log at each of some worths (USD that a right answer
// is worth) and returns the outcomes. It decides as policy.Network does, without
// the orchestrator around it. The cards are those of the models to offer, others
// are not asked; nil = those that the weights are bound to.
func (w *Weights) Replay(l *replay.Log, worths []float64, cards []policy.Card) (*replay.Curve, error) {
	var models, bound []int
	var list []learned.Card
	for m, model := range l.Models {
		b := slices.Index(w.h.Experts, model.Name)
		i := slices.IndexFunc(cards, func(c policy.Card) bool { return c.Name == model.Name })
		switch {
		case i >= 0:
			c := &cards[i]
			card, domain, ok := w.h.Card(&learned.Measures{Mean: c.Mean, Spread: c.Spread, Skill: c.Skill, Tokens: c.Tokens, Logs: c.Logs})
			if !ok {
				return nil, fmt.Errorf("train: the card of %q: its numbers for %q are out of range", c.Name, domain)
			}
			list = append(list, card)
		case cards == nil && b >= 0:
			list = append(list, w.h.Cards[b])
		default:
			continue
		}
		models, bound = append(models, m), append(bound, b)
	}
	if len(models) == 0 || len(w.h.Experts) > 0 && len(w.h.Experts) != len(models) {
		return nil, fmt.Errorf("%w: the log has %d of the models that there are cards for, and the weights are bound to %d", policy.ErrBinding, len(models), len(w.h.Experts))
	}
	c := &replay.Curve{Name: w.h.Version, Runs: make([][]replay.Outcome, len(worths))}
	for i := range c.Runs {
		c.Runs[i] = make([]replay.Outcome, len(l.Rows))
	}
	var wait sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		wait.Go(func() {
			p := &player{net: w.n, cards: list, models: models, bound: bound, prices: l.Models}
			var out played
			for r := core; r < len(l.Rows); r += cores {
				for i, worth := range worths {
					p.run(&l.Rows[r], worth, &out)
					c.Runs[i][r] = replay.Outcome{Right: out.right, Cost: out.usd, Asked: slices.Clone(out.asked), Answer: out.answer}
				}
			}
		})
	}
	wait.Wait()
	return c, nil
}

// inputTokens is what a policy takes a row's input to be.
func inputTokens(r *replay.Row) float32 { return learned.InputTokens(utf8.RuneCountInString(r.Query)) }

// Read reads weights that Write wrote. Errors wrap policy.ErrWeights.
func Read(r io.Reader) (*Weights, error) {
	h, n, err := learned.ReadFile(r)
	if errors.Is(err, learned.ErrFile) {
		return nil, fmt.Errorf("%w: %w", policy.ErrWeights, err)
	} else if err != nil {
		return nil, err
	}
	return &Weights{h: h, n: n}, nil
}
