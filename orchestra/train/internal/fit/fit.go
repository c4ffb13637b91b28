package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
)

// Options are a training run's settings.
type Options struct {
	Seed        uint64
	Bind        bool // give the experts parameters of their own
	Calibration int  // tasks a domain on which a card is measured, when not bound
	Draws       int  // cards drawn
	Folds       int
	Sizes       learned.Sizes

	AnswerEpochs int
	AnswerRate   float64
	Decay        float64

	ValueSteps int
	ValueRate  float64

	GradientSteps     int
	GradientRate      float64
	Groups            int // a step
	Rollouts          int // a group
	Passes            int // over each batch
	Temperature       float32
	ClipLow, ClipHigh float64

	LambdaLow, LambdaHigh float64 // what the dearest expert's cost is worth, in probability

	Progress func(stage string, done, of int, figure float64) // called from one goroutine
	Stage    func(name string, n *learned.Net) error          // after each stage of the final network; its error ends Fit
}

// lambda draws what cost is worth.
func (o *Options) lambda(rng *rand.Rand) float32 {
	low, high := math.Log(o.LambdaLow), math.Log(o.LambdaHigh)
	return float32(math.Exp(low + rng.Float64()*(high-low)))
}

// Fit runs all stages.
func Fit(ctx context.Context, d *Data, o Options) (*learned.Net, error) {
	if len(d.Rows) < 10*o.Folds {
		return nil, fmt.Errorf("fit: %d rows are too few for %d folds", len(d.Rows), o.Folds)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int, float64) {}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6c6561726e))
	bound := 0
	if o.Bind {
		bound = d.experts()
	}
	f := &fitter{d: d, o: &o, bound: bound, fold: make([]int, len(d.Rows))}
	for at, i := range rng.Perm(len(d.Rows)) {
		f.fold[i] = at % o.Folds
	}
	for i := range d.Rows {
		f.all = append(f.all, i)
	}
	n := learned.New(len(d.Domains), bound, o.Sizes)
	for _, stage := range []func(*learned.Net, *rand.Rand) error{f.texts, f.secondLevel, f.answers, f.values, f.gradient} {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(errors.New("fit: stopped"), context.Cause(ctx))
		}
		if err := stage(n, rng); err != nil {
			return nil, err
		}
	}
	return n, nil
}

type fitter struct {
	d     *Data
	o     *Options
	bound int
	fold  []int
	all   []int
	w     *world
	j     *judge
}

func (f *fitter) done(stage string, n *learned.Net) error {
	if f.o.Stage != nil {
		return f.o.Stage(stage, n)
	}
	return nil
}

// outside lists the rows that are not in a fold.
func (f *fitter) outside(fold int) (rows []int) {
	for i, k := range f.fold {
		if k != fold {
			rows = append(rows, i)
		}
	}
	return rows
}

// texts fits the text model, and reads every row with one that did not see it.
func (f *fitter) texts(n *learned.Net, rng *rand.Rand) error {
	d := f.d
	texts := make([]string, len(d.Rows))
	for i := range texts {
		texts[i] = d.Rows[i].Text
	}
	weighBuckets(n, texts)
	f.w = &world{data: d, reads: make([]read, len(d.Rows)), fold: f.fold, pools: f.bound == 0}
	samples := make([]*sample, len(d.Rows))
	var h learned.Hasher
	for i := range d.Rows {
		s := &sample{features: append([]learned.TextFeature(nil), h.Features(texts[i], n.IDF)...), domain: d.Rows[i].Domain}
		for m := range f.bound {
			s.right = append(s.right, d.Rows[i].right(m))
		}
		samples[i] = s
		f.w.reads[i].options, f.w.reads[i].length, f.w.reads[i].digits = h.Options, h.Length, h.Digits
	}
	seeds := make([]uint64, f.o.Folds+1)
	for k := range seeds {
		seeds[k] = rng.Uint64()
	}
	each(f.o.Folds+1, func(k int) {
		own := rand.New(rand.NewPCG(seeds[k], 1))
		if k == f.o.Folds {
			fitText(n, samples, own)
			return
		}
		m := learned.New(n.Domains, n.Bound, f.o.Sizes)
		var some []*sample
		for _, i := range f.outside(k) {
			some = append(some, samples[i])
		}
		fitText(m, some, own)
		var t learned.Task
		for i, fold := range f.fold {
			if fold == k {
				m.Read(&t, samples[i].features)
				f.w.reads[i].domains, f.w.reads[i].text = append([]float32(nil), t.Domains...), append([]float32(nil), t.Text...)
			}
		}
	})
	f.o.Progress("text", f.o.Folds+1, f.o.Folds+1, f.hits())
	// The cards of a row are measured on rows of other folds.
	draws := f.o.Draws
	if f.bound > 0 {
		draws = 1
	}
	for range draws {
		var folds [][]learned.Card
		for k := range f.o.Folds {
			rows := f.outside(k)
			if f.bound == 0 {
				rows = d.Draw(rows, f.o.Calibration, rng)
			}
			folds = append(folds, d.Cards(rows))
		}
		f.w.cards = append(f.w.cards, folds)
	}
	return f.done("text", n)
}

