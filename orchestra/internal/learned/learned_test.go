package learned

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

var testSizes = Sizes{Answer: 8, Value1: 10, Value2: 6}

// random makes a network of small random numbers.
func random(domains, bound int, seed uint64) *Net {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := New(domains, bound, testSizes)
	for _, p := range append(n.floats(), n.Text.Weights) {
		for i := range p {
			p[i] = float32(rng.NormFloat64()) * 0.3
		}
	}
	for i := range n.IDF {
		n.IDF[i] = 1 + 5*rng.Float32()
	}
	n.None = -0.3
	return n
}

func card(rng *rand.Rand, domains int) *Card {
	c := &Card{Mean: rng.Float32(), Spread: 0.2 + rng.Float32()}
	for range domains {
		c.Skill = append(c.Skill, rng.Float32())
		c.Tokens = append(c.Tokens, 50+100*rng.Float32())
		c.LogTokens = append(c.LogTokens, 4+rng.Float32())
	}
	return c
}

// task makes a random task of five experts, of whom that many have answered.
func task(n *Net, asked int, seed uint64) *Task {
	rng := rand.New(rand.NewPCG(seed, 2))
	var h Hasher
	t := &Task{}
	n.Read(t, h.Features("Which of these is a prime number?\nOptions: (A) 4 (B) 7 (C) nine", n.IDF))
	t.Options, t.Length, t.Digits = h.Options, h.Length, h.Digits
	for i := range 5 {
		b := -1
		if n.Bound > 0 {
			b = i
		}
		t.Experts = append(t.Experts, Expert{Card: card(rng, n.Domains), Bound: b, In: rng.Float32(), Out: rng.Float32() / 100, Tokens: -1})
	}
	n.Begin(t)
	t.Lambda = 0.05
	for i := range asked {
		a := rng.IntN(min(t.Answers, 2)+2) - 1
		t.Reply(i, a, 60*rng.Float32())
	}
	return t
}

func TestGradientsAreThoseOfTheFunctions(t *testing.T) {
	for _, bound := range []int{0, 5} {
		n := random(3, bound, 1)
		var s Scratch
		for seed := range uint64(20) {
			k := task(n, int(seed%5), seed)
			g := New(3, bound, testSizes)
			var none float32
			right := int(seed%3) - 1
			if right >= k.Answers {
				right = -1
			}
			loss := func() float64 {
				p, none := n.Posterior(k, &s)
				if right >= 0 {
					none = p[right]
				}
				return -math.Log(float64(none))
			}
			d := []float32{1, -0.5, 0.25, 2, -1}
			value := func() float64 {
				p, none := n.Posterior(k, &s)
				sum := 0.0
				for i, v := range n.Values(k, p, none, &s) {
					if !k.Experts[i].Asked {
						sum += float64(d[i] * v)
					}
				}
				return sum
			}
			n.AnswerGrad(k, right, g, &none, &s)
			p, pn := n.Posterior(k, &s)
			n.ValueGrad(k, p, pn, d, g, &s)
			rng := rand.New(rand.NewPCG(seed, 3))
			check := func(name string, w, grad []float32, f func() float64) {
				for range min(8, len(w)) {
					i := rng.IntN(len(w))
					const step = 1e-2
					was := w[i]
					at := func(x float32) float64 {
						w[i] = x
						defer func() { w[i] = was }()
						return f()
					}
					up, mid, down := at(was+step), f(), at(was-step)
					left, slope, after := (mid-down)/step, (up-down)/(2*step), (up-mid)/step
					if math.Abs(left-after) > 0.01*max(0.1, math.Abs(slope)) {
						continue // a kink of the rectifier is between
					}
					if math.Abs(slope-float64(grad[i])) > 0.02*max(1, math.Abs(slope)) {
						t.Errorf("bound to %d, seed %d, %s[%d]: gradient %v, slope %v", bound, seed, name, i, grad[i], slope)
					}
				}
			}
			if k.Answers > 0 {
				check("Answer1", n.Answer1.Weights, g.Answer1.Weights, loss)
				check("Answer1 bias", n.Answer1.Bias, g.Answer1.Bias, loss)
				check("Answer2", n.Answer2.Weights, g.Answer2.Weights, loss)
				w := []float32{n.None}
				check("None", w, []float32{none}, func() float64 {
					was := n.None
					n.None = w[0]
					defer func() { n.None = was }()
					return loss()
				})
			}
			check("State", n.State.Weights, g.State.Weights, value)
			check("State bias", n.State.Bias, g.State.Bias, value)
			check("Offer", n.Offer.Weights, g.Offer.Weights, value)
			check("Value2", n.Value2.Weights, g.Value2.Weights, value)
			check("Value2 bias", n.Value2.Bias, g.Value2.Bias, value)
			check("Value3", n.Value3.Weights, g.Value3.Weights, value)
			check("Heads", n.Heads.Weights, g.Heads.Weights, value)
		}
	}
}

