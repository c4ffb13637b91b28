package train

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/general"
	"github.com/toolorchestra/toolorchestra-go/orchestra/internal/learned"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/internal/toolworld"
	"github.com/toolorchestra/toolorchestra-go/orchestra/train/replay"
)

// dataFolder is where real data is, "" if it is not here.
func dataFolder() string {
	dir := os.Getenv("TOOLORCHESTRA_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// realTexts are questions of people: of FRAMES, which have to be looked up, and of
// MMLU-Pro, which have not.
func realTexts(t testing.TB) (list []labelled) {
	dir := dataFolder()
	if dir == "" {
		t.Skip("there is no data for training: set TOOLORCHESTRA_DATA")
	}
	f, err := os.Open(filepath.Join(dir, "frames", "frames.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var q struct{ Question string }
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		list = append(list, labelled{q.Question, []float32{1, -1}})
	}
	l, err := replay.Open(filepath.Join(dir, "mmlupro", "models.json"), filepath.Join(dir, "mmlupro", "train.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(l.Rows); i += 8 {
		list = append(list, labelled{l.Rows[i].Query, []float32{0, -1}})
	}
	return list
}

// read fits a reading to generated texts, and to real ones if there are any.
func read(real []labelled, seed uint64) *general.Reading {
	rng := rand.New(rand.NewPCG(seed, 0x72656164))
	number := func(b bool) float32 {
		if b {
			return 1
		}
		return 0
	}
	texts := append([]labelled(nil), real...)
	for _, t := range toolworld.Tasks(rng, 6000) {
		want := []float32{number(t.LookUp), number(t.Compute)}
		if t.Custom { // it asks for a fact too, which no document has
			want[0] = -1
		}
		texts = append(texts, labelled{t.Text, want})
	}
	for range 10 {
		for _, t := range toolworld.Prompts() {
			texts = append(texts, labelled{t.Text, []float32{number(t.LookUp), number(t.Compute)}})
		}
	}
	var about []labelled
	for _, t := range toolworld.Descriptions() {
		about = append(about, labelled{t.Text, []float32{number(t.Finds), number(t.Computing), number(!t.Finds && !t.Computing)}})
	}
	return &general.Reading{Task: fitHead(texts, 2, 8, false, rng), Tool: fitHead(about, 3, 40, true, rng)}
}

func TestReading(t *testing.T) {
	r := read(realTexts(t), 1)
	w := general.New(nil)
	w.Reading = r
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	var h learned.Hasher
	right, n := map[string]int{}, map[string]int{}
	for _, in := range heldTexts() {
		needs := r.OfTask(in.Text, &h)
		for k, x := range map[string][2]bool{"look up": {needs[general.LookUp] > 0.5, in.LookUp}, "compute": {needs[general.Compute] > 0.5, in.Compute}} {
			n[k]++
			if x[0] == x[1] {
				right[k]++
			} else if n[k]%7 == 0 {
				t.Log(k, needs, in.Text)
			}
		}
	}
	t.Log(right, n)
	for _, q := range []string{"Which function compares two MACs without leaking timing information?", "What is 17.5 percent of 2,340?", "What is 8 times sha512.BlockSize?",
		"Who won the football match in Lisbon yesterday?", "How do I remove leading white space from a string?", "What is the weather in the city of Bergen today?", "Write a poem about autumn.",
		"Summarise this text: The meeting was long.", "Who was elected president of Portugal in 1976?", "How many primes are below 100?", "Explain recursion to a child", "hello", "What is our refund policy?", "Is 97 prime?"} {
		t.Log(r.OfTask(q, &h), q)
	}
	for _, q := range []string{"search Search for information that is missing, and gather the documents found.", "weather Weather of a city today.", "library Finds books and articles in the library and gathers their text.", "compute Have a program written and executed for calculations that are hard by hand.",
		"parking Free places in a parking garage.", "extract Answer the question by quoting the sentences of the documents found so far that fit it best.", "confluence Search pages in Confluence", "calculator Evaluates arithmetic exactly"} {
		t.Log(r.OfTool(q, &h), q)
	}
}

func heldTexts() []toolworld.Text { return toolworld.HeldTasks(rand.New(rand.NewPCG(9, 9)), 1200) }
