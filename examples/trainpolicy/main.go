// Trainpolicy learns an embedded policy from recorded answers of models, shows
// what it is worth beside fixed rules, and runs it in an ordinary orchestrator:
//
//	go run ./examples/trainpolicy -models models.json -data train.jsonl.gz -val val.jsonl.gz -bound -out my.net
//
// Package orchestra/train/replay describes the files. Without -data it makes a
// log of two models itself. policy.LoadNetwork loads what -out wrote; unless it is
// bound it knows no model, so give it the cards in the file beside it
// (policy.WithCards).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/orchestra"
	"github.com/toolorchestra/toolorchestra-go/orchestra/policy"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	models := flag.String("models", "models.json", "names and prices of the recorded models")
	data := flag.String("data", "", "rows to learn from; empty = made up")
	val := flag.String("val", "", "rows to measure on; empty = a fifth of the data")
	out := flag.String("out", "policy.net", "where to write the weights")
	curve := flag.String("curve", "", "where to write the learning curve, as SVG")
	about := flag.String("about", "", "where the data come from; kept in the weights")
	bound := flag.Bool("bound", false, "learn parameters for these very models: a little better, and of no use for others")
	seed := flag.Uint64("seed", 1, "of all draws")
	effort := flag.Float64("effort", 1, "length of training")
	flag.Parse()

	fit, test, err := read(*models, *data, *val)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows to learn from, %d to measure on, %d models; %d rows cannot be used\n", len(fit.Rows), len(test.Rows), len(fit.Models), len(fit.Broken))
	for i, b := range fit.Broken {
		if i == 5 {
			fmt.Println("  …")
			break
		}
		fmt.Println(" ", b)
	}

	var course train.Course
	shown := time.Now()
	opts := []train.FitOption{train.WithSeed(*seed), train.WithEffort(*effort), train.WithAbout(*about), train.WithProgress(func(p train.Progress) {
		course.Add(p)
		if time.Since(shown) > 2*time.Second {
			shown = time.Now()
			fmt.Printf("%-9s %5d/%d  %.4f  %v left\n", p.Stage, p.Done, p.Of, p.Figure, p.Left.Round(time.Second))
		}
	})}
	if *bound {
		opts = append(opts, train.Bound())
	}
	w, err := train.Fit(ctx, fit, opts...)
	if err != nil {
		return err
	}
	if err := save(*out, *curve, w, &course); err != nil {
		return err
	}
	fmt.Printf("\nwritten to %s\n\n", *out)

	var cards []policy.Card
	if !*bound {
		cards = w.Cards(fit, 50, *seed)
		if err := keep(*out+".cards.json", cards); err != nil {
			return err
		}
	}
	if err := compare(w, fit, test, cards); err != nil {
		return err
	}
	return try(ctx, *out, test, cards)
}

// read opens the logs, or makes one.
func read(models, data, val string) (fit, test *replay.Log, err error) {
	if data == "" {
		fit = made(1000)
	} else if fit, err = replay.Open(models, data); err != nil {
		return nil, nil, err
	}
	if val != "" {
		test, err = replay.Open(models, val)
		return fit, test, err
	}
	part, rest := *fit, *fit
	part.Rows, rest.Rows = nil, nil
	for i, r := range fit.Rows {
		if i%5 == 4 {
			rest.Rows = append(rest.Rows, r)
		} else {
			part.Rows = append(part.Rows, r)
		}
	}
	return &part, &rest, nil
}

func save(out, curve string, w *train.Weights, course *train.Course) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := w.Write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil || curve == "" {
		return err
	}
	if f, err = os.Create(curve); err != nil {
		return err
	}
	if err := course.SVG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// keep writes what was measured of the models, for policy.WithCards.
func keep(path string, cards []policy.Card) error {
	b, err := json.MarshalIndent(cards, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// compare prints the policy beside fixed rules.
func compare(w *train.Weights, fit, test *replay.Log, cards []policy.Card) error {
	singles := replay.Singles(test, nil)
	low, best := singles[replay.Cheapest(test)], singles[replay.Strongest(test)]
	worths := replay.Worths(best.Cost/1000, best.Cost*1000, 48)
	c, err := w.Replay(test, worths, cards)
	if err != nil {
		return err
	}
	c.Name = "learned"
	curves := []*replay.Curve{{Name: "zero router"}, replay.Random(test, 1), replay.CheapFirst(fit, test), replay.Logistic(fit, test, worths, 1),
		replay.NaiveBayes(fit, test, worths), c, replay.Oracle(test, worths)}
	for m := range test.Models {
		curves[0].Runs = append(curves[0].Runs, replay.Single(test, m).Runs...)
	}
	fmt.Printf("%-26s  %6s  %6s  %s\n", "", "AUC", "best", "at this share of the strongest model's cost")
	for _, c := range curves {
		ps := c.Points(nil)
		top := replay.Top(replay.Hull(ps))
		fmt.Printf("%-26s  %6.4f  %6.4f  %.2f\n", c.Name, replay.AUC(ps, low.Cost, best.Cost), top.Accuracy, top.Cost/best.Cost)
	}
	return nil
}

// try runs a few tasks with the weights that were written.
func try(ctx context.Context, path string, test *replay.Log, cards []policy.Card) error {
	n, err := policy.LoadNetwork(path, policy.WithCards(cards...))
	if err != nil {
		return err
	}
	o, err := orchestra.New(orchestra.WithPolicy(n), orchestra.WithExperts(test.Experts()...), orchestra.WithBudget(cost.Budget{USD: cost.USD(1)}))
	if err != nil {
		return err
	}
	fmt.Println()
	for i := range test.Rows[:min(3, len(test.Rows))] {
		res, err := o.Run(ctx, orchestra.Task{Prompt: test.Rows[i].Query})
		if err != nil {
			return err
		}
		fmt.Printf("answer %q (right: %q) for %s\n", res.Answer, test.Rows[i].Answer, res.Spent.USD)
		for _, t := range res.Trajectory.Turns() {
			fmt.Println("  ", t.Decision.Reasoning)
		}
	}
	return nil
}