func TestProbabilitiesSumToOne(t *testing.T) {
	for _, bound := range []int{0, 5} {
		n := random(3, bound, 2)
		var s Scratch
		for seed := range uint64(50) {
			k := task(n, int(seed%6), seed)
			p, none := n.Posterior(k, &s)
			sum := none
			for _, v := range p {
				sum += v
			}
			if len(p) != k.Answers || math.Abs(float64(sum-1)) > 1e-5 || none < 0 {
				t.Errorf("%v and %v for %d answers", p, none, k.Answers)
			}
		}
	}
}

func TestTheOrderOfExpertsDoesNotMatter(t *testing.T) {
	n := random(3, 0, 3)
	var s Scratch
	k := task(n, 3, 1)
	p, none := n.Posterior(k, &s)
	before, values := p[0], append([]float32(nil), n.Values(k, p, none, &s)...)
	for i, j := 0, len(k.Experts)-1; i < j; i, j = i+1, j-1 {
		k.Experts[i], k.Experts[j] = k.Experts[j], k.Experts[i]
	}
	p, none = n.Posterior(k, &s)
	after := n.Values(k, p, none, &s)
	if math.Abs(float64(p[0]-before)) > 1e-5 {
		t.Errorf("the first answer is likely right %v, in another order %v", before, p[0])
	}
	for i, v := range values {
		if w := after[len(after)-1-i]; v != w && math.Abs(float64(v-w)) > 1e-5 {
			t.Errorf("expert %d is worth %v, in another order %v", i, v, w)
		}
	}
}

func TestCostIsTakenOffAtItsWeight(t *testing.T) {
	n := random(3, 0, 4)
	clear(n.Offer.Weights) // what was learned has the weight of cost as an input: leave the cost itself
	clear(n.State.Weights)
	var s Scratch
	k := task(n, 2, 1)
	p, none := n.Posterior(k, &s)
	before := append([]float32(nil), n.Values(k, p, none, &s)...)
	extra := k.Lambda
	k.Lambda *= 2
	p, none = n.Posterior(k, &s)
	for i, v := range n.Values(k, p, none, &s) {
		e := &k.Experts[i]
		if !e.Asked && math.Abs(float64(before[i]-v-extra*e.Cost())) > 1e-6 {
			t.Errorf("expert %d, of cost %v: %v, and %v at twice the weight", i, e.Cost(), before[i], v)
		}
	}
}

func TestFeaturesOfTexts(t *testing.T) {
	var h Hasher
	norm := func(text string) float64 {
		sum := 0.0
		for _, f := range h.Features(text, nil) {
			sum += float64(f.Value) * float64(f.Value)
		}
		return math.Sqrt(sum)
	}
	for _, text := range []string{"", "a", "Größe der Straße", "数学の問題", "x\xffy", strings.Repeat("word ", 100000)} {
		if l := norm(text); math.Abs(l-textScale) > 1e-3 {
			t.Errorf("%.20q has length %v", text, l)
		}
	}
	a := append([]TextFeature(nil), h.Features("The Quick fox", nil)...)
	b := h.Features("the quick FOX", nil)
	for i := range a {
		if a[i] != b[i] {
			t.Error("case matters")
		}
	}
	h.Features("What is it?\nOptions: (A) 1 (B) two (C) -3 (D) four", nil)
	if h.Options != 4 || h.Digits != 0.5 {
		t.Errorf("%d options, %v of them numbers", h.Options, h.Digits)
	}
	if h.Features("What is it?", nil); h.Options != 0 {
		t.Errorf("%d options of an open question", h.Options)
	}
}

func header(domains, bound int) Header {
	rng := rand.New(rand.NewPCG(1, 1))
	h := Header{Version: "test", About: "random", Domains: []string{"a", "b", "c"}[:domains], Prior: *card(rng, domains), Sizes: testSizes}
	for i := range bound {
		h.Experts = append(h.Experts, string(rune('p'+i)))
		h.Cards = append(h.Cards, *card(rng, domains))
	}
	return h
}