// hits is the share of rows whose domain was recognised.
func (f *fitter) hits() float64 {
	n := 0
	for i := range f.d.Rows {
		best := 0
		for k, p := range f.w.reads[i].domains {
			if p > f.w.reads[i].domains[best] {
				best = k
			}
		}
		if best == f.d.Rows[i].Domain {
			n++
		}
	}
	return float64(n) / float64(len(f.d.Rows))
}

// secondLevel fits what bound experts make of the text's word and their record.
func (f *fitter) secondLevel(n *learned.Net, rng *rand.Rand) error {
	if f.bound == 0 {
		return nil
	}
	const epochs, rate = 5, 0.02
	var t learned.Task
	var x []float32
	width := n.Second.Out
	for m := range f.bound {
		n.Second.Weights[m*width+1], n.Second.Weights[m*width+3] = 0.3, 0.7
	}
	for epoch := range epochs {
		for _, i := range rng.Perm(len(f.d.Rows)) {
			f.d.begin(n, &t, i, &f.w.reads[i], f.w.cards[0][f.fold[i]], nil, nil)
			for m := range t.Experts {
				x = learned.SecondInputs(x[:0], &t, m)
				e := t.Experts[m].Accuracy()
				if f.d.Rows[i].right(m) {
					e--
				}
				w := n.Second.Weights[m*width:][:width]
				step := float32(rate / float64(1+epoch) * float64(e))
				for k, v := range x {
					w[k] -= float32(step * v)
				}
			}
		}
	}
	return f.done("second", n)
}

// answers fits the posterior, once for each fold and once for all.
func (f *fitter) answers(n *learned.Net, rng *rand.Rand) error {
	f.j = &judge{w: f.w}
	report := func(k int) func(int, int, float64) {
		return func(done, of int, loss float64) {
			f.o.Progress("answers", k*of+done, (f.o.Folds+1)*of, loss)
		}
	}
	for k := range f.o.Folds {
		m := *n
		fresh := learned.New(n.Domains, n.Bound, f.o.Sizes)
		m.Answer1, m.Answer2, m.None = fresh.Answer1, fresh.Answer2, 0
		fitAnswers(&m, f.w, f.outside(k), f.o, rng, report(k))
		f.j.nets = append(f.j.nets, &m)
	}
	fitAnswers(n, f.w, f.all, f.o, rng, report(f.o.Folds))
	return f.done("answers", n)
}

func (f *fitter) values(n *learned.Net, rng *rand.Rand) error {
	fitValues(n, f.j, f.all, f.o, rng, func(done, of int, loss float64) { f.o.Progress("values", done, of, loss) })
	return f.done("values", n)
}

func (f *fitter) gradient(n *learned.Net, rng *rand.Rand) error {
	if f.o.GradientSteps > 0 {
		policyGradient(n, f.j, f.all, f.o, rng, func(done, of int, reward float64) { f.o.Progress("gradient", done, of, reward) })
		return f.done("gradient", n)
	}
	return nil
}
