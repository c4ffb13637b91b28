// Command gencatalog writes the price list that package cost embeds, from the
// data file of pydantic/genai-prices (prices/new_data/v2/data_slim.json). It is
// run by hand, in the folder cost:
//
//	go run ./internal/gencatalog -in data_slim.json -commit 47df840a -date 2026-08-21 -out catalog.json
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/toolorchestra/toolorchestra-go/cost"
)

func main() {
	in := flag.String("in", "", "genai-prices' data file, format v2")
	out := flag.String("out", "catalog.json", "the file to write")
	commit := flag.String("commit", "", "the source's commit")
	date := flag.String("date", "", "the commit's date, 2006-01-02")
	flag.Parse()
	if err := convert(*in, *out, *commit, *date); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func convert(in, out, commit, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil || commit == "" {
		return fmt.Errorf("gencatalog: state -commit, and -date like 2026-08-21")
	}
	b, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	c, err := cost.Load(bytes.NewReader(b))
	if err != nil {
		return err
	}
	var w bytes.Buffer
	if err := c.From(cost.Source{Name: "pydantic/genai-prices", Commit: commit, Date: day}).Save(&w); err != nil {
		return err
	}
	return os.WriteFile(out, w.Bytes(), 0o644)
}