func TestFilesHoldWhatWasWritten(t *testing.T) {
	for _, bound := range []int{0, 5} {
		n := random(3, bound, 6)
		var b bytes.Buffer
		if err := Write(&b, header(3, bound), n); err != nil {
			t.Fatal(err)
		}
		first := bytes.Clone(b.Bytes())
		h, back, err := ReadFile(&b)
		if err != nil || h.Version != "test" || len(h.Experts) != bound {
			t.Fatal(h, err)
		}
		for i, p := range n.floats() {
			for k, v := range p {
				if back.floats()[i][k] != v {
					t.Fatalf("parameter %d of list %d: %v became %v", k, i, v, back.floats()[i][k])
				}
			}
		}
		for i, v := range n.Text.Weights {
			if math.Abs(float64(v-back.Text.Weights[i])) > 0.01 {
				t.Fatalf("text weight %d: %v became %v", i, v, back.Text.Weights[i])
			}
		}
		var again bytes.Buffer
		if err := Write(&again, h, back); err != nil || !bytes.Equal(first, again.Bytes()) {
			t.Errorf("bound to %d: a file that was read is written differently: %v", bound, err)
		}
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, header(2, 2), random(2, 2, 7)); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	change := func(f func(h *Header)) []byte {
		line, rest, _ := bytes.Cut(good, []byte("\n"))
		var h Header
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		f(&h)
		line, _ = json.Marshal(h)
		all := append(append(line, '\n'), rest[:len(rest)-4]...)
		return binary.LittleEndian.AppendUint32(all, crc32.ChecksumIEEE(all))
	}
	flip := func(at int) []byte {
		c := bytes.Clone(good)
		c[at] ^= 1
		return c
	}
	infinite := func() []byte {
		c := bytes.Clone(good[:len(good)-4])
		binary.LittleEndian.PutUint32(c[len(c)-4:], math.Float32bits(float32(math.Inf(1))))
		return binary.LittleEndian.AppendUint32(c, crc32.ChecksumIEEE(c))
	}
	if _, _, err := ReadFile(bytes.NewReader(change(func(*Header) {}))); err != nil {
		t.Fatal("the unchanged file: ", err)
	}
	for name, file := range map[string][]byte{
		"empty":            nil,
		"no header":        []byte("{}"),
		"not JSON":         []byte("x\n"),
		"cut":              good[:len(good)-1],
		"longer":           append(bytes.Clone(good), 0),
		"a bit of a text":  flip(len(good) / 2),
		"a bit of the sum": flip(len(good) - 1),
		"infinite":         infinite(),
		"other schema":     change(func(h *Header) { h.Schema = "toolorchestra.network/2" }),
		"other features":   change(func(h *Header) { h.Features++ }),
		"no domains":       change(func(h *Header) { h.Domains = nil }),
		"other domains":    change(func(h *Header) { h.Domains = h.Domains[:1] }),
		"twice the expert": change(func(h *Header) { h.Experts[1] = h.Experts[0] }),
		"no name":          change(func(h *Header) { h.Experts[1] = "" }),
		"no cards":         change(func(h *Header) { h.Cards = nil }),
		"skill above 1":    change(func(h *Header) { h.Cards[0].Skill[0] = 1.5 }),
		"negative tokens":  change(func(h *Header) { h.Prior.Tokens[0] = -1 }),
		"no width":         change(func(h *Header) { h.Sizes.Answer = 0 }),
		"huge width":       change(func(h *Header) { h.Sizes.Answer = 1 << 30 }),
		"too large":        make([]byte, maxFile+2),
	} {
		if _, _, err := ReadFile(bytes.NewReader(file)); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := ReadFile(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func FuzzReadFile(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, header(1, 1), random(1, 1, 8)); err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(b.Bytes(), []byte("\n"))
	f.Add(append(bytes.Clone(line), '\n'))
	f.Add([]byte(`{"schema":"toolorchestra.network/1","features":1,"domains":["a"],"sizes":{"Answer":256,"Value1":256,"Value2":256}}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, n, err := ReadFile(bytes.NewReader(file)); (err == nil) == (n == nil) {
			t.Error(n, err)
		}
	})
}

func FuzzFeatures(f *testing.F) {
	f.Add("What is it?\nOptions: (A) 1 (B) two")
	f.Fuzz(func(t *testing.T, text string) {
		var h Hasher
		seen := map[uint16]bool{}
		for _, x := range h.Features(text, nil) {
			if x.Index >= Buckets || seen[x.Index] || !(x.Value > 0 && x.Value <= textScale+1e-3) {
				t.Fatalf("%q: %+v", text, x)
			}
			seen[x.Index] = true
		}
	})
}
